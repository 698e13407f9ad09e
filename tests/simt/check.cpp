/* Runs all tests of the program, or those that its arguments name. */
#include "check.h"

#include <cstring>

int main(int argc, char **argv)
{
    int run = 0;
    for (const simt_test::test *t = simt_test::test::first; t; t = t->next) {
        bool named = argc == 1;
        for (int i = 1; i < argc; i++)
            named = named || strcmp(argv[i], t->name) == 0;
        if (!named)
            continue;
        int before = simt_test::failures;
        simt::device_reset();
        t->body();
        printf("%s %s\n", simt_test::failures == before ? "ok" : "FAILED", t->name);
        run++;
    }
    return run == 0 || simt_test::failures ? 1 : 0;
}

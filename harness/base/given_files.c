/* What a user gives for all cases. */
#include "base/given_files.h"

#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4 };

static struct lb_given_files current;
static char *owned[TEXTS];
static unsigned version;

/* Whether both texts are the same, or both are missing. */
static bool same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

enum lb_status lb_give_files(const struct lb_given_files *given, struct lb_error *err)
{
    const char *const texts[TEXTS] = {given->weights, given->prefix, given->inputs, given->tuned};
    const char **const places[TEXTS] = {&current.weights, &current.prefix, &current.inputs,
                                        &current.tuned};
    bool changed = current.batch_first != given->batch_first || current.tune != given->tune;
    for (int i = 0; i < TEXTS; i++) {
        if (same(texts[i], owned[i]))
            continue;
        char *copy = texts[i] ? strdup(texts[i]) : NULL;
        if (texts[i] && !copy)
            return lb_fail(err, LB_OOM, "out of memory for the name of a file");
        free(owned[i]);
        *places[i] = owned[i] = copy;
        changed = true;
    }
    current.batch_first = given->batch_first;
    current.tune = given->tune;
    version += changed;
    return LB_OK;
}

const struct lb_given_files *lb_given_files(void)
{
    return &current;
}

unsigned lb_given_files_version(void)
{
    return version;
}

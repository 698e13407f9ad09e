/* Filters: what is accepted can be evaluated for small and for the largest sizes. */
#include <stdlib.h>

#include "model/filter.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct lb_problem problems[] = {
        {.seq_len = 25, .batch = 8, .input = 13, .hidden = 64, .layers = 2, .directions = 1},
        {.seq_len = INT64_MAX,
         .batch = INT64_MAX,
         .input = INT64_MAX,
         .hidden = INT64_MAX,
         .layers = INT64_MAX,
         .directions = 2}};
    struct lb_error err = {""};
    char *text = fuzz_text(data, size);
    if (lb_filter_check(text, &err) == LB_OK) {
        for (size_t i = 0; i < 2; i++) {
            bool holds;
            if (lb_filter_matches(text, &problems[i], &holds, &err) != LB_OK)
                fuzz_require(err.text[0] != '\0', "a filter fails without a reason");
        }
    } else {
        fuzz_require(err.text[0] != '\0', "a filter is refused without a reason");
    }
    free(text);
    return 0;
}

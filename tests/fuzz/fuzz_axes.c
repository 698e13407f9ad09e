/* Axes of numbers and of words: values are within what is allowed, and a refusal leaves the axis as
 * it was. */
#include <stdlib.h>

#include "model/axes.h"
#include "tests/fuzz/input.h"

static void add(struct lb_axis *axis, const char *text, int of_words)
{
    static const char *const words[] = {"f64", "f32", "f16", "bf16", NULL};
    const struct lb_axis_info dtypes = {.flag = "--dtype", .words = words};
    const struct lb_axis_info numbers = {.flag = "-B", .what = "batch", .max = 4096};
    struct lb_error err = {""};
    size_t before = axis->count;
    enum lb_status st = lb_axis_add(axis, of_words ? &dtypes : &numbers, text, &err);
    if (st != LB_OK) {
        fuzz_require(axis->count == before, "a refused text changes the axis");
        fuzz_require(err.text[0] != '\0', "a text is refused without a reason");
        return;
    }
    fuzz_require(axis->count > before, "a text without values is taken");
    for (size_t i = before; i < axis->count; i++)
        fuzz_require(of_words ? axis->values[i] >= 0 && axis->values[i] < 4
                              : axis->values[i] >= 1 && axis->values[i] <= numbers.max,
                     "a value is not one of those allowed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    for (int words = 0; words < 2; words++) {
        struct lb_axis axis = {0};
        add(&axis, words ? "f32" : "1", words);
        add(&axis, text, words);
        lb_axis_free(&axis);
    }
    free(text);
    return 0;
}

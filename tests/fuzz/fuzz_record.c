/* Rows of a record: what was read can be written and read again as the same case and verdict. */
#include "record/record.h"
#include "tests/fuzz/input.h"

static void read_again(const struct lb_row *row)
{
    struct lb_row again = {0};
    struct lb_error err = {""};
    json_t *object = lb_row_to_json(row);
    fuzz_require(object != NULL, "a row that was read can't be written");
    fuzz_require(lb_row_from_json(object, &again, &err) == LB_OK,
                 "a row that was written is refused");
    fuzz_require(lb_case_same(&row->c, &again.c), "a row that was written has another case");
    fuzz_require(row->verdict == again.verdict && row->samples == again.samples,
                 "a row that was written has another verdict or other samples");
    lb_row_free(&again);
    json_decref(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = json_loadb((const char *)data, size, 0, NULL);
    struct lb_row row = {0};
    struct lb_error err = {""};
    if (object && lb_row_from_json(object, &row, &err) == LB_OK) {
        read_again(&row);
        lb_row_free(&row);
    } else if (object) {
        fuzz_require(err.text[0] != '\0', "a row is refused without a reason");
    }
    json_decref(object);
    return 0;
}

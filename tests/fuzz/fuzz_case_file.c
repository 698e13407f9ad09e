/* Case files: each case has a line and a column, and a refusal has a reason. */
#include "model/case_file.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lb_case_list list = {0};
    struct lb_error err = {""};
    char origin[128];
    if (lb_case_list_read(&list, fuzz_file(data, size), &err) == LB_OK) {
        fuzz_require(list.count > 0, "a file without cases is taken");
        for (size_t i = 0; i < list.count; i++) {
            fuzz_require(list.lines[i].line > 0 && list.lines[i].column > 0, "a case has no place");
            lb_case_line_origin(&list, &list.lines[i], origin, sizeof(origin));
        }
    } else {
        fuzz_require(err.text[0] != '\0', "a case file is refused without a reason");
    }
    lb_case_list_free(&list);
    return 0;
}

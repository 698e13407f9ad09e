/* Case texts: what was read and printed is read again as the same case with the same text. */
#include <stdlib.h>
#include <string.h>

#include "model/case.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lb_case first, second;
    struct lb_error err = {""};
    char printed[LB_CASE_ID_SIZE], again[LB_CASE_ID_SIZE];
    int column = -1;
    char *text = fuzz_text(data, size);
    if (lb_case_parse(text, &first, NULL, &column, &err) == LB_OK) {
        lb_case_print(&first, printed);
        fuzz_require(lb_case_parse(printed, &second, NULL, NULL, &err) == LB_OK,
                     "a printed case text is refused");
        fuzz_require(lb_case_same(&first, &second), "a printed case text means another case");
        lb_case_print(&second, again);
        fuzz_require(strcmp(printed, again) == 0, "a case is printed in two ways");
    } else {
        fuzz_require(err.text[0] != '\0', "a case text is refused without a reason");
        fuzz_require(column >= 1 && (size_t)column <= strlen(text) + 1,
                     "the column of a mistake is not in the text");
    }
    free(text);
    return 0;
}

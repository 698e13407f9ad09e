/* Run files. */
#include "record/run_file.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lb_run run = {0};
    struct lb_error err = {""};
    if (lb_run_read(fuzz_file(data, size), &run, &err) != LB_OK)
        fuzz_require(err.text[0] != '\0', "a run is refused without a reason");
    lb_run_free(&run);
    return 0;
}

/* Run files: whatever was read goes through every exporter. */
#include <stdio.h>
#include <stdlib.h>

#include "record/run_file.h"
#include "report/export.h"
#include "tests/fuzz/input.h"

static void export_all(const struct lb_run *run)
{
    for (const struct lb_export_format *format = lb_export_formats; format->name; format++) {
        char *text = NULL;
        size_t length = 0;
        struct lb_error err = {""};
        FILE *out = open_memstream(&text, &length);
        fuzz_require(out != NULL, "memory ran out");
        enum lb_status st = format->write(run, out, &err);
        fuzz_require(fclose(out) == 0, "memory ran out");
        fuzz_require(st == LB_OK, "a run that was read can't be exported");
        free(text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lb_run run = {0};
    struct lb_error err = {""};
    if (lb_run_read(fuzz_file(data, size), &run, &err) == LB_OK)
        export_all(&run);
    else
        fuzz_require(err.text[0] != '\0', "a run is refused without a reason");
    lb_run_free(&run);
    return 0;
}

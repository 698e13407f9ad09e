/* Exporters, held to files that were looked at once: tests/golden/export. A test that fails leaves
 * what it wrote in the build folder, for a look and perhaps a copy. */
#include <unistd.h>

#include "report/export.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

/* Two timed rows in two blocks, between them one of each other verdict, and last one with special
 * characters in its reason. */
static struct lb_run small_run(void)
{
    struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
    struct lb_row row;
    double samples[21]; /* as many as make percentiles whole: rounding differs between machines */
    for (int i = 0; i < 21; i++)
        samples[i] = 1000.5 + 10 * ((i * 8) % 21);
    for (int v = 0; v <= LB_VERDICT_COUNT; v++) {
        char id[LB_CASE_ID_SIZE];
        snprintf(id, sizeof(id), "cudnn:persist_static/T%d_B16_H512_L2_D2/f32/train/th2", v + 1);
        row = synthetic_row(id, (enum lb_verdict)(v % LB_VERDICT_COUNT), 0, 0, 0);
        if (lb_verdict_has_samples(row.verdict)) {
            lb_row_add_block(&row, samples, 12);
            lb_row_add_block(&row, samples + 12, 9);
            lb_row_summarize(&row);
        }
        synthetic_add(&run, row);
    }
    row = synthetic_row("cpu_ref/T1_B1_I3_H5/f64/infer", LB_VERDICT_CRASH, 0, 0, 0);
    lb_row_print(&row.reason, "killed by signal 11, \"segmentation fault\"\nin line two");
    synthetic_add(&run, row);
    return run;
}

TEST(every_format_is_as_its_golden_file)
{
    struct lb_run run = small_run();
    for (const struct lb_export_format *format = lb_export_formats; format->name; format++) {
        char golden[512], written[512];
        snprintf(golden, sizeof(golden), "%s/tests/golden/export/%s", LB_SOURCE_DIR,
                 format->file_name);
        snprintf(written, sizeof(written), "%s/%s", LB_BINARY_DIR, format->file_name);
        FILE *out = fopen(written, "w");
        assert_non_null(out);
        format->write(&run, out);
        fclose(out);
        char *expected = scratch_read(golden, NULL), *is = scratch_read(written, NULL);
        if (strcmp(expected, is) != 0)
            fail_msg("%s differs from %s", written, golden);
        free(expected);
        free(is);
        unlink(written);
    }
    lb_run_free(&run);
}

TEST(run_without_rows_is_a_whole_document)
{
    struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
    for (const struct lb_export_format *format = lb_export_formats; format->name; format++) {
        char text[8192] = "";
        FILE *out = fmemopen(text, sizeof(text), "w");
        format->write(&run, out);
        fclose(out);
        json_t *document = json_loads(text, 0, NULL);
        if (strcmp(format->name, "csv") == 0)
            assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
        else if (strcmp(format->name, "junit") == 0)
            assert_non_null(strstr(text, "tests=\"0\" failures=\"0\" errors=\"0\""));
        else if (strcmp(format->name, "markdown") == 0)
            assert_non_null(strstr(text, "|---|"));
        else
            assert_true(document && json_array_size(json_object_get(document, "benchmarks")) == 0);
        json_decref(document);
    }
    lb_run_free(&run);
}

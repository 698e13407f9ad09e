/* Writes a made-up run into a folder, with all that is derived from it: write_synthetic FOLDER.
 * Tests then read these files with other programs. */
#include <stdio.h>
#include <string.h>

#include "plot/plot.h"
#include "report/export.h"
#include "synthetic_run.h"

/* Rows of every verdict, of several blocks, of every kind of case. */
static struct lb_run make_run(void)
{
    static const char *const impls[] = {"cpu_ref", "cpu_simd", "cpu_simd:packed", "onednn", NULL};
    static const char *const tails[] = {"f32/infer", "bf16/train", NULL};
    static const int seq_len[] = {16, 64, 256, 0}, batch[] = {1, 8, 32, 0},
                     hidden[] = {64, 128, 200, 256, 0};
    const struct synthetic_grid grid = {impls, seq_len, batch, hidden, tails, true};
    struct lb_run run = synthetic_run(&grid);
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text),
                 "cudnn:persist_static/T%d_B8_I13_H64_L2_D2/f32/train/tf32/"
                 "ragged/act-relu/graph/cold/th2",
                 v + 1);
        synthetic_add(&run, synthetic_row(text, (enum lb_verdict)v, 5e5, 2, 10));
    }
    return run;
}

static enum lb_status write_run(const struct lb_run *run, const char *folder, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run_file file = {0};
    struct lb_run before = {0};
    json_t *details = json_deep_copy(run->header);
    json_object_del(details, "started");
    LB_TRY(lb_run_create(folder, details, &file, err));
    for (size_t i = 0; i < run->count; i++) {
        if (i == run->count / 2) { /* a second session */
            LB_TRY(lb_run_finish(&file, true, err));
            lb_run_close(&file);
            LB_TRY(lb_run_open(folder, &file, &before, err));
            LB_TRY(lb_run_resume(&file, details, err));
        }
        LB_TRY(lb_run_append(&file, &run->rows[i], err));
    }
    st = lb_run_finish(&file, false, err);
done:
    lb_run_close(&file);
    lb_run_free(&before);
    json_decref(details);
    return st;
}

static enum lb_status write_all(const struct lb_run *run, const char *folder, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char plots[4096];
    struct lb_plot_report report;
    snprintf(plots, sizeof(plots), "%s/plots", folder);
    const struct lb_plot_options options = {.folder = plots,
                                            .scripts = LB_SOURCE_DIR "/plots",
                                            .baseline = "cpu_ref",
                                            .time_limit_s = 60};
    LB_TRY(write_run(run, folder, err));
    for (const struct lb_export_format *format = lb_export_formats; format->name; format++)
        LB_TRY(lb_export_to_folder(format, run, folder, err));
    LB_TRY(lb_plot(run, &options, &report, err));
    printf("%zu rows, %zu pages\n%s\n", run->count, report.pages, report.notes);
done:
    return st;
}

int main(int argc, char **argv)
{
    struct lb_error err = {""};
    if (argc != 2) {
        fprintf(stderr, "usage: write_synthetic FOLDER\n");
        return 2;
    }
    struct lb_run run = make_run();
    enum lb_status st = write_all(&run, argv[1], &err);
    lb_run_free(&run);
    if (st != LB_OK)
        fprintf(stderr, "%s\n", err.text);
    return st == LB_OK ? 0 : 1;
}

/* Writes a synthetic run of a given kind into a folder: write_run FOLDER KIND. Tests use it to make
 * reports and pictures of unusual runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "synthetic_run.h"

static const char *const impls[] = {"cpu_ref", "cpu_simd", "cpu_simd:packed", "onednn", NULL};
static const char *const one_impl[] = {"cpu_simd", NULL}, *const no_impl[] = {NULL};
static const char *const tails[] = {"f32/infer", "f32/train", "bf16/infer", "bf16/train", NULL};
static const char *const infer[] = {"f32/infer", NULL};
static const int t_few[] = {16, 64, 256, 0}, b_few[] = {1, 8, 32, 0}, h_few[] = {64, 128, 256, 0};
static const int t_many[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 0};
static const int b_many[] = {1, 2, 4, 8, 16, 32, 64, 128, 0};
static const int h_four[] = {64, 128, 200, 256, 0};
static const int h_nine[] = {32, 64, 96, 128, 192, 256, 384, 512, 768, 0};

/* Text that would be markup if it were not escaped. */
static void make_names(struct lb_run *run)
{
    static const char nasty[] = "<script>document.title='hit'</script> & \"quotes\" 'n' </table>"
                                "<!--<script>\xe2\x80\xa8\xe2\x80\xa9"; /* U+2028, U+2029 */
    for (size_t i = 0; i < run->count; i++) {
        struct lb_row *row = &run->rows[i];
        if (row->verdict != LB_VERDICT_OK)
            lb_row_print(&row->reason, "%s", nasty);
        lb_row_print(&row->description, "%s", nasty);
    }
    json_object_set_new(run->header, "plugins", json_pack("[s]", "/tmp/it's <b> & so.so"));
}

/* Rows of every verdict, of several blocks, of every kind of case. */
static void make_verdicts(struct lb_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->rows[i].c.problem.pass == LB_TRAIN && run->rows[i].verdict == LB_VERDICT_OK)
            run->rows[i].gradient_err_norm = 1e-6 + 1e-9 * (double)i;
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text),
                 "cudnn:persist_static/T%d_B8_I13_H64_L2_D2/f32/train/tf32/"
                 "ragged/act-relu/graph/cold/th2",
                 v + 1);
        synthetic_add(run, synthetic_row(text, (enum lb_verdict)v, 5e5, 2, 10));
    }
}

static const struct {
    const char *kind;
    struct synthetic_grid grid;
    void (*change)(struct lb_run *run); /* NULL: it is the plain grid */
} kinds[] = {
    {"usual", {impls, t_few, b_few, h_few, tails, true}, NULL},
    {"whole", {impls, t_few, b_few, h_few, tails, false}, NULL},
    {"one-impl", {one_impl, t_few, b_few, h_few, infer, false}, NULL},
    {"10000", {impls, t_many, b_many, h_nine, tails, true}, NULL}, /* 11,520 less the missing */
    {"names", {impls, t_few, b_few, h_few, infer, true}, make_names},
    {"verdicts", {impls, t_few, b_few, h_four, tails, true}, make_verdicts},
    {"empty", {no_impl, t_few, b_few, h_few, infer, false}, NULL},
};

static bool make(const char *kind, struct lb_run *run)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].kind, kind) != 0)
            continue;
        *run = synthetic_run(&kinds[i].grid);
        if (kinds[i].change)
            kinds[i].change(run);
        return true;
    }
    return false;
}

/* Writes the run in two sessions where it is of several verdicts, else in one. */
static enum lb_status write_run(const struct lb_run *run, const char *folder, bool twice,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run_file file = {0};
    struct lb_run before = {0};
    json_object_del(run->header, "started");
    LB_TRY(lb_run_create(folder, run->header, &file, err));
    for (size_t i = 0; i < run->count; i++) {
        if (twice && i == run->count / 2) {
            LB_TRY(lb_run_finish(&file, true, err));
            lb_run_close(&file);
            LB_TRY(lb_run_open(folder, &file, &before, err));
            LB_TRY(lb_run_resume(&file, run->header, err));
        }
        LB_TRY(lb_run_append(&file, &run->rows[i], err));
    }
    st = lb_run_finish(&file, false, err);
done:
    lb_run_close(&file);
    lb_run_free(&before);
    return st;
}

int main(int argc, char **argv)
{
    struct lb_error err = {""};
    struct lb_run run = {0};
    if (argc != 3 || !make(argv[2], &run)) {
        fprintf(stderr, "usage: write_run FOLDER KIND\n");
        return 2;
    }
    enum lb_status st = write_run(&run, argv[1], strcmp(argv[2], "verdicts") == 0, &err);
    if (st != LB_OK)
        fprintf(stderr, "%s\n", err.text);
    lb_run_free(&run);
    return st == LB_OK ? 0 : 1;
}

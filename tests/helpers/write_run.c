/* Writes a synthetic run of a given kind into a folder: write_run FOLDER KIND. Tests use it to make
 * reports and pictures of unusual runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random_draws.h"
#include "synthetic_run.h"

static const char *const impls[] = {"cpu_ref", "cpu_simd", "cpu_simd:packed", "onednn", NULL};
static const char *const one_impl[] = {"cpu_simd", NULL};
static const char *const tails[] = {"f32/infer", "f32/train", "bf16/infer", "bf16/train", NULL};
static const char *const infer[] = {"f32/infer", NULL};
static const int t_few[] = {16, 64, 256, 0}, b_few[] = {1, 8, 32, 0}, h_few[] = {64, 128, 256, 0};
static const int t_some[] = {16, 32, 64, 128, 256, 0}, b_some[] = {1, 4, 16, 64, 0};
static const int t_many[] = {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 0};
static const int b_many[] = {1, 2, 4, 8, 16, 32, 64, 128, 0};
static const int h_many[] = {32, 64, 128, 256, 0};
static const int h_nine[] = {32, 64, 96, 128, 192, 256, 384, 512, 768, 0};
static const int h_most[] = {16,  32,  64,  96,  128, 160, 192,  224, 256,
                             320, 384, 448, 512, 640, 768, 1024, 0};

/* The kinds that are a plain grid. */
static const struct {
    const char *kind;
    struct synthetic_grid grid;
} grids[] = {
    {"usual", {impls, t_few, b_few, h_few, tails, true}},
    {"whole", {impls, t_few, b_few, h_few, tails, false}},
    {"one-impl", {one_impl, t_few, b_few, h_few, infer, false}},
    {"1000", {impls, t_many, b_many, h_many, infer, true}},       /* 1,280 less the missing */
    {"1000-mixed", {impls, t_some, b_some, h_many, tails, true}}, /* likewise */
    {"10000", {impls, t_many, b_many, h_nine, tails, true}},      /* 11,520 less the missing */
    {"20000", {impls, t_many, b_many, h_most, tails, true}},      /* 20,480 */
};

static void make_single(struct lb_run *run)
{
    synthetic_add(run, synthetic_row("cpu_simd/T16_B1_H64/f32/infer", LB_VERDICT_OK, 5e5, 2, 10));
}

static void make_failed(struct lb_run *run)
{
    static const char *const cases[] = {"cpu_ref/T16_B1_H64/f32/infer",
                                        "cpu_simd/T16_B1_H64/f32/infer",
                                        "cpu_simd/T16_B1_H128/f32/infer"};
    for (size_t i = 0; i < 3; i++)
        synthetic_add(run,
                      synthetic_row(cases[i], i ? LB_VERDICT_CRASH : LB_VERDICT_WRONG, 0, 0, 0));
}

/* Text that would be markup if it were not escaped. */
static void make_names(struct lb_run *run)
{
    static const char nasty[] = "<script>document.title='hit'</script> & \"quotes\" 'n' </table>"
                                "<!--<script>\xe2\x80\xa8\xe2\x80\xa9"; /* U+2028, U+2029 */
    const struct synthetic_grid grid = {impls, t_few, b_few, h_few, infer, true};
    lb_run_free(run);
    *run = synthetic_run(&grid);
    for (size_t i = 0; i < run->count; i++) {
        struct lb_row *row = &run->rows[i];
        if (row->verdict != LB_VERDICT_OK)
            lb_row_print(&row->reason, "%s", nasty);
        lb_row_print(&row->description, "%s", nasty);
    }
    json_object_set_new(run->header, "plugins", json_pack("[s]", "/tmp/it's <b> & so.so"));
}

/* Rows with a lower bound, where one implementation is faster at small H and another at large H. */
static void make_lower_bounds(struct lb_run *run)
{
    static const char *const two[] = {"cpu_simd", "onednn", NULL};
    for (const char *const *impl = two; *impl; impl++)
        for (const int *t = t_few; *t; t++)
            for (const int *b = b_few; *b; b++)
                for (const int *h = h_few; *h; h++) {
                    char text[128];
                    snprintf(text, sizeof(text), "%s/T%d_B%d_H%d/f32/infer", *impl, *t, *b, *h);
                    bool own = (*impl[0] == 'o') == (*h >= 128);
                    double ns = 1e3 * *t * *b * *h / 64.0;
                    struct lb_row row =
                        synthetic_row(text, LB_VERDICT_OK, own ? ns : 1.5 * ns, 2, 20);
                    row.floor_ns = 0.4 * ns;
                    synthetic_add(run, row);
                }
}

/* Two implementations that can't be told apart, and a slower one with too few samples for an
 * interval. */
static void make_ties(struct lb_run *run)
{
    static const char *const cases[] = {"cpu_ref/T16_B1_H64/f32/infer",
                                        "cpu_simd/T16_B1_H64/f32/infer",
                                        "onednn/T16_B1_H64/f32/infer"};
    synthetic_add(run, synthetic_row(cases[0], LB_VERDICT_OK, 1e6, 1, 20));
    synthetic_add(run, synthetic_row(cases[1], LB_VERDICT_OK, 0.99e6, 1, 20));
    synthetic_add(run, synthetic_row(cases[2], LB_VERDICT_OK, 2e6, 1, 1));
}

/* Two implementations of 3 processes each, too few for an interval. */
static void make_few_processes(struct lb_run *run)
{
    synthetic_add_processes(run, "cpu_ref/T16_B1_H64/f32/infer", 1e6, 3, 1);
    synthetic_add_processes(run, "cpu_simd/T16_B1_H64/f32/infer", 0.999e6, 3, 1);
}

/* Random cases: hardly two of them share all sizes but one. */
static void make_random(struct lb_run *run)
{
    static const char *const layers[] = {"", "_L2", "_L4", "_D2"};
    uint64_t state = 7;
    for (int i = 0; i < 240; i++) {
        char text[128];
        struct lb_case c;
        uint64_t bits = draws_bits(&state);
        snprintf(text, sizeof(text), "%s/T%u_B%u_H%u%s/%s", impls[bits % 4],
                 1 + (unsigned)(bits >> 8 & 255), 1 + (unsigned)(bits >> 16 & 63),
                 8 + (unsigned)(bits >> 24 & 511), layers[bits >> 34 & 3], tails[bits >> 36 & 3]);
        if (lb_case_parse(text, &c, NULL, NULL, NULL) != LB_OK)
            abort();
        synthetic_add(run, synthetic_row(text, LB_VERDICT_OK, synthetic_ns(&c), 1, 20));
    }
}

/* Few cases that ran, among many that are absent or unsupported for one reason each. */
static void make_absent(struct lb_run *run)
{
    static const char *const absent[] = {"cudnn", "cuda_step", "fused"};
    char text[128];
    for (int i = 0; i < 16; i++) {
        snprintf(text, sizeof(text), "%s/T%d_B1_H64/f32/infer", i % 2 ? "cpu_simd" : "onednn",
                 8 << (i / 2));
        synthetic_add(run, synthetic_row(text, LB_VERDICT_OK, 1e6 * (1 + i), 1, 20));
    }
    for (int i = 0; i < 200; i++) {
        snprintf(text, sizeof(text), "%s/T%d_B1_H64/f32/infer",
                 absent[i < 80    ? 0
                        : i < 160 ? 1
                                  : 2],
                 1 + i);
        struct lb_row row = synthetic_row(text, LB_VERDICT_ABSENT, 0, 0, 0);
        lb_row_print(&row.reason, "CUDA is not in this build");
        synthetic_add(run, row);
    }
    for (int i = 0; i < 64; i++) {
        snprintf(text, sizeof(text), "fused/T%d_B1_H65/f32/infer", 1 + i);
        struct lb_row row = synthetic_row(text, LB_VERDICT_UNSUPPORTED, 0, 0, 0);
        lb_row_print(&row.reason, "hidden 65 is not a multiple of 8");
        synthetic_add(run, row);
    }
}

/* Rows of every verdict, of several blocks, of every kind of case. */
static void make_verdicts(struct lb_run *run)
{
    static const char *const two[] = {"f32/infer", "bf16/train", NULL};
    static const int hidden[] = {64, 128, 200, 256, 0};
    const struct synthetic_grid grid = {impls, t_few, b_few, hidden, two, true};
    lb_run_free(run);
    *run = synthetic_run(&grid);
    for (int v = 0; v < LB_VERDICT_COUNT; v++) {
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text),
                 "cudnn:persist_static/T%d_B8_I13_H64_L2_D2/f32/train/tf32/"
                 "ragged/act-relu/graph/cold/th2",
                 v + 1);
        synthetic_add(run, synthetic_row(text, (enum lb_verdict)v, 5e5, 2, 10));
    }
}

static bool make(const char *kind, struct lb_run *run)
{
    static const struct {
        const char *kind;
        void (*make)(struct lb_run *run);
    } others[] = {{"single", make_single},       {"failed", make_failed},
                  {"ties", make_ties},           {"names", make_names},
                  {"absent", make_absent},       {"random", make_random},
                  {"floors", make_lower_bounds}, {"few-processes", make_few_processes},
                  {"verdicts", make_verdicts}};
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        if (strcmp(grids[i].kind, kind) == 0) {
            *run = synthetic_run(&grids[i].grid);
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strcmp(others[i].kind, kind) == 0) {
            *run = synthetic_empty();
            others[i].make(run);
            return true;
        }
    }
    if (strcmp(kind, "empty") != 0)
        return false;
    *run = synthetic_empty();
    return true;
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

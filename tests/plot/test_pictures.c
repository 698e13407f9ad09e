/* Pictures: their data are those of the records, and a sentence explains every missing picture. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/palette.h"
#include "plot/pictures.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"

static const char *const two_impls[] = {"cpu_ref", "cpu_simd", NULL};
static const char *const infer[] = {"f32/infer", NULL};
static const char *const all_tails[] = {"f32/infer", "f32/train", "bf16/infer", "bf16/train", NULL};
static const int t_values[] = {32, 128, 0}, b_values[] = {1, 8, 0}, h_values[] = {64, 128, 256, 0};
static const struct synthetic_grid infer_grid = {two_impls, t_values, b_values,
                                                 h_values,  infer,    false};

/* Draws into the scratch folder. */
static enum lb_status draw(const struct lb_run *run, const char *kinds, const char *baseline,
                           struct lb_picture_report *report, struct lb_error *err)
{
    struct lb_grouped_run grouped;
    assert_int_equal(lb_group_run(run, baseline, &grouped, err), LB_OK);
    enum lb_status st = lb_pictures_draw(&grouped, scratch_folder(), kinds, 30, report, err);
    lb_grouped_run_free(&grouped);
    return st;
}

/* Draws what must succeed. */
static struct lb_picture_report draw_all(const struct lb_run *run, const char *kinds,
                                         const char *baseline)
{
    struct lb_picture_report report;
    struct lb_error err = {""};
    if (draw(run, kinds, baseline, &report, &err) != LB_OK)
        fail_msg("%s", err.text);
    return report;
}

static FILE *open_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "plots/%s", name);
    FILE *file = fopen(scratch_path(path), "r");
    if (!file)
        fail_msg("%s is missing", name);
    return file;
}

static bool exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "plots/%s", name);
    return access(scratch_path(path), F_OK) == 0;
}

static const struct lb_row *find(const struct lb_run *run, const char *id)
{
    for (size_t i = 0; i < run->count; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_case_print(&run->rows[i].c, text);
        if (strcmp(text, id) == 0)
            return &run->rows[i];
    }
    return NULL;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

/* The row of the same implementation and sizes in another dtype and pass. */
static const struct lb_row *other(const struct lb_run *run, const struct lb_row *row,
                                  enum lb_dtype dtype, enum lb_pass pass)
{
    struct lb_case c = row->c;
    char id[LB_CASE_ID_SIZE];
    c.problem.dtype = dtype;
    c.problem.pass = pass;
    lb_case_print(&c, id);
    return find(run, id);
}

struct expected {
    double x, y;
};

static struct expected expect_time_t(const struct lb_run *run, const struct lb_row *row)
{
    double steps = (double)row->c.problem.seq_len;
    (void)run;
    return (struct expected){steps, lb_row_is_timed(row) ? row->median_ns / steps : NAN};
}

static struct expected expect_time_b(const struct lb_run *run, const struct lb_row *row)
{
    return (struct expected){(double)row->c.problem.batch, expect_time_t(run, row).y};
}

static struct expected expect_time_h(const struct lb_run *run, const struct lb_row *row)
{
    return (struct expected){(double)row->c.problem.hidden, expect_time_t(run, row).y};
}

static struct expected expect_training(const struct lb_run *run, const struct lb_row *row)
{
    const struct lb_row *base = other(run, row, row->c.problem.dtype, LB_INFER);
    bool known = base && lb_row_is_timed(base) && lb_row_is_timed(row);
    return (struct expected){(double)row->c.problem.hidden,
                             known ? row->median_ns / base->median_ns : NAN};
}

static struct expected expect_precision(const struct lb_run *run, const struct lb_row *row)
{
    const struct lb_row *base = other(run, row, LB_F32, row->c.problem.pass);
    bool known = base && lb_row_is_timed(base) && lb_row_is_timed(row);
    return (struct expected){(double)row->c.problem.hidden,
                             known ? base->median_ns / row->median_ns : NAN};
}

static struct expected expect_peak(const struct lb_run *run, const struct lb_row *row)
{
    (void)run;
    return (struct expected){(double)row->c.problem.hidden,
                             row->verdict == LB_VERDICT_OK ? row->peak_bytes : NAN};
}

static struct expected expect_rate(const struct lb_run *run, const struct lb_row *row)
{
    (void)run;
    return (struct expected){row->flops / row->bytes, row->flops / row->median_ns};
}

/* Compared with the fastest of its sizes in f32. */
static struct expected expect_error(const struct lb_run *run, const struct lb_row *row)
{
    double best = INFINITY;
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_problem *p = &run->rows[i].c.problem, *q = &row->c.problem;
        if (p->dtype == LB_F32 && p->pass == q->pass && p->seq_len == q->seq_len &&
            p->batch == q->batch && p->hidden == q->hidden && lb_row_is_timed(&run->rows[i]))
            best = fmin(best, run->rows[i].median_ns);
    }
    return (struct expected){row->gradient_err_norm, best / row->median_ns};
}

static void data_of_charts_are_the_records(void **state)
{
    static const struct {
        const char *name;
        struct expected (*expect)(const struct lb_run *run, const struct lb_row *row);
    } files[] = {
        {"time-t_f32_infer.dat", expect_time_t},
        {"time-b_f32_infer.dat", expect_time_b},
        {"time-h_f32_infer.dat", expect_time_h},
        {"training_bf16_train.dat", expect_training},
        {"precision_bf16_infer.dat", expect_precision},
        {"memory_f32_train.dat", expect_peak},
        {"roofline_f32_infer.dat", expect_rate},
        {"error_train.dat", expect_error},
    };
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, all_tails, true};
    struct lb_run run = synthetic_run(&grid);
    (void)state;
    for (size_t i = 0; i < run.count; i++)
        if (run.rows[i].c.problem.pass == LB_TRAIN)
            run.rows[i].gradient_err_norm =
                run.rows[i].c.problem.dtype == LB_F32 ? 1e-6 + 1e-9 * (double)i : 1e-2;
    draw_all(&run, NULL, "cpu_ref");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char line[1024], id[LB_CASE_ID_SIZE];
        double x, y, lo, hi;
        size_t seen = 0;
        FILE *file = open_file(files[i].name);
        while (fgets(line, sizeof(line), file)) {
            /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
            if (sscanf(line, "%lf %lf %lf %lf \"%255[^\"]\"", &x, &y, &lo, &hi, id) != 5)
                continue;
            const struct lb_row *row = find(&run, id);
            assert_non_null(row);
            struct expected expected = files[i].expect(&run, row);
            if (x != expected.x || !same(y, expected.y))
                fail_msg("%s: %s: %g %g", files[i].name, id, x, y);
            assert_true(isnan(y) || files[i].expect == expect_peak || (lo <= y && y <= hi));
            seen++;
        }
        fclose(file);
        assert_true(seen >= 8);
    }
    lb_run_free(&run);
}

/* One cell of a heat map as its data say it. */
struct cell {
    int h, b, state;
    double speedup, base, median;
    char text[32];
};

static bool read_cell(const char *line, struct cell *cell)
{
    /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
    return sscanf(line, "%d %d %*d %*d %lf %d \"%31[^\"]\" %lf %lf", &cell->h, &cell->b,
                  &cell->speedup, &cell->state, cell->text, &cell->base, &cell->median) == 7;
}

static void cells_are_quotients_of_medians(void **state)
{
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, true};
    struct lb_run run = synthetic_run(&grid);
    char line[1024], id[LB_CASE_ID_SIZE];
    int t = 0;
    size_t cells = 0, states[5] = {0};
    struct cell cell;
    (void)state;
    draw_all(&run, "speedup-b", "cpu_ref");
    FILE *file = open_file("speedup-b_f32_infer.dat");
    while (fgets(line, sizeof(line), file)) {
        /* NOLINTNEXTLINE(cert-err34-c): what does not read is no heading */
        sscanf(line, "# cpu_simd, T = %d", &t);
        if (!read_cell(line, &cell))
            continue;
        cells++;
        states[cell.state]++;
        if (cell.state == 4)
            continue; /* no row */
        snprintf(id, sizeof(id), "cpu_simd/T%d_B%d_I%d_H%d/f32/infer", t, cell.b, cell.h, cell.h);
        const struct lb_row *own = find(&run, id);
        assert_true(own && same(cell.median, own->median_ns));
        assert_int_equal(cell.state == 0 || cell.state == 3, lb_row_is_timed(own));
        assert_int_equal(cell.state == 2, lb_verdict_is_failure(own->verdict));
        assert_true(cell.state != 0 || cell.speedup == cell.base / cell.median);
    }
    fclose(file);
    assert_int_equal(cells, 2 * 2 * 3);
    assert_true(states[0] > 0 && states[0] < cells);
    lb_run_free(&run);
}

static void cells_whose_intervals_overlap_have_the_sign_of_a_tie(void **state)
{
    struct lb_run run = synthetic_empty();
    char line[1024];
    size_t cells = 0;
    struct cell cell;
    (void)state;
    for (int i = 0; i < 8; i++) {
        bool base = i & 1, wide = i & 2;
        char id[LB_CASE_ID_SIZE];
        snprintf(id, sizeof(id), "%s/T4_B%d_H%d/f32/infer", base ? "cpu_ref" : "cpu_simd",
                 i & 4 ? 8 : 1, wide ? 128 : 64);
        double ns = base ? 1e6 : wide ? 5e5 : 0.9999e6;
        synthetic_add(&run, synthetic_row(id, LB_VERDICT_OK, ns, 1, 20));
    }
    draw_all(&run, "speedup-b", "cpu_ref");
    FILE *file = open_file("speedup-b_f32_infer.dat");
    while (fgets(line, sizeof(line), file)) {
        if (!read_cell(line, &cell))
            continue;
        cells++;
        assert_int_equal(cell.text[0] == '=', cell.h == 64);
    }
    fclose(file);
    assert_int_equal(cells, 4);
    lb_run_free(&run);
}

/* Asserts that the script has this line, which is a setting. */
static void assert_setting(const char *script, const char *line)
{
    char text[1024];
    bool found = false;
    FILE *file = open_file(script);
    while (fgets(text, sizeof(text), file) && !found)
        found = strncmp(text, line, strlen(line)) == 0 && text[strlen(line)] == '\n';
    fclose(file);
    if (!found)
        fail_msg("%s has no line '%s'", script, line);
}

/* An oracle that is 50 times as slow must not hide differences of 10 % in a wide range of colours.
 */
static void one_slow_series_does_not_stretch_the_colours(void **state)
{
    static const struct {
        double ns[3]; /* of onednn, the baseline, and two others */
        const char *range, *clipped;
    } trials[] = {
        {{1e6, 1.1e6, 50e6}, "range = 1", "clipped = 1"},
        {{1e6, 1.1e6, 3e6}, "range = 2", "clipped = 0"}, /* a factor of two more: all are shown */
        {{1e6, 40e6, 50e6}, "range = 6", "clipped = 0"}, /* both are slow */
    };
    static const char *const impls[] = {"onednn", "cpu_simd", "cpu_ref"};
    (void)state;
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_run run = synthetic_empty();
        for (int k = 0; k < 12; k++) {
            char id[LB_CASE_ID_SIZE];
            snprintf(id, sizeof(id), "%s/T8_B%d_H%d/f32/infer", impls[k % 3], 1 << (k / 3 % 2),
                     64 << (k / 6));
            synthetic_add(&run, synthetic_row(id, LB_VERDICT_OK, trials[i].ns[k % 3], 1, 20));
        }
        draw_all(&run, "speedup-b", "onednn");
        assert_setting("speedup-b_f32_infer.gp", trials[i].range);
        assert_setting("speedup-b_f32_infer.gp", trials[i].clipped);
        lb_run_free(&run);
    }
}

/* Runs with little to show: some pictures, and a sentence about each kind that is missing. */
static void degenerate_runs_are_drawn_or_explained(void **state)
{
    static const int one_t[] = {32, 0}, one_b[] = {8, 0}, one_h[] = {64, 0};
    static const char *const one_impl[] = {"cpu_ref", NULL};
    static const struct {
        struct synthetic_grid grid;
        const char *baseline;
        size_t pictures;
        const char *note;
    } runs[] = {
        {{one_impl, one_t, one_b, one_h, infer, false}, "cpu_ref", 0, "no two cases"},
        {{two_impls, one_t, b_values, h_values, infer, false}, "cpu_ref", 5, "two values of T"},
        {{one_impl, t_values, b_values, h_values, infer, false}, "cpu_ref", 5, "another impl"},
        {{two_impls, t_values, b_values, h_values, infer, false}, "cudnn", 5, "baseline 'cudnn'"},
        {{two_impls, t_values, b_values, h_values, infer, false}, "cpu_ref", 7, "both passes"},
        {{two_impls, t_values, b_values, h_values, all_tails, false}, "cpu_ref", 34, ""},
        {{two_impls, t_values, b_values, h_values, infer, false}, "a'b\"<&_", 5, "a'b\"<&_"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct lb_run run = synthetic_run(&runs[i].grid);
        struct lb_picture_report report = draw_all(&run, NULL, runs[i].baseline);
        assert_int_equal(report.pictures, runs[i].pictures);
        if (!strstr(report.notes, runs[i].note) || (!runs[i].note[0] && report.notes[0]))
            fail_msg("run %zu: '%s' should say '%s'", i, report.notes, runs[i].note);
        lb_run_free(&run);
    }
    struct lb_run run = synthetic_empty();
    for (int rows = 0; rows < 2; rows++) { /* without rows, then with one that failed */
        struct lb_picture_report report = draw_all(&run, NULL, NULL);
        assert_int_equal(report.pictures, 0);
        assert_non_null(strstr(report.notes, "has a time"));
        synthetic_add(&run, synthetic_row("cpu_ref/T1_B1_H1/f32/infer", LB_VERDICT_WRONG, 0, 0, 0));
    }
    lb_run_free(&run);
}

static void chosen_kinds_alone_are_drawn(void **state)
{
    struct lb_run run = synthetic_run(&infer_grid);
    struct lb_error err = {""};
    (void)state;
    assert_non_null(strstr(draw_all(&run, "none", NULL).notes, "none were asked for"));
    assert_int_equal(draw_all(&run, "time-h,roofline", NULL).pictures, 2);
    assert_true(exists("time-h_f32_infer.svg") && exists("roofline_f32_infer.svg"));
    assert_false(exists("time-b_f32_infer.svg"));
    static const char *const wrong[] = {"pie", "time-h,", "none,time-h"};
    for (int i = 0; i < 3; i++) {
        char start[64];
        snprintf(start, sizeof(start), "--plots %s: the kinds are speedup-b", wrong[i]);
        assert_int_equal(lb_pictures_check_kinds("--plots", wrong[i], &err), LB_INVALID);
        assert_non_null(strstr(err.text, start));
    }
    lb_run_free(&run);
}

/* gnuplot */

/* Replaces gnuplot by a program of this text; NULL: by none. */
static void replace_gnuplot(const char *text)
{
    const char *path = scratch_path("gnuplot");
    scratch_setenv("PATH", scratch_folder());
    if (!text)
        return;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

/* A gnuplot that is absent, fails, takes too long, is stopped or leaves an empty picture leaves no
 * picture behind, neither an earlier one; its last words are quoted. */
static void only_complete_pictures_are_left(void **state)
{
#define WRITE(svg, png) \
    "#!/bin/sh\ncd %s/plots; printf '" svg "' > a.svg; printf '" png "' > a.png\n"
    static const struct {
        const char *gnuplot;
        enum lb_status st;
        const char *words;
    } trials[] = {
        {NULL, LB_ABSENT, "gnuplot is not installed"},
        {"#!/bin/sh\nexit 127\n", LB_ABSENT, "gnuplot is not installed"}, /* as spawn may say it */
        {"#!/bin/sh\nexec /bin/sleep 60\n", LB_FAILED, "time limit of 0.5 s"},
        {"#!/bin/sh\necho ' ^' >&2\necho 'line 7: unknown terminal' >&2\necho\nexit 2\n", LB_FAILED,
         "gnuplot failed: line 7: unknown terminal"},
        {"#!/bin/sh\nexit 0\n", LB_FAILED, "missing or empty"},
        {WRITE("<svg></svg>", ""), LB_FAILED, "missing or empty"},
        {WRITE("<svg></svg>", "PNG"), LB_OK, ""},
        {"#!/bin/sh\nexec /bin/sleep 60\n", LB_INTERRUPTED, "interrupted"},
    };
    static const volatile sig_atomic_t stop = 1;
    struct lb_drawing drawing = {.count = 0};
    char text[1024];
    (void)state;
    assert_int_equal(lb_drawing_begin(scratch_folder(), &drawing, NULL), LB_OK);
    assert_int_equal(lb_picture_open(&drawing, "a", NULL), LB_OK);
    assert_int_equal(lb_picture_finish(&drawing, "chart.gp", NULL), LB_OK);
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_error err = {""};
        FILE *old = fopen(scratch_path("plots/a.svg"), "w");
        assert_non_null(old);
        fputs("<svg></svg>", old);
        fclose(old);
        snprintf(text, sizeof(text), trials[i].gnuplot ? trials[i].gnuplot : "", scratch_folder());
        replace_gnuplot(trials[i].gnuplot ? text : NULL);
        bool stopped = trials[i].st == LB_INTERRUPTED;
        lb_gnuplot_set_stop(stopped ? &stop : NULL);
        enum lb_status st = lb_drawing_draw(&drawing, stopped ? 60 : 0.5, &err);
        lb_gnuplot_set_stop(NULL);
        if (st != trials[i].st || !strstr(err.text, trials[i].words))
            fail_msg("trial %zu: %s", i, err.text);
        assert_int_equal(exists("a.svg") && exists("a.png"), st == LB_OK);
        assert_int_equal(exists("a.svg") || exists("a.png"), st == LB_OK);
        assert_true(exists("a.gp") && exists("a.dat"));
    }
    lb_drawing_free(&drawing);
#undef WRITE
}

/* gnuplot reads the folder's name inside quotes, where none of these characters may be special. */
static void folder_of_any_name_is_drawn_into(void **state)
{
    struct lb_run run = synthetic_run(&infer_grid);
    struct lb_grouped_run grouped;
    struct lb_picture_report report;
    struct lb_error err = {""};
    char special[600];
    (void)state;
    snprintf(special, sizeof(special), "%s", scratch_path("it's \"a\" $HOME `x` \\n"));
    assert_int_equal(mkdir(special, 0777), 0);
    assert_int_equal(lb_group_run(&run, NULL, &grouped, NULL), LB_OK);
    if (lb_pictures_draw(&grouped, special, "time-h", 30, &report, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.pictures, 1);
    lb_grouped_run_free(&grouped);
    lb_run_free(&run);
}

/* Timelines and pictures show an implementation in the same colour. */
static void palette_is_that_of_the_scripts(void **state)
{
    char style[8192], color[16];
    FILE *file = fopen(LB_SOURCE_DIR "/plots/style.gp", "r");
    (void)state;
    assert_non_null(file);
    style[fread(style, 1, sizeof(style) - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(style, "array line_color[12]");
    assert_non_null(at);
    for (int i = 0; i < LB_PALETTE_COUNT; i++, at++) {
        at = strchr(at, '#');
        assert_non_null(at);
        snprintf(color, sizeof(color), "#%06x", lb_palette[i]);
        assert_memory_equal(at, color, 7);
    }
    static const struct {
        const char *impl;
        int number;
    } known[] = {{"cpu_ref", 8},  {"openblas", 6},     {"pytorch", 9}, {"pytorch_cuda", 9},
                 {"keras", 10},   {"onnxruntime", 11}, {"jax", 12},    {"jax_cuda", 12},
                 {"somebody", 0}, {"cudnn", 1}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        int number = known[i].number;
        uint32_t shown = lb_palette_color(known[i].impl);
        assert_int_equal(lb_palette_fixed(known[i].impl), number);
        assert_true(number > 0 ? shown == lb_palette[number - 1]
                               : shown == lb_palette[4] || shown == lb_palette[6]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_setup, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(data_of_charts_are_the_records),
        TEST(cells_are_quotients_of_medians),
        TEST(cells_whose_intervals_overlap_have_the_sign_of_a_tie),
        TEST(one_slow_series_does_not_stretch_the_colours),
        TEST(degenerate_runs_are_drawn_or_explained),
        TEST(chosen_kinds_alone_are_drawn),
        TEST(only_complete_pictures_are_left),
        TEST(folder_of_any_name_is_drawn_into),
        TEST(palette_is_that_of_the_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

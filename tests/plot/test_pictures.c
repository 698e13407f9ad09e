/* Pictures: a sentence explains every missing one, and only complete ones are left. What their data
 * say is checked by tests/report/test_file_formats.py. */
#include <sys/stat.h>
#include <unistd.h>

#include "base/palette.h"
#include "plot/pictures.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

static const char *const two_impls[] = {"cpu_ref", "cpu_simd", NULL};
static const char *const infer[] = {"f32/infer", NULL};
static const char *const both_passes[] = {"f32/infer", "f32/train", NULL};
static const int t_values[] = {32, 128, 0}, b_values[] = {1, 8, 0}, h_values[] = {64, 128, 256, 0};
static const struct synthetic_grid infer_grid = {two_impls, t_values, b_values,
                                                 h_values,  infer,    false};

/* Draws into the scratch folder. */
static struct lb_picture_report draw_all(const struct lb_run *run, const char *kinds,
                                         const char *baseline)
{
    struct lb_picture_report report;
    struct lb_error err = {""};
    struct lb_grouped_run grouped;
    lb_group_run(run, baseline, &grouped);
    if (lb_pictures_draw(&grouped, scratch_folder(), kinds, &report, &err) != LB_OK)
        fail_msg("%s", err.text);
    lb_grouped_run_free(&grouped);
    return report;
}

static bool exists(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "plots/%s", name);
    return access(scratch_path(path), F_OK) == 0;
}

static const char every_kind[] =
    "speedup-b,speedup-t,time-h,time-b,time-t,roofline,training,precision,"
    "error,memory,scaling,latency,throughput";

/* Runs with little to show: some pictures, and a sentence about each kind that is missing. */
TEST_WITH(degenerate_runs_are_drawn_or_explained, scratch_setup, scratch_teardown)
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
        {{two_impls, t_values, b_values, h_values, both_passes, false},
         "cpu_ref",
         15,
         "two numbers of threads"},
        {{two_impls, t_values, b_values, h_values, infer, false}, "a'b\"<&_", 5, "a'b\"<&_"},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct lb_run run = synthetic_run(&runs[i].grid);
        struct lb_picture_report report = draw_all(&run, every_kind, runs[i].baseline);
        assert_int_equal(report.pictures, runs[i].pictures);
        if (!strstr(report.notes, runs[i].note))
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

TEST_WITH(chosen_kinds_alone_are_drawn, scratch_setup, scratch_teardown)
{
    struct lb_run run = synthetic_run(&infer_grid);
    struct lb_error err = {""};
    assert_non_null(strstr(draw_all(&run, "none", NULL).notes, "none were asked for"));
    assert_int_equal(draw_all(&run, "time-h,roofline", NULL).pictures, 2);
    assert_true(exists("time-h_f32_infer.svg") && exists("roofline_f32_infer.svg"));
    assert_false(exists("time-b_f32_infer.svg"));
    assert_string_equal(draw_all(&run, NULL, NULL).notes,
                        "not drawn: training, precision, error, scaling, latency, throughput; "
                        "bench-lstm --plot KIND RUN says why");
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
    scratch_setenv("PATH", scratch_folder());
    if (text)
        assert_int_equal(chmod(scratch_write("gnuplot", text), 0755), 0);
}

/* A gnuplot that is absent, fails, takes too long, is stopped or leaves an empty picture leaves no
 * picture behind, neither an earlier one; its last words are quoted. */
TEST_WITH(only_complete_pictures_are_left, scratch_setup, scratch_teardown)
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
    assert_int_equal(lb_drawing_begin(scratch_folder(), &drawing, NULL), LB_OK);
    assert_int_equal(lb_picture_open(&drawing, "a", NULL), LB_OK);
    assert_int_equal(lb_picture_finish(&drawing, "chart.gp", NULL), LB_OK);
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_error err = {""};
        scratch_write("plots/a.svg", "<svg></svg>");
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

/* Timelines and pictures show an implementation in the same colour. */
TEST_WITH(palette_is_that_of_the_scripts, scratch_setup, scratch_teardown)
{
    char color[16], *style = scratch_read(LB_SOURCE_DIR "/plots/style.gp", NULL);
    const char *at = strstr(style, "array line_color[12]");
    assert_non_null(at);
    for (int i = 0; i < LB_PALETTE_COUNT; i++, at++) {
        at = strchr(at, '#');
        assert_non_null(at);
        snprintf(color, sizeof(color), "#%06x", lb_palette[i]);
        assert_memory_equal(at, color, 7);
    }
    free(style);
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

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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/palette.h"
#include "plot/gnuplot.h"
#include "plot/plot.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/synthetic_run.h"

static const char *folder;
static const char *const endings[] = {".svg", ".png", NULL}, *const nothing[] = {NULL};

static const char *const two_impls[] = {"cpu_ref", "cpu_simd", NULL};
static const char *const infer[] = {"f32/infer", NULL};
static const char *const all_tails[] = {"f32/infer", "f32/train", "bf16/infer", "bf16/train", NULL};
static const int t_values[] = {32, 128, 0}, b_values[] = {1, 8, 0}, h_values[] = {64, 128, 256, 0};

static int begin(void **state)
{
    folder = scratch_folder();
    return scratch_setup(state);
}

static enum lb_status draw(const struct lb_run *run, const char *kind, const char *baseline,
                           struct lb_plot_report *report, struct lb_error *err)
{
    const struct lb_plot_options options = {.folder = folder,
                                            .scripts = LB_SOURCE_DIR "/plots",
                                            .baseline = baseline,
                                            .kinds = kind,
                                            .time_limit_s = 30};
    return lb_plot(run, &options, report, err);
}

static bool exists(const char *name)
{
    return access(scratch_path(name), F_OK) == 0;
}

static FILE *open_data(const char *name)
{
    FILE *file = fopen(scratch_path(name), "r");
    if (!file)
        fail_msg("%s is missing", name);
    return file;
}

static const struct lb_row *find(const struct lb_run *run, const char *id)
{
    for (size_t i = 0; i < run->count; i++) {
        char text[LB_CASE_ID_SIZE];
        lb_case_print(&run->rows[i].c, text);
        if (strcmp(text, id) == 0)
            return &run->rows[i];
    }
    fail_msg("%s is not in the run", id);
    return NULL;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b;
}

static void data_of_lines_are_the_records(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, true};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    struct lb_error err = {""};
    if (draw(&run, NULL, "cpu_ref", &report, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.pages, 7);
    static const char *const names[] = {"time-t_f32_infer.dat", "time-b_f32_infer.dat",
                                        "time-h_f32_infer.dat"};
    for (int i = 0; i < 3; i++) {
        char line[1024], id[LB_CASE_ID_SIZE];
        double x, median, lo, hi;
        size_t seen = 0;
        FILE *file = open_data(names[i]);
        while (fgets(line, sizeof(line), file)) {
            /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
            if (sscanf(line, "%lf %lf %lf %lf \"%255[^\"]\"", &x, &median, &lo, &hi, id) != 5)
                continue;
            const struct lb_row *row = find(&run, id);
            const struct lb_problem *p = &row->c.problem;
            const int64_t sizes[] = {p->seq_len, p->batch, p->hidden};
            assert_true(x == (double)sizes[i]);
            assert_true(same(median, row->median_ns) && same(lo, row->median_lo_ns) &&
                        same(hi, row->median_hi_ns));
            seen++;
        }
        fclose(file);
        assert_true(seen >= 8);
    }
    lb_run_free(&run);
}

static void cells_are_quotients_of_medians(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, true};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    assert_int_equal(draw(&run, "speedup-b", "cpu_ref", &report, NULL), LB_OK);
    char line[1024], text[32], id[LB_CASE_ID_SIZE];
    int h, b, column, row, cell, t = 0;
    double speedup, base, median;
    size_t cells = 0, states[5] = {0};
    FILE *file = open_data("speedup-b_f32_infer.dat");
    while (fgets(line, sizeof(line), file)) {
        /* NOLINTNEXTLINE(cert-err34-c): what does not read is no heading */
        sscanf(line, "# cpu_simd, T = %d", &t);
        /* NOLINTNEXTLINE(cert-err34-c): nor a data line */
        if (sscanf(line, "%d %d %d %d %lf %d \"%31[^\"]\" %lf %lf", &h, &b, &column, &row, &speedup,
                   &cell, text, &base, &median) != 9)
            continue;
        cells++;
        states[cell]++;
        if (cell == 4)
            continue; /* no row */
        snprintf(id, sizeof(id), "cpu_simd/T%d_B%d_I%d_H%d/f32/infer", t, b, h, h);
        const struct lb_row *own = find(&run, id);
        assert_true(same(median, own->median_ns));
        assert_int_equal(cell == 0 || cell == 3, lb_row_is_timed(own));
        assert_int_equal(cell == 2, lb_verdict_is_failure(own->verdict));
        if (cell == 0)
            assert_true(speedup == base / median);
    }
    fclose(file);
    assert_int_equal(cells, 2 * 2 * 3);
    assert_true(states[0] > 0 && states[0] < cells);
    lb_run_free(&run);
}

static void cells_whose_intervals_overlap_have_the_sign_of_a_tie(void **state)
{
    (void)state;
    struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
    for (int i = 0; i < 8; i++) {
        bool base = i & 1, wide = i & 2;
        char id[LB_CASE_ID_SIZE];
        snprintf(id, sizeof(id), "%s/T4_B%d_H%d/f32/infer", base ? "cpu_ref" : "cpu_simd",
                 i & 4 ? 8 : 1, wide ? 128 : 64);
        double ns = base ? 1e6 : wide ? 5e5 : 0.9999e6;
        synthetic_add(&run, synthetic_row(id, LB_VERDICT_OK, ns, 1, 20));
    }
    struct lb_plot_report report;
    assert_int_equal(draw(&run, "speedup-b", "cpu_ref", &report, NULL), LB_OK);
    char line[1024], text[32];
    size_t cells = 0;
    FILE *file = open_data("speedup-b_f32_infer.dat");
    while (fgets(line, sizeof(line), file)) {
        int h;
        /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
        if (sscanf(line, "%d %*d %*d %*d %*f %*d \"%31[^\"]\"", &h, text) != 2)
            continue;
        cells++;
        assert_int_equal(text[0] == '=', h == 64);
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
    FILE *file = open_data(script);
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
    (void)state;
    static const struct {
        double ns[3]; /* of onednn, the baseline, and two others */
        const char *range, *clipped;
    } trials[] = {
        {{1e6, 1.1e6, 50e6}, "range = 1", "clipped = 1"},
        {{1e6, 1.1e6, 3e6}, "range = 2", "clipped = 0"}, /* a factor of two more: all are shown */
        {{1e6, 40e6, 50e6}, "range = 6", "clipped = 0"}, /* both are slow */
    };
    static const char *const impls[] = {"onednn", "cpu_simd", "cpu_ref"};
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
        struct lb_plot_report report;
        for (int k = 0; k < 12; k++) {
            char id[LB_CASE_ID_SIZE];
            snprintf(id, sizeof(id), "%s/T8_B%d_H%d/f32/infer", impls[k % 3], 1 << (k / 3 % 2),
                     64 << (k / 6));
            synthetic_add(&run, synthetic_row(id, LB_VERDICT_OK, trials[i].ns[k % 3], 1, 20));
        }
        assert_int_equal(draw(&run, "speedup-b", "onednn", &report, NULL), LB_OK);
        assert_setting("speedup-b_f32_infer.gp", trials[i].range);
        assert_setting("speedup-b_f32_infer.gp", trials[i].clipped);
        lb_run_free(&run);
    }
}

/* Lines that show ratios of two rows, or other numbers of a row than its time. */
static void ratios_rates_and_memory_are_the_records(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, all_tails, true};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    assert_int_equal(draw(&run, NULL, "cpu_ref", &report, NULL), LB_OK);
    static const char *const names[] = {"training_bf16_train.dat", "precision_bf16_infer.dat",
                                        "memory_f32_train.dat", "roofline_f32_infer.dat"};
    for (int i = 0; i < 4; i++) {
        char line[1024], id[LB_CASE_ID_SIZE], other[LB_CASE_ID_SIZE];
        double x, value, lo, hi;
        size_t seen = 0;
        FILE *file = open_data(names[i]);
        while (fgets(line, sizeof(line), file)) {
            /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
            if (sscanf(line, "%lf %lf %lf %lf \"%255[^\"]\"", &x, &value, &lo, &hi, id) != 5)
                continue;
            const struct lb_row *row = find(&run, id);
            snprintf(other, sizeof(other), "%.*s/%s",
                     (int)(strstr(id, "bf16") ? strstr(id, "bf16") - id - 1 : 0), id,
                     i == 0 ? "bf16/infer" : "f32/infer");
            if (isnan(value))
                continue;
            if (i == 0)
                assert_true(value == row->median_ns / find(&run, other)->median_ns);
            else if (i == 1)
                assert_true(value == find(&run, other)->median_ns / row->median_ns);
            else if (i == 2)
                assert_true(value == row->peak_bytes && isnan(lo));
            else
                assert_true(x == row->flops / row->bytes && value == row->flops / row->median_ns);
            assert_true(i == 2 || (lo <= value && value <= hi));
            seen++;
        }
        fclose(file);
        assert_true(seen >= 8);
    }
    lb_run_free(&run);
}

/* Speed over error: a mark of every case of the pass in all precisions, compared with the fastest
 * of its sizes in f32. */
static void speed_over_error_is_the_records(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, all_tails, true};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    size_t seen = 0, timed = 0;
    for (size_t i = 0; i < run.count; i++)
        if (run.rows[i].c.problem.pass == LB_TRAIN)
            run.rows[i].gradient_err_norm =
                run.rows[i].c.problem.dtype == LB_F32 ? 1e-6 + 1e-9 * (double)i : 1e-2;
    assert_int_equal(draw(&run, "error", "cpu_ref", &report, NULL), LB_OK);
    assert_int_equal(report.pages, 2);
    char line[1024], id[LB_CASE_ID_SIZE];
    double x, value, lo, hi;
    FILE *file = open_data("error_train.dat");
    while (fgets(line, sizeof(line), file)) {
        /* NOLINTNEXTLINE(cert-err34-c): what does not read is no data line */
        if (sscanf(line, "%lf %lf %lf %lf \"%255[^\"]\"", &x, &value, &lo, &hi, id) != 5)
            continue;
        const struct lb_row *row = find(&run, id);
        double best = INFINITY;
        for (size_t i = 0; i < run.count; i++) {
            const struct lb_problem *p = &run.rows[i].c.problem, *q = &row->c.problem;
            if (p->dtype == LB_F32 && p->pass == LB_TRAIN && p->seq_len == q->seq_len &&
                p->batch == q->batch && p->hidden == q->hidden && lb_row_is_timed(&run.rows[i]))
                best = fmin(best, run.rows[i].median_ns);
        }
        assert_true(x == row->gradient_err_norm && value == best / row->median_ns);
        assert_true(lo <= value && value <= hi);
        seen++;
    }
    fclose(file);
    for (size_t i = 0; i < run.count; i++)
        timed += run.rows[i].c.problem.pass == LB_TRAIN && lb_row_is_timed(&run.rows[i]);
    assert_true(seen > 8 && seen <= timed); /* without f32 of their sizes there is no mark */
    assert_setting("error_train.gp", "precision_names = 'f32 bf16'");
    lb_run_free(&run);
}

/* Runs with little to show: some pages, and a sentence about each kind that is missing. */
static void degenerate_runs_are_drawn_or_explained(void **state)
{
    (void)state;
    static const int one_t[] = {32, 0}, one_b[] = {8, 0}, one_h[] = {64, 0};
    static const char *const one_impl[] = {"cpu_ref", NULL};
    static const struct {
        struct synthetic_grid grid;
        const char *baseline;
        size_t pages;
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
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct lb_run run = synthetic_run(&runs[i].grid);
        struct lb_plot_report report;
        struct lb_error err = {""};
        if (draw(&run, NULL, runs[i].baseline, &report, &err) != LB_OK)
            fail_msg("%s", err.text);
        assert_int_equal(report.pages, runs[i].pages);
        if (!strstr(report.notes, runs[i].note) || (!runs[i].note[0] && report.notes[0]))
            fail_msg("run %zu: '%s' should say '%s'", i, report.notes, runs[i].note);
        lb_run_free(&run);
    }
}

static void run_without_times_has_no_pictures(void **state)
{
    (void)state;
    struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
    struct lb_plot_report report;
    for (int pass = 0; pass < 2; pass++) { /* without rows, then with one that failed */
        assert_int_equal(draw(&run, NULL, "cpu_ref", &report, NULL), LB_OK);
        assert_int_equal(report.pages, 0);
        assert_non_null(strstr(report.notes, "has a time"));
        synthetic_add(&run, synthetic_row("cpu_ref/T1_B1_H1/f32/infer", LB_VERDICT_WRONG, 0, 0, 0));
    }
    lb_run_free(&run);
}

static void unknown_kind_is_refused(void **state)
{
    (void)state;
    struct lb_run run = {.header = synthetic_header(), .resumes = json_array()};
    struct lb_plot_report report;
    struct lb_error err = {""};
    assert_int_equal(draw(&run, "pie", "cpu_ref", &report, &err), LB_INVALID);
    assert_non_null(strstr(err.text, "--plot pie: the kinds are speedup-b"));
    for (const char *const *kind = lb_plot_kinds; *kind; kind++)
        assert_non_null(strstr(err.text, *kind));
    lb_run_free(&run);
}

static void chosen_kinds_alone_are_drawn(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, false};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    struct lb_error err = {""};
    assert_int_equal(draw(&run, "none", "cpu_ref", &report, &err), LB_OK);
    assert_int_equal(report.pages, 0);
    assert_non_null(strstr(report.notes, "none were asked for"));
    assert_int_equal(draw(&run, "time-h,roofline", "cpu_ref", &report, &err), LB_OK);
    assert_int_equal(report.pages, 2);
    assert_true(exists("time-h_f32_infer.svg") && exists("roofline_f32_infer.svg"));
    assert_false(exists("time-b_f32_infer.svg"));
    assert_int_equal(lb_plot_check_kinds("--plots", "time-h,", &err), LB_INVALID);
    assert_int_equal(lb_plot_check_kinds("--plots", "none,time-h", &err), LB_INVALID);
    assert_non_null(strstr(err.text, "--plots none,time-h: the kinds are speedup-b"));
    lb_run_free(&run);
}

/* Replaces gnuplot by a program of this text; NULL: by none. */
static void replace_gnuplot(const char *text)
{
    const char *path = scratch_path("gnuplot");
    scratch_setenv("PATH", folder);
    if (!text)
        return;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
}

static void without_gnuplot_data_and_scripts_are_written(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, false};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    struct lb_error err = {""};
    replace_gnuplot(NULL);
    assert_int_equal(draw(&run, NULL, "cpu_ref", &report, &err), LB_ABSENT);
    assert_non_null(strstr(err.text, "gnuplot is not installed"));
    assert_int_equal(report.pages, 0);
    assert_true(exists("time-h_f32_infer.dat") && exists("time-h_f32_infer.gp"));
    assert_false(exists("time-h_f32_infer.svg"));
    replace_gnuplot("#!/bin/sh\nexit 127\n"); /* as posix_spawn may say it */
    assert_int_equal(draw(&run, NULL, "cpu_ref", &report, &err), LB_ABSENT);
    lb_run_free(&run);
}

static void failing_gnuplot_is_quoted(void **state)
{
    (void)state;
    const struct synthetic_grid grid = {two_impls, t_values, b_values, h_values, infer, false};
    struct lb_run run = synthetic_run(&grid);
    struct lb_plot_report report;
    struct lb_error err = {""};
    replace_gnuplot("#!/bin/sh\necho '     ^' >&2\necho 'line 7: unknown terminal' >&2\necho\n"
                    "exit 2\n");
    assert_int_equal(draw(&run, NULL, "cpu_ref", &report, &err), LB_FAILED);
    assert_string_equal(err.text, "gnuplot failed: line 7: unknown terminal");
    lb_run_free(&run);
}

static void hanging_gnuplot_is_stopped_at_a_limit_told_before(void **state)
{
    (void)state;
    struct lb_error err = {""};
    char script[] = "a.gp", *scripts[] = {script};
    time_t start = time(NULL);
    replace_gnuplot("#!/bin/sh\nexec /bin/sleep 60\n");
    int own = dup(2);
    assert_true(own >= 0 && freopen(scratch_path("stderr"), "w", stderr));
    enum lb_status st = lb_gnuplot_run(folder, scripts, 1, endings, 0.2, &err);
    fflush(stderr);
    assert_true(dup2(own, 2) == 2 && close(own) == 0);
    assert_int_equal(st, LB_FAILED);
    assert_non_null(strstr(err.text, "time limit of 0.2 s"));
    char told[128] = "";
    FILE *file = open_data("stderr");
    assert_non_null(fgets(told, sizeof(told), file));
    fclose(file);
    assert_string_equal(told, "gnuplot is drawing; it is stopped after 0.2 s\n");
    assert_true(time(NULL) - start < 20);
}

/* A gnuplot that is stopped, fails, takes too long, or leaves a picture empty or cut short, leaves
 * no picture behind; and neither does an earlier one stay. */
static void only_complete_pictures_are_left(void **state)
{
    (void)state;
#define DRAW(svg, png) \
    "#!/bin/sh\ncd "   \
    "%s"               \
    "; printf '" svg "' > a.svg; printf '" png "' > a.png\n"
#define WHOLE_PNG "\\211PNG..IEND\\256B`\\202"
    static const struct {
        const char *gnuplot;
        enum lb_status st;
    } trials[] = {
        {"#!/bin/sh\nexec /bin/sleep 60\n", LB_FAILED},
        {"#!/bin/sh\nexit 2\n", LB_FAILED},
        {"#!/bin/sh\nexit 0\n", LB_FAILED}, /* nothing is drawn */
        {DRAW("<svg>", WHOLE_PNG), LB_FAILED},
        {DRAW("", WHOLE_PNG), LB_FAILED},
        {DRAW("<svg></svg>\\n", "\\211PNG.."), LB_FAILED},
        {DRAW("<svg></svg>\\n", ""), LB_FAILED},
        {DRAW("<svg></svg>\\n", WHOLE_PNG), LB_OK},
        {"#!/bin/sh\nexec /bin/sleep 60\n", LB_INTERRUPTED}, /* stopped */
    };
    static const volatile sig_atomic_t stop = 1;
    char script[] = "a.gp", *scripts[] = {script}, text[1024];
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++) {
        struct lb_error err = {""};
        FILE *old = fopen(scratch_path("a.svg"), "w");
        assert_non_null(old);
        fputs("<svg></svg>", old);
        fclose(old);
        snprintf(text, sizeof(text), trials[i].gnuplot, folder);
        replace_gnuplot(text);
        bool stopped = trials[i].st == LB_INTERRUPTED;
        lb_gnuplot_set_stop(stopped ? &stop : NULL);
        enum lb_status st = lb_gnuplot_run(folder, scripts, 1, endings, stopped ? 60 : 0.5, &err);
        lb_gnuplot_set_stop(NULL);
        if (st != trials[i].st)
            fail_msg("trial %zu: %s", i, err.text);
        assert_int_equal(exists("a.svg") && exists("a.png"), st == LB_OK);
        assert_int_equal(exists("a.svg") || exists("a.png"), st == LB_OK);
    }
#undef DRAW
#undef WHOLE_PNG
}

/* gnuplot reads the folder's name inside quotes, where none of these characters may be special. */
static void folder_of_any_name_is_drawn_into(void **state)
{
    (void)state;
    struct lb_error err = {""};
    char path[600], script[] = "a.gp", *scripts[] = {script};
    const char *special = scratch_path("it's \"a\" $HOME `x` \\n");
    snprintf(path, sizeof(path), "%s/a.gp", special);
    assert_int_equal(mkdir(special, 0777), 0);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("set print 'printed'\nprint 1\n", file);
    fclose(file);
    if (lb_gnuplot_run(special, scripts, 1, nothing, 10, &err) != LB_OK)
        fail_msg("%s", err.text);
    snprintf(path, sizeof(path), "%s/printed", special);
    assert_int_equal(access(path, F_OK), 0);
}

/* Timelines and pictures show an implementation in the same colour. */
static void palette_is_that_of_the_scripts(void **state)
{
    (void)state;
    char style[8192], color[16];
    FILE *file = fopen(LB_SOURCE_DIR "/plots/style.gp", "r");
    assert_non_null(file);
    style[fread(style, 1, sizeof(style) - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(style, "array line_color[12]");
    assert_non_null(at);
    for (int i = 0; i < LB_PALETTE_COUNT; i++) {
        at = strchr(at, '#');
        assert_non_null(at);
        snprintf(color, sizeof(color), "#%06x", lb_palette[i]);
        assert_memory_equal(at, color, 7);
        at++;
    }
    assert_true(lb_palette_color("cpu_ref") == lb_palette[7]);
    assert_int_equal(lb_palette_fixed("somebody_s"), 0);
    assert_true(lb_palette_color("somebody_s") == lb_palette[4] ||
                lb_palette_color("somebody_s") == lb_palette[6]);
    assert_true(lb_palette_color("openblas") == lb_palette[5]); /* which nobody else takes */
    static const char *const frameworks[] = {"pytorch", "keras", "onnxruntime", "jax"};
    for (int i = 0; i < 4; i++) {
        char device[32];
        snprintf(device, sizeof(device), "%s_cuda", frameworks[i]);
        assert_true(lb_palette_color(frameworks[i]) == lb_palette[8 + i]);
        assert_true(lb_palette_color(device) == lb_palette[8 + i]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, scratch_teardown)
    const struct CMUnitTest tests[] = {
        TEST(data_of_lines_are_the_records),
        TEST(cells_are_quotients_of_medians),
        TEST(cells_whose_intervals_overlap_have_the_sign_of_a_tie),
        TEST(one_slow_series_does_not_stretch_the_colours),
        TEST(ratios_rates_and_memory_are_the_records),
        TEST(speed_over_error_is_the_records),
        TEST(degenerate_runs_are_drawn_or_explained),
        TEST(run_without_times_has_no_pictures),
        TEST(unknown_kind_is_refused),
        TEST(chosen_kinds_alone_are_drawn),
        TEST(without_gnuplot_data_and_scripts_are_written),
        TEST(failing_gnuplot_is_quoted),
        TEST(only_complete_pictures_are_left),
        TEST(hanging_gnuplot_is_stopped_at_a_limit_told_before),
        TEST(folder_of_any_name_is_drawn_into),
        TEST(palette_is_that_of_the_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

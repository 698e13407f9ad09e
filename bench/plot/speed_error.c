/* Speed over error: what each precision, and each framework's policy for it, gains and costs. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/plot_kinds.h"
#include "plot/plot_page.h"

/* A precision is a dtype with a math. */
enum { PRECISIONS = LB_DTYPE_COUNT * LB_MATH_COUNT };

static size_t precision_of(const struct lb_row *row)
{
    return (size_t)row->c.problem.dtype * LB_MATH_COUNT + (size_t)row->c.problem.math;
}

static bool is_plain(const struct lb_row *row)
{
    return row->c.problem.dtype == LB_F32 && row->c.problem.math == LB_IEEE;
}

/* The row as if it were in f32, by whose page all precisions of a problem are found. */
static struct lb_row in_f32(const struct lb_row *row)
{
    struct lb_row plain = *row;
    plain.c.problem.dtype = LB_F32;
    plain.c.problem.math = LB_IEEE;
    return plain;
}

/* The error in norm, of a pass with a backward that of the gradients; records before 2026-11-22
 * have only that of all results. */
static double error_of(const struct lb_row *row)
{
    return row->gradient_err_norm > 0 ? row->gradient_err_norm : row->err_norm;
}

/* Sets what is shown of the points [count] of one problem: how many times as fast as the fastest in
 * f32 they are, with the widest interval that both medians' allow; NaN where none ran in f32. */
static void compare_with_f32(struct lb_point *points, size_t count)
{
    const struct lb_row *best = NULL;
    for (size_t i = 0; i < count; i++)
        if (is_plain(points[i].row) && (!best || points[i].row->median_ns < best->median_ns))
            best = points[i].row;
    for (size_t i = 0; i < count; i++) {
        const struct lb_row *row = points[i].row;
        points[i].shown = (struct lb_value){NAN, NAN, NAN, 1, NAN};
        if (!best)
            continue;
        points[i].shown.value = best->median_ns / row->median_ns;
        points[i].shown.lo = best->median_lo_ns / row->median_hi_ns;
        points[i].shown.hi = best->median_hi_ns / row->median_lo_ns;
    }
}

/* Collects the rows with a time and an error that can be compared with one in f32, sorted by page
 * and series. Returns how many. points [run->count] */
static size_t collect(struct lb_plot_job *job, struct lb_point *points)
{
    size_t count = 0, kept = 0;
    for (size_t i = 0; i < job->run->count; i++) {
        const struct lb_row *row = &job->run->rows[i];
        const struct lb_problem *p = &row->c.problem;
        struct lb_row plain = in_f32(row);
        char page[LB_PAGE_NAME_SIZE];
        if (!lb_row_is_timed(row) || !(error_of(row) > 0))
            continue;
        struct lb_point *point = &points[count++];
        lb_page_name(&plain, page);
        snprintf(point->page, sizeof(point->page), "%s", page + strlen("f32_"));
        point->row = row;
        point->series = lb_series_of(&job->series, row);
        /* One number for both. Sizes with a time are far below 2^31; a record may claim others. */
        point->panel[0] = (int64_t)((uint64_t)p->seq_len << 31 ^ (uint64_t)p->batch);
        point->panel[1] = p->hidden;
        point->input = p->input;
    }
    lb_points_sort(points, count);
    for (size_t i = 0, end; i < count; i = end) {
        end = lb_points_end(points, count, i, LB_SHARE_PANEL);
        compare_with_f32(points + i, end - i);
    }
    for (size_t i = 0; i < count; i++)
        if (isfinite(points[i].shown.value)) {
            points[kept] = points[i];
            points[kept].panel[0] = points[kept].panel[1] = points[kept].input = 0;
            kept++;
        }
    lb_points_sort(points, kept);
    return kept;
}

/* Writes one data set per series and marks the series in shown. */
static void write_sets(struct lb_page *page, const struct lb_series_list *series,
                       const struct lb_point *points, size_t count, bool *shown)
{
    size_t set = 0;
    fputs("# Speed-up over the fastest implementation in f32, over the error against the oracle.\n"
          "# error speedup speedup_lo speedup_hi case\n",
          page->data);
    for (size_t i = 0; i < count; i++) {
        size_t s = points[i].series;
        char id[LB_CASE_ID_SIZE];
        if (!shown[s]) {
            fprintf(page->data, "%s# %s\n", set++ ? "\n\n" : "", series->items[s].name);
            shown[s] = true;
        }
        lb_case_print(&points[i].row->c, id);
        fprintf(page->data, "%.17g", error_of(points[i].row));
        lb_page_number(page->data, points[i].shown.value);
        lb_page_number(page->data, points[i].shown.lo);
        lb_page_number(page->data, points[i].shown.hi);
        fprintf(page->data, " \"%s\"\n", id);
    }
}

/* Writes the settings that name each precision above the mean error of its cases, and the ranges of
 * the axes. */
static void write_precisions(struct lb_page *page, const struct lb_point *points, size_t count)
{
    double logs[PRECISIONS] = {0}, x_low = DBL_MAX, x_high = 0, y_low = 1, y_high = 1;
    size_t cases[PRECISIONS] = {0}, shown = 0;
    char names[256] = "", errors[512] = "";
    for (size_t i = 0; i < count; i++) {
        const struct lb_value *value = &points[i].shown;
        double error = error_of(points[i].row);
        logs[precision_of(points[i].row)] += log(error);
        cases[precision_of(points[i].row)]++;
        x_low = fmin(x_low, error);
        x_high = fmax(x_high, error);
        y_low = fmin(y_low, fmin(value->value, value->lo)); /* lo may be NaN */
        y_high = fmax(y_high, fmax(value->value, value->hi));
    }
    for (size_t k = 0; k < PRECISIONS; k++) {
        enum lb_math math = (enum lb_math)(k % LB_MATH_COUNT);
        if (cases[k] == 0)
            continue;
        size_t used = strlen(names), at = strlen(errors);
        snprintf(names + used, sizeof(names) - used, "%s%s%s%s", shown ? " " : "",
                 lb_dtype_name((enum lb_dtype)(k / LB_MATH_COUNT)), math == LB_IEEE ? "" : "/",
                 math == LB_IEEE ? "" : lb_math_name(math));
        snprintf(errors + at, sizeof(errors) - at, "%s%.6g", shown ? " " : "",
                 exp(logs[k] / (double)cases[k]));
        shown++;
    }
    lb_page_text(page, "precision_names", names);
    lb_page_text(page, "precision_errors", errors);
    fprintf(page->script, "x_low = %.17g\nx_high = %.17g\ny_low = %.17g\ny_high = %.17g\n", x_low,
            x_high, y_low, y_high);
}

static void write_words(struct lb_page *page, const struct lb_row *row)
{
    struct lb_row plain = in_f32(row);
    char heading[256], reading[512];
    lb_page_heading(&plain, heading, sizeof(heading));
    char *dtype = strstr(heading, ", f32");
    if (dtype) /* the page has all precisions */
        memmove(dtype, dtype + strlen(", f32"), strlen(dtype + strlen(", f32")) + 1);
    size_t used = strlen(heading);
    snprintf(heading + used, sizeof(heading) - used, ": speed over error");
    snprintf(reading, sizeof(reading),
             "Left and up is better. The fastest median in f32 of the same sizes divided by the "
             "median, over |result - oracle| / |oracle| of %s. One mark per case.",
             lb_has_backward(&row->c.problem) ? "the worst gradient" : "the worst output");
    lb_page_words(page, heading, reading);
}

static enum lb_status write_page(struct lb_plot_job *job, const char *kind,
                                 const struct lb_point *points, size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_page page = {0};
    bool *shown = calloc(job->series.count + 1, sizeof(*shown));
    if (!shown)
        return lb_fail(err, LB_OOM, "out of memory for a picture of %zu rows", count);
    LB_TRY(lb_page_open(job, kind, points[0].page, &page, err));
    write_sets(&page, &job->series, points, count, shown);
    write_words(&page, points[0].row);
    lb_page_series(&page, &job->series);
    lb_page_legend(&page, &job->series, shown, 600);
    write_precisions(&page, points, count);
    st = lb_page_finish(job, &page, "error.gp", err);
done:
    lb_page_close(&page);
    free(shown);
    return st;
}

enum lb_status lb_plot_speed_error(struct lb_plot_job *job, const char *kind,
                                   enum lb_plot_axis axis, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t before = job->script_count;
    struct lb_point *points = calloc(job->run->count + 1, sizeof(*points));
    (void)axis;
    if (!points)
        return lb_fail(err, LB_OOM, "out of memory for the pictures of %zu rows", job->run->count);
    size_t count = collect(job, points);
    for (size_t i = 0, end; i < count; i = end) {
        bool compares = false;
        end = lb_points_end(points, count, i, LB_SHARE_PAGE);
        for (size_t k = i; k < end; k++)
            compares = compares || !is_plain(points[k].row);
        if (compares)
            LB_TRY(write_page(job, kind, points + i, end - i, err));
    }
    if (job->script_count == before)
        lb_plot_note(job, "%s: not drawn: no problem has times in f32 and in another precision",
                     kind);
done:
    free(points);
    return st;
}

/* Rate over arithmetic intensity: how close the cases come to what the machine can do. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/plot_kinds.h"
#include "plot/plot_page.h"

enum { LEAST_CASES = 2 /* on a page, because a single mark shows nothing */ };

/* One page: points [count] sorted by series. */
struct page_view {
    const struct lb_point *points;
    size_t count;
};

/* Whether flops and bytes of the case are known and it has a time. */
static bool has_rate(const struct lb_row *row)
{
    return lb_row_is_timed(row) && row->flops > 0 && row->bytes > 0;
}

static void write_words(struct lb_page *page, const struct page_view *view, bool has_lower_bound)
{
    char heading[256], reading[512];
    lb_page_heading(view->points[0].row, heading, sizeof(heading));
    size_t used = strlen(heading);
    snprintf(heading + used, sizeof(heading) - used, ": rate over arithmetic intensity");
    snprintf(
        reading, sizeof(reading),
        "Higher is better. Flops of the GEMMs per median time, over flops per byte of inputs and "
        "outputs. %s",
        has_lower_bound
            ? "A + is the rate at the lower bound of the time, which counts dependent steps."
            : "The machine's peak rate was not measured: the dashed line is the best rate of "
              "this run.");
    lb_page_words(page, heading, reading);
}

/* Writes one data set per series and marks the series in shown. Returns the number of cases with a
 * known lower bound. */
static size_t write_sets(struct lb_page *page, const struct lb_series_list *series,
                         const struct page_view *view, bool *shown)
{
    size_t set = 0, bounds = 0;
    fputs(
        "# Rate of the GEMMs over arithmetic intensity. nan: unknown.\n"
        "# flops_per_byte gflops gflops_lo gflops_hi case gflops_at_bound flops bytes median_ns\n",
        page->data);
    for (size_t i = 0; i < view->count; i++) {
        const struct lb_row *row = view->points[i].row;
        size_t s = view->points[i].series;
        char id[LB_CASE_ID_SIZE];
        if (!shown[s]) {
            fprintf(page->data, "%s# %s\n", set++ ? "\n\n" : "", series->items[s].name);
            shown[s] = true;
        }
        lb_case_print(&row->c, id);
        fprintf(page->data, "%.17g", row->flops / row->bytes);
        lb_page_number(page->data, row->flops / row->median_ns);
        lb_page_number(page->data, row->flops / row->median_hi_ns);
        lb_page_number(page->data, row->flops / row->median_lo_ns);
        fprintf(page->data, " \"%s\"", id);
        lb_page_number(page->data, row->floor_ns > 0 ? row->flops / row->floor_ns : NAN);
        lb_page_number(page->data, row->flops);
        lb_page_number(page->data, row->bytes);
        lb_page_number(page->data, row->median_ns);
        fputc('\n', page->data);
        if (row->floor_ns > 0)
            bounds++;
    }
    fprintf(page->script, "bound_sets = %zu\n", bounds > 0 ? set : 0);
    return bounds;
}

static void write_ranges(struct lb_page *page, const struct page_view *view)
{
    double x_low = DBL_MAX, x_high = 0, y_low = DBL_MAX, best = 0, top = 0;
    char label[64];
    for (size_t i = 0; i < view->count; i++) {
        const struct lb_row *row = view->points[i].row;
        double x = row->flops / row->bytes, y = row->flops / row->median_ns;
        x_low = fmin(x_low, x);
        x_high = fmax(x_high, x);
        y_low = fmin(y_low, fmin(y, row->flops / row->median_hi_ns)); /* the interval's end */
        best = fmax(best, y);
        if (row->floor_ns > 0)
            top = fmax(top, row->flops / row->floor_ns);
    }
    fprintf(page->script,
            "x_low = %.17g\nx_high = %.17g\ny_low = %.17g\nbest = %.17g\nhighest = %.17g\n", x_low,
            x_high, y_low, best, fmax(best, top));
    snprintf(label, sizeof(label), "best rate of this run: %.3g GFLOP/s", best);
    lb_page_text(page, "best_label", label);
}

static enum lb_status write_page(struct lb_plot_job *job, const char *kind,
                                 const struct page_view *view, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_page page = {0};
    bool *shown = calloc(job->series.count + 1, sizeof(*shown));
    if (!shown)
        return lb_fail(err, LB_OOM, "out of memory for a picture of %zu rows", view->count);
    LB_TRY(lb_page_open(job, kind, view->points[0].page, &page, err));
    size_t bounds = write_sets(&page, &job->series, view, shown);
    write_words(&page, view, bounds > 0);
    lb_page_series(&page, &job->series);
    lb_page_legend(&page, &job->series, shown, 600);
    write_ranges(&page, view);
    st = lb_page_finish(job, &page, "roofline.gp", err);
done:
    lb_page_close(&page);
    free(shown);
    return st;
}

enum lb_status lb_plot_roofline(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_run *run = job->run;
    size_t before = job->script_count, count = 0;
    struct lb_point *points = calloc(run->count + 1, sizeof(*points));
    (void)axis;
    if (!points)
        return lb_fail(err, LB_OOM, "out of memory for the pictures of %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++) {
        if (!has_rate(&run->rows[i]))
            continue;
        points[count].row = &run->rows[i];
        points[count].series = lb_series_of(&job->series, &run->rows[i]);
        lb_page_name(&run->rows[i], points[count++].page);
    }
    lb_points_sort(points, count);
    for (size_t i = 0, end; i < count; i = end) {
        end = lb_points_end(points, count, i, LB_SHARE_PAGE);
        const struct page_view view = {points + i, end - i};
        if (end - i >= LEAST_CASES)
            LB_TRY(write_page(job, kind, &view, err));
    }
    if (job->script_count == before)
        lb_plot_note(job, "%s: not drawn: no two cases of one setting have a time, flops and bytes",
                     kind);
done:
    free(points);
    return st;
}

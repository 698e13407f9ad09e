/* Line pictures: a measure over one axis with intervals, one panel per set of the other sizes. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/line_plot_kinds.h"
#include "plot/plot_kinds.h"
#include "plot/plot_page.h"

#define MOST_PANELS 12

/* A panel shows `count` points of the sorted array, from `first` on. */
struct panel {
    size_t first, count;
};

/* The layout of a page. */
struct layout {
    const struct lb_measure *measure;
    enum lb_plot_axis outer, inner; /* panel[0] and panel[1] of the points */
    const struct lb_point *points;
    struct panel *panels;      /* [panel_count] */
    size_t panel_count, found; /* panels that are drawn; panels that could be */
    size_t columns;
    int64_t *scratch; /* [2 * number of points] */
};

/* The sizes that are constant per panel, for each axis: they order panels by row, then column. */
static const struct {
    enum lb_plot_axis outer, inner;
} panel_axes[] = {
    [LB_PLOT_AXIS_T] = {LB_PLOT_AXIS_B, LB_PLOT_AXIS_H},
    [LB_PLOT_AXIS_B] = {LB_PLOT_AXIS_T, LB_PLOT_AXIS_H},
    [LB_PLOT_AXIS_H] = {LB_PLOT_AXIS_T, LB_PLOT_AXIS_B},
};

static size_t count_shown(const struct lb_point *points, size_t first, size_t end)
{
    size_t shown = 0;
    for (size_t i = first; i < end; i++)
        shown += points[i].shown.value > 0;
    return shown;
}

/* True when some series of the panel has at least two values, which make a line. */
static bool has_line(const struct lb_point *points, struct panel panel)
{
    size_t end = panel.first + panel.count;
    for (size_t i = panel.first, next; i < end; i = next) {
        next = lb_points_end(points, end, i, LB_SHARE_SERIES);
        if (count_shown(points, i, next) >= 2)
            return true;
    }
    return false;
}

/* Collects the distinct values of panel[which], at most limit of them. values [panel_count]. */
static size_t panel_values(const struct layout *view, int which, size_t limit, int64_t *values)
{
    for (size_t i = 0; i < view->panel_count; i++)
        values[i] = view->points[view->panels[i].first].panel[which];
    return lb_thin(values, lb_distinct(values, view->panel_count), limit);
}

static bool is_among(const struct layout *view, size_t i, const int64_t *outer,
                     const int64_t *inner, const size_t *limits)
{
    const int64_t *held = view->points[view->panels[i].first].panel;
    return lb_contains(outer, limits[0], held[0]) && lb_contains(inner, limits[1], held[1]);
}

/* Removes panels until few enough are left to read: keeps fewer values of the longer side, evenly
 * chosen. */
static void thin_panels(struct layout *view)
{
    int64_t *outer = view->scratch, *inner = view->scratch + view->panel_count;
    size_t limits[2] = {panel_values(view, 0, SIZE_MAX, outer),
                        panel_values(view, 1, SIZE_MAX, inner)};
    size_t fitting = view->panel_count;
    while (fitting > MOST_PANELS && (limits[0] > 1 || limits[1] > 1)) {
        limits[limits[1] >= limits[0] ? 1 : 0]--;
        panel_values(view, 0, limits[0], outer);
        panel_values(view, 1, limits[1], inner);
        fitting = 0;
        for (size_t i = 0; i < view->panel_count; i++)
            fitting += is_among(view, i, outer, inner, limits);
    }
    size_t kept = 0;
    for (size_t i = 0; i < view->panel_count && kept < MOST_PANELS; i++)
        if (is_among(view, i, outer, inner, limits))
            view->panels[kept++] = view->panels[i];
    view->panel_count = kept;
}

/* A complete grid of panels keeps its shape; any other number of panels is laid out squarely. */
static size_t choose_columns(const struct layout *view)
{
    size_t n = view->panel_count;
    size_t outer = panel_values(view, 0, SIZE_MAX, view->scratch);
    size_t inner = panel_values(view, 1, SIZE_MAX, view->scratch);
    if (outer * inner == n && outer > 1 && inner >= 2 && inner <= 4)
        return inner;
    return n <= 3 ? n : n == 4 ? 2 : n <= 9 ? 3 : 4;
}

static enum lb_status find_panels(struct layout *view, size_t count, struct lb_error *err)
{
    view->scratch = malloc(2 * (count + 1) * sizeof(*view->scratch));
    view->panels = malloc((count + 1) * sizeof(*view->panels));
    if (!view->panels || !view->scratch)
        return lb_fail(err, LB_OOM, "out of memory for a picture of %zu rows", count);
    for (size_t i = 0, end; i < count; i = end) {
        end = lb_points_end(view->points, count, i, LB_SHARE_PANEL);
        struct panel panel = {i, end - i};
        if (has_line(view->points, panel))
            view->panels[view->panel_count++] = panel;
    }
    view->found = view->panel_count;
    thin_panels(view);
    view->columns = choose_columns(view);
    return LB_OK;
}

/* Writes one line as a data set, in which a row without a value is a gap. */
static void write_line(FILE *data, const struct lb_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct lb_value *shown = &points[i].shown;
        char id[LB_CASE_ID_SIZE];
        lb_case_print(&points[i].row->c, id);
        fprintf(data, "%" PRId64, points[i].x);
        lb_page_number(data, shown->value);
        lb_page_number(data, shown->lo);
        lb_page_number(data, shown->hi);
        fprintf(data, " \"%s\"", id);
        lb_page_number(data, shown->divisor);
        lb_page_number(data, shown->lower_bound);
        fputc('\n', data);
    }
}

/* Writes the data of all panels, one data set per line, and the settings that say which data set is
 * which line of which panel. */
static void write_panels(struct lb_page *page, const struct lb_series_list *series,
                         const struct layout *view)
{
    const char *letters[] = {lb_plot_axis_letter(view->outer), lb_plot_axis_letter(view->inner)};
    size_t set = 0, n = view->panel_count;
    fprintf(page->data, "# %s %s. nan: unknown.\n# %s %s\n", view->measure->heading,
            lb_plot_axis_words(view->measure->x), lb_plot_axis_letter(view->measure->x),
            view->measure->columns);
    fprintf(page->script,
            "array panel_title[%zu]\narray panel_first[%zu]\narray panel_series[%zu]\n", n, n, n);
    for (size_t p = 0; p < n; p++) {
        const struct lb_point *points = view->points + view->panels[p].first;
        size_t count = view->panels[p].count;
        const char *separator = "";
        char title[128];
        lb_panel_title(points, letters, title, sizeof(title));
        fprintf(page->script, "panel_title[%zu] = '%s'; panel_first[%zu] = %zu", p + 1, title,
                p + 1, set);
        fprintf(page->script, "; panel_series[%zu] = '", p + 1);
        for (size_t i = 0, end; i < count; i = end) {
            size_t s = points[i].series;
            end = lb_points_end(points, count, i, LB_SHARE_SERIES);
            if (count_shown(points, i, end) == 0)
                continue;
            fprintf(page->script, "%s%zu", separator, s + 1);
            separator = " ";
            fprintf(page->data, "%s# %s: %s\n", set++ ? "\n\n" : "", title, series->items[s].name);
            write_line(page->data, points + i, end - i);
        }
        fputs("'\n", page->script);
    }
}

/* Writes the setting x_values: the sizes to label, or none where powers of two are labelled. */
static void write_x_values(struct lb_page *page, const struct layout *view)
{
    int64_t *values = view->scratch;
    size_t count = 0, powers = 0;
    for (size_t p = 0; p < view->panel_count; p++)
        for (size_t i = 0; i < view->panels[p].count; i++)
            values[count++] = view->points[view->panels[p].first + i].x;
    count = lb_distinct(values, count);
    for (int64_t power = 1; power <= values[count - 1] && power < INT64_MAX / 2; power *= 2)
        powers += power >= values[0];
    count = powers < 3 && powers < count ? lb_thin(values, count, 4) : 0;
    fputs("x_values = '", page->script);
    for (size_t i = 0; i < count; i++)
        fprintf(page->script, "%s%" PRId64, i ? " " : "", values[i]);
    fputs("'\n", page->script);
}

/* Extends [low, high] to include the value if it is a positive number. */
static void extend(double value, double *low, double *high)
{
    if (value > 0) { /* not NaN */
        *low = fmin(*low, value);
        *high = fmax(*high, value);
    }
}

/* Writes the settings of the y axis: its label, with a unit that suits the values. */
static void write_unit(struct lb_page *page, const struct lb_measure *measure, double middle)
{
    static const struct {
        const char *name;
        double size;
    } units[][5] = {
        [LB_PLOT_TIME] = {{"ns", 1}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}},
        [LB_PLOT_BYTES] = {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}},
        [LB_PLOT_RATIO] = {{"", 1}},
    };
    size_t unit = 0;
    while (units[measure->unit][unit + 1].name && middle >= 500 * units[measure->unit][unit].size)
        unit++;
    const char *name = units[measure->unit][unit].name;
    char label[128];
    snprintf(label, sizeof(label), "%s%s%s", measure->label, name[0] ? ", " : "", name);
    lb_page_text(page, "y_label", label);
    fprintf(page->script, "unit_size = %.0f.0\n", units[measure->unit][unit].size);
}

/* Writes the settings of both axes: their ranges and the unit. */
static void write_ranges(struct lb_page *page, const struct layout *view)
{
    int64_t x_low = INT64_MAX, x_high = 0;
    double low = INFINITY, high = 0;
    bool has_lower_bound = false;
    for (size_t p = 0; p < view->panel_count; p++) {
        const struct lb_point *point = view->points + view->panels[p].first;
        for (size_t i = 0; i < view->panels[p].count; i++, point++) {
            const struct lb_value *shown = &point->shown;
            x_low = point->x < x_low ? point->x : x_low;
            x_high = point->x > x_high ? point->x : x_high;
            extend(shown->value / shown->divisor, &low, &high);
            extend(shown->lo / shown->divisor, &low, &high);
            extend(shown->hi / shown->divisor, &low, &high);
            if (shown->value > 0)
                extend(shown->lower_bound / shown->divisor, &low, &high);
            has_lower_bound = has_lower_bound || (shown->value > 0 && shown->lower_bound > 0);
        }
    }
    fprintf(page->script,
            "x_low = %" PRId64 ".0\nx_high = %" PRId64 ".0\nlow = %.17g\nhigh = %.17g\n"
            "has_lower_bound = %d\n",
            x_low, x_high, low, high, has_lower_bound);
    write_unit(page, view->measure, sqrt(low) * sqrt(high));
}

/* Writes the settings of the legend: the series that are on the page. */
static enum lb_status write_legend(struct lb_page *page, const struct lb_series_list *series,
                                   const struct layout *view, struct lb_error *err)
{
    bool *shown = calloc(series->count + 1, sizeof(*shown));
    if (!shown)
        return lb_fail(err, LB_OOM, "out of memory for a legend");
    for (size_t p = 0; p < view->panel_count; p++) {
        const struct lb_point *point = view->points + view->panels[p].first;
        for (size_t i = 0; i < view->panels[p].count; i++, point++)
            shown[point->series] = shown[point->series] || point->shown.value > 0;
    }
    lb_page_legend(page, series, shown, 60 + 300 * view->columns);
    free(shown);
    return LB_OK;
}

static void write_words(struct lb_page *page, const struct layout *view)
{
    const struct lb_measure *measure = view->measure;
    char heading[256], reading[512];
    lb_page_heading(view->points[0].row, heading, sizeof(heading));
    size_t used = strlen(heading);
    snprintf(heading + used, sizeof(heading) - used, ": %s %s", measure->heading,
             lb_plot_axis_words(measure->x));
    snprintf(reading, sizeof(reading), "%s", measure->reading);
    used = strlen(reading);
    if (view->found > view->panel_count)
        snprintf(reading + used, sizeof(reading) - used, " %zu of %zu panels are shown.",
                 view->panel_count, view->found);
    lb_page_words(page, heading, reading);
    lb_page_text(page, "x_label", lb_plot_axis_words(measure->x));
}

static enum lb_status write_page(struct lb_plot_job *job, struct layout *view, size_t count,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_page page = {0};
    LB_TRY(find_panels(view, count, err));
    if (view->panel_count == 0)
        goto done;
    LB_TRY(lb_page_open(job, view->measure->kind, view->points[0].page, &page, err));
    write_words(&page, view);
    lb_page_panels(&page, view->panel_count, view->columns);
    lb_page_series(&page, &job->series);
    LB_TRY(write_legend(&page, &job->series, view, err));
    write_ranges(&page, view);
    write_x_values(&page, view);
    write_panels(&page, &job->series, view);
    st = lb_page_finish(job, &page, "lines.gp", err);
done:
    lb_page_close(&page);
    free(view->panels);
    free(view->scratch);
    return st;
}

/* Collects the run's rows that take part in such pictures, sorted for pages. */
static enum lb_status collect_points(const struct lb_plot_job *job,
                                     const struct lb_measure *measure, struct lb_point **points,
                                     size_t *count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_run *run = job->run;
    struct lb_row_index index = {0};
    *count = 0;
    *points = calloc(run->count + 1, sizeof(**points));
    if (!*points)
        return lb_fail(err, LB_OOM, "out of memory for the pictures of %zu rows", run->count);
    LB_TRY(lb_row_index_create(run, &index, err));
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const struct lb_problem *p = &row->c.problem;
        struct lb_point *point = &(*points)[*count];
        struct lb_value shown;
        if (!measure->take(&index, row, &shown))
            continue;
        *point = (struct lb_point){
            .row = row,
            .shown = shown,
            .input = p->input == p->hidden ? 0 : p->input,
            .panel = {lb_plot_axis_value(p, panel_axes[measure->x].outer),
                      lb_plot_axis_value(p, panel_axes[measure->x].inner)},
            .series = lb_series_of(&job->series, row),
            .x = lb_plot_axis_value(p, measure->x),
        };
        lb_page_name(row, point->page);
        ++*count;
    }
    lb_points_sort(*points, *count);
done:
    lb_row_index_free(&index);
    return st;
}

enum lb_status lb_plot_lines(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_measure *measure = lb_measure_find(kind);
    size_t before = job->script_count, count;
    struct lb_point *points = NULL;
    LB_TRY(collect_points(job, measure, &points, &count, err));
    for (size_t i = 0, end; i < count; i = end) {
        end = lb_points_end(points, count, i, LB_SHARE_PAGE);
        struct layout view = {.measure = measure,
                              .outer = panel_axes[axis].outer,
                              .inner = panel_axes[axis].inner,
                              .points = points + i};
        LB_TRY(write_page(job, &view, end - i, err));
    }
    if (job->script_count == before)
        lb_plot_note(job, "%s: not drawn: %s at two values of %s", kind, measure->missing,
                     lb_plot_axis_letter(axis));
done:
    free(points);
    return st;
}

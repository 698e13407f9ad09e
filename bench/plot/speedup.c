/* Speed-up over the baseline: one heat map per implementation and value of the third size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plot/plot_kinds.h"
#include "plot/plot_page.h"
#include "plot/problem_groups.h"
#include "support/terminal.h"

#define MOST_PANELS 12
#define MOST_CELLS  16 /* along each side of a panel */

/* The points of one panel[0] and input, of all series including the baseline. */
struct panel_group {
    const struct lb_point *points; /* [count] */
    size_t count;
    int64_t *x, *y; /* [columns], [rows] the sizes shown, ascending */
    size_t columns, rows;
};

struct layout {
    const char *kind;
    enum lb_plot_axis y, held;  /* held is panel[0] of the points: constant per panel */
    size_t baseline;            /* index of a series */
    struct panel_group *groups; /* [group_count] */
    size_t group_count, found;
    size_t *shown; /* [shown_count] the series that have panels */
    size_t shown_count;
    double range; /* the colours span log2 of speed-ups from -range to range; a whole number */
    bool clipped; /* some speed-ups lie outside */
};

/* What a cell shows; plots/speedup.gp knows these numbers. */
enum cell_state { CELL_SPEEDUP, CELL_NOT_RUN, CELL_FAILED, CELL_NO_BASELINE, CELL_NO_ROW };

struct cell {
    enum cell_state state;
    double speedup; /* NaN unless the state is CELL_SPEEDUP */
    char text[40];
};

static const struct lb_point *find_point(const struct panel_group *group, size_t series, int64_t x,
                                         int64_t y)
{
    for (size_t i = 0; i < group->count; i++) {
        const struct lb_point *point = &group->points[i];
        if (point->series == series && point->x == x && point->y == y)
            return point;
    }
    return NULL;
}

/* Writes the speed-up in few characters. A leading = says that the intervals of the medians
 * overlap, so that it is open which one is faster. */
static void write_speedup(const struct lb_row *row, const struct lb_row *base, struct cell *cell)
{
    char text[32];
    cell->speedup = base->median_ns / row->median_ns;
    lb_format_ratio(cell->speedup, text);
    snprintf(cell->text, sizeof(cell->text), "%s%s", lb_rows_apart(row, base) ? "" : "=", text);
}

static struct cell make_cell(const struct lb_point *point, const struct lb_point *base)
{
    struct cell cell = {CELL_NO_ROW, NAN, "–"};
    if (!point)
        return cell;
    if (lb_row_is_timed(point->row) && base && lb_row_is_timed(base->row)) {
        cell.state = CELL_SPEEDUP;
        write_speedup(point->row, base->row, &cell);
        return cell;
    }
    if (lb_row_is_timed(point->row))
        return (struct cell){CELL_NO_BASELINE, NAN, "no base"};
    bool failed = lb_verdict_is_failure(point->row->verdict);
    bool unsupported = point->row->verdict == LB_VERDICT_UNSUPPORTED;
    cell.state = failed ? CELL_FAILED : CELL_NOT_RUN;
    snprintf(cell.text, sizeof(cell.text), "%s%s", failed ? "× " : "",
             unsupported ? "unsup." : lb_verdict_name(point->row->verdict));
    return cell;
}

/* The range of the series' speed-ups in all groups, at least 1; 0 where it has none, so that its
 * panels would be empty. */
static double range_of(const struct layout *view, size_t series)
{
    double range = 0;
    for (size_t g = 0; g < view->group_count; g++) {
        const struct panel_group *group = &view->groups[g];
        for (size_t i = 0; i < group->count; i++) {
            const struct lb_point *point = &group->points[i];
            if (point->series != series || !lb_contains(group->x, group->columns, point->x) ||
                !lb_contains(group->y, group->rows, point->y))
                continue;
            struct cell cell =
                make_cell(point, find_point(group, view->baseline, point->x, point->y));
            if (cell.state != CELL_SPEEDUP)
                continue;
            range = fmax(fmax(range, 1), ceil(fabs(log2(cell.speedup)) - 1e-9));
        }
    }
    return range;
}

/* Chooses the series that have a speed-up, and the range of the colours. This is the range of all
 * series; but where one series alone would widen it by a factor of four or more, as an oracle among
 * libraries does, it is the range of the others. */
static void choose_series(struct layout *view, size_t series_count)
{
    double widest = 0, next = 0;
    for (size_t s = 0; s < series_count; s++) {
        double range = s != view->baseline ? range_of(view, s) : 0;
        if (range > 0)
            view->shown[view->shown_count++] = s;
        next = fmax(next, fmin(range, widest));
        widest = fmax(widest, range);
    }
    view->clipped = next > 0 && widest >= next + 2;
    view->range = view->clipped ? next : widest;
}

static enum lb_status fill_sides(struct panel_group *group, struct lb_error *err)
{
    group->x = malloc(group->count * sizeof(*group->x));
    group->y = malloc(group->count * sizeof(*group->y));
    if (!group->x || !group->y)
        return lb_fail(err, LB_OOM, "out of memory for a picture of %zu rows", group->count);
    for (size_t i = 0; i < group->count; i++) {
        group->x[i] = group->points[i].x;
        group->y[i] = group->points[i].y;
    }
    group->columns = lb_thin(group->x, lb_distinct(group->x, group->count), MOST_CELLS);
    group->rows = lb_thin(group->y, lb_distinct(group->y, group->count), MOST_CELLS);
    return LB_OK;
}

static void free_group(struct panel_group *group)
{
    free(group->x);
    free(group->y);
}

/* Finds the groups of the page that have at least two rows and columns, and the series to compare
 * in them. Keeps fewer groups, evenly chosen, where there would be too many panels. */
static enum lb_status find_panels(struct layout *view, const struct lb_point *points, size_t count,
                                  size_t series_count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    view->groups = calloc(count + 1, sizeof(*view->groups));
    view->shown = calloc(series_count + 1, sizeof(*view->shown));
    if (!view->groups || !view->shown)
        return lb_fail(err, LB_OOM, "out of memory for a picture of %zu rows", count);
    for (size_t i = 0, end; i < count; i = end) {
        end = lb_points_end(points, count, i, LB_SHARE_PANEL);
        struct panel_group *group = &view->groups[view->group_count];
        *group = (struct panel_group){.points = points + i, .count = end - i};
        st = fill_sides(group, err);
        if (st == LB_OK && group->columns >= 2 && group->rows >= 2)
            view->found = ++view->group_count;
        else
            free_group(group);
        if (st != LB_OK)
            return st;
    }
    choose_series(view, series_count);
    size_t limit = view->shown_count > 0 ? MOST_PANELS / view->shown_count : 1;
    limit = limit < 1 ? 1 : limit;
    for (size_t g = 0; limit < view->found && g < limit; g++) {
        size_t from = limit == 1 ? 0 : g * (view->found - 1) / (limit - 1);
        struct panel_group kept = view->groups[from];
        view->groups[from] = view->groups[g];
        view->groups[g] = kept; /* swapped, so that every group is still freed once */
    }
    view->group_count = limit < view->found ? limit : view->found;
    return LB_OK;
}

/* Writes the cells of one panel as one data set. */
static void write_cells(struct lb_page *page, const struct panel_group *group, size_t series,
                        size_t baseline)
{
    for (size_t row = 0; row < group->rows; row++) {
        for (size_t column = 0; column < group->columns; column++) {
            int64_t x = group->x[column], y = group->y[row];
            const struct lb_point *point = find_point(group, series, x, y);
            const struct lb_point *base = find_point(group, baseline, x, y);
            struct cell cell = make_cell(point, base);
            fprintf(page->data, "%" PRId64 " %" PRId64 " %zu %zu", x, y, column, row);
            lb_page_number(page->data, cell.speedup);
            fprintf(page->data, " %d \"%s\"", (int)cell.state, cell.text);
            lb_page_number(page->data, base ? base->row->median_ns : NAN);
            lb_page_number(page->data, point ? point->row->median_ns : NAN);
            fputc('\n', page->data);
        }
    }
}

static void write_sizes(FILE *script, const char *name, size_t panel, const int64_t *values,
                        size_t count)
{
    fprintf(script, "; %s[%zu] = '", name, panel);
    for (size_t i = 0; i < count; i++)
        fprintf(script, "%s%" PRId64, i ? " " : "", values[i]);
    fputc('\'', script);
}

static void write_panels(struct lb_page *page, const struct lb_series_list *series,
                         const struct layout *view)
{
    const char *letters[] = {lb_plot_axis_letter(view->held), NULL};
    size_t panel = 0, count = view->group_count * view->shown_count, most_x = 0, most_y = 0;
    fprintf(page->data,
            "# Speed-up over %s: its median time divided by that of the panel's implementation.\n"
            "# H %s column row speedup state text baseline_ns median_ns\n"
            "# state: 0 speed-up, 1 not run, 2 failed, 3 no baseline, 4 no row\n",
            series->items[view->baseline].name, lb_plot_axis_letter(view->y));
    fprintf(page->script,
            "array panel_title[%zu]\narray panel_columns[%zu]\narray panel_rows[%zu]\n"
            "array panel_x[%zu]\narray panel_y[%zu]\n",
            count, count, count, count, count);
    for (size_t g = 0; g < view->group_count; g++) {
        const struct panel_group *group = &view->groups[g];
        most_x = group->columns > most_x ? group->columns : most_x;
        most_y = group->rows > most_y ? group->rows : most_y;
        for (size_t s = 0; s < view->shown_count; s++, panel++) {
            const char *name = series->items[view->shown[s]].name;
            char held[128];
            lb_panel_title(group->points, letters, held, sizeof(held));
            fprintf(page->script, "panel_title[%zu] = '%s, %s'", panel + 1, name, held);
            fprintf(page->script, "; panel_columns[%zu] = %zu; panel_rows[%zu] = %zu", panel + 1,
                    group->columns, panel + 1, group->rows);
            write_sizes(page->script, "panel_x", panel + 1, group->x, group->columns);
            write_sizes(page->script, "panel_y", panel + 1, group->y, group->rows);
            fputc('\n', page->script);
            fprintf(page->data, "%s# %s, %s\n", panel ? "\n\n" : "", name, held);
            write_cells(page, group, view->shown[s], view->baseline);
        }
    }
    fprintf(page->script, "columns_most = %zu\nrows_most = %zu\n", most_x, most_y);
    size_t fitting = 1400 / (most_x * 58 + 94); /* as wide as in plots/speedup.gp */
    size_t wanted = view->shown_count > 1 ? view->shown_count : count;
    fitting = fitting < 1 ? 1 : fitting > 4 ? 4 : fitting;
    lb_page_panels(page, count, wanted < fitting ? wanted : fitting);
}

static void write_words(struct lb_page *page, const struct lb_series_list *series,
                        const struct layout *view)
{
    const char *baseline = series->items[view->baseline].name;
    char text[512];
    lb_page_heading(view->groups[0].points[0].row, text, sizeof(text));
    size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": speed-up over %s by %s and H", baseline,
             lb_plot_axis_letter(view->y));
    char reading[512];
    snprintf(reading, sizeof(reading),
             "Higher is better (blue). The median time of %s divided by that of the panel's "
             "implementation.",
             baseline);
    used = strlen(reading);
    if (view->found > view->group_count)
        snprintf(reading + used, sizeof(reading) - used, " %zu of %zu values of %s are shown.",
                 view->group_count, view->found, lb_plot_axis_letter(view->held));
    lb_page_words(page, text, reading);
    lb_page_text(page, "slower", "slower");
    lb_page_text(page, "faster", "faster");
    lb_page_text(
        page, "signs",
        "= tied: intervals overlap     × failed     grey: did not run     – not in this run");
    lb_page_text(page, "y_label", view->y == LB_PLOT_AXIS_B ? "batch B" : "length T");
    fprintf(page->script, "range = %.0f\nclipped = %d\n", fmin(view->range, 7),
            view->clipped || view->range > 7);
}

static enum lb_status write_page(struct lb_plot_job *job, struct layout *view,
                                 const struct lb_point *points, size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_page page = {0};
    LB_TRY(find_panels(view, points, count, job->series.count, err));
    if (view->group_count == 0 || view->shown_count == 0)
        goto done;
    LB_TRY(lb_page_open(job, view->kind, points[0].page, &page, err));
    write_words(&page, &job->series, view);
    write_panels(&page, &job->series, view);
    st = lb_page_finish(job, &page, "speedup.gp", err);
done:
    lb_page_close(&page);
    for (size_t g = 0; view->groups && g < view->found; g++)
        free_group(&view->groups[g]);
    free(view->groups);
    free(view->shown);
    return st;
}

enum lb_status lb_plot_speedup(struct lb_plot_job *job, const char *kind, enum lb_plot_axis y,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_run *run = job->run;
    enum lb_plot_axis held = y == LB_PLOT_AXIS_B ? LB_PLOT_AXIS_T : LB_PLOT_AXIS_B;
    size_t before = job->script_count, baseline;
    struct lb_point *points = NULL;
    baseline = lb_series_baseline(&job->series, job->options->baseline);
    if (baseline == job->series.count) {
        lb_plot_note(job, "%s: not drawn: the baseline '%s' is not in this run", kind,
                     job->options->baseline);
        return LB_OK;
    }
    points = calloc(run->count + 1, sizeof(*points));
    if (!points)
        return lb_fail(err, LB_OOM, "out of memory for the pictures of %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_problem *p = &run->rows[i].c.problem;
        points[i] = (struct lb_point){
            .row = &run->rows[i],
            .input = p->input == p->hidden ? 0 : p->input,
            .panel = {lb_plot_axis_value(p, held)},
            .series = lb_series_of(&job->series, &run->rows[i]),
            .x = p->hidden,
            .y = lb_plot_axis_value(p, y),
        };
        lb_page_name(&run->rows[i], points[i].page);
    }
    lb_points_sort(points, run->count);
    for (size_t i = 0, end; i < run->count; i = end) {
        end = lb_points_end(points, run->count, i, LB_SHARE_PAGE);
        struct layout view = {.kind = kind, .y = y, .held = held, .baseline = baseline};
        LB_TRY(write_page(job, &view, points + i, end - i, err));
    }
    if (job->script_count == before)
        lb_plot_note(job,
                     "%s: not drawn: it needs times of %s and another implementation at two values "
                     "of H and of %s",
                     kind, job->options->baseline, lb_plot_axis_letter(y));
done:
    free(points);
    return st;
}

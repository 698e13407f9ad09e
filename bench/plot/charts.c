/* The pictures of a run. Charts are lines over one size with one panel per set of the other sizes,
 * lines over the number of threads, the percentile or the throughput with one panel per set of
 * sizes, or marks of all cases. Heat maps show the speed-up over the baseline, with one panel per
 * implementation and value of the third size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/pictures.h"
#include "record/environment.h"
#include "support/texts.h"

enum {
    GNUPLOT_LIMIT_S = 300, /* for all pictures of a run */
    MOST_PANELS = 12,
    MOST_TICKS = 7,
    MOST_CELLS = 16 /* along each side of a heat map */
};

/* What a chart has along x beside an lb_size. */
enum {
    NO_AXIS = LB_SIZE_COUNT, /* a mark per case, all of a page in one panel */
    THREADS,                 /* lines over threads */
    PERCENTILE,              /* lines over percentiles, where x is 1 / (1 - p) */
    THROUGHPUT               /* lines over calls per second, by instances */
};

/* The order of sizes by which panels are sorted and named. */
static const enum lb_size size_order[] = {LB_SIZE_T, LB_SIZE_B, LB_SIZE_H, LB_SIZE_I};

/* A row in a chart, where y of NaN is a gap in its line, or a problem in a heat map. */
struct point {
    const struct lb_row *row;
    const struct lb_group *owner; /* the group whose page and heading the picture has */
    size_t series;
    int64_t held[LB_SIZE_COUNT]; /* sizes that all of a panel share; 0: none, as I that equals H */
    double x, y, lo, hi;
    double bound;   /* y at the lower bound of the time; NaN: unknown */
    int percentile; /* of a chart over percentiles */
};

/* A kind of picture: how a row of the run becomes a point. */
struct chart {
    const char *kind;    /* as in --plot KIND, and the first part of the files' names */
    int x;               /* an lb_size, NO_AXIS, THREADS, PERCENTILE or THROUGHPUT */
    const char *heading; /* behind "LSTM inference, f32: " */
    const char *x_label;
    const char *reading; /* which direction is better, and what the marks are: two lines */
    const char *y_label;
    const char *unit;    /* of y: "time" in ns, "bytes", or "" */
    const char *missing; /* what a run without such a picture lacks */

    /* Sets y, where it is no size x, and what else differs from a row without a time. False: the
     * row takes no part. */
    bool (*take)(const struct lb_grouped_run *grouped, struct point *point);

    /* Of a heat map, which has a point per problem and neither texts nor take: the size that goes
     * down, 'B' or 'T'. */
    char down;
};

static bool take_time(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_row *row = point->row;
    double steps = (double)row->c.problem.seq_len;
    (void)grouped;
    if (!lb_row_is_timed(row))
        return true;
    point->y = row->median_ns / steps;
    point->lo = row->median_lo_ns / steps;
    point->hi = row->median_hi_ns / steps;
    point->bound = row->floor_ns / steps;
    return true;
}

/* Sets the ratio of two times, with the widest interval that their two intervals allow. */
static bool take_ratio(const struct lb_row *above, const struct lb_row *below, struct point *point)
{
    if (above && below && lb_row_is_timed(above) && lb_row_is_timed(below)) {
        point->y = above->median_ns / below->median_ns;
        point->lo = above->median_lo_ns / below->median_hi_ns;
        point->hi = above->median_hi_ns / below->median_lo_ns;
    }
    return true;
}

static const struct lb_row *row_in(const struct lb_group *group, size_t series)
{
    const struct lb_candidate *found = lb_group_find(group, series);
    return found ? found->row : NULL;
}

/* The time of training divided by that of inference. The row is the training case. */
static bool take_training(const struct lb_grouped_run *grouped, struct point *point)
{
    struct lb_row infer = *point->row;
    infer.c.problem.pass = LB_INFER;
    return point->row->c.problem.pass == LB_TRAIN &&
           take_ratio(point->row, row_in(lb_group_of_row(grouped, &infer), point->series), point);
}

static bool is_plain(const struct lb_row *row)
{
    return row->c.problem.dtype == LB_F32 && row->c.problem.math == LB_IEEE;
}

/* The group of the row's problem in f32; NULL where the run has none. */
static const struct lb_group *group_in_f32(const struct lb_grouped_run *grouped,
                                           const struct lb_row *row)
{
    struct lb_row like = *row;
    like.c.problem.dtype = LB_F32;
    like.c.problem.math = LB_IEEE;
    return lb_group_of_row(grouped, &like);
}

/* The time in f32 divided by that in the row's own precision. */
static bool take_precision(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_group *plain = group_in_f32(grouped, point->row);
    return !is_plain(point->row) && take_ratio(row_in(plain, point->series), point->row, point);
}

/* The time on one thread divided by that of the row. The page is that of one thread. */
static bool take_scaling(const struct lb_grouped_run *grouped, struct point *point)
{
    struct lb_row like = *point->row;
    like.c.threads = 1;
    const struct lb_group *single = lb_group_of_row(grouped, &like);
    if (!single)
        return false;
    point->owner = single;
    point->x = point->row->c.threads;
    return take_ratio(row_in(single, point->series), point->row, point);
}

/* The median of a stream's latencies, or one of their high percentiles. */
static bool take_latency(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_percentile time = lb_row_time(point->row, point->percentile);
    (void)grouped;
    if (point->row->c.timing != LB_STREAMING)
        return false;
    point->x = round(1 / (1 - lb_percentile_share(point->percentile)));
    if (!lb_row_is_timed(point->row))
        return true;
    point->y = time.ns;
    point->lo = time.lo_ns;
    point->hi = time.hi_ns;
    point->bound = point->row->floor_ns;
    return true;
}

/* p99 of a stream over the calls per second of all its instances. The page is that of one. */
static bool take_throughput(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_percentile p99 = lb_row_time(point->row, LB_P99);
    struct lb_row like = *point->row;
    like.c.instances = 1;
    const struct lb_group *single = lb_group_of_row(grouped, &like);
    if (!single || point->row->c.timing != LB_STREAMING || !lb_row_is_timed(point->row))
        return false;
    point->owner = single;
    point->x = lb_row_calls_per_s(point->row);
    point->y = p99.ns;
    point->lo = p99.lo_ns;
    point->hi = p99.hi_ns;
    return true;
}

static bool take_memory(const struct lb_grouped_run *grouped, struct point *point)
{
    (void)grouped;
    if (point->row->verdict == LB_VERDICT_OK && point->row->peak_bytes > 0)
        point->y = point->row->peak_bytes;
    return true;
}

/* The rate of the GEMMs in GFLOP/s over the arithmetic intensity. */
static bool take_rate(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_row *row = point->row;
    (void)grouped;
    if (!lb_row_is_timed(row) || !(row->flops > 0) || !(row->bytes > 0))
        return false;
    point->x = row->flops / row->bytes;
    point->y = row->flops / row->median_ns;
    point->lo = row->flops / row->median_hi_ns;
    point->hi = row->flops / row->median_lo_ns;
    point->bound = row->floor_ns > 0 ? row->flops / row->floor_ns : (double)NAN;
    return true;
}

/* How many times as fast as the fastest in f32 of the same sizes, over the error in norm, which of
 * a pass with a backward is that of the gradients. One page, that of f32, has all precisions. */
static bool take_error(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_row *row = point->row;
    const struct lb_group *plain = group_in_f32(grouped, row);
    point->x = row->gradient_err_norm > 0 ? row->gradient_err_norm : row->err_norm;
    if (!lb_row_is_timed(row) || !(point->x > 0) || !plain || plain->timed == 0)
        return false;
    point->owner = plain;
    return take_ratio(plain->candidates[0].row, row, point);
}

#define TIME_READING                                                                          \
    "Lower is better. The median time of a call divided by T; bars show its 95 % interval.\n" \
    "A gap is a case without a time."

#define LENGTH "sequence length T"
#define BATCH  "batch size B"
#define HIDDEN "hidden size H"

static const struct chart charts[] = {
    {"speedup-b", LB_SIZE_H, .y_label = "batch B", .down = 'B'},
    {"speedup-t", LB_SIZE_H, .y_label = "length T", .down = 'T'},
    {"time-h", LB_SIZE_H, "time per step over " HIDDEN, HIDDEN, TIME_READING, "time per step",
     "time", "no implementation has times at two values of H", .take = take_time},
    {"time-b", LB_SIZE_B, "time per step over " BATCH, BATCH, TIME_READING, "time per step", "time",
     "no implementation has times at two values of B", .take = take_time},
    {"time-t", LB_SIZE_T, "time per step over " LENGTH, LENGTH, TIME_READING, "time per step",
     "time", "no implementation has times at two values of T", .take = take_time},
    {"roofline", NO_AXIS, "rate over arithmetic intensity", "arithmetic intensity, flops per byte",
     "Higher is better. Flops of the GEMMs per median time, over flops per byte of inputs and\n"
     "outputs. The dashed line is the best rate of this run.",
     "rate, GFLOP/s", "", "no two cases of one setting have a time, flops and bytes",
     .take = take_rate},
    {"training", LB_SIZE_H, "training time relative to inference, over " HIDDEN, HIDDEN,
     "Lower is better. The median of a training call divided by that of inference of the same\n"
     "implementation; bars show the widest interval that both allow.",
     "training / inference", "", "no implementation has times for both passes at two values of H",
     .take = take_training},
    {"precision", LB_SIZE_H, "speed-up over f32, over " HIDDEN, HIDDEN,
     "Higher is better. The median in f32 divided by that in this precision, for the same\n"
     "implementation; bars show the widest interval that both allow.",
     "f32 / this precision", "",
     "no implementation has times in f32 and another precision at two values of H",
     .take = take_precision},
    {"error", NO_AXIS, "speed over error", "error in norm against the oracle",
     "Left and up is better. The fastest median in f32 of the same sizes divided by the median,\n"
     "over |result - oracle| / |oracle| of the worst output or, in training, the worst gradient.",
     "speed-up over the fastest in f32", "", "no problem has times in f32 and in another precision",
     .take = take_error},
    {"memory", LB_SIZE_H, "peak memory over " HIDDEN, HIDDEN,
     "Lower is better. The most memory that the case used at a time: tensors, buffers,\n"
     "and what the implementation or a library allocated itself.",
     "peak memory", "bytes", "no implementation has a recorded peak of memory at two values of H",
     .take = take_memory},
    {"scaling", THREADS, "speed-up by number of threads", "number of threads",
     "Higher is better. The median on one thread divided by that on so many, for the same\n"
     "implementation; bars show the widest interval that both allow.",
     "speed-up over one thread", "", "no implementation has times on two numbers of threads",
     .take = take_scaling},
    {"latency", PERCENTILE, "latency over percentile", "percentile",
     "Lower is better. So many calls of the stream took at most so long; bars show 95 % "
     "intervals.\n"
     "A line ends where the calls are too few to tell.",
     "latency of a call", "time", "no stream has times", .take = take_latency},
    {"throughput", THROUGHPUT, "p99 over throughput in calls per second",
     "throughput in calls per second",
     "Right and down is better. Each mark is a number of instances, which share the threads: "
     "their\n"
     "calls per second together, and how long 99 % of the calls took at most.",
     "p99 of a call", "time", "no stream has p99 with two numbers of instances",
     .take = take_throughput},
};

enum { CHARTS = sizeof(charts) / sizeof(charts[0]) };

/* Points */

/* What neighbouring points have in common: the page; also the panel; also the series. */
enum share { SHARE_PAGE, SHARE_PANEL, SHARE_SERIES };

static int compare_shared(const struct point *a, const struct point *b, enum share share)
{
    int order = lb_page_compare(a->owner->page, b->owner->page);
    for (size_t i = 0; i < LB_SIZE_COUNT && !order && share != SHARE_PAGE; i++) {
        int64_t p = a->held[size_order[i]], q = b->held[size_order[i]];
        order = (p > q) - (p < q);
    }
    if (!order && share == SHARE_SERIES)
        order = (a->series > b->series) - (a->series < b->series);
    return order;
}

static int compare_points(const void *a, const void *b)
{
    const struct point *p = a, *q = b;
    int order = compare_shared(p, q, SHARE_SERIES);
    if (!order) /* of a throughput, which may fall as they become more */
        order = p->row->c.instances - q->row->c.instances;
    return order ? order : (p->x > q->x) - (p->x < q->x);
}

/* The end of the range of points that begins at first and shares all that. */
static size_t end_of(const struct point *points, size_t count, size_t first, enum share share)
{
    size_t end = first;
    while (end < count && compare_shared(&points[first], &points[end], share) == 0)
        end++;
    return end;
}

/* Points per row: of a chart over percentiles the median and the high ones. */
static int points_per_row(const struct chart *chart)
{
    return chart->x == PERCENTILE ? LB_PERCENTILES - LB_MEDIAN : 1;
}

/* Collects the run's rows that take part in such a chart, sorted. points
 * [points_per_row * run->count] */
static size_t collect(const struct lb_grouped_run *grouped, const struct chart *chart,
                      struct point *points)
{
    size_t count = 0;
    for (size_t g = 0; g < grouped->count; g++) {
        const struct lb_group *group = &grouped->groups[g];
        const int64_t *sizes = group->sizes;
        for (size_t k = 0; k < (chart->down ? 1 : group->count); k++) {
            const struct lb_candidate *it = &group->candidates[k];
            struct point point = {it->row, group, it->series, {0}, NAN,
                                  NAN,     NAN,   NAN,        NAN, LB_MEDIAN};
            for (int i = 0; i < LB_SIZE_COUNT && chart->x != NO_AXIS; i++)
                if (i != chart->x && "TBIH"[i] != chart->down &&
                    (i != LB_SIZE_I || sizes[LB_SIZE_I] != sizes[LB_SIZE_H]))
                    point.held[i] = sizes[i];
            if (chart->down)
                point.y = (double)sizes[chart->down == 'B' ? LB_SIZE_B : LB_SIZE_T];
            if (chart->x < NO_AXIS)
                point.x = (double)sizes[chart->x];
            for (int i = 0; i < points_per_row(chart); i++, point.percentile++)
                if (chart->down || chart->take(grouped, &point))
                    points[count++] = point;
        }
    }
    if (count > 1)
        qsort(points, count, sizeof(*points), compare_points);
    return count;
}

static size_t count_shown(const struct point *points, size_t first, size_t end)
{
    size_t shown = 0;
    for (size_t i = first; i < end; i++)
        shown += points[i].y > 0;
    return shown;
}

/* Panels */

struct panel {
    const struct point *points; /* [count] */
    size_t count;
    int64_t x[MOST_CELLS], y[MOST_CELLS]; /* [columns], [rows] of a heat map: sizes, ascending */
    size_t columns, rows;
};

/* A picture while it is written. */
struct page {
    const struct lb_grouped_run *grouped;
    const struct chart *chart;
    struct panel *panels;      /* [panel_count]; owned */
    size_t panel_count, found; /* panels that are drawn; panels that could be */

    /* Of a heat map, which has each panel once per series. */
    size_t *shown; /* [shown_count] the series that have a speed-up; owned */
    size_t shown_count;
    double range; /* the colours span log2 of speed-ups from -range to range; a whole number */
    bool clipped; /* some speed-ups lie outside */
};

/* What a cell shows; plots/speedup.gp knows these numbers. */
enum cell_state { CELL_SPEEDUP, CELL_NOT_RUN, CELL_FAILED, CELL_NO_BASELINE, CELL_NO_ROW };

struct cell {
    enum cell_state state;
    double speedup; /* NaN unless the state is CELL_SPEEDUP */
    double base_ns, median_ns;
    char text[40];
};

/* The speed-up of a series, in few characters. A leading = says that the intervals of the medians
 * overlap, so that it is open which one is faster. group: NULL where there is no such problem. */
static struct cell make_cell(const struct page *page, const struct lb_group *group, size_t series)
{
    struct cell cell = {CELL_NO_ROW, NAN, NAN, NAN, "–"};
    const struct lb_candidate *own = lb_group_find(group, series);
    const struct lb_candidate *base = lb_group_timed(group, page->grouped->baseline_series);
    if (base)
        cell.base_ns = base->row->median_ns;
    if (!own)
        return cell;
    cell.median_ns = own->row->median_ns;
    if (lb_row_is_timed(own->row) && base) {
        double ratio = cell.base_ns / cell.median_ns;
        int digits = ratio >= 99.95 ? 0 : ratio >= 9.995 ? 1 : ratio >= 0.0995 ? 2 : 3;
        cell.state = CELL_SPEEDUP;
        cell.speedup = ratio;
        snprintf(cell.text, sizeof(cell.text), "%s%.*f",
                 lb_rows_apart(own->row, base->row) ? "" : "=", digits, ratio);
    } else if (lb_row_is_timed(own->row)) {
        cell.state = CELL_NO_BASELINE;
        snprintf(cell.text, sizeof(cell.text), "no base");
    } else {
        enum lb_verdict verdict = own->row->verdict;
        bool failed = lb_verdict_is_failure(verdict);
        cell.state = failed ? CELL_FAILED : CELL_NOT_RUN;
        snprintf(cell.text, sizeof(cell.text), "%s%s", failed ? "× " : "",
                 verdict == LB_VERDICT_UNSUPPORTED ? "unsup." : lb_verdict_name(verdict));
    }
    return cell;
}

static const struct lb_group *find_group(const struct panel *panel, int64_t x, int64_t y)
{
    for (size_t i = 0; i < panel->count; i++)
        if (panel->points[i].x == (double)x && panel->points[i].y == (double)y)
            return panel->points[i].owner;
    return NULL;
}

/* The range of the series' speed-ups in all panels, at least 1; 0 where it has none, so that its
 * panels would be empty. */
static double range_of(const struct page *page, size_t series)
{
    double range = 0;
    for (const struct panel *panel = page->panels; panel < page->panels + page->found; panel++)
        for (size_t i = 0; i < panel->columns * panel->rows; i++) {
            const struct lb_group *group =
                find_group(panel, panel->x[i % panel->columns], panel->y[i / panel->columns]);
            struct cell cell = make_cell(page, group, series);
            if (cell.state == CELL_SPEEDUP)
                range = fmax(fmax(range, 1), ceil(fabs(log2(cell.speedup)) - 1e-9));
        }
    return range;
}

/* Chooses the series that have a speed-up, and the range of the colours. This is the range of all
 * series; but where one series alone would widen it by a factor of four or more, as an oracle among
 * libraries does, it is the range of the others. */
static void choose_series(struct page *page)
{
    double widest = 0, next = 0;
    page->shown = lb_needed(calloc(page->grouped->series_count, sizeof(*page->shown)));
    for (size_t s = 0; s < page->grouped->series_count; s++) {
        double range = s != page->grouped->baseline_series ? range_of(page, s) : 0;
        if (range > 0)
            page->shown[page->shown_count++] = s;
        next = fmax(next, fmin(range, widest));
        widest = fmax(widest, range);
    }
    page->clipped = next > 0 && widest >= next + 2;
    page->range = page->clipped ? next : widest;
}

/* The distinct sizes of the panel's problems along one side, at most MOST_CELLS, evenly chosen. */
static size_t choose_side(const struct panel *panel, bool across, int64_t side[MOST_CELLS])
{
    size_t i;
    int64_t *values = lb_needed(malloc(panel->count * sizeof(*values)));
    for (i = 0; i < panel->count; i++)
        values[i] = (int64_t)(across ? panel->points[i].x : panel->points[i].y);
    size_t count = lb_distinct(values, panel->count);
    for (i = 0; i < count && i < MOST_CELLS; i++)
        side[i] = values[lb_evenly(i, count, MOST_CELLS)];
    free(values);
    return i;
}

/* Whether a panel shows something: two marks, of precisions that differ where they are compared, a
 * line of at least two values, or two rows and columns of a heat map. */
static bool is_worth(const struct chart *chart, const struct panel *panel)
{
    const struct point *points = panel->points;
    bool compares = chart->take != take_error, line = false;
    if (chart->down)
        return panel->columns >= 2 && panel->rows >= 2;
    for (size_t i = 0; i < panel->count && !compares; i++)
        compares = !is_plain(points[i].row);
    for (size_t i = 0, next; i < panel->count && chart->x != NO_AXIS; i = next) {
        next = end_of(points, panel->count, i, SHARE_SERIES);
        line |= count_shown(points, i, next) >= 2;
    }
    return chart->x == NO_AXIS ? compares && panel->count >= 2 : line;
}

/* Finds the panels of the points [count] of one page: at most MOST_PANELS, evenly chosen. */
static void find_panels(struct page *page, const struct point *points, size_t count)
{
    size_t most = MOST_PANELS;
    for (size_t i = 0, end; i < count; i = end) {
        end = end_of(points, count, i, SHARE_PANEL);
        struct panel panel = {.points = points + i, .count = end - i};
        if (page->chart->down) {
            panel.columns = choose_side(&panel, true, panel.x);
            panel.rows = choose_side(&panel, false, panel.y);
        }
        if (!is_worth(page->chart, &panel))
            continue;
        page->panels = lb_room(page->panels, page->found, sizeof(panel));
        page->panels[page->found++] = panel;
    }
    if (page->chart->down) {
        choose_series(page);
        most = page->shown_count > 0 ? MOST_PANELS / page->shown_count : 0;
        most += page->shown_count > MOST_PANELS; /* one at least */
    }
    page->panel_count = page->found < most ? page->found : most;
    for (size_t p = 0; p < page->panel_count; p++)
        page->panels[p] = page->panels[lb_evenly(p, page->found, most)];
}

/* "T = 64, B = 8, I = 13": the sizes that all points of the panel share. */
static void format_title(const struct panel *panel, char title[128])
{
    title[0] = '\0';
    for (size_t i = 0; i < LB_SIZE_COUNT; i++) {
        int64_t size = panel->points->held[size_order[i]];
        if (size > 0)
            lb_append(title, 128, "%s%c = %" PRId64, title[0] ? ", " : "", "TBIH"[size_order[i]],
                      size);
    }
}

/* Writes the data of all panels, one data set per line, and the settings that say which data set is
 * which line of which panel. */
static void write_lines(struct lb_drawing *drawing, const struct page *page)
{
    FILE *script = drawing->script, *data = drawing->data;
    size_t set = 0, n = page->panel_count;
    fprintf(data, "# %s. nan: unknown.\n# x y y_lo y_hi case y_at_lower_bound instances\n",
            page->chart->heading);
    fprintf(script, "array panel_first[%zu]\narray panel_series[%zu]\n", n, n);
    for (size_t p = 0; p < n; p++) {
        const struct panel *panel = &page->panels[p];
        char title[128];
        format_title(panel, title);
        fprintf(script, "panel_title[%zu] = '%s'; panel_first[%zu] = %zu; panel_series[%zu] = '",
                p + 1, title, p + 1, set, p + 1);
        for (size_t i = 0, end; i < panel->count; i = end) {
            const struct point *points = panel->points;
            end = end_of(points, panel->count, i, SHARE_SERIES);
            if (count_shown(points, i, end) == 0)
                continue;
            fprintf(script, "%zu ", points[i].series + 1);
            fprintf(data, "%s# %s: %s\n", set++ ? "\n\n" : "", title,
                    page->grouped->series[points[i].series].name);
            for (const struct point *at = points + i; at < points + end; at++) {
                bool apart =
                    page->chart->x == NO_AXIS && at > points + i; /* no line between marks */
                fprintf(data, "%s%.17g", apart ? "\n" : "", at->x);
                lb_picture_number(drawing, at->y);
                lb_picture_number(drawing, at->lo);
                lb_picture_number(drawing, at->hi);
                fprintf(data, " \"%s\"", LB_CASE_TEXT(&at->row->c));
                lb_picture_number(drawing, at->bound);
                fprintf(data, " %d\n", at->row->c.instances);
            }
        }
        fputs("'\n", script);
    }
}

/* Writes the values that the x axis labels; none where they are measured. */
static void write_x_values(struct lb_drawing *drawing, const struct page *page)
{
    size_t count = 0;
    int64_t *values = NULL;
    const bool has_values = page->chart->x != NO_AXIS && page->chart->x != THROUGHPUT;
    for (size_t p = 0; p < page->panel_count && has_values; p++)
        for (size_t i = 0; i < page->panels[p].count; i++) {
            values = lb_room(values, count, sizeof(*values));
            values[count++] = (int64_t)page->panels[p].points[i].x;
        }
    count = lb_distinct(values, count);
    fputs("x_values = '", drawing->script);
    for (size_t i = 0; i < count && i < MOST_TICKS; i++)
        fprintf(drawing->script, "%" PRId64 " ", values[lb_evenly(i, count, MOST_TICKS)]);
    fprintf(drawing->script, "'\nx_labels = %s\n",
            page->chart->x == PERCENTILE ? "'50 90 99 99.9'" : "x_values");
    free(values);
}

/* Writes the names of the precisions in a chart of errors, and the mean error of the cases of each.
 */
static void write_precisions(struct lb_drawing *drawing, const struct page *page)
{
    enum { PRECISIONS = LB_DTYPE_COUNT * LB_MATH_COUNT };
    double logs[PRECISIONS] = {0};
    size_t cases[PRECISIONS] = {0};
    char names[256] = "", errors[512] = "";
    for (size_t i = 0; page->chart->take == take_error && i < page->panels[0].count; i++) {
        const struct point *point = &page->panels[0].points[i];
        const struct lb_problem *p = &point->row->c.problem;
        size_t precision = (size_t)p->dtype * LB_MATH_COUNT + (size_t)p->math;
        logs[precision] += log(point->x);
        cases[precision]++;
    }
    for (size_t k = 0; k < PRECISIONS; k++) {
        enum lb_math math = (enum lb_math)(k % LB_MATH_COUNT);
        if (cases[k] == 0)
            continue;
        lb_append(names, sizeof(names), "%s%s%s ",
                  lb_dtype_name((enum lb_dtype)(k / LB_MATH_COUNT)), math == LB_IEEE ? "" : "/",
                  math == LB_IEEE ? "" : lb_math_name(math));
        lb_append(errors, sizeof(errors), "%.6g ", exp(logs[k] / (double)cases[k]));
    }
    lb_picture_text(drawing, "precision_names", names);
    lb_picture_text(drawing, "precision_errors", errors);
}

/* Writes the settings and the data of a chart. */
static void write_chart(struct lb_drawing *drawing, const struct page *page)
{
    const struct chart *chart = page->chart;
    lb_picture_text(drawing, "x_label", chart->x_label);
    lb_picture_text(drawing, "y_label", chart->y_label);
    lb_picture_text(drawing, "unit", chart->unit);
    fprintf(drawing->script, "lines = %d\ninstances = %d\n", chart->x != NO_AXIS,
            chart->x == THROUGHPUT);
    write_x_values(drawing, page);
    write_precisions(drawing, page);
    write_lines(drawing, page);
}

static void write_sizes(FILE *script, const char *name, size_t panel, const int64_t *values,
                        size_t count)
{
    fprintf(script, "%s[%zu] = '", name, panel);
    for (size_t i = 0; i < count; i++)
        fprintf(script, "%" PRId64 " ", values[i]);
    fputs("'\n", script);
}

/* Writes one panel of a heat map: its settings, and its cells as one data set. */
static void write_cells(struct lb_drawing *drawing, const struct page *page,
                        const struct panel *panel, size_t series, size_t number)
{
    FILE *data = drawing->data, *script = drawing->script;
    char sizes[128], title[384], setting[64];
    format_title(panel, sizes);
    snprintf(title, sizeof(title), "%s, %s", page->grouped->series[series].name, sizes);
    snprintf(setting, sizeof(setting), "panel_title[%zu]", number);
    lb_picture_text(drawing, setting, title);
    write_sizes(script, "panel_x", number, panel->x, panel->columns);
    write_sizes(script, "panel_y", number, panel->y, panel->rows);
    fprintf(data, "%s# %s\n", number > 1 ? "\n\n" : "", title);
    for (size_t i = 0; i < panel->columns * panel->rows; i++) {
        size_t column = i % panel->columns, row = i / panel->columns;
        int64_t x = panel->x[column], y = panel->y[row];
        struct cell cell = make_cell(page, find_group(panel, x, y), series);
        fprintf(data, "%" PRId64 " %" PRId64 " %zu %zu", x, y, column, row);
        lb_picture_number(drawing, cell.speedup);
        fprintf(data, " %d \"%s\"", (int)cell.state, cell.text);
        lb_picture_number(drawing, cell.base_ns);
        lb_picture_number(drawing, cell.median_ns);
        fputc('\n', data);
    }
}

/* Writes the settings and the data of a heat map. */
static void write_map(struct lb_drawing *drawing, const struct page *page)
{
    size_t count = page->panel_count * page->shown_count, number = 0;
    FILE *script = drawing->script;
    fprintf(drawing->data,
            "# Speed-up over %s: its median time divided by that of the panel's implementation.\n"
            "# H %c column row speedup state text baseline_ns median_ns\n"
            "# state: 0 speed-up, 1 not run, 2 failed, 3 no baseline, 4 no row\n",
            page->grouped->baseline, page->chart->down);
    fprintf(script, "array panel_x[%zu]\narray panel_y[%zu]\n", count, count);
    for (size_t p = 0; p < page->panel_count; p++)
        for (size_t s = 0; s < page->shown_count; s++)
            write_cells(drawing, page, &page->panels[p], page->shown[s], ++number);
    fprintf(script, "range = %.0f\nclipped = %d\n", fmin(page->range, 7),
            page->clipped || page->range > 7);
    lb_picture_text(drawing, "y_label", page->chart->y_label);
}

/* Pictures */

/* The settings of the small print: the machine, the program, and the day of the run. */
static void write_source(struct lb_drawing *drawing, const struct lb_run *run)
{
    const json_t *header = run->header;
    const json_t *environment = json_object_get(header, "environment");
    const char *commit = json_string_value(json_object_get(environment, "commit"));
    const char *started = json_string_value(json_object_get(header, "started"));
    char text[512];
    lb_run_machine_line(run, text, sizeof(text));
    lb_picture_text(drawing, "machine", text);
    snprintf(text, sizeof(text), "bench-lstm %s", lb_json_text(environment, "version", ""));
    if (commit)
        lb_append(text, sizeof(text), " (%s)", commit);
    if (started)
        lb_append(text, sizeof(text), ", run of %.10s", started);
    lb_picture_text(drawing, "program", text);
}

/* The heading of the page's picture; that of a chart of errors names no precision. */
static void format_heading(const struct page *page, char *heading, size_t size)
{
    const struct chart *chart = page->chart;
    lb_page_heading(page->panels->points->owner->candidates[0].row, heading, NULL, size);
    char *dtype = strstr(heading, ", f32");
    if (chart->take == take_error && dtype)
        memmove(dtype, dtype + strlen(", f32"), strlen(dtype + strlen(", f32")) + 1);
    if (chart->down)
        lb_append(heading, size, ": speed-up over %s by %c and H", page->grouped->baseline,
                  chart->down);
    else
        lb_append(heading, size, ": %s", chart->heading);
}

/* How to read the picture, in one or two lines, and how many panels are left out. */
static void format_reading(const struct page *page, char *reading, size_t size)
{
    const struct chart *chart = page->chart;
    const bool all = page->found == page->panel_count;
    if (!chart->down) {
        snprintf(reading, size, "%s", chart->reading);
        if (!all)
            lb_append(reading, size, " %zu of %zu panels are shown.", page->panel_count,
                      page->found);
        return;
    }
    snprintf(reading, size,
             "Higher is better (blue). The median time of %s divided by that of the panel's "
             "implementation.\n",
             page->grouped->baseline);
    if (!all)
        lb_append(reading, size, "%zu of %zu values of %c are shown.", page->panel_count,
                  page->found, chart->down == 'B' ? 'T' : 'B');
}

/* Opens the picture KIND_PAGE and writes the settings that all kinds have: where the numbers come
 * from, its heading and how to read it, the looks of all series, and the number of panels and of
 * their columns. LB_IO. */
static enum lb_status begin_picture(struct lb_drawing *drawing, const struct page *page,
                                    struct lb_error *err)
{
    char name[LB_PAGE_NAME_SIZE + 32], text[512];
    const struct chart *chart = page->chart;
    const char *own = page->panels->points->owner->page;
    size_t n = page->panel_count, columns = n <= 3 ? n : n == 4 ? 2 : n <= 9 ? 3 : 4;
    if (chart->down) {
        columns = page->shown_count > 1 ? page->shown_count : n;
        n *= page->shown_count;
    }
    snprintf(name, sizeof(name), "%s_%s", chart->kind,
             own + (chart->take == take_error ? strlen("f32_") : 0));
    LB_CHECK(lb_picture_open(drawing, name, err));
    write_source(drawing, page->grouped->run);
    format_heading(page, text, sizeof(text));
    lb_picture_text(drawing, "heading", text);
    format_reading(page, text, sizeof(text));
    char *more = text + strcspn(text, "\n");
    lb_picture_text(drawing, "reading_more", *more ? more + 1 : "");
    *more = '\0';
    lb_picture_text(drawing, "reading", text);
    fprintf(drawing->script, "panels = %zu\ncolumns = %zu\narray panel_title[%zu]\n", n, columns,
            n);
    n = page->grouped->series_count;
    fprintf(drawing->script,
            "array series_name[%zu]\narray series_color[%zu]\narray series_mark[%zu]\n"
            "array series_dash[%zu]\n",
            n, n, n, n);
    for (size_t i = 0; i < n; i++) {
        const struct lb_series *series = &page->grouped->series[i];
        snprintf(name, sizeof(name), "series_name[%zu]", i + 1);
        lb_picture_text(drawing, name, series->name);
        fprintf(drawing->script,
                "series_color[%zu] = %d; series_mark[%zu] = %d; series_dash[%zu] = %d\n", i + 1,
                series->color, i + 1, series->mark, i + 1, series->dash);
    }
    return LB_OK;
}

/* Writes the picture of the points [count] of one page, if there is something to show. */
static enum lb_status write_page(struct lb_drawing *drawing, struct page *page,
                                 const struct point *points, size_t count, struct lb_error *err)
{
    find_panels(page, points, count);
    if (page->panel_count == 0)
        return LB_OK;
    LB_CHECK(begin_picture(drawing, page, err));
    if (page->chart->down)
        write_map(drawing, page);
    else
        write_chart(drawing, page);
    return lb_picture_finish(drawing, page->chart->down ? "speedup.gp" : "chart.gp", err);
}

/* Writes all pictures of a kind. */
static enum lb_status write_kind(struct lb_drawing *drawing, const struct lb_grouped_run *grouped,
                                 const struct chart *chart, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t most = grouped->run->count * (size_t)points_per_row(chart);
    struct point *points = lb_needed(malloc((most + 1) * sizeof(*points)));
    size_t count = collect(grouped, chart, points);
    for (size_t i = 0, end; i < count && st == LB_OK; i = end) {
        struct page page = {.grouped = grouped, .chart = chart};
        end = end_of(points, count, i, SHARE_PAGE);
        st = write_page(drawing, &page, points + i, end - i, err);
        free(page.panels);
        free(page.shown);
    }
    free(points);
    return st;
}

/* Kinds */

/* Sets wanted of the kinds in the list, of which NULL has all and "none" has none. */
static enum lb_status read_kinds(const char *flag, const char *list, bool wanted[CHARTS],
                                 struct lb_error *err)
{
    char names[256] = "", name[64];
    for (size_t k = 0; k < CHARTS; k++) {
        wanted[k] = !list;
        lb_append(names, sizeof(names), "%s%s", k > 0 ? ", " : "", charts[k].kind);
    }
    const char *left = list && strcmp(list, "none") != 0 ? list : NULL;
    while (lb_next_item(&left, name, sizeof(name))) {
        size_t k = 0;
        while (k < CHARTS && strcmp(charts[k].kind, name) != 0)
            k++;
        if (k == CHARTS)
            return lb_fail(err, LB_INVALID, "%s %s: the kinds are %s", flag, list, names);
        wanted[k] = true;
    }
    return LB_OK;
}

enum lb_status lb_pictures_check_kinds(const char *flag, const char *list, struct lb_error *err)
{
    bool wanted[CHARTS];
    return read_kinds(flag, list, wanted, err);
}

/* Notes that the run has nothing for a picture of a kind that was named, and what it lacks. */
static void note_missing(const struct lb_grouped_run *grouped, const struct chart *chart,
                         char *notes, size_t size)
{
    lb_append(notes, size, "%s%s: not drawn: ", notes[0] ? "\n" : "", chart->kind);
    if (!chart->down)
        lb_append(notes, size, "%s", chart->missing);
    else if (grouped->baseline_series < grouped->series_count)
        lb_append(notes, size,
                  "it needs times of %s and another implementation at two values of H and of %c",
                  grouped->baseline, chart->down);
    else
        lb_append(notes, size, "the baseline '%s' is not in this run", grouped->baseline);
}

enum lb_status lb_pictures_draw(const struct lb_grouped_run *grouped, const char *run_folder,
                                const char *list, struct lb_picture_report *report,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_drawing drawing = {.count = 0};
    bool wanted[CHARTS], none = list && strcmp(list, "none") == 0;
    char *notes = report->notes;
    size_t timed = 0;
    const size_t size = sizeof(report->notes);
    *report = (struct lb_picture_report){0};
    LB_TRY(read_kinds("--plot", list, wanted, err));
    for (size_t i = 0; i < grouped->count; i++)
        timed += grouped->groups[i].timed;
    if (none || timed == 0) {
        snprintf(notes, size, "no pictures: %s",
                 none ? "none were asked for" : "no row of the run has a time");
        goto done;
    }
    LB_TRY(lb_drawing_begin(run_folder, &drawing, err));
    for (size_t k = 0; k < CHARTS; k++) {
        size_t before = drawing.count;
        if (!wanted[k])
            continue;
        LB_TRY(write_kind(&drawing, grouped, &charts[k], err));
        if (drawing.count == before && list)
            note_missing(grouped, &charts[k], notes, size);
        else if (drawing.count == before)
            lb_append(notes, size, "%s%s", notes[0] ? ", " : "not drawn: ", charts[k].kind);
    }
    if (!list && notes[0])
        lb_append(notes, size, "; bench-lstm --plot KIND RUN says why");
    if (drawing.count > 0)
        LB_TRY(lb_drawing_draw(&drawing, GNUPLOT_LIMIT_S, err));
    report->pictures = drawing.count;
done:
    lb_drawing_free(&drawing);
    return st;
}

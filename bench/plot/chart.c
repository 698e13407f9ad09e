/* Charts: lines over one size with one panel per set of the other sizes, lines over the number of
 * threads, the percentile or the throughput with one panel per set of sizes, or marks of all cases.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/pictures.h"
#include "support/texts.h"

enum { MOST_PANELS = 12, MOST_TICKS = 7 };

/* What a chart has along x beside an lb_size. */
enum {
    NO_AXIS = LB_SIZE_COUNT, /* a mark per case, all of a page in one panel */
    THREADS,                 /* lines over threads */
    PERCENTILE,              /* lines over percentiles, where x is 1 / (1 - p) */
    THROUGHPUT               /* lines over calls per second, by instances */
};

/* The order of sizes by which panels are sorted and named. */
static const enum lb_size size_order[] = {LB_SIZE_T, LB_SIZE_B, LB_SIZE_H, LB_SIZE_I};

/* A row in a chart. y of NaN is a gap in its line. */
struct point {
    const struct lb_row *row;
    const struct lb_group *owner; /* the group whose page and heading the picture has */
    size_t series;
    int64_t held[LB_SIZE_COUNT]; /* sizes that all of a panel share; 0: none, as I that equals H */
    double x, y, lo, hi;
    double bound;   /* y at the lower bound of the time; NaN: unknown */
    int percentile; /* of a chart over percentiles */
};

/* A kind of chart: how a row of the run becomes a point. */
struct chart {
    const char *kind;
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

/* The group of the row's sizes in another pass or precision; NULL where the run has none. */
static const struct lb_group *group_like(const struct lb_grouped_run *grouped,
                                         const struct lb_row *row, enum lb_pass pass,
                                         enum lb_dtype dtype, enum lb_math math)
{
    struct lb_row like = *row;
    like.c.problem.pass = pass;
    like.c.problem.dtype = dtype;
    like.c.problem.math = math;
    return lb_group_of_row(grouped, &like);
}

static const struct lb_row *row_in(const struct lb_group *group, size_t series)
{
    const struct lb_candidate *found = lb_group_find(group, series);
    return found ? found->row : NULL;
}

/* The time of training divided by that of inference. The row is the training case. */
static bool take_training(const struct lb_grouped_run *grouped, struct point *point)
{
    const struct lb_problem *p = &point->row->c.problem;
    if (p->pass != LB_TRAIN)
        return false;
    const struct lb_group *infer = group_like(grouped, point->row, LB_INFER, p->dtype, p->math);
    return take_ratio(point->row, row_in(infer, point->series), point);
}

static bool is_plain(const struct lb_row *row)
{
    return row->c.problem.dtype == LB_F32 && row->c.problem.math == LB_IEEE;
}

/* The time in f32 divided by that in the row's own precision. */
static bool take_precision(const struct lb_grouped_run *grouped, struct point *point)
{
    if (is_plain(point->row))
        return false;
    const struct lb_group *plain =
        group_like(grouped, point->row, point->row->c.problem.pass, LB_F32, LB_IEEE);
    return take_ratio(row_in(plain, point->series), point->row, point);
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
    const struct lb_group *plain = group_like(grouped, row, row->c.problem.pass, LB_F32, LB_IEEE);
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
    {"time-t", LB_SIZE_T, "time per step over " LENGTH, LENGTH, TIME_READING, "time per step",
     "time", "no implementation has times at two values of T", take_time},
    {"time-b", LB_SIZE_B, "time per step over " BATCH, BATCH, TIME_READING, "time per step", "time",
     "no implementation has times at two values of B", take_time},
    {"time-h", LB_SIZE_H, "time per step over " HIDDEN, HIDDEN, TIME_READING, "time per step",
     "time", "no implementation has times at two values of H", take_time},
    {"training", LB_SIZE_H, "training time relative to inference, over " HIDDEN, HIDDEN,
     "Lower is better. The median of a training call divided by that of inference of the same\n"
     "implementation; bars show the widest interval that both allow.",
     "training / inference", "", "no implementation has times for both passes at two values of H",
     take_training},
    {"precision", LB_SIZE_H, "speed-up over f32, over " HIDDEN, HIDDEN,
     "Higher is better. The median in f32 divided by that in this precision, for the same\n"
     "implementation; bars show the widest interval that both allow.",
     "f32 / this precision", "",
     "no implementation has times in f32 and another precision at two values of H", take_precision},
    {"scaling", THREADS, "speed-up by number of threads", "number of threads",
     "Higher is better. The median on one thread divided by that on so many, for the same\n"
     "implementation; bars show the widest interval that both allow.",
     "speed-up over one thread", "", "no implementation has times on two numbers of threads",
     take_scaling},
    {"latency", PERCENTILE, "latency over percentile", "percentile",
     "Lower is better. So many calls of the stream took at most so long; bars show 95 % "
     "intervals.\n"
     "A line ends where the calls are too few to tell.",
     "latency of a call", "time", "no stream has times", take_latency},
    {"throughput", THROUGHPUT, "p99 over throughput in calls per second",
     "throughput in calls per second",
     "Right and down is better. Each mark is a number of instances, which share the threads: "
     "their\n"
     "calls per second together, and how long 99 % of the calls took at most.",
     "p99 of a call", "time", "no stream has p99 with two numbers of instances", take_throughput},
    {"memory", LB_SIZE_H, "peak memory over " HIDDEN, HIDDEN,
     "Lower is better. The most memory that the case used at a time: tensors, buffers,\n"
     "and what the implementation or a library allocated itself.",
     "peak memory", "bytes", "no implementation has a recorded peak of memory at two values of H",
     take_memory},
    {"roofline", NO_AXIS, "rate over arithmetic intensity", "arithmetic intensity, flops per byte",
     "Higher is better. Flops of the GEMMs per median time, over flops per byte of inputs and\n"
     "outputs. The dashed line is the best rate of this run.",
     "rate, GFLOP/s", "", "no two cases of one setting have a time, flops and bytes", take_rate},
    {"error", NO_AXIS, "speed over error", "error in norm against the oracle",
     "Left and up is better. The fastest median in f32 of the same sizes divided by the median,\n"
     "over |result - oracle| / |oracle| of the worst output or, in training, the worst gradient.",
     "speed-up over the fastest in f32", "", "no problem has times in f32 and in another precision",
     take_error},
};

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
        for (size_t k = 0; k < group->count; k++) {
            const struct lb_candidate *it = &group->candidates[k];
            struct point point = {it->row, group, it->series, {0}, NAN,
                                  NAN,     NAN,   NAN,        NAN, LB_MEDIAN};
            for (int i = 0; i < LB_SIZE_COUNT && chart->x != NO_AXIS; i++)
                if (i != chart->x && (i != LB_SIZE_I || sizes[LB_SIZE_I] != sizes[LB_SIZE_H]))
                    point.held[i] = sizes[i];
            if (chart->x < NO_AXIS)
                point.x = (double)sizes[chart->x];
            for (int i = 0; i < points_per_row(chart); i++, point.percentile++)
                if (chart->take(grouped, &point))
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
};

/* A picture while it is written. */
struct page {
    const struct chart *chart;
    struct panel *panels;      /* [panel_count] */
    size_t panel_count, found; /* panels that are drawn; panels that could be */
};

/* Whether a panel shows something: two marks, of precisions that differ where they are compared, or
 * a line of at least two values. */
static bool is_worth(const struct chart *chart, const struct point *points, size_t first,
                     size_t end)
{
    bool compares = chart->take != take_error, line = false;
    for (size_t i = first; i < end && !compares; i++)
        compares = !is_plain(points[i].row);
    for (size_t i = first, next; i < end && chart->x != NO_AXIS; i = next) {
        next = end_of(points, end, i, SHARE_SERIES);
        line |= count_shown(points, i, next) >= 2;
    }
    return chart->x == NO_AXIS ? compares && end - first >= 2 : line;
}

/* Finds the panels of the points [count] of one page: at most MOST_PANELS, evenly chosen. */
static void find_panels(struct page *page, const struct point *points, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        end = end_of(points, count, i, SHARE_PANEL);
        if (is_worth(page->chart, points, i, end))
            page->panels[page->found++] = (struct panel){points + i, end - i};
    }
    page->panel_count = page->found < MOST_PANELS ? page->found : MOST_PANELS;
    for (size_t p = 0; p < page->panel_count; p++)
        page->panels[p] = page->panels[lb_evenly(p, page->found, MOST_PANELS)];
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
static void write_panels(struct lb_picture_job *job, const struct page *page)
{
    FILE *script = job->drawing.script, *data = job->drawing.data;
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
                    job->grouped->series[points[i].series].name);
            for (const struct point *at = points + i; at < points + end; at++) {
                bool apart =
                    page->chart->x == NO_AXIS && at > points + i; /* no line between marks */
                fprintf(data, "%s%.17g", apart ? "\n" : "", at->x);
                lb_picture_number(&job->drawing, at->y);
                lb_picture_number(&job->drawing, at->lo);
                lb_picture_number(&job->drawing, at->hi);
                fprintf(data, " \"%s\"", LB_CASE_TEXT(&at->row->c));
                lb_picture_number(&job->drawing, at->bound);
                fprintf(data, " %d\n", at->row->c.instances);
            }
        }
        fputs("'\n", script);
    }
}

/* Settings */

/* Writes the values that the x axis labels; none where they are measured. values [all points] */
static void write_x_values(struct lb_picture_job *job, const struct page *page, int64_t *values)
{
    size_t count = 0;
    const bool has_values = page->chart->x != NO_AXIS && page->chart->x != THROUGHPUT;
    for (size_t p = 0; p < page->panel_count && has_values; p++)
        for (size_t i = 0; i < page->panels[p].count; i++)
            values[count++] = (int64_t)page->panels[p].points[i].x;
    count = lb_distinct(values, count);
    fputs("x_values = '", job->drawing.script);
    for (size_t i = 0; i < count && i < MOST_TICKS; i++)
        fprintf(job->drawing.script, "%" PRId64 " ", values[lb_evenly(i, count, MOST_TICKS)]);
    fputs("'\n", job->drawing.script);
    fprintf(job->drawing.script, "x_labels = %s\n",
            page->chart->x == PERCENTILE ? "'50 90 99 99.9'" : "x_values");
}

/* Writes the names of the precisions in a chart of errors, and the mean error of the cases of each.
 */
static void write_precisions(struct lb_picture_job *job, const struct page *page)
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
    lb_picture_text(&job->drawing, "precision_names", names);
    lb_picture_text(&job->drawing, "precision_errors", errors);
}

/* The heading of the points' page; that of a chart of errors names no precision. */
static void format_heading(const struct page *page, char *heading, size_t size)
{
    const struct chart *chart = page->chart;
    const struct lb_group *owner = page->panels[0].points[0].owner;
    lb_page_heading(owner->candidates[0].row, heading, NULL, size);
    char *dtype = strstr(heading, ", f32");
    if (chart->take == take_error && dtype)
        memmove(dtype, dtype + strlen(", f32"), strlen(dtype + strlen(", f32")) + 1);
    lb_append(heading, size, ": %s", chart->heading);
}

static enum lb_status write_page(struct lb_picture_job *job, const struct chart *chart,
                                 const struct point *points, size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct page page = {.chart = chart, .panels = lb_needed(calloc(count, sizeof(*page.panels)))};
    char heading[256], reading[512];
    find_panels(&page, points, count);
    size_t n = page.panel_count, columns = n <= 3 ? n : n == 4 ? 2 : n <= 9 ? 3 : 4;
    int64_t *values = lb_needed(malloc(count * sizeof(*values)));
    if (n == 0)
        goto done;
    format_heading(&page, heading, sizeof(heading));
    snprintf(reading, sizeof(reading), "%s", chart->reading);
    if (page.found > n)
        lb_append(reading, sizeof(reading), " %zu of %zu panels are shown.", n, page.found);
    const char *name = points->owner->page + (chart->take == take_error ? strlen("f32_") : 0);
    const struct lb_picture_words words = {chart->kind, name, heading, reading, n, columns};
    LB_TRY(lb_picture_begin(job, &words, err));
    lb_picture_text(&job->drawing, "x_label", chart->x_label);
    lb_picture_text(&job->drawing, "y_label", chart->y_label);
    lb_picture_text(&job->drawing, "unit", chart->unit);
    fprintf(job->drawing.script, "lines = %d\ninstances = %d\n", chart->x != NO_AXIS,
            chart->x == THROUGHPUT);
    write_x_values(job, &page, values);
    write_precisions(job, &page);
    write_panels(job, &page);
    st = lb_picture_finish(&job->drawing, "chart.gp", err);
done:
    free(page.panels);
    free(values);
    return st;
}

enum lb_status lb_chart_write(struct lb_picture_job *job, const char *kind, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct chart *chart = charts;
    while (strcmp(chart->kind, kind) != 0)
        chart++;
    size_t most = job->grouped->run->count * (size_t)points_per_row(chart);
    struct point *points = lb_needed(malloc((most + 1) * sizeof(*points)));
    size_t count = collect(job->grouped, chart, points);
    for (size_t i = 0, end; i < count; i = end) {
        end = end_of(points, count, i, SHARE_PAGE);
        LB_TRY(write_page(job, chart, points + i, end - i, err));
    }
    snprintf(job->missing, sizeof(job->missing), "%s", chart->missing);
done:
    free(points);
    return st;
}

/* Speed-up over the baseline: one heat map per implementation and value of the third size. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/pictures.h"

enum { MOST_PANELS = 12, MOST_CELLS = 16 /* along each side of a panel */ };

/* One problem, and where it stands. */
struct place {
    const struct lb_group *group;
    int64_t held, input; /* constant per panel: T or B, and I where it is not H, else 0 */
    int64_t x, y;        /* H, and B or T */
};

/* The problems of one panel, of all series. */
struct block {
    const struct place *places; /* [count] */
    size_t count;
    int64_t x[MOST_CELLS], y[MOST_CELLS]; /* [columns], [rows] the sizes shown, ascending */
    size_t columns, rows;
};

/* A picture while it is written. */
struct page {
    const struct lb_grouped_run *grouped;
    bool by_batch;        /* B goes down and T is constant, not the other way round */
    struct block *blocks; /* [block_count] */
    size_t block_count, found;
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

static const struct lb_group *find_group(const struct block *block, int64_t x, int64_t y)
{
    for (size_t i = 0; i < block->count; i++)
        if (block->places[i].x == x && block->places[i].y == y)
            return block->places[i].group;
    return NULL;
}

/* The range of the series' speed-ups in all panels, at least 1; 0 where it has none, so that its
 * panels would be empty. */
static double range_of(const struct page *page, size_t series)
{
    double range = 0;
    for (const struct block *block = page->blocks; block < page->blocks + page->block_count;
         block++)
        for (size_t i = 0; i < block->columns * block->rows; i++) {
            const struct lb_group *group =
                find_group(block, block->x[i % block->columns], block->y[i / block->columns]);
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

/* The distinct sizes of the places along one side, at most MOST_CELLS, evenly chosen. */
static size_t choose_side(const struct block *block, bool across, int64_t side[MOST_CELLS])
{
    size_t i;
    int64_t *values = lb_needed(malloc(block->count * sizeof(*values)));
    for (i = 0; i < block->count; i++)
        values[i] = across ? block->places[i].x : block->places[i].y;
    size_t count = lb_distinct(values, block->count);
    for (i = 0; i < count && i < MOST_CELLS; i++)
        side[i] = values[lb_evenly(i, count, MOST_CELLS)];
    free(values);
    return i;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    return p->held != q->held ? (p->held < q->held ? -1 : 1)
                              : (p->input > q->input) - (p->input < q->input);
}

/* Finds the panels with at least two rows and columns, and the series to compare in them. Keeps
 * fewer, evenly chosen, where there would be too many. */
static void find_blocks(struct page *page, struct place *places, size_t count)
{
    qsort(places, count, sizeof(*places), compare_places);
    for (size_t i = 0, end; i < count; i = end) {
        struct block *block = &page->blocks[page->block_count];
        for (end = i; end < count && compare_places(&places[i], &places[end]) == 0;)
            end++;
        *block = (struct block){.places = places + i, .count = end - i};
        block->columns = choose_side(block, true, block->x);
        block->rows = choose_side(block, false, block->y);
        page->block_count += block->columns >= 2 && block->rows >= 2;
    }
    page->found = page->block_count;
    choose_series(page);
    size_t limit = page->shown_count > 0 ? MOST_PANELS / page->shown_count : 0;
    limit = limit < 1 ? 1 : limit;
    page->block_count = limit < page->found ? limit : page->found;
    for (size_t b = 0; b < page->block_count; b++)
        page->blocks[b] = page->blocks[lb_evenly(b, page->found, limit)];
}

static void write_sizes(FILE *script, const char *name, size_t panel, const int64_t *values,
                        size_t count)
{
    fprintf(script, "%s[%zu] = '", name, panel);
    for (size_t i = 0; i < count; i++)
        fprintf(script, "%" PRId64 " ", values[i]);
    fputs("'\n", script);
}

/* Writes one panel: its settings, and its cells as one data set. */
static void write_panel(struct lb_picture_job *job, const struct page *page,
                        const struct block *block, size_t series, size_t panel)
{
    FILE *data = job->drawing.data, *script = job->drawing.script;
    const struct place *place = block->places;
    char title[256], setting[64];
    snprintf(title, sizeof(title), "%s, %c = %" PRId64, page->grouped->series[series].name,
             page->by_batch ? 'T' : 'B', place->held);
    if (place->input)
        lb_append(title, sizeof(title), ", I = %" PRId64, place->input);
    snprintf(setting, sizeof(setting), "panel_title[%zu]", panel);
    lb_picture_text(&job->drawing, setting, title);
    write_sizes(script, "panel_x", panel, block->x, block->columns);
    write_sizes(script, "panel_y", panel, block->y, block->rows);
    fprintf(data, "%s# %s\n", panel > 1 ? "\n\n" : "", title);
    for (size_t i = 0; i < block->columns * block->rows; i++) {
        size_t column = i % block->columns, row = i / block->columns;
        int64_t x = block->x[column], y = block->y[row];
        struct cell cell = make_cell(page, find_group(block, x, y), series);
        fprintf(data, "%" PRId64 " %" PRId64 " %zu %zu", x, y, column, row);
        lb_picture_number(&job->drawing, cell.speedup);
        fprintf(data, " %d \"%s\"", (int)cell.state, cell.text);
        lb_picture_number(&job->drawing, cell.base_ns);
        lb_picture_number(&job->drawing, cell.median_ns);
        fputc('\n', data);
    }
}

static void write_panels(struct lb_picture_job *job, const struct page *page)
{
    size_t count = page->block_count * page->shown_count, panel = 0;
    FILE *script = job->drawing.script;
    fprintf(job->drawing.data,
            "# Speed-up over %s: its median time divided by that of the panel's implementation.\n"
            "# H %c column row speedup state text baseline_ns median_ns\n"
            "# state: 0 speed-up, 1 not run, 2 failed, 3 no baseline, 4 no row\n",
            page->grouped->baseline, page->by_batch ? 'B' : 'T');
    fprintf(script, "array panel_x[%zu]\narray panel_y[%zu]\n", count, count);
    for (size_t b = 0; b < page->block_count; b++)
        for (size_t s = 0; s < page->shown_count; s++)
            write_panel(job, page, &page->blocks[b], page->shown[s], ++panel);
    fprintf(script, "range = %.0f\nclipped = %d\n", fmin(page->range, 7),
            page->clipped || page->range > 7);
    lb_picture_text(&job->drawing, "y_label", page->by_batch ? "batch B" : "length T");
}

/* Writes the picture of the groups [count] of one page. */
static enum lb_status write_page(struct lb_picture_job *job, const char *kind, bool by_batch,
                                 const struct lb_group *groups, size_t count, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_grouped_run *grouped = job->grouped;
    struct page page = {.grouped = grouped, .by_batch = by_batch};
    char heading[512], reading[512];
    struct place *places = lb_needed(calloc(count, sizeof(*places)));
    page.blocks = lb_needed(calloc(count + 1, sizeof(*page.blocks)));
    page.shown = lb_needed(calloc(grouped->series_count + 1, sizeof(*page.shown)));
    for (size_t i = 0; i < count; i++) {
        const int64_t *sizes = groups[i].sizes;
        int64_t input = sizes[LB_SIZE_I] == sizes[LB_SIZE_H] ? 0 : sizes[LB_SIZE_I];
        places[i] = (struct place){&groups[i], sizes[by_batch ? LB_SIZE_T : LB_SIZE_B], input,
                                   sizes[LB_SIZE_H], sizes[by_batch ? LB_SIZE_B : LB_SIZE_T]};
    }
    find_blocks(&page, places, count);
    if (page.block_count == 0 || page.shown_count == 0)
        goto done;
    lb_page_heading(groups->candidates[0].row, heading, NULL, sizeof(heading));
    lb_append(heading, sizeof(heading), ": speed-up over %s by %c and H", grouped->baseline,
              by_batch ? 'B' : 'T');
    snprintf(reading, sizeof(reading),
             "Higher is better (blue). The median time of %s divided by that of the panel's "
             "implementation.\n",
             grouped->baseline);
    if (page.found > page.block_count)
        lb_append(reading, sizeof(reading), "%zu of %zu values of %c are shown.", page.block_count,
                  page.found, by_batch ? 'T' : 'B');
    size_t panels = page.block_count * page.shown_count;
    size_t columns = page.shown_count > 1 ? page.shown_count : page.block_count;
    const struct lb_picture_words words = {kind, groups->page, heading, reading, panels, columns};
    LB_TRY(lb_picture_begin(job, &words, err));
    write_panels(job, &page);
    st = lb_picture_finish(&job->drawing, "speedup.gp", err);
done:
    free(places);
    free(page.blocks);
    free(page.shown);
    return st;
}

enum lb_status lb_heat_map_write(struct lb_picture_job *job, const char *kind, struct lb_error *err)
{
    const struct lb_grouped_run *grouped = job->grouped;
    bool by_batch = strcmp(kind, "speedup-b") == 0;
    bool has_baseline = grouped->baseline_series < grouped->series_count;
    for (size_t i = 0, end; i < grouped->count && has_baseline; i = end) {
        const struct lb_group *groups = &grouped->groups[i];
        for (end = i; end < grouped->count && strcmp(grouped->groups[end].page, groups->page) == 0;)
            end++;
        LB_CHECK(write_page(job, kind, by_batch, groups, end - i, err));
    }
    if (has_baseline)
        snprintf(job->missing, sizeof(job->missing),
                 "it needs times of %s and another implementation at two values of H and of %c",
                 grouped->baseline, by_batch ? 'B' : 'T');
    else
        snprintf(job->missing, sizeof(job->missing), "the baseline '%s' is not in this run",
                 grouped->baseline);
    return LB_OK;
}

/* The rows of a run as pictures need them: series with their looks, and sorted points. */
#include "plot/plot_data.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/palette.h"

#define MARKS  10 /* number of marks in plots/style.gp */
#define DASHES 4

/* Series */

/* Returns the label of the row's device when the row is shown in this way: side by side with
 * those of other devices or, when `beside` is false, apart from them. Returns NULL otherwise. */
static const char *label_of(const struct lb_row *row, bool beside)
{
    return row->beside == beside ? row->label : NULL;
}

static void series_name(const struct lb_row *row, char *name, size_t size)
{
    const struct lb_case *c = &row->c;
    const char *label = label_of(row, true);
    int length = snprintf(name, size, "%s%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant,
                          c->launch == LB_GRAPH ? "/graph" : "");
    if (c->threads > 1)
        length += snprintf(name + length, size - (size_t)length, "/th%d", c->threads);
    if (label)
        snprintf(name + length, size - (size_t)length, " on %s", label);
}

static int compare_series(const void *a, const void *b)
{
    const struct lb_series *x = a, *y = b;
    int order = strcmp(x->example->impl, y->example->impl);
    return order ? order : strcmp(x->name, y->name);
}

/* Series of one implementation share its colour and differ in mark and dash. Implementations
 * without a colour of their own alternate between colours 5 and 7, and change marks every two. */
static void choose_looks(struct lb_series_list *list)
{
    int others = 0, sibling = 0, mark = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct lb_series *series = &list->items[i];
        if (i > 0 && strcmp(series[-1].example->impl, series->example->impl) == 0) {
            sibling++;
            series->color = series[-1].color;
        } else {
            sibling = 0;
            series->color = lb_palette_fixed(series->example->impl);
            mark = series->color - 1;
            if (!series->color) {
                series->color = 5 + 2 * (others % 2);
                mark = series->color - 1 + 5 * (others / 2);
                others++;
            }
        }
        series->mark = (mark + 3 * sibling) % MARKS + 1;
        series->dash = sibling % DASHES + 1;
    }
}

enum lb_status lb_series_collect(const struct lb_run *run, struct lb_series_list *list,
                                 struct lb_error *err)
{
    size_t count = 0;
    struct lb_series *items = calloc(run->count + 1, sizeof(*items));
    *list = (struct lb_series_list){items, 0};
    if (!items)
        return lb_fail(err, LB_OOM, "out of memory for the pictures of %zu rows", run->count);
    for (size_t i = 0; i < run->count; i++) {
        items[i].example = &run->rows[i].c;
        series_name(&run->rows[i], items[i].name, sizeof(items[i].name));
    }
    qsort(items, run->count, sizeof(*items), compare_series);
    for (size_t i = 0; i < run->count; i++)
        if (count == 0 || compare_series(&items[count - 1], &items[i]) != 0)
            items[count++] = items[i];
    list->count = count;
    choose_looks(list);
    return LB_OK;
}

void lb_series_free(struct lb_series_list *list)
{
    free(list->items);
    *list = (struct lb_series_list){0};
}

size_t lb_series_of(const struct lb_series_list *list, const struct lb_row *row)
{
    struct lb_series wanted = {.example = &row->c};
    series_name(row, wanted.name, sizeof(wanted.name));
    const struct lb_series *found =
        bsearch(&wanted, list->items, list->count, sizeof(wanted), compare_series);
    return found ? (size_t)(found - list->items) : list->count;
}

size_t lb_series_baseline(const struct lb_series_list *list, const char *baseline)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, baseline) == 0)
            return i;
    for (size_t i = 0; i < list->count; i++) {
        size_t length = strcspn(list->items[i].name, "/ ");
        if (strlen(baseline) == length && strncmp(list->items[i].name, baseline, length) == 0)
            return i;
    }
    return list->count;
}

/* Axes and pages */

int64_t lb_plot_axis_value(const struct lb_problem *problem, enum lb_plot_axis axis)
{
    const int64_t values[] = {problem->seq_len, problem->batch, problem->hidden};
    return values[axis];
}

const char *lb_plot_axis_letter(enum lb_plot_axis axis)
{
    static const char *const letters[] = {"T", "B", "H"};
    return letters[axis];
}

const char *lb_plot_axis_words(enum lb_plot_axis axis)
{
    static const char *const words[] = {"sequence length T", "batch size B", "hidden size H"};
    return words[axis];
}

/* Appends the label to the name of a page, which is part of a file's name: "_amd-epyc-2-threads".
 */
static void append_label(const char *label, char page[LB_PAGE_NAME_SIZE])
{
    size_t used = strlen(page);
    char last = '_';
    page[used++] = last;
    for (; *label && used + 1 < LB_PAGE_NAME_SIZE; label++) {
        char c = isalnum((unsigned char)*label) ? (char)tolower((unsigned char)*label) : '-';
        if (c != '-' || last != '-')
            page[used++] = c;
        last = c;
    }
    page[used] = '\0';
}

void lb_page_name(const struct lb_row *row, char page[LB_PAGE_NAME_SIZE])
{
    const struct lb_case *c = &row->c;
    const char *label = label_of(row, false);
    const struct lb_problem *p = &c->problem;
    char *at = page, *end = page + LB_PAGE_NAME_SIZE;
    at += snprintf(at, (size_t)(end - at), "%s_%s", lb_dtype_name(p->dtype), lb_pass_name(p->pass));
    if (p->math != LB_IEEE)
        at += snprintf(at, (size_t)(end - at), "_%s", lb_math_name(p->math));
    if (p->layers > 1)
        at += snprintf(at, (size_t)(end - at), "_L%" PRId64, p->layers);
    if (p->directions > 1)
        at += snprintf(at, (size_t)(end - at), "_D%" PRId64, p->directions);
    if (p->cell == LB_CELL_PROJECTION)
        at += snprintf(at, (size_t)(end - at), "_P%" PRId32, p->projection);
    else if (p->cell != LB_CELL_STANDARD)
        at += snprintf(at, (size_t)(end - at), "_%s", lb_cell_name((enum lb_cell_kind)p->cell));
    snprintf(at, (size_t)(end - at), "%s%s%s%s", p->ragged ? "_ragged" : "",
             p->act == LB_ACT_RELU ? "_act-relu" : "", c->cache == LB_COLD ? "_cold" : "",
             c->timing == LB_BATCHED ? "_batched" : "");
    if (label)
        append_label(label, page);
}

static size_t dtype_rank(const char *page)
{
    static const char *const order[] = {"f32_", "f16_", "bf16_", "f64_"};
    size_t rank = 0;
    while (rank < sizeof(order) / sizeof(order[0]) &&
           strncmp(page, order[rank], strlen(order[rank])) != 0)
        rank++;
    return rank;
}

int lb_page_compare(const char *a, const char *b)
{
    size_t p = dtype_rank(a), q = dtype_rank(b);
    return p == q ? strcmp(a, b) : p < q ? -1 : 1;
}

void lb_page_heading(const struct lb_row *row, char *heading, size_t size)
{
    const struct lb_case *c = &row->c;
    const char *label = label_of(row, false);
    static const char *const passes[LB_PASS_COUNT] = {"inference", "forward for training",
                                                      "backward", "training"};
    const struct lb_problem *p = &c->problem;
    char *at = heading, *end = heading + size;
    at += snprintf(at, (size_t)(end - at), "LSTM %s, %s", passes[p->pass], lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        at += snprintf(at, (size_t)(end - at), " with %s GEMMs", lb_math_name(p->math));
    if (p->layers > 1)
        at += snprintf(at, (size_t)(end - at), ", %" PRId64 " layers", p->layers);
    if (p->cell != LB_CELL_STANDARD)
        at += snprintf(at, (size_t)(end - at), ", %s", lb_cell_name((enum lb_cell_kind)p->cell));
    if (p->cell == LB_CELL_PROJECTION)
        at += snprintf(at, (size_t)(end - at), " to %" PRId32, p->projection);
    snprintf(at, (size_t)(end - at), "%s%s%s%s%s%s%s", p->directions > 1 ? ", bidirectional" : "",
             p->ragged ? ", ragged" : "", p->act == LB_ACT_RELU ? ", relu" : "",
             c->cache == LB_COLD ? ", cold caches" : "",
             c->timing == LB_BATCHED ? ", batched timing" : "", label ? ", " : "",
             label ? label : "");
}

/* Points */

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_shared(const struct lb_point *a, const struct lb_point *b, enum lb_share share)
{
    int order = lb_page_compare(a->page, b->page);
    if (share == LB_SHARE_PAGE || order)
        return order;
    if ((order = compare_numbers(a->panel[0], b->panel[0])) ||
        (order = compare_numbers(a->panel[1], b->panel[1])) ||
        (order = compare_numbers(a->input, b->input)) || share == LB_SHARE_PANEL)
        return order;
    return (a->series > b->series) - (a->series < b->series);
}

static int compare_points(const void *a, const void *b)
{
    const struct lb_point *p = a, *q = b;
    int order = compare_shared(p, q, LB_SHARE_SERIES);
    if (!order)
        order = compare_numbers(p->y, q->y);
    return order ? order : compare_numbers(p->x, q->x);
}

void lb_points_sort(struct lb_point *points, size_t count)
{
    if (count > 1)
        qsort(points, count, sizeof(*points), compare_points);
}

size_t lb_points_end(const struct lb_point *points, size_t count, size_t first, enum lb_share share)
{
    size_t end = first;
    while (end < count && compare_shared(&points[first], &points[end], share) == 0)
        end++;
    return end;
}

static int compare_values(const void *a, const void *b)
{
    return compare_numbers(*(const int64_t *)a, *(const int64_t *)b);
}

size_t lb_distinct(int64_t *values, size_t count)
{
    size_t kept = 0;
    if (count > 1)
        qsort(values, count, sizeof(*values), compare_values);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || values[kept - 1] != values[i])
            values[kept++] = values[i];
    return kept;
}

size_t lb_thin(int64_t *values, size_t count, size_t limit)
{
    if (count <= limit)
        return count;
    if (limit == 1)
        return 1;
    for (size_t i = 0; i < limit; i++)
        values[i] = values[i * (count - 1) / (limit - 1)];
    return limit;
}

bool lb_contains(const int64_t *values, size_t count, int64_t value)
{
    return count > 0 && bsearch(&value, values, count, sizeof(*values), compare_values) != NULL;
}

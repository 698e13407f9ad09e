/* Series, groups of rows that solved the same problem, the fastest row of each, and what leaving
 * the standard cell costs and leaving f32 gains. */
#include "plot/grouped_run.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/palette.h"
#include "base/text.h"
#include "support/texts.h"

enum { MARKS = 10 /* number of marks in plots/style.gp */, DASHES = 4 };

static int compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Series */

/* Returns the label of the row's device when the row is shown in this way: side by side with
 * those of other devices or, when `beside` is false, apart from them. Returns NULL otherwise. */
static const char *label_of(const struct lb_row *row, bool beside)
{
    return row->beside == beside ? row->label : NULL;
}

static struct lb_series series_of(const struct lb_row *row)
{
    struct lb_series series = {.example = &row->c};
    const char *label = label_of(row, true);
    lb_impl_label(&row->c, series.name);
    if (label)
        lb_append(series.name, sizeof(series.name), " on %s", label);
    return series;
}

static int compare_series(const void *a, const void *b)
{
    const struct lb_series *x = a, *y = b;
    int order = strcmp(x->example->impl, y->example->impl);
    return order ? order : strcmp(x->name, y->name);
}

/* Series of one implementation share its colour and differ in mark and dash. Implementations
 * without a colour of their own alternate between colours 5 and 7, and change marks every two. */
static void choose_looks(struct lb_series *series, size_t count)
{
    int others = 0, sibling = 0, mark = 0;
    for (struct lb_series *one = series; one < series + count; one++) {
        if (one > series && strcmp(one[-1].example->impl, one->example->impl) == 0) {
            sibling++;
            one->color = one[-1].color;
        } else {
            sibling = 0;
            one->color = lb_palette_fixed(one->example->impl);
            mark = one->color - 1;
            if (!one->color) {
                one->color = 5 + 2 * (others % 2);
                mark = one->color - 1 + 5 * (others / 2);
                others++;
            }
        }
        one->mark = (mark + 3 * sibling) % MARKS + 1;
        one->dash = sibling % DASHES + 1;
    }
}

static void find_series(struct lb_grouped_run *grouped)
{
    const struct lb_run *run = grouped->run;
    struct lb_series *series = grouped->series;
    for (size_t i = 0; i < run->count; i++)
        series[i] = series_of(&run->rows[i]);
    qsort(series, run->count, sizeof(*series), compare_series);
    for (size_t i = 0; i < run->count; i++)
        if (i == 0 || compare_series(&series[grouped->series_count - 1], &series[i]) != 0)
            series[grouped->series_count++] = series[i];
    choose_looks(series, grouped->series_count);
}

static void choose_baseline(struct lb_grouped_run *grouped, const char *name)
{
    enum { USUAL = 3 };
    static const char *const usual[USUAL] = {"cudnn", "onednn", "cpu_ref"};
    const struct lb_run *run = grouped->run;
    char *baseline = grouped->baseline;
    if (!name)
        name = json_string_value(json_object_get(run->header, "baseline"));
    if (name) { /* "cudnn:auto" is the default variant, labelled "cudnn" */
        snprintf(baseline, sizeof(grouped->baseline), "%s", name);
        size_t length = strlen(baseline);
        if (length > 5 && strcmp(baseline + length - 5, ":auto") == 0)
            baseline[length - 5] = '\0';
    }
    size_t best = baseline[0] ? 0 : USUAL + 1; /* the place in usual of what is chosen */
    for (size_t i = 0; i < run->count; i++) {
        const char *label = LB_IMPL_LABEL(&run->rows[i].c);
        size_t place = 0;
        while (place < USUAL && strcmp(usual[place], label) != 0)
            place++;
        if (run->rows[i].verdict != LB_VERDICT_OK || place >= best)
            continue;
        best = place;
        snprintf(baseline, sizeof(grouped->baseline), "%s", label);
    }
    grouped->baseline_series = grouped->series_count;
    for (size_t i = grouped->series_count; i-- > 0;)
        if (strcmp(LB_IMPL_LABEL(grouped->series[i].example), baseline) == 0)
            grouped->baseline_series = i;
}

/* Pages */

/* Appends the label to the name of a page, which is part of a file's name: "_amd-epyc-2-threads".
 */
static void append_label(const char *label, char page[LB_PAGE_NAME_SIZE])
{
    char words[LB_LABEL_SIZE];
    size_t used = 0;
    for (; *label && used + 1 < sizeof(words); label++) {
        char c = isalnum((unsigned char)*label) ? (char)tolower((unsigned char)*label) : '-';
        if (c != '-' || used == 0 || words[used - 1] != '-')
            words[used++] = c;
    }
    lb_append(page, LB_PAGE_NAME_SIZE, "_%.*s", (int)used, words);
}

/* The part of a picture's name that its rows determine: the text of the case without sizes T, B, I
 * and H and implementation, dtype and pass first; where devices are apart, the device: "f32_infer",
 * "f32_train_L2_th2". */
static void print_page(const struct lb_row *row, char page[LB_PAGE_NAME_SIZE])
{
    struct lb_case c = row->c;
    struct lb_problem *p = &c.problem;
    char text[LB_CASE_ID_SIZE];
    p->seq_len = p->batch = p->input = p->hidden = 1;
    lb_case_print_problem(&c, text); /* "T1_B1_I1_H1_L2/f32/train/th2" */
    char *sizes = text + strlen("T1_B1_I1_H1"), *words = strchr(sizes, '/');
    *words++ = '\0';
    char *others = strchr(words, '/') + 1 + strlen(lb_pass_name(p->pass));
    page[0] = '\0';
    lb_append(page, LB_PAGE_NAME_SIZE, "%.*s%s%s", (int)(others - words), words, sizes, others);
    for (char *at = page; *at; at++)
        *at = *at == '/' ? '_' : *at;
    if (label_of(row, false))
        append_label(row->label, page);
}

static size_t dtype_rank(const char *page)
{
    static const char *const order[] = {"f32_", "f16_", "bf16_", "int8_", "f64_"};
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

void lb_page_heading(const struct lb_row *row, char *heading, char *others, size_t size)
{
    static const char *const passes[LB_PASS_COUNT] = {"inference", "forward for training",
                                                      "backward", "training"};
    const struct lb_case *c = &row->c;
    const struct lb_problem *p = &c->problem;
    char rest[256] = "";
    if (p->layers > 1)
        lb_append(rest, sizeof(rest), ", %" PRId64 " layers", p->layers);
    if (p->cell != LB_CELL_STANDARD)
        lb_append(rest, sizeof(rest), ", %s", lb_cell_name((enum lb_cell_kind)p->cell));
    if (p->cell == LB_CELL_PROJECTION)
        lb_append(rest, sizeof(rest), " to %" PRId32, p->projection);
    lb_append(rest, sizeof(rest), "%s%s%s%s%s", p->directions > 1 ? ", bidirectional" : "",
              p->ragged ? ", ragged" : "", p->act == LB_ACT_RELU ? ", relu" : "",
              c->launch == LB_GRAPH ? ", CUDA graph" : "",
              c->cache == LB_COLD ? ", cold caches" : "");
    if (c->timing != LB_ISOLATED)
        lb_append(rest, sizeof(rest), ", %s", lb_axis_word(c, LB_AXIS_TIMING));
    if (c->rate > 0)
        lb_append(rest, sizeof(rest), " of %d calls per second", c->rate);
    if (c->instances > 1)
        lb_append(rest, sizeof(rest), ", %d instances", c->instances);
    if (c->threads > 1)
        lb_append(rest, sizeof(rest), ", %d threads", c->threads);
    if (label_of(row, false))
        lb_append(rest, sizeof(rest), ", %s", row->label);
    snprintf(heading, size, "LSTM %s, %s", passes[p->pass], lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        lb_append(heading, size, " with %s GEMMs", lb_math_name(p->math));
    lb_append(heading, size, "%s", rest);
    if (others)
        snprintf(others, size, "%s", rest);
}

/* Groups */

static int compare_problems(const struct lb_candidate *a, const struct lb_candidate *b)
{
    const struct lb_problem *p = &a->row->c.problem, *q = &b->row->c.problem;
    int order = lb_page_compare(a->page, b->page);
    order = order ? order : compare_numbers(p->hidden, q->hidden);
    order = order ? order : compare_numbers(p->batch, q->batch);
    order = order ? order : compare_numbers(p->seq_len, q->seq_len);
    return order ? order : compare_numbers(p->input, q->input);
}

/* Sorts by problem, then the fastest first, and rows without a time last in the order of the run.
 */
static int compare_candidates(const void *a, const void *b)
{
    const struct lb_candidate *p = a, *q = b;
    const struct lb_row *x = p->row, *y = q->row;
    int order = compare_problems(p, q);
    if (order)
        return order;
    if (lb_row_is_timed(x) != lb_row_is_timed(y))
        return lb_row_is_timed(x) ? -1 : 1;
    if (lb_row_is_timed(x) && x->median_ns != y->median_ns)
        return x->median_ns < y->median_ns ? -1 : 1;
    return (x > y) - (x < y);
}

/* Ranks the candidates with a time. A row whose interval overlaps that of the fastest is tied with
 * it. A row without an interval cannot be ranked, and one that is not apart from such a row is not
 * called the fastest. */
static void rank_group(struct lb_group *group)
{
    struct lb_candidate *best = &group->candidates[0];
    size_t near = 0, ties = 0;
    for (size_t i = 1; i < group->timed; i++) {
        struct lb_candidate *other = &group->candidates[i];
        bool apart = lb_rows_apart(other->row, best->row);
        near += !apart;
        if (apart || !lb_row_has_interval(best->row) || !lb_row_has_interval(other->row))
            continue;
        other->rank = LB_RANK_TIED;
        ties++;
    }
    if (group->timed > 1 && lb_row_has_interval(best->row) && (ties > 0 || near == 0))
        best->rank = ties > 0 ? LB_RANK_TIED : LB_RANK_FASTEST;
}

/* Divides the sorted candidates into groups. */
static void find_groups(struct lb_grouped_run *grouped)
{
    const struct lb_run *run = grouped->run;
    for (size_t i = 0; i < run->count; i++) {
        struct lb_candidate *it = &grouped->candidates[i];
        const struct lb_problem *p = &it->row->c.problem;
        if (i == 0 || compare_problems(it - 1, it) != 0)
            grouped->groups[grouped->count++] =
                (struct lb_group){.page = it->page,
                                  .sizes = {p->seq_len, p->batch, p->input, p->hidden},
                                  .candidates = it,
                                  .first = SIZE_MAX};
        struct lb_group *group = &grouped->groups[grouped->count - 1];
        size_t index = (size_t)(it->row - run->rows);
        group->count++;
        group->timed += lb_row_is_timed(it->row);
        group->first = index < group->first ? index : group->first;
    }
    for (size_t i = 0; i < grouped->count; i++)
        rank_group(&grouped->groups[i]);
}

void lb_group_run(const struct lb_run *run, const char *baseline, struct lb_grouped_run *grouped)
{
    size_t room = run->count + 1;
    *grouped = (struct lb_grouped_run){
        .run = run,
        .series = lb_needed(calloc(room, sizeof(*grouped->series))),
        .groups = lb_needed(calloc(room, sizeof(*grouped->groups))),
        .candidates = lb_needed(calloc(room, sizeof(*grouped->candidates))),
    };
    find_series(grouped);
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        const struct lb_series key = series_of(row);
        const struct lb_series *series =
            bsearch(&key, grouped->series, grouped->series_count, sizeof(key), compare_series);
        char page[LB_PAGE_NAME_SIZE];
        print_page(row, page);
        grouped->candidates[i] = (struct lb_candidate){
            row, lb_needed(strdup(page)), (size_t)(series - grouped->series), LB_RANK_NONE};
    }
    choose_baseline(grouped, baseline);
    qsort(grouped->candidates, run->count, sizeof(*grouped->candidates), compare_candidates);
    find_groups(grouped);
}

void lb_grouped_run_free(struct lb_grouped_run *grouped)
{
    for (size_t i = 0; grouped->candidates && i < grouped->run->count; i++)
        free(grouped->candidates[i].page);
    free(grouped->series);
    free(grouped->groups);
    free(grouped->candidates);
    *grouped = (struct lb_grouped_run){0};
}

const struct lb_candidate *lb_group_find(const struct lb_group *group, size_t series)
{
    for (size_t i = 0; group && i < group->count; i++)
        if (group->candidates[i].series == series)
            return &group->candidates[i];
    return NULL;
}

const struct lb_candidate *lb_group_timed(const struct lb_group *group, size_t series)
{
    const struct lb_candidate *found = lb_group_find(group, series);
    return found && lb_row_is_timed(found->row) ? found : NULL;
}

static int compare_with_group(const void *key, const void *item)
{
    const struct lb_group *group = item;
    return compare_problems(key, &group->candidates[0]);
}

const struct lb_group *lb_group_of_row(const struct lb_grouped_run *grouped,
                                       const struct lb_row *row)
{
    char page[LB_PAGE_NAME_SIZE];
    print_page(row, page);
    const struct lb_candidate key = {.row = row, .page = page};
    return bsearch(&key, grouped->groups, grouped->count, sizeof(*grouped->groups),
                   compare_with_group);
}

/* Intervals */

double lb_row_deadline(const struct lb_run *run, const struct lb_row *row)
{
    double given_s = json_number_value(json_object_get(run->header, "deadline_s"));
    if (row->c.timing != LB_STREAMING)
        return NAN;
    return given_s > 0 ? 1e9 * given_s : row->c.rate > 0 ? 1e9 / row->c.rate : (double)NAN;
}

bool lb_row_has_interval(const struct lb_row *row)
{
    return isfinite(row->median_lo_ns) && isfinite(row->median_hi_ns);
}

bool lb_row_bounds(const struct lb_row *row, double *lo, double *hi)
{
    *lo = row->median_lo_ns;
    *hi = row->median_hi_ns;
    if (lb_row_has_interval(row))
        return true;
    *lo = *hi = row->samples < 2 ? (double)NAN : row->samples_ns[0];
    for (size_t i = 1; i < row->samples; i++) {
        *lo = fmin(*lo, row->samples_ns[i]);
        *hi = fmax(*hi, row->samples_ns[i]);
    }
    return row->samples >= 2;
}

bool lb_rows_apart(const struct lb_row *a, const struct lb_row *b)
{
    double a_lo, a_hi, b_lo, b_hi;
    return lb_row_bounds(a, &a_lo, &a_hi) && lb_row_bounds(b, &b_lo, &b_hi) &&
           (a_hi < b_lo || b_hi < a_lo);
}

/* Values */

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

size_t lb_evenly(size_t i, size_t count, size_t limit)
{
    return count <= limit || limit < 2 ? i : i * (count - 1) / (limit - 1);
}

/* Prices */

/* The row that differs from this one in the cell alone or, with the standard cell, in the precision
 * alone: the standard cell's or that of f32. NULL: there is none with a time. */
static const struct lb_row *base_of(const struct lb_grouped_run *grouped,
                                    const struct lb_candidate *it)
{
    struct lb_row like = *it->row;
    struct lb_problem *p = &like.c.problem;
    if (p->cell != LB_CELL_STANDARD) {
        p->cell = LB_CELL_STANDARD;
        p->projection = 0;
    } else if (p->dtype != LB_F32 && p->dtype != LB_F64) {
        p->dtype = LB_F32;
    } else {
        return NULL;
    }
    const struct lb_candidate *found = lb_group_timed(lb_group_of_row(grouped, &like), it->series);
    return found ? found->row : NULL;
}

/* The order of prices; 0: they are of the same cell or precision, pass and implementation. */
static int compare_prices(const void *a, const void *b)
{
    const struct lb_price *p = a, *q = b;
    int order = (int)p->cell - (int)q->cell;
    order = order ? order : (int)p->dtype - (int)q->dtype;
    order = order ? order : (int)p->pass - (int)q->pass;
    return order ? order : strcmp(p->impl, q->impl);
}

/* Takes a row into the price of its cell or precision, pass and implementation. mean holds the sum
 * of logarithms for now. */
static void add_ratio(struct lb_price *prices, size_t *count, const struct lb_row *row,
                      const struct lb_row *base)
{
    const struct lb_problem *p = &row->c.problem;
    bool standard = p->cell == LB_CELL_STANDARD;
    struct lb_price key = {.cell = (enum lb_cell_kind)p->cell,
                           .dtype = standard ? p->dtype : LB_F32,
                           .pass = p->pass,
                           .least = INFINITY};
    double ratio = standard ? base->median_ns / row->median_ns : row->median_ns / base->median_ns;
    lb_impl_label(&row->c, key.impl);
    size_t i = 0;
    while (i < *count && compare_prices(&prices[i], &key) != 0)
        i++;
    if (i == *count)
        prices[(*count)++] = key;
    prices[i].problems++;
    prices[i].mean += log(ratio);
    prices[i].least = fmin(prices[i].least, ratio);
    prices[i].most = fmax(prices[i].most, ratio);
    prices[i].error = fmax(prices[i].error, row->err_norm);
    prices[i].base_error = fmax(prices[i].base_error, base->err_norm);
}

/* Turns the sum of logarithms into the mean, and says the price in words. */
static void finish_price(struct lb_price *price)
{
    enum { SIZE = sizeof(price->text) };
    bool standard = price->cell == LB_CELL_STANDARD;
    price->mean = exp(price->mean / (double)price->problems);
    snprintf(price->text, SIZE, "%s %s %.3g times as %s on %s, %s",
             standard ? lb_dtype_name(price->dtype) : lb_cell_name(price->cell),
             standard ? "is" : "takes", price->mean,
             standard ? "fast as f32" : "long as the standard cell", price->impl,
             lb_pass_name(price->pass));
    if (price->problems == 1)
        lb_append(price->text, SIZE, " (1 problem)");
    else
        lb_append(price->text, SIZE, " (%.3g to %.3g in %zu problems)", price->least, price->most,
                  price->problems);
    if (standard)
        lb_append(price->text, SIZE, ", with an error of%s %.2g where f32 has %.2g",
                  price->problems == 1 ? "" : " at most", price->error, price->base_error);
}

/* Whether the sizes are the same. like may be NULL. */
static bool has_sizes(const struct lb_problem *p, const struct lb_problem *like)
{
    return !like || (p->seq_len == like->seq_len && p->batch == like->batch &&
                     p->input == like->input && p->hidden == like->hidden &&
                     p->layers == like->layers && p->directions == like->directions);
}

struct lb_price *lb_prices(const struct lb_run *run, const struct lb_problem *like, size_t *count)
{
    struct lb_grouped_run grouped;
    struct lb_price *prices = lb_needed(calloc(run->count + 1, sizeof(*prices)));
    *count = 0;
    lb_group_run(run, NULL, &grouped);
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_candidate *it = &grouped.candidates[i];
        bool wanted = lb_row_is_timed(it->row) && has_sizes(&it->row->c.problem, like);
        const struct lb_row *base = wanted ? base_of(&grouped, it) : NULL;
        if (base)
            add_ratio(prices, count, it->row, base);
    }
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < *count; i++)
        finish_price(&prices[i]);
    qsort(prices, *count, sizeof(*prices), compare_prices);
    return prices;
}

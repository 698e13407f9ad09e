/* What leaving the standard cell costs, from the times of one run. */
#include "report/cell_price.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A row of the standard cell, found by the hash of its case. */
struct standard {
    uint64_t hash;
    const struct lb_row *row;
};

static int compare_standards(const void *a, const void *b)
{
    uint64_t p = ((const struct standard *)a)->hash, q = ((const struct standard *)b)->hash;
    return (p > q) - (p < q);
}

/* The timed rows of the standard cell, by hash. NULL: out of memory. */
static struct standard *list_standards(const struct lb_run *run, size_t *count)
{
    struct standard *list = calloc(run->count + 1, sizeof(*list));
    *count = 0;
    for (size_t i = 0; list && i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        if (row->c.problem.cell == LB_CELL_STANDARD && lb_row_is_timed(row))
            list[(*count)++] = (struct standard){lb_case_hash(&row->c), row};
    }
    if (list)
        qsort(list, *count, sizeof(*list), compare_standards);
    return list;
}

static bool same_device(const struct lb_row *a, const struct lb_row *b)
{
    return a->label == b->label || (a->label && b->label && strcmp(a->label, b->label) == 0);
}

/* The row that differs from this one in the cell alone; NULL: there is none with a time. */
static const struct lb_row *standard_of(const struct standard *list, size_t count,
                                        const struct lb_row *row)
{
    struct lb_case c = row->c;
    c.problem.cell = LB_CELL_STANDARD;
    c.problem.projection = 0;
    const struct standard key = {lb_case_hash(&c), NULL};
    const struct standard *at = bsearch(&key, list, count, sizeof(*list), compare_standards);
    while (at && at > list && at[-1].hash == key.hash)
        at--;
    for (; at && at < list + count && at->hash == key.hash; at++)
        if (lb_case_same(&at->row->c, &c) && same_device(at->row, row))
            return at->row;
    return NULL;
}

/* Takes one ratio into the price of its cell, pass and implementation. mean holds the sum of
 * logarithms for now. */
static void add_ratio(struct lb_cell_price *prices, size_t *count, const struct lb_case *c,
                      double ratio)
{
    struct lb_cell_price key = {
        .cell = (enum lb_cell_kind)c->problem.cell, .pass = c->problem.pass, .least = INFINITY};
    snprintf(key.impl, sizeof(key.impl), "%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant);
    size_t i = 0;
    while (i < *count && (prices[i].cell != key.cell || prices[i].pass != key.pass ||
                          strcmp(prices[i].impl, key.impl) != 0))
        i++;
    if (i == *count)
        prices[(*count)++] = key;
    prices[i].problems++;
    prices[i].mean += log(ratio);
    prices[i].least = fmin(prices[i].least, ratio);
    prices[i].most = fmax(prices[i].most, ratio);
}

static int compare_prices(const void *a, const void *b)
{
    const struct lb_cell_price *p = a, *q = b;
    if (p->cell != q->cell)
        return (p->cell > q->cell) - (p->cell < q->cell);
    if (p->pass != q->pass)
        return (p->pass > q->pass) - (p->pass < q->pass);
    return strcmp(p->impl, q->impl);
}

enum lb_status lb_cell_prices(const struct lb_run *run, struct lb_cell_price **prices,
                              size_t *count, struct lb_error *err)
{
    size_t standards;
    struct standard *list = list_standards(run, &standards);
    *prices = calloc(run->count + 1, sizeof(**prices));
    *count = 0;
    if (!list || !*prices) {
        free(list);
        free(*prices);
        *prices = NULL;
        return lb_fail(err, LB_OOM, "out of memory for the prices of cells");
    }
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_row *row = &run->rows[i];
        if (row->c.problem.cell == LB_CELL_STANDARD || !lb_row_is_timed(row))
            continue;
        const struct lb_row *standard = standard_of(list, standards, row);
        if (standard)
            add_ratio(*prices, count, &row->c, row->median_ns / standard->median_ns);
    }
    free(list);
    for (size_t i = 0; i < *count; i++)
        (*prices)[i].mean = exp((*prices)[i].mean / (double)(*prices)[i].problems);
    qsort(*prices, *count, sizeof(**prices), compare_prices);
    return LB_OK;
}

void lb_cell_price_text(const struct lb_cell_price *price, char *text, size_t size)
{
    int length =
        snprintf(text, size, "%s takes %.3g times as long as the standard cell on %s, %s",
                 lb_cell_name(price->cell), price->mean, price->impl, lb_pass_name(price->pass));
    if (length < 0 || (size_t)length >= size)
        return;
    if (price->problems == 1)
        snprintf(text + length, size - (size_t)length, " (1 problem)");
    else
        snprintf(text + length, size - (size_t)length, " (%.3g to %.3g in %zu problems)",
                 price->least, price->most, price->problems);
}

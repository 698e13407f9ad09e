/* What leaving the standard cell costs, from the times of one run. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/grouped_run.h"

/* The row that differs from this one in the cell alone; NULL: there is none with a time. */
static const struct lb_row *standard_of(const struct lb_grouped_run *grouped,
                                        const struct lb_candidate *it)
{
    struct lb_row like = *it->row;
    like.c.problem.cell = LB_CELL_STANDARD;
    like.c.problem.projection = 0;
    const struct lb_group *group = lb_group_of_row(grouped, &like);
    const struct lb_candidate *found = group ? lb_group_timed(group, it->series) : NULL;
    return found ? found->row : NULL;
}

/* Takes one ratio into the price of its cell, pass and implementation. mean holds the sum of
 * logarithms for now. */
static void add_ratio(struct lb_cell_price *prices, size_t *count, const struct lb_case *c,
                      double ratio)
{
    struct lb_cell_price key = {
        .cell = (enum lb_cell_kind)c->problem.cell, .pass = c->problem.pass, .least = INFINITY};
    lb_impl_label(c, key.impl);
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

/* Turns the sum of logarithms into the mean, and says the price in words. */
static void finish_price(struct lb_cell_price *price)
{
    enum { SIZE = sizeof(price->text) };
    price->mean = exp(price->mean / (double)price->problems);
    snprintf(price->text, SIZE, "%s takes %.3g times as long as the standard cell on %s, %s",
             lb_cell_name(price->cell), price->mean, price->impl, lb_pass_name(price->pass));
    if (price->problems == 1)
        lb_append(price->text, SIZE, " (1 problem)");
    else
        lb_append(price->text, SIZE, " (%.3g to %.3g in %zu problems)", price->least, price->most,
                  price->problems);
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

struct lb_cell_price *lb_cell_prices(const struct lb_run *run, size_t *count)
{
    struct lb_grouped_run grouped;
    struct lb_cell_price *prices = lb_needed(calloc(run->count + 1, sizeof(*prices)));
    *count = 0;
    lb_group_run(run, NULL, &grouped);
    for (size_t i = 0; i < run->count; i++) {
        const struct lb_candidate *it = &grouped.candidates[i];
        bool other = it->row->c.problem.cell != LB_CELL_STANDARD && lb_row_is_timed(it->row);
        const struct lb_row *standard = other ? standard_of(&grouped, it) : NULL;
        if (standard)
            add_ratio(prices, count, &it->row->c, it->row->median_ns / standard->median_ns);
    }
    lb_grouped_run_free(&grouped);
    for (size_t i = 0; i < *count; i++)
        finish_price(&prices[i]);
    qsort(prices, *count, sizeof(*prices), compare_prices);
    return prices;
}

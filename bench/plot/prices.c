/* What leaving the standard cell costs, and what leaving f32 gains, from the times of one run. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/grouped_run.h"
#include "support/texts.h"

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

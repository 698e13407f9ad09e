/* What leaving the standard cell costs: how much longer another cell takes on the same
 * implementation, from the times of one run. */
#ifndef LB_CELL_PRICE_H
#define LB_CELL_PRICE_H

#include "record/run_file.h"

/* One cell on one implementation and variant, in one pass: over all problems of the run that have a
 * time both with the cell and with the standard cell, and are the same otherwise. */
struct lb_cell_price {
    enum lb_cell_kind cell;
    enum lb_pass pass;
    char impl[2 * LB_NAME_SIZE]; /* "cpu_ref", "cudnn:standard" */
    size_t problems;             /* at least 1 */
    double mean, least, most;    /* time with the cell over time with the standard cell: geometric
                                    mean, and extremes */
};

/* *prices [*count], which the caller frees: by cell, pass and implementation. None when the run has
 * no such problems. LB_OOM. */
enum lb_status lb_cell_prices(const struct lb_run *run, struct lb_cell_price **prices,
                              size_t *count, struct lb_error *err);

/* "peephole takes 1.07 times as long as the standard cell on cpu_ref, train (1.05 to 1.12 in 4
 * problems)", into text [size]. */
void lb_cell_price_text(const struct lb_cell_price *price, char *text, size_t size);

#endif

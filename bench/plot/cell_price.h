/* The price of a cell: how much longer it takes than the standard cell on the same implementation,
 * from the times of one run. */
#ifndef LB_CELL_PRICE_H
#define LB_CELL_PRICE_H

#include "record/run_file.h"

/* The price of one cell on one implementation and variant, in one pass. It is taken over all
 * problems of the run that have a time with the cell and one with the standard cell, and are
 * otherwise the same. */
struct lb_cell_price {
    enum lb_cell_kind cell;
    enum lb_pass pass;
    char impl[2 * LB_NAME_SIZE]; /* "cpu_ref", "cudnn:standard" */
    size_t problems;             /* at least 1 */
    double mean, least, most;    /* time with the cell divided by time with the standard cell:
                                    geometric mean, minimum and maximum */
    char text[256];              /* "peephole takes 1.07 times as long as the standard cell on
                                    cpu_ref, train (1.05 to 1.12 in 4 problems)" */
};

/* The prices [*count] of the run, in the order of cell, pass and implementation, which the caller
 * frees. */
struct lb_cell_price *lb_cell_prices(const struct lb_run *run, size_t *count);

#endif

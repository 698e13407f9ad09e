/* Shift between two sets of times: the Hodges-Lehmann estimate, its confidence intervals, and the
 * p-value of "no shift", all from ranks, without assuming a distribution.
 *
 * Callers pass logarithms of times, so a shift of d is a ratio of exp(d). The values must be units
 * of replication: medians of blocks or of processes. They must never be the pooled samples of one
 * process, because those share whatever was random about that process (addresses, clocks), and an
 * interval computed from them is far too narrow. */
#ifndef LB_SHIFT_H
#define LB_SHIFT_H

#include <stdbool.h>
#include <stddef.h>

#define LB_SHIFT_MIN_UNITS 4 /* on each side: with fewer no interval reaches 95 % */
#define LB_SHIFT_MIN_PAIRS 6 /* likewise */

struct lb_shift {
    double estimate;   /* location of changed minus location of base */
    double lo95, hi95; /* 95 % interval; without ties and zeros it excludes 0 exactly when
                          p <= 0.05 */
    double lo90, hi90; /* 90 % interval; it lies within +-margin exactly when two one-sided tests at
                          5 % call the sets equal within the margin */
    double p;          /* two-sided p-value of "no shift" */
    bool exact;        /* from the exact distribution; false: the tie-corrected normal one */
};

/* The shift between two independent sets base [n] and changed [m]; n and m must be at least
 * LB_SHIFT_MIN_UNITS, and all values finite. Mann-Whitney's U counts the differences above 0. The
 * estimate is the median of all n m differences, and the bounds of the intervals are two of them.
 * The distribution is exact when there are no ties and n m is at most LB_SHIFT_EXACT, else normal
 * with corrections for continuity and ties.
 * Source: Hollander & Wolfe, Nonparametric Statistical Methods, 4.1-4.3. */
#define LB_SHIFT_EXACT 1000
struct lb_shift lb_shift(const double *base, size_t n, const double *changed, size_t m);

/* The shift of pairs. differences [n], changed minus base of each pair, must be finite, and n at
 * least LB_SHIFT_MIN_PAIRS. It uses Wilcoxon's signed ranks; the estimate is the median of the
 * averages of every two differences, each with itself included. The distribution is exact when no
 * absolute differences are tied, none is 0, and n is at most 50, else normal, in which differences
 * of 0 have ranks but no sign, as Pratt proposed. Source: Hollander & Wolfe,
 * 3.1-3.3; Pratt, J. Am. Stat. Assoc. 54 (1959) 655-667. */
struct lb_shift lb_shift_paired(const double *differences, size_t n);

/* The smallest p-value that n and m units, or n pairs, can reach; 1 when there are too few. A
 * correction for many cases multiplies it, and may leave no case significant. */
double lb_shift_least_p(size_t n, size_t m);
double lb_shift_paired_least_p(size_t n);

#endif

/* Shift between two sets of times, without a distribution assumed: Hodges-Lehmann estimate, its
 * interval and the p-value of no shift, from ranks.
 *
 * Times are compared as logarithms: a shift of d is a ratio of exp(d). What is handed in are units
 * of replication (medians of blocks or processes), never samples of one process pooled: those share
 * what the process drew, and an interval from them covers nothing. */
#ifndef LB_SHIFT_H
#define LB_SHIFT_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_SHIFT_MIN_UNITS 4 /* on each side: fewer can't reach 95 % */
#define LB_SHIFT_MIN_PAIRS 6

struct lb_shift {
    double estimate;   /* of the location of changed minus that of base */
    double lo95, hi95; /* 95 %; where nothing ties or is 0, it leaves out 0 just when p <= 0.05 */
    double lo90, hi90; /* 90 % interval: inside +-margin where two one-sided 5 % tests say "same" */
    double p;          /* two-sided, of no shift */
    bool exact;        /* from the exact distribution; false: the tie-corrected normal form */
};

/* Two independent sets: base [n], changed [m], finite, n and m >= LB_SHIFT_MIN_UNITS.
 * Mann-Whitney's U counts the differences above 0; the estimate is the median of all n m
 * differences, the interval two of them in order. Exact where nothing is tied and n m is up to
 * LB_SHIFT_EXACT, else normal with continuity and tie correction.
 * LB_INVALID for too few or values that aren't finite; LB_OOM.
 * Source: Hollander & Wolfe, Nonparametric Statistical Methods, 4.1-4.3. */
#define LB_SHIFT_EXACT 1000
enum lb_status lb_shift(const double *base, size_t n, const double *changed, size_t m,
                        struct lb_shift *shift, struct lb_error *err);

/* Pairs: differences [n], changed minus base of each pair, finite, n >= LB_SHIFT_MIN_PAIRS.
 * Wilcoxon's signed ranks; the estimate is the median of the averages of all two differences, each
 * with itself too. Exact where no absolute difference is tied or 0 and n is up to 50; else normal,
 * where the p-value leaves differences of 0 out, as Wilcoxon did, and the intervals rank them, as
 * Pratt did: they are part of what the intervals' bounds are taken from.
 * Source: Hollander & Wolfe, 3.1-3.3; Pratt, J. Am. Stat. Assoc. 54 (1959) 655-667. */
enum lb_status lb_shift_paired(const double *differences, size_t n, struct lb_shift *shift,
                               struct lb_error *err);

/* The smallest p-value that n and m units can reach, or n pairs, which bounds what a correction
 * over many cases leaves; 1 for too few. */
double lb_shift_least_p(size_t n, size_t m);
double lb_shift_paired_least_p(size_t n);

#ifdef __cplusplus
}
#endif
#endif

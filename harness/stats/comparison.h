/* From the times of cases in two runs to a verdict on each case: the path that STATISTICS.md
 * explains. */
#ifndef LB_COMPARISON_H
#define LB_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>

/* Shift between two sets of times: the Hodges-Lehmann estimate, its confidence intervals, and the
 * p-value of "no shift", all from ranks, without assuming a distribution.
 *
 * Callers pass logarithms of times, so a shift of d is a ratio of exp(d). The values must be units
 * of replication: medians of blocks or of processes. They must never be the pooled samples of one
 * process, because those share whatever was random about that process (addresses, clocks), and an
 * interval computed from them is far too narrow. */

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

/* What the times of a case say. */
enum lb_outcome {
    LB_OUTCOME_UNDECIDED, /* the times do not decide */
    LB_OUTCOME_SLOWER,    /* the adjusted p-value is at most the level, and the estimate is larger
                             than the margin */
    LB_OUTCOME_FASTER,    /* the same in the other direction */
    LB_OUTCOME_SAME       /* two one-sided tests at 5 % place the shift within the margin */
};

/* How much units of the same code differ. */
struct lb_spread {
    double deviation; /* standard deviation of the logarithms of their times; 0: not known */
    size_t df;        /* its degrees of freedom, 1 or more where it is known */
};

/* One case: the times of its units on both sides, and what follows from them. A unit is what was
 * replicated: a process, a whole run, or one of two blocks that took turns. */
struct lb_contrast {
    const double *base, *now; /* [base_count], [now_count] logarithms of times; borrowed */
    size_t base_count, now_count;
    bool paired;             /* base[i] and now[i] took turns */
    struct lb_spread spread; /* known from elsewhere; it needs one unit on each side */
    /* Filled in by lb_judge_cases: */
    bool tested;           /* the interval and the p-values are valid */
    struct lb_shift shift; /* now minus base: above 0 is slower. Not tested: the estimate alone */
    double adjusted_p;     /* corrected for the number of tested cases */
    enum lb_outcome outcome;
    const char *reason; /* why the case is undecided, a constant text; else "" */
};

struct lb_judgement {
    double margin; /* smallest relative difference that matters, above 0 and below 10 */
    double level;  /* false discovery rate: the expected share of wrong verdicts among the cases
                      that are called slower or faster; above 0 and below 0.5 */
};

/* Judges cases [count] together.
 * 1. The shift: with a known spread, the difference of the means with an error of
 *    deviation sqrt(1/base_count + 1/now_count) and Student's t distribution. Else lb_shift, or
 *    lb_shift_paired for pairs. With too few units for these a case is not tested, and undecided.
 * 2. The correction of p-values for the number of tested cases, by Benjamini and Hochberg's step-up
 *    procedure. When no case differs at all, one is called different with a probability of at most
 *    `level`.
 * 3. The outcome.
 * Sources: Benjamini & Hochberg, J. R. Statist. Soc. B 57 (1995) 289-300; Abramowitz & Stegun,
 * 26.7.3 and 26.7.4. */
void lb_judge_cases(struct lb_contrast *cases, size_t count, const struct lb_judgement *judgement);

#endif

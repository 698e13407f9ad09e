/* From the times of cases in two runs to a verdict on each case: the path that STATISTICS.md
 * explains. */
#ifndef LB_COMPARISON_H
#define LB_COMPARISON_H

#include "stats/shift.h"

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

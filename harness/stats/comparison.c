/* From the times of cases in two runs to a verdict on each case. */
#include "stats/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "stats/order_stats.h"

#define HALF_PI 1.57079632679489661923

/* The probability that |T| of Student's distribution with df degrees of freedom is at least |t|; of
 * a t that is not known (NaN), 1. */
static double student_p(double t, size_t df)
{
    double angle = atan2(fabs(t), sqrt((double)df)), cosine = cos(angle);
    double term = df % 2 == 1 ? cosine : 1, sum = 0;
    for (size_t i = df % 2 == 1 ? 3 : 2; i <= df; i += 2) {
        sum += term;
        term *= cosine * cosine * (double)(i - 1) / (double)i;
    }
    double inside = df % 2 == 1 ? (angle + sin(angle) * sum) / HALF_PI : sin(angle) * sum;
    return isnan(t) ? 1 : fmax(0, 1 - inside);
}

/* The t above 0 for which student_p is p, with 0 < p < 1. */
static double student_quantile(double p, size_t df)
{
    double low = 0, high = 1;
    while (student_p(high, df) > p && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && low < high; i++) {
        double middle = low + (high - low) / 2;
        *(student_p(middle, df) > p ? &low : &high) = middle;
    }
    return high;
}

static double mean_of(const double *values, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += values[i];
    return sum / (double)n;
}

/* The shift where the spread of units is known from elsewhere. */
static void shift_by_spread(struct lb_contrast *c)
{
    double n = (double)c->base_count, m = (double)c->now_count;
    double error = c->spread.deviation * sqrt(1 / n + 1 / m);
    double shift = mean_of(c->now, c->now_count) - mean_of(c->base, c->base_count);
    double half95 = error * student_quantile(0.05, c->spread.df);
    double half90 = error * student_quantile(0.10, c->spread.df);
    c->shift = (struct lb_shift){.estimate = shift,
                                 .lo95 = shift - half95,
                                 .hi95 = shift + half95,
                                 .lo90 = shift - half90,
                                 .hi90 = shift + half90,
                                 .p = student_p(shift / error, c->spread.df)};
    c->tested = true;
}

/* The shift by the units themselves. */
static void shift_by_units(struct lb_contrast *c)
{
    size_t n = c->base_count, m = c->now_count;
    double *scratch = lb_needed(malloc((n + m + 1) * sizeof(*scratch)));
    c->tested = c->paired ? n == m && n >= LB_SHIFT_MIN_PAIRS
                          : n >= LB_SHIFT_MIN_UNITS && m >= LB_SHIFT_MIN_UNITS;
    if (!c->tested) {
        c->shift = (struct lb_shift){.estimate = lb_median_of(c->now, m, scratch) -
                                                 lb_median_of(c->base, n, scratch)};
    } else if (c->paired) {
        for (size_t i = 0; i < n; i++)
            scratch[i] = c->now[i] - c->base[i];
        c->shift = lb_shift_paired(scratch, n);
    } else {
        c->shift = lb_shift(c->base, n, c->now, m);
    }
    free(scratch);
}

static int by_p(const void *a, const void *b)
{
    double x = (*(struct lb_contrast *const *)a)->shift.p;
    double y = (*(struct lb_contrast *const *)b)->shift.p;
    return (x > y) - (x < y);
}

/* Sets the adjusted p-values of all tested cases. */
static void adjust(struct lb_contrast *cases, size_t count)
{
    size_t tested = 0;
    double least = 1;
    struct lb_contrast **sorted = lb_needed(malloc((count + 1) * sizeof(*sorted)));
    for (size_t i = 0; i < count; i++)
        if (cases[i].tested)
            sorted[tested++] = &cases[i];
    qsort(sorted, tested, sizeof(*sorted), by_p);
    for (size_t i = tested; i-- > 0;) {
        least = fmin(least, sorted[i]->shift.p * (double)tested / (double)(i + 1));
        sorted[i]->adjusted_p = least;
    }
    free(sorted);
}

static void decide(struct lb_contrast *c, const struct lb_judgement *judgement)
{
    double margin = log1p(judgement->margin), estimate = c->shift.estimate;
    bool differs = c->tested && c->adjusted_p <= judgement->level;
    bool beyond = fabs(estimate) > margin;
    c->outcome = LB_OUTCOME_UNDECIDED;
    c->reason = "";
    if (!c->tested)
        c->reason = "too few to tell";
    else if (differs && beyond)
        c->outcome = estimate > 0 ? LB_OUTCOME_SLOWER : LB_OUTCOME_FASTER;
    else if (c->shift.lo90 > -margin && c->shift.hi90 < margin)
        c->outcome = LB_OUTCOME_SAME;
    else if (beyond)
        c->reason = "the estimate is beyond the margin, but chance can't be ruled out";
    else if (differs)
        c->reason = "the times differ, but perhaps by less than the margin";
    else
        c->reason = "the interval reaches beyond the margin";
}

void lb_judge_cases(struct lb_contrast *cases, size_t count, const struct lb_judgement *judgement)
{
    for (size_t i = 0; i < count; i++)
        if (cases[i].spread.deviation > 0)
            shift_by_spread(&cases[i]);
        else
            shift_by_units(&cases[i]);
    adjust(cases, count);
    for (size_t i = 0; i < count; i++)
        decide(&cases[i], judgement);
}

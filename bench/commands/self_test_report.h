/* The report of --self-test. */
#ifndef LB_SELF_TEST_REPORT_H
#define LB_SELF_TEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "measure/noise_check.h"
#include "report/compare.h"

#define LB_SELF_COMPARISONS 400

/* Counts of comparisons of cases with themselves. */
struct lb_self_rate {
    size_t comparisons, significant;                 /* significant: p < 0.05, uncorrected */
    size_t sweeps, sweeps_significant, sweeps_named; /* after correction; with a verdict too */
    size_t sweeps_low; /* compared by 10 % quantiles of the samples instead of medians */
    double least_seen[LB_SELF_COMPARISONS];  /* smallest shift whose interval is above zero */
    double least_named[LB_SELF_COMPARISONS]; /* smallest shift with the verdict slower */
};

struct lb_self_result {
    bool quick;
    size_t cases, side;
    double margin;
    struct lb_noise_check noise;
    struct lb_self_rate shuffled;    /* processes assigned to both sides at random */
    struct lb_self_rate in_turn;     /* the first half of the processes against the second */
    struct lb_self_rate allowed_for; /* the same, with the spread between runs allowed for */
    struct lb_run_spread run_spread; /* of runs that follow each other; kept for --compare */
    double planted_ns;               /* time of the case that is slowed down */
    size_t planted, planted_found, planted_significant;
    double planted_estimates[LB_SELF_COMPARISONS];
    double planted_least_seen[LB_SELF_COMPARISONS], planted_least_named[LB_SELF_COMPARISONS];
};

/* Writes the report to out and sorts the result's arrays. False when the full test shows that
 * verdicts can't be trusted on this machine. */
bool lb_self_report(struct lb_self_result *result, FILE *out);

#endif

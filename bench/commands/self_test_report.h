/* What --self-test found, in plain words. */
#ifndef LB_SELF_TEST_REPORT_H
#define LB_SELF_TEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "measure/noise_check.h"
#include "report/compare.h"

#define LB_SELF_COMPARISONS 400

/* Comparisons of the same with the same. */
struct lb_self_rate {
    size_t comparisons, significant;                 /* with p < 0.05, uncorrected */
    size_t sweeps, sweeps_significant, sweeps_named; /* after correction; with a verdict as well */
    double least_seen[LB_SELF_COMPARISONS];  /* shift from which on the interval is above zero */
    double least_named[LB_SELF_COMPARISONS]; /* and from which on the case is named slower */
};

struct lb_self_result {
    bool quick;
    size_t cases, side;
    double margin;
    struct lb_noise_check noise;
    struct lb_self_rate dealt;       /* processes dealt to both sides by chance */
    struct lb_self_rate in_turn;     /* the first half against the second */
    struct lb_self_rate allowed_for; /* the same, the spread between runs allowed for */
    struct lb_run_spread run_spread; /* of runs that follow each other; kept for --compare */
    double planted_ns;               /* time of the case that is slowed down */
    size_t planted, planted_found, planted_significant;
    double planted_estimates[LB_SELF_COMPARISONS];
    double planted_least_seen[LB_SELF_COMPARISONS], planted_least_named[LB_SELF_COMPARISONS];
};

/* Writes the result to out, reordering its arrays. False when the full test shows that verdicts
 * can't be trusted on this machine. */
bool lb_self_report(struct lb_self_result *result, FILE *out);

#endif

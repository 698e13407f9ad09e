/* What --self-test found, in plain words. */
#ifndef LB_SELF_TEST_REPORT_H
#define LB_SELF_TEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "fitness.h"

#define LB_SELF_COMPARISONS 400

/* Comparisons of the same with the same. */
struct lb_self_rate {
    size_t comparisons, significant;                 /* with p < 0.05, uncorrected */
    size_t sweeps, sweeps_significant, sweeps_named; /* after correction; with a verdict as well */
    double least_found[LB_SELF_COMPARISONS];         /* shift above which it would be significant */
};

struct lb_self_result {
    bool quick;
    size_t cases, side;
    double margin;
    struct lb_fitness fitness;
    struct lb_self_rate dealt;   /* processes dealt to both sides by chance */
    struct lb_self_rate in_turn; /* the first half against the second */
    double planted_ns;           /* time of the case that is slowed down */
    size_t planted, planted_found, planted_significant;
    double planted_estimates[LB_SELF_COMPARISONS], planted_least[LB_SELF_COMPARISONS];
};

/* Prints the result, reordering its arrays. False when the full test shows that verdicts can't be
 * trusted on this machine. */
bool lb_self_report(struct lb_self_result *result);

#endif

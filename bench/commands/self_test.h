/* --self-test: how reliable the program's verdicts are on this machine. */
#ifndef LB_SELF_TEST_H
#define LB_SELF_TEST_H

#include "measure/noise_check.h"
#include "stats/comparison.h"

enum { LB_SELF_COMPARISONS = 400 /* at most, of one kind: 20 sweeps of 20 cases */ };

/* Comparisons of one kind. Shifts are of log time. */
struct lb_self_rate {
    size_t comparisons;        /* of one case */
    size_t significant;        /* of these, with p < 0.05, uncorrected */
    size_t named;              /* of these, called slower or faster */
    size_t sweeps;             /* comparisons of all cases at once, as --compare makes them */
    size_t sweeps_significant; /* of these, with an adjusted p-value that is significant */
    size_t sweeps_named;       /* of these, with a case that is called slower or faster */
    double estimates[LB_SELF_COMPARISONS];
    double least_seen[LB_SELF_COMPARISONS];  /* smallest slowdown whose interval is above zero */
    double least_named[LB_SELF_COMPARISONS]; /* smallest slowdown that is called slower */
};

struct lb_self_result {
    bool quick;    /* --quick: fewer comparisons */
    size_t cases;  /* of each sweep */
    double margin; /* as in lb_judgement */
    struct lb_noise_check noise;
    struct lb_self_rate shuffled;    /* processes assigned to both sides at random */
    struct lb_self_rate in_turn;     /* the first half of the processes against the second */
    struct lb_self_rate allowed_for; /* as in_turn, with the spread between runs allowed for */
    double run_spread;               /* standard deviation between runs that follow each other */
    double planted_ns;               /* time of the case that is slowed down on purpose */
    struct lb_self_rate planted;     /* that case against itself, slowed down */
};

/* Writes the report to out and sorts the result's arrays. False when the full test shows that
 * verdicts can't be trusted on this machine. */
bool lb_self_report(struct lb_self_result *result, FILE *out);

#endif

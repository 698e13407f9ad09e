/* What is odd about the samples of a row, in the order taken: outliers, and what breaks the
 * independence that every interval rests on. Nothing is dropped for it. */
#ifndef LB_ANOMALIES_H
#define LB_ANOMALIES_H

#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_anomaly {
    LB_ANOMALY_OUTLIERS = 1 << 0,   /* severe ones are more than one in twenty */
    LB_ANOMALY_SLOW_FIRST = 1 << 1, /* the first sample of half the blocks or more is severe */
    LB_ANOMALY_DRIFT = 1 << 2,      /* times rise or fall with time, by more than half a percent */
    LB_ANOMALY_AUTOCORRELATION = 1 << 3, /* a sample resembles the one before it */
    LB_ANOMALY_TWO_MODES = 1 << 4, /* two groups, at least a percent apart, with a gap between */
    LB_ANOMALY_COUNT = 5
};

struct lb_anomalies {
    unsigned flags;      /* an or of enum lb_anomaly */
    size_t mild, severe; /* samples beyond 1.5, beyond 3 quartile ranges from the quartiles */
    double trend;        /* Spearman's correlation with the order; NaN where all are equal */
    double von_neumann;  /* rank von Neumann ratio; about 2 without autocorrelation; NaN likewise */
};

/* samples [n] in the order taken, above 0; blocks [block_count] their counts, which add up to n;
 * fewer than 8 samples have no anomalies. Outliers: Tukey, Exploratory Data Analysis, 2D. Drift:
 * Spearman's rank correlation with the order, at 0.1 %. Autocorrelation, after the blocks' medians
 * are taken out: the rank von Neumann ratio at 0.5 %, Bartels, J. Am. Stat. Assoc. 77 (1982) 40-46.
 * Two modes: the best split into two groups of 15 % or more, where the middle third between their
 * medians is emptier than chance, at 0.1 %, would leave a sixth of all. LB_OOM. */
enum lb_status lb_find_anomalies(const double *samples, size_t n, const size_t *blocks,
                                 size_t block_count, struct lb_anomalies *anomalies,
                                 struct lb_error *err);

/* The words of a record: "outliers", "slow_first", "drift", "autocorrelation", "two_modes".
 * index is that of the bit; NULL beyond the last. */
const char *lb_anomaly_name(size_t index);

#ifdef __cplusplus
}
#endif
#endif

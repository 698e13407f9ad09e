/* Anomalies of a result's samples: outliers, and patterns in time that violate the independence
 * which every confidence interval assumes. They are reported; no sample is dropped because of them.
 */
#ifndef LB_ANOMALIES_H
#define LB_ANOMALIES_H

#include <stddef.h>

enum lb_anomaly {
    LB_ANOMALY_OUTLIERS = 1 << 0,   /* more than one sample in twenty is a severe outlier */
    LB_ANOMALY_SLOW_FIRST = 1 << 1, /* in at least half of the blocks the first sample is a severe
                                       outlier above the others */
    LB_ANOMALY_DRIFT = 1 << 2,      /* samples rise or fall over time, by more than 0.5 % */
    LB_ANOMALY_AUTOCORRELATION = 1 << 3, /* a sample resembles the one before it */
    LB_ANOMALY_TWO_MODES = 1 << 4, /* two groups, at least 1 % apart, with a gap between them */
    LB_ANOMALY_COUNT = 5
};

struct lb_anomalies {
    unsigned flags;     /* an or of enum lb_anomaly */
    size_t severe;      /* samples more than 3 interquartile ranges outside the quartiles */
    size_t mild;        /* samples more than 1.5 ranges outside that are not severe */
    double trend;       /* within blocks, in standard deviations; of one block, Spearman's
                           correlation with the order times sqrt(n - 1); NaN when all ranks are
                           equal */
    double von_neumann; /* rank von Neumann ratio, about 2 without autocorrelation; NaN likewise */
};

/* Looks for anomalies in samples [n], which are above 0 and in the order in which they were taken.
 * blocks [block_count] holds how many samples each block has; they add up to n. With fewer than 8
 * samples there are no anomalies. The methods, with their significance levels:
 *   outliers         Tukey, Exploratory Data Analysis, 2D
 *   drift            Spearman's rank correlation with the order, 0.1 %, of the samples within
 *                    their blocks, or of the blocks' medians
 *   autocorrelation  the rank von Neumann ratio, 0.5 %, of the samples divided by their block's
 *                    median: Bartels, J. Am. Stat. Assoc. 77 (1982) 40-46
 *   two modes        the best split into two groups that each have at least 15 % of the samples;
 *                    significantly fewer than a sixth of all samples, 0.1 %, lie in the middle
 *                    third between the groups' medians */
void lb_find_anomalies(const double *samples, size_t n, const size_t *blocks, size_t block_count,
                       struct lb_anomalies *anomalies);

/* The names that a record uses for the bits of flags: "outliers", "slow_first", ... */
extern const char *const lb_anomaly_names[LB_ANOMALY_COUNT];

#endif

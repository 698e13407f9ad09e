/* Change points in a series of runs: where the distribution of the times changed for good. */
#ifndef LB_CHANGE_POINT_H
#define LB_CHANGE_POINT_H

#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_CHANGE_MIN_SEGMENT 3 /* runs on each side of a change point */

struct lb_change_options {
    double significance; /* level of the permutation test; 0.01 by default */
    size_t permutations; /* how many random orders it compares with; 499 by default */
    double least_shift;  /* smallest difference of the medians before and after that counts, in the
                            values' unit; 0 by default */
    uint64_t seed;       /* of the random orders, so that the same series gives the same result */
};

/* The defaults. */
struct lb_change_options lb_change_defaults(void);

/* E-divisive with moment index 1. It splits the series where the energy distance between both sides
 * is largest. It keeps the split when at most a share `significance` of random orders of the same
 * segment has a split with as large a distance, and then searches both parts. A split whose medians
 * are closer than least_shift is not a change point.
 * values [n] are finite and in order of time; with logarithms of times the result does not depend
 * on the scale. points [n / LB_CHANGE_MIN_SEGMENT] receives the index of the first run after each
 * change, ascending, and *count how many there are. LB_OOM.
 * Source: Matteson & James, J. Am. Stat. Assoc. 109 (2014) 334-345; for benchmarks: Fleming et al.,
 * Hunter, arXiv 2301.03034. */
enum lb_status lb_change_points(const double *values, size_t n,
                                const struct lb_change_options *options, size_t *points,
                                size_t *count, struct lb_error *err);

/* Finds the split of values [n] with the largest scaled energy distance and returns that distance:
 * a b / (a + b) (2 E|X-Y| - E|X-X'| - E|Y-Y'|) for sides of a and b values. *split is the first
 * index of the second side. n >= 2 LB_CHANGE_MIN_SEGMENT. */
double lb_energy_split(const double *values, size_t n, size_t *split);

#ifdef __cplusplus
}
#endif
#endif

/* Change points in a series of runs: where its distribution changed for good. */
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
    double significance; /* of the permutation test: 0.01 */
    size_t permutations; /* 499 */
    double least_shift;  /* of the medians before and after, in the values' own unit */
    uint64_t seed;       /* of the permutations: the same series has the same answer */
};

struct lb_change_options lb_change_defaults(void);

/* E-divisive with moment index 1: splits the series where the energy distance between both sides is
 * largest, keeps the split when at most a share `significance` of random orders of the segment
 * splits as well, and goes on in both parts. A split whose medians lie closer than least_shift is
 * no change point. values [n], finite, in order of time; logarithms of times make it scale-free.
 * points [n / LB_CHANGE_MIN_SEGMENT] gets the index of the first run after each change, ascending;
 * *count how many. LB_OOM.
 * Source: Matteson & James, J. Am. Stat. Assoc. 109 (2014) 334-345; for benchmarks: Fleming et al.,
 * Hunter, arXiv 2301.03034. */
enum lb_status lb_change_points(const double *values, size_t n,
                                const struct lb_change_options *options, size_t *points,
                                size_t *count, struct lb_error *err);

/* The split of values [n] with the largest scaled energy distance 2 E|X-Y| - E|X-X'| - E|Y-Y'|,
 * times a b / (a + b) for sides of a and b values. *split is the first index of the second side;
 * n >= 2 LB_CHANGE_MIN_SEGMENT. */
double lb_energy_split(const double *values, size_t n, size_t *split);

#ifdef __cplusplus
}
#endif
#endif

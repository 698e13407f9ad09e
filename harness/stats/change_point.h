/* Change points in a series of runs: where the distribution of the times changed for good. */
#ifndef LB_CHANGE_POINT_H
#define LB_CHANGE_POINT_H

#include <stddef.h>

#define LB_CHANGE_MIN_SEGMENT 3 /* runs on each side of a change point */

/* E-divisive with moment index 1. It splits the series where the energy distance between both sides
 * is largest. It keeps the split when at most one of a hundred random orders of the same segment
 * has a split with as large a distance, and then searches both parts. In the end, splits between
 * segments whose medians differ by less than least_shift, in the values' unit, are removed, the
 * smallest first. values [n] are finite and in order of time; with logarithms of times the result
 * does not depend on the scale. points [n / LB_CHANGE_MIN_SEGMENT] receives the index of the first
 * run after each change, ascending; returns how many there are. The same series gives the same
 * result. Source: Matteson & James, J. Am. Stat. Assoc. 109 (2014) 334-345; for benchmarks: Fleming
 * et al., Hunter, arXiv 2301.03034. */
size_t lb_change_points(const double *values, size_t n, double least_shift, size_t *points);

#endif

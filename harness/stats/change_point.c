/* Change points in a series of runs. */
#include "stats/change_point.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "stats/order_stats.h"

#define SIGNIFICANCE 0.01 /* of the permutation test */

enum { PERMUTATIONS = 499 /* random orders that it compares with */ };

/* Finds the split of values [n] with the largest scaled energy distance and returns that distance:
 * a b / (a + b) (2 E|X-Y| - E|X-X'| - E|Y-Y'|) for sides of a and b values. *split is the first
 * index of the second side. n >= 2 LB_CHANGE_MIN_SEGMENT. The sums of distances within the first a
 * values, within the rest, and across both are updated as one value after the other changes sides,
 * which takes O(n^2) instead of O(n^3). */
static double best_split(const double *values, size_t n, size_t *split)
{
    double first = 0, second = 0, across = 0, best = -INFINITY;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            second += fabs(values[i] - values[j]);
    *split = LB_CHANGE_MIN_SEGMENT;
    for (size_t moved = 0; moved + LB_CHANGE_MIN_SEGMENT < n; moved++) {
        double to_first = 0, to_second = 0;
        for (size_t i = 0; i < n; i++) {
            double distance = fabs(values[moved] - values[i]);
            *(i < moved ? &to_first : &to_second) += distance;
        }
        first += to_first;
        second -= to_second;
        across += to_second - to_first;
        double a = (double)(moved + 1), b = (double)n - a;
        if (moved + 1 < LB_CHANGE_MIN_SEGMENT)
            continue;
        double distance =
            2 * across / (a * b) - first / (a * (a - 1) / 2) - second / (b * (b - 1) / 2);
        double scaled = distance * a * b / (a + b);
        if (scaled > best) {
            best = scaled;
            *split = moved + 1;
        }
    }
    return best;
}

/* Whether the best split of enough random orders of the values has at least the observed distance,
 * so that chance alone explains it. */
static bool is_chance(const double *values, size_t n, double observed, double *scratch)
{
    uint64_t state = 1;
    size_t at_least = 1, split; /* the given order counts as one */
    memcpy(scratch, values, n * sizeof(*values));
    for (int i = 0; i < PERMUTATIONS && at_least <= SIGNIFICANCE * (PERMUTATIONS + 1); i++) {
        lb_random_shuffle(scratch, n, &state);
        at_least += best_split(scratch, n, &split) >= observed;
    }
    return at_least > SIGNIFICANCE * (PERMUTATIONS + 1);
}

/* A search in a series, and the change points found so far. */
struct search {
    const double *values; /* [n] */
    size_t n;
    double *scratch; /* [n] */
    size_t *points, count;
};

/* Searches the values from first to before end, and both parts where it finds a split. */
static void find_changes(struct search *search, size_t first, size_t end)
{
    const double *values = search->values + first;
    size_t n = end - first, split;
    if (n < 2 * LB_CHANGE_MIN_SEGMENT)
        return;
    double observed = best_split(values, n, &split);
    if (is_chance(values, n, observed, search->scratch))
        return;
    find_changes(search, first, first + split);
    search->points[search->count++] = first + split;
    find_changes(search, first + split, end);
}

/* By how much the median changes at that point, from the point before it to the one after it. */
static double shift_at(const struct search *search, size_t point)
{
    const size_t *at = &search->points[point];
    size_t first = point > 0 ? at[-1] : 0, end = point + 1 < search->count ? at[1] : search->n;
    double before = lb_median_of(search->values + first, *at - first, search->scratch);
    double after = lb_median_of(search->values + *at, end - *at, search->scratch);
    return fabs(after - before);
}

/* Removes the point with the smallest shift, as long as that is below least_shift. */
static void remove_small_changes(struct search *search, double least_shift)
{
    for (double least = 0; search->count > 0 && least < least_shift;) {
        size_t smallest = 0;
        least = INFINITY;
        for (size_t i = 0; i < search->count; i++) {
            double shift = shift_at(search, i);
            if (shift < least) {
                least = shift;
                smallest = i;
            }
        }
        if (least < least_shift) {
            size_t *point = &search->points[smallest];
            memmove(point, point + 1, (--search->count - smallest) * sizeof(*point));
        }
    }
}

size_t lb_change_points(const double *values, size_t n, double least_shift, size_t *points)
{
    struct search search = {values, n, NULL, points, 0};
    search.scratch = lb_needed(malloc((n + 1) * sizeof(double)));
    find_changes(&search, 0, n);
    remove_small_changes(&search, least_shift);
    free(search.scratch);
    return search.count;
}

/* An implementation with a known slowdown: cpu_ref, which waits after each call for a fraction of
 * the call's time. The self-test uses it to measure whether a comparison finds a planted slowdown.
 */
#ifndef LB_PLANTED_SLOWDOWN_H
#define LB_PLANTED_SLOWDOWN_H

#include "api/impl.h"

/* Its name is "planted". The variants slower_1, slower_2, slower_3, slower_5 and slower_10 are
 * slower by that many percent, and auto by lb_planted_percent. Inference only; not in the table of
 * implementations. */
extern const struct lb_impl lb_planted_impl;

/* Percent by which auto is slower, in cases that are created from now on; 0 at first. */
extern double lb_planted_percent;

#endif

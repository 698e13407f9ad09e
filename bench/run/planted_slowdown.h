/* An implementation with a known slowdown: cpu_ref, and after each call a spin for a share of what
 * the call took. The self-test measures with it whether the tool finds what was planted. */
#ifndef LB_PLANTED_SLOWDOWN_H
#define LB_PLANTED_SLOWDOWN_H

#include "api/impl.h"

/* Named "planted"; variants auto, slower_1, slower_2, slower_3, slower_5, slower_10: percent.
 * Inference only; not in the table of implementations. */
extern const struct lb_impl lb_planted_impl;

/* What auto is slower by, in percent, for cases created from now on; 0 at first. */
extern double lb_planted_percent;

#endif

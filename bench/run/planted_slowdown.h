/* An implementation with a known slowdown: cpu_ref, which waits after each forward call for a
 * fraction of the call's time. The self-test uses it to measure whether a comparison finds a
 * planted slowdown. */
#ifndef LB_PLANTED_SLOWDOWN_H
#define LB_PLANTED_SLOWDOWN_H

#include "api/impl.h"

#define LB_PLANTED_NAME "planted"

/* Its variant slower_3 is slower by 3 percent, and auto by lb_planted_percent. Only one state of it
 * may exist at a time in a process. It is not in the table of implementations. */
const struct lb_impl *lb_planted_slowdown(void);

/* Percent by which auto is slower, in cases that are created from now on; 0 at first. */
extern double lb_planted_percent;

#endif

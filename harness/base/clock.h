/* The host's clock. */
#ifndef LB_CLOCK_H
#define LB_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* Monotonic time in ns, to the nanosecond, counted from the second of this process's first call. */
double lb_now_ns(void);

#ifdef __cplusplus
}
#endif

#endif

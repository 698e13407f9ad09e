/* The host's clock. */
#ifndef LB_CLOCK_H
#define LB_CLOCK_H

/* Monotonic time in ns, with a resolution of 1 ns. It counts from the full second in which this
 * process called it first. */
double lb_now_ns(void);

/* CPU time of all threads of this process in ns, those that have ended included. */
double lb_process_cpu_ns(void);

/* The same of the calling thread alone. */
double lb_thread_cpu_ns(void);

#endif

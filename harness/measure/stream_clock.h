/* The clock by which the calls of a stream are due, at a given rate. */
#ifndef LB_STREAM_CLOCK_H
#define LB_STREAM_CLOCK_H

/* The clock stands still while the harness works between two calls, so that only the calls
 * themselves can make the next one late. Zeroed before the first call. */
struct lb_stream_clock {
    double due_ns;    /* when the latest call was due, by this clock; 0: no call was */
    double end_ns;    /* when it had returned */
    double paused_ns; /* how far this clock is behind lb_now_ns */
};

/* Waits until the next call is due and the call before it has returned, at `rate` calls per second.
 * Returns how late the call begins, in ns: 0 unless calls took so long that they wait for each
 * other. What counts from when a call was due hides no wait ("coordinated omission"). */
double lb_stream_clock_wait(struct lb_stream_clock *clock, double rate);

/* Notes that the call took that long. late_ns: what lb_stream_clock_wait returned. */
void lb_stream_clock_note(struct lb_stream_clock *clock, double late_ns, double took_ns);

#endif

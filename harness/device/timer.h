/* The timer takes one sample: the time of a call by the host's clock or between two events of the
 * device, with hot or flushed caches, called directly or replayed as a graph. */
#ifndef LB_TIMER_H
#define LB_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "api/impl.h"

/* Makes one call (host), or enqueues it (device). */
typedef enum lb_status lb_call(void *user, struct lb_error *err);

struct lb_timer {
    enum lb_memory memory;
    void *flush; /* a buffer larger than all caches, written before each sample; NULL: hot */
    size_t flush_bytes;
    /* Replayed in place of the call; NULL: the call is made. With two graphs, replay i of a sample
     * replays graph number (order >> i % 64) & 1. */
    void *graphs[2];
    uint64_t order;
    bool never_hold;   /* set for tools that show what the device runs */
    bool until_seen;   /* a call's time ends when the host knows that it is done, as it does for a
                          program that waits for each answer */
    bool hold_expired; /* a launch took longer than the device's stream can be held */
};

/* Bytes that a timer allocates in that memory: twice the largest cache when cold, else 0. */
size_t lb_timer_bytes(enum lb_memory memory, bool cold);

/* cold: flush the caches before each sample. LB_OOM. */
enum lb_status lb_timer_create(enum lb_memory memory, bool cold, struct lb_timer *timer,
                               struct lb_error *err);
void lb_timer_destroy(struct lb_timer *timer); /* accepts a zeroed one */

/* Captures one call as a graph, which is replayed from now on. A second capture makes the second
 * graph. Device only. Returns what call or the capture returned. */
enum lb_status lb_timer_capture(struct lb_timer *timer, lb_call *call, void *user,
                                struct lb_error *err);

/* *ns: the time per call of `calls` calls in a row, on a device between two events unless
 * until_seen. Waits for the device before and after, so that the launches of a call are part of its
 * time. Only that of a graph that is timed alone by events is not: where the device can, the stream
 * is held until the launch is done, and no longer once a hold has expired. Calls that are not
 * replayed are never held, because many launches could fill the stream's queue. Returns what call
 * returned, or the device's failure. */
enum lb_status lb_timer_measure(struct lb_timer *timer, lb_call *call, void *user, int calls,
                                double *ns, struct lb_error *err);

#endif

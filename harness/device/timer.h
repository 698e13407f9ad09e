/* Taking one sample: the time of a call on the host's clock or between two events of the device,
 * with warm or flushed caches, enqueued anew or replayed as a graph. */
#ifndef LB_TIMER_H
#define LB_TIMER_H

#include <stdbool.h>

#include "api/impl.h"

/* Makes (host) or enqueues (device) one call. */
typedef enum lb_status lb_call(void *user, struct lb_error *err);

struct lb_timer {
    enum lb_memory memory;
    void *flush; /* larger than every cache, written before each sample; NULL: caches stay hot */
    size_t flush_bytes;
    void *graph; /* replayed in the call's place; NULL: none */
};

/* Bytes that a timer takes of its memory. */
size_t lb_timer_bytes(enum lb_memory memory, bool cold);

enum lb_status lb_timer_create(enum lb_memory memory, bool cold, struct lb_timer *timer,
                               struct lb_error *err);
void lb_timer_destroy(struct lb_timer *timer); /* accepts a zeroed one */

/* From now on the call is replayed as a graph. Device only. */
enum lb_status lb_timer_capture(struct lb_timer *timer, lb_call *call, void *user,
                                struct lb_error *err);

/* *ns is the time of one of so many calls in a row. Waits for the device before and after, so that
 * a call's own launches are part of its time. */
enum lb_status lb_timer_measure(const struct lb_timer *timer, lb_call *call, void *user, int calls,
                                double *ns, struct lb_error *err);

#endif

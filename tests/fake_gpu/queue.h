/* The work that was enqueued on the fake device and has not run yet, in one queue per stream.
 * Streams run in any order that their waits allow. When a wait is missing, there is therefore an
 * order in which a stream reads a result before it is computed. */
#ifndef LB_FAKE_QUEUE_H
#define LB_FAKE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order in which streams run, as far as waits leave it open. */
enum fake_order {
    FAKE_LAZY,     /* stream 0 first, and of the others only what it waits for */
    FAKE_EAGER,    /* the stream with the highest number first */
    FAKE_SHUFFLED, /* drawn for each piece of work, the same in each run of a program */
    FAKE_ORDER_COUNT
};

/* The time that a piece of work takes on the device's clock. The harness keeps a device busy by
 * repeating short calls for some milliseconds of that clock, and the host must compute each
 * repetition. The time is long so that few repetitions are needed. */
enum { FAKE_WORK_NS = 1000000 };

/* A piece of work. arguments: a copy of what was given when it was enqueued. */
typedef enum lb_status fake_work(const void *arguments, struct lb_error *err);

/* Empties the queues, ends a capture, and sets the clock to 0. The order of streams stays. */
void fake_queue_reset(void);
void fake_queue_order(enum fake_order order);

/* What lb_stream_handle returns for a stream below LB_STREAMS_MAX; NULL for stream 0. */
void *fake_queue_stream(int stream_index);

/* The same, but stream 0 has a handle too. It needs one for the CUDA runtime, where NULL is a
 * stream of its own. fake_queue_index accepts both kinds of handle. */
void *fake_queue_handle(int stream_index);
int fake_queue_index(const void *stream);

/* Enqueues work behind what is already on the stream. */
enum lb_status fake_enqueue(void *stream, fake_work *work, const void *arguments, size_t bytes,
                            struct lb_error *err);
enum lb_status fake_enqueue_wait(int waiter, int awaited, struct lb_error *err);

/* A point in a stream, behind everything that is on it now. Another stream can wait for that
 * point; when it has been passed, the wait does nothing. */
struct fake_point {
    int stream_index;
    size_t count;
    unsigned long generation;
};

struct fake_point fake_queue_point(int stream_index);
enum lb_status fake_enqueue_wait_for(int waiter, const struct fake_point *point,
                                     struct lb_error *err);

/* Runs stream 0 to its end, and of the other streams what the order puts before that. LB_FAILED:
 * a piece of work failed, and the rest of the queues was dropped. */
enum lb_status fake_queue_run(struct lb_error *err);

/* Whether everything that was enqueued has run. */
bool fake_queue_is_empty(void);

/* Makes stream 0 wait for all others, so that the next run completes all work, as releasing
 * memory does. */
void fake_queue_join(void);

/* Work that is enqueued between open and close does not run; it is kept in *graph. LB_FAILED: a
 * stream was not forked from stream 0 or not joined to it. */
enum lb_status fake_capture_open(struct lb_error *err);
enum lb_status fake_capture_close(void **graph, struct lb_error *err);
enum lb_status fake_enqueue_graph(void *graph, struct lb_error *err);
void fake_graph_free(void *graph); /* accepts NULL */

/* The device's clock. Only work and fake_clock_add advance it. */
double fake_clock_ns(void);
void fake_clock_add(double ns);

#ifdef __cplusplus
}

#include <type_traits>

/* The same for a callable, work(err). */
template <class Work>
enum lb_status fake_enqueue_call(void *stream, const Work &work, struct lb_error *err)
{
    static_assert(std::is_trivially_copyable<Work>::value, "arguments are kept as bytes");
    fake_work *run = [](const void *call, struct lb_error *error) {
        return (*static_cast<const Work *>(call))(error);
    };
    return fake_enqueue(stream, run, &work, sizeof(work), err);
}
#endif
#endif

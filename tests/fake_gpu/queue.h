/* The work that was enqueued on the fake device and has not run: one queue per stream. Streams run
 * in any order that their waits allow. So where a wait is missing, there is an order in which a
 * stream reads a result before it is computed. */
#ifndef LB_FAKE_QUEUE_H
#define LB_FAKE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In which order streams run where waits leave it open. */
enum fake_order {
    FAKE_LAZY,     /* stream 0 before all others, and of these only what is waited for */
    FAKE_EAGER,    /* the highest stream before all others */
    FAKE_SHUFFLED, /* drawn anew for each piece of work, the same in each run of a program */
    FAKE_ORDER_COUNT
};

/* What a piece of work takes on the device's clock. The harness keeps a device busy by repeating
 * short calls for some milliseconds of that clock, and the host must compute each repetition.
 * Therefore one piece of work takes long here. */
enum { FAKE_WORK_NS = 1000000 };

/* arguments: a copy of what was given with it. */
typedef enum lb_status fake_work(const void *arguments, struct lb_error *err);

/* Nothing is enqueued, no capture is open, the clock stands at 0; the order stays. */
void fake_queue_reset(void);
void fake_queue_order(enum fake_order order);

/* What lb_stream_handle gives of a stream below LB_STREAMS_MAX; NULL for stream 0. */
void *fake_queue_stream(int stream_index);

/* The same, but stream 0 has a handle too, as it has in the CUDA runtime, where NULL is another
 * stream; and the number of a stream by either handle. */
void *fake_queue_handle(int stream_index);
int fake_queue_index(const void *stream);

/* After what is on the stream. */
enum lb_status fake_enqueue(void *stream, fake_work *work, const void *arguments, size_t bytes,
                            struct lb_error *err);
enum lb_status fake_enqueue_wait(int waiter, int awaited, struct lb_error *err);

/* A point in a stream, behind all that is on it now; and a wait of another stream for that point.
 * A point that has been passed needs no wait. */
struct fake_point {
    int stream_index;
    size_t count;
    unsigned long generation;
};

struct fake_point fake_queue_point(int stream_index);
enum lb_status fake_enqueue_wait_for(int waiter, const struct fake_point *point,
                                     struct lb_error *err);

/* Runs stream 0 to its end, and of the others what the order has before that. LB_FAILED: work of a
 * failed queue is dropped. */
enum lb_status fake_queue_run(struct lb_error *err);

/* Whether all that was enqueued has run. */
bool fake_queue_is_empty(void);

/* Stream 0 waits for all others, so that the next run is one of all that is left, as releasing
 * memory has it. */
void fake_queue_join(void);

/* Between begin and end what is enqueued does not run: it is kept in *graph. LB_FAILED where a
 * stream was not forked from stream 0, or not joined to it. */
enum lb_status fake_capture_open(struct lb_error *err);
enum lb_status fake_capture_close(void **graph, struct lb_error *err);
enum lb_status fake_enqueue_graph(void *graph, struct lb_error *err);
void fake_graph_free(void *graph); /* accepts NULL */

/* The device's clock: it stands still but for work, and for what is added. */
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

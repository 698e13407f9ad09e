/* Streams of the fake device: queues of work and of waits, and the orders in which they run. */
#include "queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "device/streams.h"

/* A piece of work; where it is NULL, a wait until `until` items of stream `awaited` are done. */
struct item {
    fake_work *work;
    void *arguments;
    int awaited;
    size_t until;
};

struct queue {
    struct {
        struct item *items;
        size_t count, room, done;
    } streams[LB_STREAMS_MAX];
};

static struct queue live;
static unsigned long generation; /* of `live`: it rises whenever `live` is emptied */
static enum fake_order live_order;
static uint64_t draws;
static double clock_ns;

static char streams[LB_STREAMS_MAX]; /* the addresses of these are the handles */

void *fake_queue_stream(int stream_index)
{
    return stream_index == 0 ? NULL : &streams[stream_index];
}

void *fake_queue_handle(int stream_index)
{
    return &streams[stream_index];
}

int fake_queue_index(const void *stream)
{
    return stream ? (int)((const char *)stream - streams) : 0;
}

static void empty(struct queue *q)
{
    for (int i = 0; i < LB_STREAMS_MAX; i++) {
        for (size_t k = 0; k < q->streams[i].count; k++)
            free(q->streams[i].items[k].arguments);
        free(q->streams[i].items);
    }
    memset(q, 0, sizeof(*q));
}

static void empty_live(void)
{
    empty(&live);
    generation++;
}

void fake_queue_reset(void)
{
    empty_live();
    clock_ns = 0;
    draws = 0;
}

void fake_queue_order(enum fake_order order)
{
    live_order = order;
}

double fake_clock_ns(void)
{
    return clock_ns;
}

void fake_clock_add(double ns)
{
    clock_ns += ns;
}

static enum lb_status append(int stream_index, const struct item *item, struct lb_error *err)
{
    if (live.streams[stream_index].count == live.streams[stream_index].room) {
        size_t room = 2 * live.streams[stream_index].room + 16;
        struct item *items = realloc(live.streams[stream_index].items, room * sizeof(*items));
        if (!items)
            return lb_fail(err, LB_OOM, "out of host memory for a fake queue");
        live.streams[stream_index].items = items;
        live.streams[stream_index].room = room;
    }
    live.streams[stream_index].items[live.streams[stream_index].count++] = *item;
    return LB_OK;
}

enum lb_status fake_enqueue(void *stream, fake_work *work, const void *arguments, size_t bytes,
                            struct lb_error *err)
{
    struct item item = {.work = work, .arguments = malloc(bytes)};
    if (!item.arguments)
        return lb_fail(err, LB_OOM, "out of host memory for fake work");
    memcpy(item.arguments, arguments, bytes);
    enum lb_status st = append(fake_queue_index(stream), &item, err);
    if (st != LB_OK)
        free(item.arguments);
    return st;
}

enum lb_status fake_enqueue_wait(int waiter, int awaited, struct lb_error *err)
{
    const struct item item = {.awaited = awaited, .until = live.streams[awaited].count};
    return waiter == awaited ? LB_OK : append(waiter, &item, err);
}

struct fake_point fake_queue_point(int stream_index)
{
    return (struct fake_point){stream_index, live.streams[stream_index].count, generation};
}

enum lb_status fake_enqueue_wait_for(int waiter, const struct fake_point *point,
                                     struct lb_error *err)
{
    const struct item item = {.awaited = point->stream_index, .until = point->count};
    bool passed = point->generation != generation || waiter == point->stream_index;
    return passed ? LB_OK : append(waiter, &item, err);
}

static enum lb_status run_graph(const void *arguments, struct lb_error *err);

/* ---- Running ------------------------------------------------------------------------------ */

static bool has_more(const struct queue *q, int stream_index)
{
    return q->streams[stream_index].done < q->streams[stream_index].count;
}

/* Returns the stream that the next item of this stream waits for; -1 when the item can run. */
static int held_by(const struct queue *q, int stream_index)
{
    const struct item *item = &q->streams[stream_index].items[q->streams[stream_index].done];
    return !item->work && q->streams[item->awaited].done < item->until ? item->awaited : -1;
}

/* Returns a stream whose next item can run. While stream 0 has items there always is one,
 * because waits are only for work that was enqueued before them. */
static int next_stream(const struct queue *q, enum fake_order order)
{
    int able[LB_STREAMS_MAX], count = 0, stream_index = 0;
    if (order == FAKE_LAZY) {
        for (int holder = held_by(q, 0); holder >= 0; holder = held_by(q, stream_index))
            stream_index = holder;
        return stream_index;
    }
    for (int i = 0; i < LB_STREAMS_MAX; i++)
        if (has_more(q, i) && held_by(q, i) < 0)
            able[count++] = i;
    return able[order == FAKE_EAGER ? count - 1
                                    : (int)lb_random_below(5, 1, draws++, (uint64_t)count)];
}

static enum lb_status run_item(const struct item *item, struct lb_error *err)
{
    if (!item->work)
        return LB_OK;
    fake_clock_add(item->work == run_graph ? 0 : FAKE_WORK_NS);
    return item->work(item->arguments, err);
}

/* Runs stream 0 to its end. dry: only counts what would be done. */
static enum lb_status run_queue(struct queue *q, enum fake_order order, bool dry,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    while (st == LB_OK && has_more(q, 0)) {
        int stream_index = next_stream(q, order);
        const struct item *item = &q->streams[stream_index].items[q->streams[stream_index].done++];
        if (!dry)
            st = run_item(item, err);
    }
    return st;
}

static bool all_done(const struct queue *q)
{
    for (int i = 0; i < LB_STREAMS_MAX; i++)
        if (has_more(q, i))
            return false;
    return true;
}

enum lb_status fake_queue_run(struct lb_error *err)
{
    enum lb_status st = run_queue(&live, live_order, false, err);
    if (st != LB_OK || all_done(&live))
        empty_live();
    return st;
}

bool fake_queue_is_empty(void)
{
    for (int i = 0; i < LB_STREAMS_MAX; i++)
        if (live.streams[i].count > 0)
            return false;
    return true;
}

void fake_queue_join(void)
{
    enum lb_status st = LB_OK;
    for (int i = 1; i < LB_STREAMS_MAX && st == LB_OK; i++)
        st = fake_enqueue_wait(0, i, NULL);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

enum lb_status fake_capture_open(struct lb_error *err)
{
    enum lb_status st = fake_queue_run(err);
    return st != LB_OK || all_done(&live)
               ? st
               : lb_fail(err, LB_FAILED, "capturing a graph: a stream's work was never joined");
}

enum lb_status fake_capture_close(void **graph, struct lb_error *err)
{
    struct queue *q = malloc(sizeof(*q));
    *graph = NULL;
    if (!q)
        return lb_fail(err, LB_OOM, "out of host memory for a fake graph");
    *q = live;
    memset(&live, 0, sizeof(live));
    generation++;
    bool forked = true;
    for (int i = 1; i < LB_STREAMS_MAX; i++) /* does each stream begin with a wait? */
        forked = forked && (q->streams[i].count == 0 || !q->streams[i].items[0].work);
    (void)run_queue(q, FAKE_LAZY, true, err);
    if (!forked || !all_done(q)) {
        fake_graph_free(q);
        return lb_fail(err, LB_FAILED, "capturing a graph: a stream was not %s",
                       forked ? "joined to stream 0" : "forked from stream 0");
    }
    *graph = q;
    return LB_OK;
}

static enum lb_status run_graph(const void *arguments, struct lb_error *err)
{
    struct queue *q;
    memcpy(&q, arguments, sizeof(q));
    for (int i = 0; i < LB_STREAMS_MAX; i++)
        q->streams[i].done = 0;
    return run_queue(q, live_order, false, err);
}

enum lb_status fake_enqueue_graph(void *graph, struct lb_error *err)
{
    return fake_enqueue(NULL, run_graph, &graph, sizeof(graph), err);
}

void fake_graph_free(void *graph)
{
    if (graph)
        empty(graph);
    free(graph);
}

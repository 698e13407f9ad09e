/* Streams on the host. Work waits in the fake device's queues and runs in plain loops. GEMMs do
 * exactly what streams.h specifies, with sums in double. */
#include "streams_host.h"

#include <stdlib.h>

#include "device/streams.h"
#include "fake_device.h"
#include "queue.h"

struct lb_streams {
    int count;
};

static struct {
    enum fake_wait which;
    enum fake_call call;
    int nth;
} left_out;

static int forks; /* since the streams were made */
static int waits; /* since the last fork */

void fake_streams_leave_out(enum fake_wait which, enum fake_call call, int nth)
{
    left_out.which = which;
    left_out.call = call;
    left_out.nth = nth;
}

/* Whether the present wait is left out. Each call begins with a fork. */
static bool leaves_out(enum fake_wait which)
{
    return left_out.which == which && (forks - 1) % FAKE_CALL_COUNT == (int)left_out.call &&
           (which != FAKE_WAIT || waits == left_out.nth);
}

enum lb_status lb_streams_create(int count, void *stream, void *scratch, struct lb_streams **out,
                                 struct lb_error *err)
{
    (void)stream;
    if (count < 1 || !scratch)
        return lb_fail(err, LB_FAILED, "no scratch");
    *out = malloc(sizeof(**out));
    if (!*out)
        return lb_fail(err, LB_OOM, "out of memory");
    (*out)->count = count;
    forks = 0;
    return LB_OK;
}

void lb_streams_destroy(struct lb_streams *streams)
{
    free(streams);
}

size_t lb_stream_scratch_bytes(void)
{
    return 64;
}

void *lb_stream_handle(const struct lb_streams *streams, int stream_index)
{
    (void)streams;
    return fake_queue_stream(stream_index);
}

static enum lb_status check_stream(const struct lb_streams *streams, int stream_index,
                                   struct lb_error *err)
{
    if (stream_index < 0 || stream_index >= streams->count)
        return lb_fail(err, LB_FAILED, "stream %d of %d", stream_index, streams->count);
    return LB_OK;
}

enum lb_status lb_stream_wait(struct lb_streams *streams, int waiter, int awaited,
                              struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(check_stream(streams, waiter, err));
    LB_TRY(check_stream(streams, awaited, err));
    if (waiter == awaited)
        return LB_OK;
    if (!leaves_out(FAKE_WAIT))
        LB_TRY(fake_enqueue_wait(waiter, awaited, err));
    waits++;
done:
    return st;
}

enum lb_status lb_streams_fork(struct lb_streams *streams, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    waits = 0;
    forks++;
    for (int i = 1; i < streams->count && !leaves_out(FAKE_FORK); i++)
        LB_TRY(fake_enqueue_wait(i, 0, err));
done:
    return st;
}

enum lb_status lb_streams_join(struct lb_streams *streams, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 1; i < streams->count && !leaves_out(FAKE_JOIN); i++)
        LB_TRY(fake_enqueue_wait(0, i, err));
done:
    return st;
}

enum lb_status lb_stream_copy(struct lb_streams *streams, int stream_index, void *to,
                              const void *from, size_t bytes, struct lb_error *err)
{
    enum lb_status st = check_stream(streams, stream_index, err);
    return st == LB_OK ? fake_enqueue_copy(fake_queue_stream(stream_index), to, from, bytes, err)
                       : st;
}

static enum lb_status run_gemm(const void *gemm, struct lb_error *err)
{
    return fake_gemm(gemm, err);
}

enum lb_status lb_stream_gemm(struct lb_streams *streams, int stream_index, const struct lb_gemm *g,
                              struct lb_error *err)
{
    bool wide = (g->in == LB_F16 || g->in == LB_BF16) && g->out == LB_F32;
    if (g->out != g->in && !wide)
        return lb_fail(err, LB_UNSUPPORTED, "a GEMM of %s into %s", lb_dtype_name(g->in),
                       lb_dtype_name(g->out));
    int64_t a_width = g->transpose_a ? g->m : g->k, b_width = g->transpose_b ? g->k : g->n;
    if (g->lda < a_width || g->ldb < b_width || g->ldc < g->n)
        return lb_fail(err, LB_FAILED, "a row of a GEMM is longer than its stride");
    enum lb_status st = check_stream(streams, stream_index, err);
    return st == LB_OK ? fake_enqueue(fake_queue_stream(stream_index), run_gemm, g, sizeof(*g), err)
                       : st;
}

/* Measures what a device can do at best, by the same means that implementations use. */
#include "measure/ceilings_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/streams.h"
#include "device/timer.h"
#include "measure/gpu_latency.h"

enum { WARM_CALLS = 3, TIMED_CALLS = 10, SMALL_CALLS = 1000 };
enum { LARGEST = 8192, SMALLEST = 256 /* rows and columns of the matrices of a GEMM */ };

/* Room for the three matrices of the smallest GEMM in the widest dtype. */
static const size_t least_bytes = 3 * sizeof(double) * SMALLEST * SMALLEST;

/* *ns: time per call, the best of three measurements of `calls` calls each, after a warm-up. */
static enum lb_status best_of(const struct lb_timer *timer, lb_call *call, void *user, int calls,
                              double *ns, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double once;
    LB_TRY(lb_timer_measure(timer, call, user, WARM_CALLS, &once, err));
    *ns = (double)INFINITY;
    for (int i = 0; i < 3; i++) {
        LB_TRY(lb_timer_measure(timer, call, user, calls, &once, err));
        *ns = fmin(*ns, once);
    }
done:
    return st;
}

/* The streams, memory and GEMM that the calls below work on. */
struct bench {
    struct lb_streams *streams;
    void *memory, *workspace;
    size_t bytes;
    struct lb_gemm gemm;
};

static enum lb_status copy_half(void *user, struct lb_error *err)
{
    const struct bench *b = user;
    return lb_stream_copy(b->streams, 0, (char *)b->memory + b->bytes / 2, b->memory, b->bytes / 2,
                          err);
}

static enum lb_status multiply(void *user, struct lb_error *err)
{
    const struct bench *b = user;
    return lb_stream_gemm(b->streams, 0, &b->gemm, err);
}

static enum lb_status enqueue_little(void *user, struct lb_error *err)
{
    const struct bench *b = user;
    return lb_stream_zero(b->streams, 0, b->memory, 4, err);
}

static enum lb_status enqueue_many(void *user, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < SMALL_CALLS && st == LB_OK; i++)
        st = enqueue_little(user, err);
    return st;
}

static enum lb_status enqueue_nothing(void *user, struct lb_error *err)
{
    (void)user, (void)err;
    return LB_OK;
}

/* Times square GEMMs of LARGEST rows, or of as many as fit the buffer. The operands are
 * pseudo-random, because a GEMM of zeros draws less power and so runs faster than any real one. */
static enum lb_status measure_gemms(struct bench *b, const struct lb_timer *timer,
                                    struct lb_ceilings *ceilings, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        for (int m = 0; m < LB_MATH_COUNT; m++) {
            int64_t n = LARGEST;
            size_t size = lb_dtype_size((enum lb_dtype)d);
            double ns;
            if (m != LB_IEEE && d != LB_F32)
                continue;
            while (3 * (size_t)(n * n) * size > b->bytes)
                n /= 2;
            char *memory = b->memory;
            b->gemm = (struct lb_gemm){.in = (enum lb_dtype)d,
                                       .out = (enum lb_dtype)d,
                                       .math = (enum lb_math)m,
                                       .m = n,
                                       .n = n,
                                       .k = n,
                                       .a = memory,
                                       .b = memory + (size_t)(n * n) * size,
                                       .c = memory + 2 * (size_t)(n * n) * size,
                                       .lda = n,
                                       .ldb = n,
                                       .ldc = n};
            LB_TRY(best_of(timer, multiply, b, TIMED_CALLS, &ns, err));
            double flops = 2 * (double)n * (double)n * (double)n;
            ceilings->gemm_flops_s[d][m] = flops / ns * 1e9;
        }
    }
done:
    return st;
}

/* Times what an empty enqueue costs: by itself, and as a node of a graph. */
static enum lb_status measure_small(struct bench *b, struct lb_timer *timer,
                                    struct lb_ceilings *ceilings, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(best_of(timer, enqueue_nothing, b, 1, &ceilings->event_ns, err));
    LB_TRY(best_of(timer, enqueue_little, b, SMALL_CALLS, &ceilings->launch_ns, err));
    LB_TRY(lb_timer_capture(timer, enqueue_many, b, err));
    LB_TRY(best_of(timer, enqueue_many, b, 1, &ceilings->graph_node_ns, err));
    ceilings->graph_node_ns /= SMALL_CALLS;
done:
    return st;
}

/* Measures barriers and stores between SMs. A device that others use may have no room for a block
 * on each SM; unless the device is lost, the other figures stay valid and this is no failure. */
static enum lb_status measure_latencies(const struct lb_device_info *device,
                                        struct lb_ceilings *ceilings, struct lb_error *err)
{
    struct lb_latencies latencies;
    enum lb_status st =
        lb_latency_measure(device->sm_count, lb_device()->stream(), &latencies, err);
    ceilings->grid_barrier_ns = latencies.grid_barrier_ns;
    ceilings->cluster_barrier_ns = latencies.cluster_barrier_ns;
    ceilings->peer_ns = latencies.peer_ns;
    ceilings->l2_ns = latencies.l2_ns;
    return lb_device()->lost() ? st : LB_OK;
}

/* Fills the buffer with random bits that are finite numbers below 2 in every dtype. */
static enum lb_status fill_random(struct bench *b, struct lb_error *err)
{
    enum { WORDS = 1 << 20 };
    uint32_t *words = malloc(WORDS * sizeof(*words)), state = 1;
    enum lb_status st = LB_OK;
    if (!words)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int i = 0; i < WORDS; i++) {
        state = state * 1664525u + 1013904223u;
        words[i] = state & 0xbfffbfffu; /* clear the top exponent bit of both halves */
    }
    for (size_t at = 0; at < b->bytes; at += WORDS * sizeof(*words)) {
        size_t left = b->bytes - at, block = WORDS * sizeof(*words);
        LB_TRY(lb_device_space.upload((char *)b->memory + at, words, left < block ? left : block,
                                      err));
    }
done:
    free(words);
    return st;
}

enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings, struct lb_error *err)
{
    struct bench b = {.bytes = (size_t)2 << 30};
    struct lb_timer timer = {.memory = LB_DEVICE};
    enum lb_status st = LB_OK;
    double ns;
    lb_ceilings_from_json(NULL, ceilings);
    const struct lb_device_info *device = lb_device_known(err);
    if (!device)
        return LB_ABSENT;
    snprintf(ceilings->uuid, sizeof(ceilings->uuid), "%s", device->uuid);
    while (b.bytes / 2 >= least_bytes && (double)b.bytes > lb_device_space.available() / 2)
        b.bytes /= 2;
    LB_TRY(lb_timer_create(LB_DEVICE, false, &timer, err));
    LB_TRY(lb_device_space.allocate(b.bytes, &b.memory, err));
    LB_TRY(lb_device_space.allocate(lb_stream_scratch_bytes(), &b.workspace, err));
    LB_TRY(lb_streams_create(1, lb_device()->stream(), &b.streams, err));
    LB_TRY(lb_streams_set_workspace(b.streams, b.workspace, err));
    LB_TRY(fill_random(&b, err));
    LB_TRY(best_of(&timer, copy_half, &b, TIMED_CALLS, &ns, err));
    ceilings->copy_bytes_s = (double)b.bytes / ns * 1e9; /* half read, half written */
    LB_TRY(measure_gemms(&b, &timer, ceilings, err));
    LB_TRY(measure_small(&b, &timer, ceilings, err));
    LB_TRY(measure_latencies(device, ceilings, err));
done:
    lb_streams_destroy(b.streams);
    lb_device_space.release(b.workspace);
    lb_device_space.release(b.memory);
    lb_timer_destroy(&timer);
    return st;
}

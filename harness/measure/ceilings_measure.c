/* Measures what a device can do at best, by the same means that implementations use. */
#include "measure/ceilings_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/device.h"
#include "device/streams.h"
#include "device/timer.h"
#include "measure/gpu_latency.h"

enum { MEASUREMENTS = 3, TIMED_CALLS = 10, SMALL_CALLS = 1000 };
enum { LARGEST = 8192, SMALLEST = 256 /* rows and columns of the matrices of a GEMM */ };

/* Room for the three matrices of the smallest GEMM in the widest dtype. */
static const size_t least_bytes = 3 * sizeof(double) * SMALLEST * SMALLEST;

/* The streams, memory and GEMM that the calls below work on. */
struct bench {
    struct lb_timer timer;
    /* What one figure may take. Rates differ by a factor of 10000 between dtypes and devices, so
     * sizes and counts follow the time of a first call. */
    double figure_ns;
    struct lb_streams *streams;
    void *memory, *workspace;
    size_t bytes;
    struct lb_gemm gemm;
    struct lb_ceilings *ceilings;
    const struct lb_ceilings_observer *observer;
};

/* *ns: time of one call after another that loads what is loaded lazily. */
static enum lb_status time_once(struct bench *b, lb_call *call, double *ns, struct lb_error *err)
{
    LB_CHECK(lb_timer_measure(&b->timer, call, b, 1, ns, err));
    return lb_timer_measure(&b->timer, call, b, 1, ns, err);
}

/* *ns: time per call, the best of MEASUREMENTS of `calls` calls each, or of fewer where these would
 * take longer than a figure may. */
static enum lb_status best_of(struct bench *b, lb_call *call, int calls, double *ns,
                              struct lb_error *err)
{
    double once;
    LB_CHECK(time_once(b, call, &once, err));
    calls = (int)fmax(1, fmin(calls, b->figure_ns / MEASUREMENTS / fmax(once, 1)));
    *ns = (double)INFINITY;
    for (int i = 0; i < MEASUREMENTS; i++) {
        LB_CHECK(lb_timer_measure(&b->timer, call, b, calls, &once, err));
        *ns = fmin(*ns, once);
    }
    return LB_OK;
}

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

static enum lb_status launch_many(void *user, struct lb_error *err)
{
    for (int i = 0; i < SMALL_CALLS; i++)
        LB_CHECK(lb_launch_empty(user, err));
    return LB_OK;
}

static enum lb_status enqueue_nothing(void *user, struct lb_error *err)
{
    (void)user, (void)err;
    return LB_OK;
}

/* Square GEMMs of n rows in the buffer. The operands are pseudo-random, because a GEMM of zeros
 * draws less power and so runs faster than any real one. */
static void choose_gemm(struct bench *b, enum lb_dtype dtype, enum lb_math math, int64_t n)
{
    size_t bytes = (size_t)(n * n) * lb_dtype_size(dtype);
    char *memory = b->memory;
    b->gemm = (struct lb_gemm){.in = dtype,
                               .out = dtype,
                               .math = math,
                               .m = n,
                               .n = n,
                               .k = n,
                               .a = memory,
                               .b = memory + bytes,
                               .c = memory + 2 * bytes,
                               .lda = n,
                               .ldb = n,
                               .ldc = n};
}

/* *rate: flops per second of the largest square GEMM that fits the buffer and the time of a figure.
 * A GEMM of twice as many rows takes at most 8 times as long. */
static enum lb_status measure_gemm(struct bench *b, enum lb_dtype dtype, enum lb_math math,
                                   double *rate, struct lb_error *err)
{
    int64_t n = SMALLEST;
    double ns;
    for (;; n *= 2) {
        choose_gemm(b, dtype, math, n);
        LB_CHECK(time_once(b, multiply, &ns, err));
        bool fits = 3 * (size_t)(4 * n * n) * lb_dtype_size(dtype) <= b->bytes;
        if (n == LARGEST || !fits || 8 * ns * (2 + MEASUREMENTS) > b->figure_ns)
            break;
    }
    LB_CHECK(best_of(b, multiply, TIMED_CALLS, &ns, err));
    *rate = 2 * (double)n * (double)n * (double)n / ns * 1e9;
    return LB_OK;
}

/* Tells the outcome of a figure. A figure that fails costs no other one, unless the device is lost:
 * a dtype may not be supported, and a device that others use may have no room for a measurement. */
static enum lb_status tell(const struct bench *b, const char *figure, enum lb_status st,
                           struct lb_error *err)
{
    b->observer->figure(b->observer->user, b->ceilings, figure, st == LB_OK ? "" : err->text);
    return lb_device()->lost() ? st : LB_OK;
}

static enum lb_status measure_gemms(struct bench *b, struct lb_error *err)
{
    static const struct {
        enum lb_dtype dtype;
        enum lb_math math;
        int figure;
    } gemms[] = {
        {LB_F64, LB_IEEE, LB_FLOPS + LB_F64}, {LB_F32, LB_IEEE, LB_FLOPS + LB_F32},
        {LB_F32, LB_TF32, LB_TF32_FLOPS},     {LB_F32, LB_HALF, LB_HALF_FLOPS},
        {LB_F16, LB_IEEE, LB_FLOPS + LB_F16}, {LB_BF16, LB_IEEE, LB_FLOPS + LB_BF16},
    };
    for (size_t i = 0; i < sizeof(gemms) / sizeof(gemms[0]); i++) {
        char figure[48];
        snprintf(figure, sizeof(figure), "%s GEMMs in %s math", lb_dtype_name(gemms[i].dtype),
                 lb_math_name(gemms[i].math));
        double *rate = &b->ceilings->all[gemms[i].figure];
        LB_CHECK(tell(b, figure, measure_gemm(b, gemms[i].dtype, gemms[i].math, rate, err), err));
    }
    return LB_OK;
}

/* The times of calls that are enqueued. The graph is the last, because the timer replays it from
 * then on. */
static enum lb_status measure_calls(struct bench *b, struct lb_error *err)
{
    static const struct {
        const char *name;
        lb_call *call;
        int calls; /* that are timed at once */
        int parts; /* of one call, whose time is the figure */
        int figure;
    } timed[] = {
        {"copy", copy_half, TIMED_CALLS, 1, LB_READ + LB_MEMORY},
        {"event pair", enqueue_nothing, 1, 1, LB_EVENT_NS},
        {"launch", lb_launch_empty, SMALL_CALLS, 1, LB_LAUNCH_NS},
        {"graph node", launch_many, 1, SMALL_CALLS, LB_GRAPH_NODE_NS},
    };
    for (size_t i = 0; i < sizeof(timed) / sizeof(timed[0]); i++) {
        enum lb_status st = LB_OK;
        double ns;
        if (timed[i].call == launch_many)
            st = lb_timer_capture(&b->timer, launch_many, b, err);
        if (st == LB_OK)
            st = best_of(b, timed[i].call, timed[i].calls, &ns, err);
        if (st == LB_OK) /* of a copy, half of the buffer is read, half is written */
            b->ceilings->all[timed[i].figure] =
                timed[i].call == copy_half ? (double)b->bytes / ns * 1e9 : ns / timed[i].parts;
        LB_CHECK(tell(b, timed[i].name, st, err));
    }
    return LB_OK;
}

/* Fills the buffer with random bits that are finite numbers below 2 in every dtype. */
static enum lb_status fill_random(struct bench *b, struct lb_error *err)
{
    enum { WORDS = 1 << 20 };
    uint32_t *words = lb_needed(malloc(WORDS * sizeof(*words))), state = 1;
    enum lb_status st = LB_OK;
    for (int i = 0; i < WORDS; i++) {
        state = state * 1664525u + 1013904223u;
        words[i] = state & 0xbfffbfffu; /* clear the top exponent bit of both halves */
    }
    const size_t block = WORDS * sizeof(*words);
    for (size_t at = 0; st == LB_OK && at < b->bytes; at += block)
        st = lb_device_space.upload((char *)b->memory + at, words,
                                    b->bytes - at < block ? b->bytes - at : block, err);
    free(words);
    return st;
}

enum lb_status lb_ceilings_measure(double seconds, struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err)
{
    enum { FIGURES = 12 };
    struct bench b = {.timer = {.memory = LB_DEVICE},
                      .figure_ns = seconds * 1e9 / FIGURES,
                      .bytes = (size_t)2 << 30,
                      .ceilings = ceilings,
                      .observer = observer};
    enum lb_status st = LB_OK;
    const struct lb_device_info *device = lb_device_known(err);
    if (!device)
        return LB_ABSENT;
    lb_ceilings_clear(ceilings, device->uuid, device->sm_count);
    while (b.bytes / 2 >= least_bytes && (double)b.bytes > lb_device_space.available() / 2)
        b.bytes /= 2;
    LB_TRY(lb_timer_create(LB_DEVICE, false, &b.timer, err));
    LB_TRY(lb_device_space.allocate(b.bytes, &b.memory, err));
    LB_TRY(lb_device_space.allocate(lb_stream_scratch_bytes(), &b.workspace, err));
    LB_TRY(lb_streams_create(1, lb_device()->stream(), b.workspace, &b.streams, err));
    LB_TRY(fill_random(&b, err));
    LB_TRY(measure_gemms(&b, err));
    LB_TRY(measure_calls(&b, err));
    LB_TRY(tell(&b, "latencies", lb_latency_measure(ceilings, err), err));
done:
    lb_streams_destroy(b.streams);
    lb_device_space.release(b.workspace);
    lb_device_space.release(b.memory);
    lb_timer_destroy(&b.timer);
    return st;
}

/* Measures what a device can do at best, by the same means that implementations use. */
#include "measure/ceilings_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/streams.h"
#include "device/timer.h"
#include "measure/gpu_latency.h"

enum { MEASUREMENTS = 3, TIMED_CALLS = 10, SMALL_CALLS = 1000 };
enum { LARGEST = 8192, SMALLEST = 256 /* rows and columns of the matrices of a GEMM */ };

/* What one figure may take. Rates differ by a factor of 10000 between dtypes and devices, so sizes
 * and counts follow the time of a first call. */
static const double figure_ns = 1.5e9;

/* Room for the three matrices of the smallest GEMM in the widest dtype. */
static const size_t least_bytes = 3 * sizeof(double) * SMALLEST * SMALLEST;

/* *ns: time of one call after another that loads what is loaded lazily. */
static enum lb_status time_once(struct lb_timer *timer, lb_call *call, void *user, double *ns,
                                struct lb_error *err)
{
    enum lb_status st = lb_timer_measure(timer, call, user, 1, ns, err);
    return st == LB_OK ? lb_timer_measure(timer, call, user, 1, ns, err) : st;
}

/* *ns: time per call, the best of MEASUREMENTS of `calls` calls each, or of fewer where these would
 * take longer than a figure may. */
static enum lb_status best_of(struct lb_timer *timer, lb_call *call, void *user, int calls,
                              double *ns, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double once;
    LB_TRY(time_once(timer, call, user, &once, err));
    calls = (int)fmax(1, fmin(calls, figure_ns / MEASUREMENTS / fmax(once, 1)));
    *ns = (double)INFINITY;
    for (int i = 0; i < MEASUREMENTS; i++) {
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
static enum lb_status measure_gemm(struct bench *b, struct lb_timer *timer, enum lb_dtype dtype,
                                   enum lb_math math, double *rate, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int64_t n = SMALLEST;
    double ns;
    for (;; n *= 2) {
        choose_gemm(b, dtype, math, n);
        LB_TRY(time_once(timer, multiply, b, &ns, err));
        bool fits = 3 * (size_t)(4 * n * n) * lb_dtype_size(dtype) <= b->bytes;
        if (n == LARGEST || !fits || 8 * ns * (2 + MEASUREMENTS) > figure_ns)
            break;
    }
    LB_TRY(best_of(timer, multiply, b, TIMED_CALLS, &ns, err));
    *rate = 2 * (double)n * (double)n * (double)n / ns * 1e9;
done:
    return st;
}

static enum lb_status measure_graph_node(struct bench *b, struct lb_timer *timer, double *ns,
                                         struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(lb_timer_capture(timer, enqueue_many, b, err));
    LB_TRY(best_of(timer, enqueue_many, b, 1, ns, err));
    *ns /= SMALL_CALLS;
done:
    if (st != LB_OK)
        *ns = (double)NAN;
    return st;
}

/* Measures barriers and stores between SMs. */
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
    return st;
}

/* What is measured, and who hears of it. */
struct report {
    struct lb_ceilings *ceilings;
    const struct lb_ceilings_observer *observer;
};

/* Tells the outcome of a figure. A figure that fails costs no other one, unless the device is lost:
 * a dtype may not be supported, and a device that others use may have no room for a measurement. */
static enum lb_status take(const struct report *report, const char *figure, enum lb_status st,
                           struct lb_error *err)
{
    if (report->observer)
        report->observer->figure(report->observer->user, report->ceilings, figure,
                                 st == LB_OK ? ""
                                 : err       ? err->text
                                             : "it failed");
    return lb_device()->lost() ? st : LB_OK;
}

static enum lb_status measure_gemms(struct bench *b, struct lb_timer *timer,
                                    const struct report *report, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        for (int m = 0; m < LB_MATH_COUNT; m++) {
            char figure[48];
            if (m != LB_IEEE && d != LB_F32)
                continue;
            snprintf(figure, sizeof(figure), "%s GEMMs in %s math", lb_dtype_name((enum lb_dtype)d),
                     lb_math_name((enum lb_math)m));
            st = measure_gemm(b, timer, (enum lb_dtype)d, (enum lb_math)m,
                              &report->ceilings->gemm_flops_s[d][m], err);
            LB_TRY(take(report, figure, st, err));
        }
    }
done:
    return st;
}

/* Times what an empty enqueue costs: by itself, and as a node of a graph. */
static enum lb_status measure_small(struct bench *b, struct lb_timer *timer,
                                    const struct report *report, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_ceilings *ceilings = report->ceilings;
    st = best_of(timer, enqueue_nothing, b, 1, &ceilings->event_ns, err);
    LB_TRY(take(report, "event pair", st, err));
    st = best_of(timer, enqueue_little, b, SMALL_CALLS, &ceilings->launch_ns, err);
    LB_TRY(take(report, "enqueue", st, err));
    st = measure_graph_node(b, timer, &ceilings->graph_node_ns, err);
    LB_TRY(take(report, "graph node", st, err));
done:
    return st;
}

static enum lb_status measure_copy(struct bench *b, struct lb_timer *timer, double *rate,
                                   struct lb_error *err)
{
    double ns;
    enum lb_status st = best_of(timer, copy_half, b, TIMED_CALLS, &ns, err);
    if (st == LB_OK)
        *rate = (double)b->bytes / ns * 1e9; /* half read, half written */
    return st;
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

enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err)
{
    const struct report report = {ceilings, observer};
    struct bench b = {.bytes = (size_t)2 << 30};
    struct lb_timer timer = {.memory = LB_DEVICE};
    enum lb_status st = LB_OK;
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
    st = measure_copy(&b, &timer, &ceilings->copy_bytes_s, err);
    LB_TRY(take(&report, "copy", st, err));
    LB_TRY(measure_gemms(&b, &timer, &report, err));
    LB_TRY(measure_small(&b, &timer, &report, err));
    st = measure_latencies(device, ceilings, err);
    LB_TRY(take(&report, "latencies", st, err));
done:
    lb_streams_destroy(b.streams);
    lb_device_space.release(b.workspace);
    lb_device_space.release(b.memory);
    lb_timer_destroy(&timer);
    return st;
}

/* Measures the ceilings of CPUs: multiply-adds in registers, reads from each level of the caches
 * and from memory, and barriers. */
#include "measure/ceilings_measure.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "device/host_memory.h"

#if defined(__x86_64__) && defined(__linux__)
#define X86 1
#include <immintrin.h>
#else
#define X86 0
#endif

/* Multiply-adds per call of a loop, and barriers per round. */
enum { REPEATS = 20000, BARRIERS = 50 };

/* A loop of multiply-adds whose operands stay in registers; returns how many flops it did. `sink`
 * keeps the compiler from dropping it. */
typedef double peak_loop(float *sink);

/* A loop that a sanitizer has instrumented shows a rate far below the machine's. */
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "undefined")))

/* ACCUMULATORS hide the latency of a multiply-add and fit the registers. */
#define PEAK_LOOP(name, attributes, vector, zero, step, accumulators, flops)   \
    UNINSTRUMENTED attributes static double name(float *sink)                  \
    {                                                                          \
        float first;                                                           \
        vector s[accumulators];                                                \
        UNROLL for (int i = 0; i < (accumulators); i++) s[i] = zero;           \
        UNROLL for (int i = 0; i < (accumulators); i++) HIDE(s[i]);            \
        for (int repeat = 0; repeat < REPEATS; repeat++) {                     \
            UNROLL for (int i = 0; i < (accumulators); i++) s[i] = step(s[i]); \
            __asm__ volatile("" : "+m"(*sink));                                \
        }                                                                      \
        UNROLL for (int i = 1; i < (accumulators); i++) s[0] += s[i];          \
        memcpy(&first, &s[0], sizeof(first));                                  \
        *sink += first;                                                        \
        return (double)REPEATS * (accumulators) * (flops);                     \
    }
#define UNROLL _Pragma("GCC unroll 24")

/* Hides a value from the compiler, which would else see that all accumulators are equal. */
#if X86
#define HIDE(vector) __asm__("" : "+v"(vector))
#elif defined(__aarch64__)
#define HIDE(vector) __asm__("" : "+w"(vector))
#else
#define HIDE(vector) __asm__("" : "+m"(vector))
#endif

typedef float plain_f32 __attribute__((vector_size(16), may_alias));
typedef double plain_f64 __attribute__((vector_size(16), may_alias));
#define PLAIN_STEP(s) ((s)*0.5f + 1)
PEAK_LOOP(peak_plain_f32, , plain_f32, (plain_f32){0}, PLAIN_STEP, 12, 8)
PEAK_LOOP(peak_plain_f64, , plain_f64, (plain_f64){0}, PLAIN_STEP, 12, 4)

#if X86

#define AVX2_F32(s)   _mm256_fmadd_ps(s, _mm256_set1_ps(0.5f), _mm256_set1_ps(1))
#define AVX2_F64(s)   _mm256_fmadd_pd(s, _mm256_set1_pd(0.5), _mm256_set1_pd(1))
#define AVX512_F32(s) _mm512_fmadd_ps(s, _mm512_set1_ps(0.5f), _mm512_set1_ps(1))
#define AVX512_F64(s) _mm512_fmadd_pd(s, _mm512_set1_pd(0.5), _mm512_set1_pd(1))
#define DOT_BF16(s) \
    _mm512_dpbf16_ps(s, (__m512bh)_mm512_set1_epi32(0x3f803f80), (__m512bh)_mm512_set1_epi32(1))
#define TARGET(features) __attribute__((target(features)))
PEAK_LOOP(peak_avx2_f32, TARGET("avx2,fma"), __m256, _mm256_setzero_ps(), AVX2_F32, 12, 16)
PEAK_LOOP(peak_avx2_f64, TARGET("avx2,fma"), __m256d, _mm256_setzero_pd(), AVX2_F64, 12, 8)
PEAK_LOOP(peak_avx512_f32, TARGET("avx512f"), __m512, _mm512_setzero_ps(), AVX512_F32, 24, 32)
PEAK_LOOP(peak_avx512_f64, TARGET("avx512f"), __m512d, _mm512_setzero_pd(), AVX512_F64, 24, 16)
PEAK_LOOP(peak_dot_bf16, TARGET("avx512f,avx512bf16"), __m512, _mm512_setzero_ps(), DOT_BF16, 24,
          64)

/* Tiles of 16 x 16 sums of so many terms. Two tiles of each operand come from the L1 cache for
 * every four products, as in a GEMM, and hold numbers near +-1: with zeros the unit uses less power
 * and shows a rate, 24 % higher on an Intel Xeon, that no GEMM has. */
#define AMX_LOOP(name, one, terms, four_products)                                              \
    static double name(float *sink)                                                            \
    {                                                                                          \
        enum { PRODUCTS = 4 * 2000, OPERANDS = 4, TILE = 512 };                                \
        const struct {                                                                         \
            uint8_t palette, start_row, reserved[14];                                          \
            uint16_t row_bytes[16];                                                            \
            uint8_t rows[16];                                                                  \
        } config = {.palette = 1,                                                              \
                    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},                             \
                    .rows = {16, 16, 16, 16, 16, 16, 16, 16}};                                 \
        uint16_t operands[OPERANDS * TILE] __attribute__((aligned(64)));                       \
        (void)sink;                                                                            \
        for (unsigned i = 0; i < OPERANDS * TILE; i++)                                         \
            operands[i] = (uint16_t)((one) | (i * 2654435761u >> 25) | (i * 40503u & 0x8000)); \
        __asm__ volatile("ldtilecfg %0" : : "m"(config));                                      \
        for (int i = 0; i < PRODUCTS; i += 4)                                                  \
            __asm__ volatile("tileloadd (%0,%1,1), %%tmm4\n\t"                                 \
                             "tileloadd 1024(%0,%1,1), %%tmm5\n\t"                             \
                             "tileloadd 2048(%0,%1,1), %%tmm6\n\t"                             \
                             "tileloadd 3072(%0,%1,1), %%tmm7\n\t" four_products               \
                             :                                                                 \
                             : "r"(operands), "r"((size_t)64)                                  \
                             : "memory");                                                      \
        __asm__ volatile("tilerelease");                                                       \
        return PRODUCTS * 2.0 * 16 * 16 * (terms);                                             \
    }
AMX_LOOP(peak_amx_bf16, 0x3f80, 32,
         "tdpbf16ps %%tmm6, %%tmm4, %%tmm0\n\ttdpbf16ps %%tmm7, %%tmm4, %%tmm1\n\t"
         "tdpbf16ps %%tmm6, %%tmm5, %%tmm2\n\ttdpbf16ps %%tmm7, %%tmm5, %%tmm3")
/* tdpfp16ps, which assemblers before binutils 2.40 do not know */
AMX_LOOP(peak_amx_f16, 0x3c00, 32,
         ".byte 0xc4, 0xe2, 0x4b, 0x5c, 0xc4, 0xc4, 0xe2, 0x43, 0x5c, 0xcc\n\t"
         ".byte 0xc4, 0xe2, 0x4b, 0x5c, 0xd5, 0xc4, 0xe2, 0x43, 0x5c, 0xdd")
AMX_LOOP(peak_amx_int8, 0x4040, 64,
         "tdpbssd %%tmm6, %%tmm4, %%tmm0\n\ttdpbssd %%tmm7, %%tmm4, %%tmm1\n\t"
         "tdpbssd %%tmm6, %%tmm5, %%tmm2\n\ttdpbssd %%tmm7, %%tmm5, %%tmm3")

/* In assembly, since of _mm512_dpbusd_epi32 GCC 12 makes a store of each sum as well. */
UNINSTRUMENTED TARGET("avx512f,avx512vnni") static inline __attribute__((always_inline)) __m512i
    dot_int8(__m512i sum)
{
    __m512i a = _mm512_set1_epi32(0x7f017f01), b = _mm512_set1_epi32(1);
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}
PEAK_LOOP(peak_dot_int8, TARGET("avx512f,avx512vnni"), __m512i, _mm512_setzero_si512(), dot_int8,
          24, 128)

/* The same in AVX-VNNI, and on AVX2 without it in three instructions. */
UNINSTRUMENTED TARGET("avx2") static inline __attribute__((always_inline)) __m256i
    dot_int8_avxvnni(__m256i sum)
{
    __m256i a = _mm256_set1_epi32(0x7f017f01), b = _mm256_set1_epi32(1);
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));
    return sum;
}
UNINSTRUMENTED TARGET("avx2") static inline __attribute__((always_inline)) __m256i
    pairs_int8(__m256i sum)
{
    __m256i a = sum, b = _mm256_set1_epi8(1), pairs = _mm256_maddubs_epi16(b, a);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
PEAK_LOOP(peak_dot_int8_avxvnni, TARGET("avx2"), __m256i, _mm256_setzero_si256(), dot_int8_avxvnni,
          12, 64)
PEAK_LOOP(peak_pairs_int8, TARGET("avx2"), __m256i, _mm256_setzero_si256(), pairs_int8, 12, 64)

#endif

/* f16 without tiles and bf16 without dot products are converted to f32, whose rate is theirs. */
static peak_loop *peak_loop_of(enum lb_dtype dtype, enum lb_cpu_unit unit)
{
    bool f64 = dtype == LB_F64;
    switch (unit) {
#if X86
    case LB_CPU_AMX:
        return dtype == LB_BF16 ? peak_amx_bf16 : dtype == LB_INT8 ? peak_amx_int8 : peak_amx_f16;
    case LB_CPU_AVX512BF16: return peak_dot_bf16;
    case LB_CPU_AVX512:
        if (dtype == LB_INT8)
            return peak_dot_int8;
        return f64 ? peak_avx512_f64 : peak_avx512_f32;
    case LB_CPU_AVXVNNI: return peak_dot_int8_avxvnni;
    case LB_CPU_AVX2:
        if (dtype == LB_INT8)
            return peak_pairs_int8;
        return f64 ? peak_avx2_f64 : peak_avx2_f32;
#endif
    default: return f64 ? peak_plain_f64 : peak_plain_f32;
    }
}

/* Reads bytes, a multiple of 512, some times over. The vectors are as wide as the registers, of
 * which there are enough for eight: a compiler splits wider ones, down to single words. */
#define READ_LOOP(name, attributes, width)                                                    \
    UNINSTRUMENTED attributes static void name(const void *memory, size_t bytes, int repeats, \
                                               float *sink)                                   \
    {                                                                                         \
        typedef uint64_t words __attribute__((vector_size(width), may_alias));                \
        const words *from = memory;                                                           \
        words s[8] = {{0}};                                                                   \
        for (int repeat = 0; repeat < repeats; repeat++) {                                    \
            for (size_t i = 0; i < bytes / sizeof(words); i += 8)                             \
                _Pragma("GCC unroll 8") for (size_t j = 0; j < 8; j++) s[j] |= from[i + j];   \
            __asm__ volatile("" : : : "memory");                                              \
        }                                                                                     \
        for (int j = 1; j < 8; j++)                                                           \
            s[0] |= s[j];                                                                     \
        *sink += (float)s[0][0];                                                              \
    }

READ_LOOP(read_plain, , 16)
#if X86
READ_LOOP(read_avx2, TARGET("avx2"), 32)
READ_LOOP(read_avx512, TARGET("avx512f"), 64)
#endif

typedef void read_loop(const void *memory, size_t bytes, int repeats, float *sink);

static read_loop *read_loop_of(void)
{
#if X86
    if (lb_cpu_has(LB_CPU_AVX512, LB_F32))
        return read_avx512;
    if (lb_cpu_has(LB_CPU_AVX2, LB_F32))
        return read_avx2;
#endif
    return read_plain;
}

/* One measurement by all threads, of which each writes what it did and how long that took. */
static struct round_of {
    struct lb_cpu_topology topology;
    struct lb_machine machine;
    double seconds; /* that a figure may take */
    bool memory;    /* it is measured too */
    void *kept;     /* the buffer for LB_MEMORY, which takes long to touch, once it is touched, of a
                       machine with one L3 and node */
    struct lb_pinned_threads *threads;
    int thread_count;
    peak_loop *peak; /* NULL: it reads, or, without a buffer, meets at barriers */
    char *buffer;    /* [threads, bytes] */
    size_t bytes;
    int repeats;
    struct result {
        double done, ns;
        float sink;
        char padding[64];
    } results[256];
} current; /* one at a time */

/* Writes the thread's part of the buffer, so that it lies in the memory of its node. */
static void touch(void *arg, size_t thread)
{
    const struct round_of *round = arg;
    memset(round->buffer + thread * round->bytes, 0, round->bytes);
}

static void work(void *arg, size_t thread)
{
    struct round_of *round = arg;
    struct result *result = &round->results[thread];
    read_loop *reads = read_loop_of();
    lb_pinned_threads_barrier(round->threads);
    double start = lb_now_ns();
    if (round->peak) {
        result->done = round->peak(&result->sink);
    } else if (round->buffer) {
        const char *from = round->buffer + thread * round->bytes;
        reads(from, round->bytes, round->repeats, &result->sink);
        result->done = (double)round->bytes * round->repeats;
    } else {
        for (int i = 0; i < BARRIERS; i++)
            lb_pinned_threads_barrier(round->threads);
        result->done = BARRIERS;
    }
    result->ns = lb_now_ns() - start;
}

/* The best rate of all threads together, per ns, over the rounds that begin within the time. */
static double best_rate(void)
{
    double best = 0, end = lb_now_ns() + current.seconds * 1e9;
    do {
        double done = 0, ns = 0;
        lb_pinned_threads_run(current.threads, work, &current);
        for (int t = 0; t < current.thread_count; t++) {
            done += current.results[t].done;
            ns = fmax(ns, current.results[t].ns);
        }
        best = fmax(best, done / ns);
    } while (lb_now_ns() < end);
    return best;
}

/* Bytes that each thread reads to measure a level: well inside it, and well outside the level
 * before; 0 where the sizes are not known or leave no room for that, or where the memory would take
 * long to touch. Of the cache, which other cores share, it takes no more than it must. */
static size_t level_bytes(enum lb_level level)
{
    const struct lb_machine *m = &current.machine;
    const double most = 1 << 30, threads = current.thread_count;
    const double known = lb_cpu_topology_l3_bytes(&current.topology, (size_t)threads);
    const double cache = known > 0 ? known : m->bytes[LB_CACHE];
    double bytes = m->bytes[level] / 2, least = 0;
    if (level == LB_OWN)
        least = 1.5 * m->bytes[LB_INNER];
    if (level >= LB_CACHE)
        least = 1.5 * m->bytes[LB_OWN];
    if (level == LB_CACHE)
        bytes = fmin(cache / 2 / threads, 3 * m->bytes[LB_OWN]);
    /* As much for one thread as for all, which share the buffer that is kept. */
    if (level == LB_MEMORY)
        bytes =
            fmin(fmax(fmax(2 * cache, 64 << 20), 3 * m->bytes[LB_OWN] * m->cores), most) / threads;
    if (level == LB_MEMORY && 1.5 * cache > most)
        return 0;
    return bytes > least && isfinite(bytes) ? (size_t)bytes / 512 * 512 : 0;
}

static enum lb_status measure_reads(double *rates, struct lb_error *err)
{
    const struct lb_machine *m = &current.machine;
    current.peak = NULL;
    for (int level = 0; level < (current.memory ? LB_LEVEL_COUNT : LB_MEMORY); level++) {
        bool keep = level == LB_MEMORY && m->domains == 1 && m->nodes == 1;
        void *buffer = keep ? current.kept : NULL;
        bool touched = buffer;
        current.bytes = level_bytes((enum lb_level)level);
        if (current.bytes == 0)
            continue;
        size_t total = current.bytes * (size_t)current.thread_count;
        if (!touched && lb_host_space.allocate(total, &buffer, err) != LB_OK)
            return LB_OOM;
        current.buffer = buffer;
        if (!touched)
            lb_pinned_threads_run(current.threads, touch, &current);
        current.repeats = 1 + (int)(1000000 / current.bytes);
        rates[LB_READ + level] = 1e9 * best_rate();
        if (keep)
            current.kept = buffer;
        else
            lb_host_space.release(buffer);
    }
    current.buffer = NULL;
    return LB_OK;
}

/* Opens threads on cores of their own, neighbours first, as cpu_simd does; one is the caller. */
static enum lb_status open_round(int threads, struct lb_error *err)
{
    struct lb_pinned_place places[LB_MAX_PINNED_THREADS];
    const struct lb_cpu_place *cpus = current.topology.places;
    current.thread_count = threads;
    current.threads = NULL;
    for (int i = 0; i < threads; i++)
        places[i] = (struct lb_pinned_place){cpus[i].cpu, cpus[i].domain};
    return threads > 1 ? lb_pinned_threads_open(threads, places, &current.threads, err) : LB_OK;
}

/* Measures all figures with so many threads. */
static enum lb_status measure_with(int threads, double *rates, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(open_round(threads, err));
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        current.peak = peak_loop_of((enum lb_dtype)d, current.machine.units[d]);
        rates[LB_FLOPS + d] = 1e9 * best_rate();
    }
    LB_TRY(measure_reads(rates, err));
    if (threads > 1)
        rates[LB_BARRIER_NS] = threads / best_rate();
done:
    lb_pinned_threads_close(current.threads);
    return st;
}

enum lb_status lb_cpu_ceilings_measure(double seconds, double bytes, struct lb_ceilings *ceilings,
                                       struct lb_error *err)
{
    enum { FIGURES = 2 * 9 + 1 }; /* of one core and of all, and the latency of two */
    const struct lb_machine *m = &current.machine;
    enum lb_status st = LB_OK;
    current = (struct round_of){.seconds = seconds / FIGURES};
    lb_cpu_topology_here(&current.topology);
    lb_machine_here(&current.topology, false, &current.machine);
    int threads = m->cores < LB_MAX_PINNED_THREADS ? m->cores : LB_MAX_PINNED_THREADS;
    current.memory = !(bytes < m->bytes[LB_CACHE]); /* a size that is not known is 0 */
    lb_ceilings_clear(ceilings, "cpu", threads);
    LB_TRY(measure_with(1, ceilings->core, err));
    if (threads == 1) {
        memcpy(ceilings->all, ceilings->core, sizeof(ceilings->all));
        goto done;
    }
    LB_TRY(measure_with(threads, ceilings->all, err));
    LB_TRY(open_round(2, err));
    ceilings->all[LB_PEER_NS] = 1 / best_rate(); /* one waits, then the other */
    lb_pinned_threads_close(current.threads);
done:
    lb_host_space.release(current.kept);
    return st;
}

double lb_cpu_burst_flops_s(enum lb_dtype dtype)
{
    float sink = 0;
    peak_loop *peak = peak_loop_of(dtype, lb_cpu_best_unit(dtype));
    double start = lb_now_ns(), done = peak(&sink);
    return done / (lb_now_ns() - start) * 1e9;
}

/* Compares the vector kernels with plain loops at each width that this CPU supports, and
 * measures the error of their sigmoid and tanh over the range of f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "impls/common/simd_kernels.h"
#include "tests/impls/amx_model.h"

enum { BATCH = 960 }; /* a multiple of every simd_width */

/* One unit in the last place of f32 at a value. */
static double ulp_at(double value)
{
    int exponent = value == 0 ? -126 : ilogb(value);
    return ldexp(1, (exponent < -126 ? -126 : exponent) - 23);
}

static double right_sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

struct function {
    void (*of)(const void *v, void *out, size_t count);
    double (*right)(double v);
    double allowed; /* ulp */
    double least;   /* where the right value is below this, the absolute error must be below this */
};

static double worst_of(const struct function *f, const float *v)
{
    float out[BATCH];
    double worst = 0;
    f->of(v, out, BATCH);
    for (size_t i = 0; i < BATCH; i++) {
        double right = f->right((double)v[i]), error = fabs((double)out[i] - right);
        if (isnan(v[i])) {
            assert_true(isnan(out[i]) != 0);
            continue;
        }
        assert_true(isnan(out[i]) == 0);
        if (fabs(right) < f->least)
            assert_true(error < f->least);
        else
            worst = fmax(worst, error / ulp_at(right));
    }
    return worst;
}

/* Tries every 1009th bit pattern of f32: all exponents, both signs, infinities and NaN are among
 * them. */
static void hold_over_f32(const struct function *f)
{
    float v[BATCH];
    double worst = 0;
    size_t count = 0;
    const char *step = getenv("LB_F32_STEP"); /* 1 tries all patterns and takes minutes */
    uint64_t stride = step ? strtoull(step, NULL, 10) : 1009;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += stride) {
        uint32_t pattern = (uint32_t)bits;
        memcpy(&v[count++], &pattern, sizeof(pattern));
        if (count == BATCH) {
            worst = fmax(worst, worst_of(f, v));
            count = 0;
        }
    }
    const float special[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 87, -87, 88.8f, 9.02f, -104};
    for (size_t i = 0; i < BATCH; i++)
        v[i] = special[i % (sizeof(special) / sizeof(special[0]))];
    worst = fmax(worst, worst_of(f, v));
    print_message("    worst error %.3f ulp, allowed %.1f\n", worst, f->allowed);
    assert_true(worst <= f->allowed);
}

static void hold_functions(const struct lb_simd_kernels *kernels, double sigmoid, double tangent)
{
    print_message("%s\n", kernels->name);
    hold_over_f32(&(struct function){kernels->sigmoid, right_sigmoid, sigmoid, 0x1p-125});
    hold_over_f32(&(struct function){kernels->tanh, tanh, tangent, 0});
}

static void sigmoid_and_tanh_keep_their_bounds(void **state)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    size_t count = lb_simd_kernels_all(LB_F32, list);
    (void)state;
    for (size_t i = 0; i < count; i++)
        hold_functions(list[i], LB_CPU_SIGMOID_ULP, LB_CPU_TANH_ULP);
    count = lb_simd_kernels_all(LB_BF16, list);
    for (size_t i = 0; i < count; i++)
        hold_functions(list[i], LB_CPU_BF16_ULP, LB_CPU_BF16_ULP);
    count = lb_simd_kernels_all(LB_F16, list);
    for (size_t i = 0; i < count; i++)
        hold_functions(list[i], LB_CPU_SIGMOID_ULP, LB_CPU_TANH_ULP);
}

/* 1 - tanh^2 is a factor of every gradient, so it must not become negative. */
static void tanh_is_never_beyond_one(void **state)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    size_t count = lb_simd_kernels_all(LB_F32, list);
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (float start = 7; start < 12; start += 1e-3f) {
            float v[BATCH], out[BATCH];
            for (size_t j = 0; j < BATCH; j++)
                v[j] = (j % 2 ? 1 : -1) * (start + (float)j * 1e-6f);
            list[i]->tanh(v, out, BATCH);
            for (size_t j = 0; j < BATCH; j++) {
                assert_true(fabsf(out[j]) <= 1);
                assert_true(fabsf(v[j]) < 9.02f || fabsf(out[j]) == 1);
            }
        }
}

/* Sizes of a problem for one panel. */
enum { ROWS = 14, DEPTH = 700, WIDEST = 64 };

static double draw(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / 0x1p24 - 0.5;
}

static void put(enum lb_dtype dtype, void *array, size_t index, double value)
{
    lb_store(dtype, (char *)array + index * lb_dtype_size(dtype), &value, 1);
}

static double get(enum lb_dtype dtype, const void *array, size_t index)
{
    double value;
    lb_load(dtype, (const char *)array + index * lb_dtype_size(dtype), &value, 1);
    return value;
}

static void *drawn(enum lb_dtype dtype, size_t count, double scale, unsigned *seed)
{
    void *array = NULL;
    assert_int_equal(posix_memalign(&array, 64, count * sizeof(double) + 8192), 0);
    memset(array, 0, count * sizeof(double));
    for (size_t i = 0; i < count; i++)
        put(dtype, array, i, scale * draw(seed));
    return array;
}

/* Computes one element of start + a w in double. A row of w has `width` elements. */
static double right_sum(enum lb_dtype dtype, const struct lb_cpu_gemm *p, size_t width,
                        double start, size_t row, size_t column)
{
    double sum = start;
    for (size_t i = 0; i < p->k; i++) {
        size_t segment = p->a.segment ? i / p->a.segment : 0;
        size_t at = row * p->a.stride + i + segment * (p->a.segment_stride - p->a.segment);
        sum += get(dtype, p->a.base, at) * get(dtype, p->w, i * width + column);
    }
    return sum;
}

static double allowed(enum lb_dtype dtype)
{
    return dtype == LB_F32 ? 2e-5 : 1e-13;
}

/* The shape of a GEMM, whether its sums start from a bias, and whether `a` has segments. */
struct shape {
    size_t rows, k, columns;
    bool bias, segments;
};

static void try_accumulate(const struct lb_simd_kernels *kernels, enum lb_dtype dtype,
                           const struct shape *s)
{
    unsigned seed = (unsigned)(s->rows * 1000 + s->k);
    size_t simd_width = kernels->simd_width, rows = s->rows, k = s->k, stride = 4 * simd_width + 8;
    size_t width = (s->columns + simd_width - 1) / simd_width * simd_width,
           segments = k / (4 * simd_width) + 1;
    size_t segment_stride = rows * 4 * simd_width + 24;
    void *a = drawn(dtype, rows * (k + 3) + segments * segment_stride, 1, &seed);
    void *w = drawn(dtype, k * width, 1, &seed), *start = drawn(dtype, width, 1, &seed);
    void *sums = drawn(dtype, rows * stride, 1, &seed);
    void *before = drawn(dtype, rows * stride, 0, &seed);
    memcpy(before, sums, rows * stride * lb_dtype_size(dtype));
    struct lb_cpu_gemm p = {.rows = rows,
                            .k = k,
                            .columns = s->columns,
                            .a = {.base = a, .stride = k + 3},
                            .w = w,
                            .bias = s->bias ? start : NULL,
                            .sums = sums,
                            .stride = stride};
    if (s->segments)
        p.a = (struct lb_cpu_rows){.base = a,
                                   .stride = 4 * simd_width,
                                   .segment = 4 * simd_width,
                                   .segment_stride = segment_stride};
    kernels->accumulate(&p);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < stride; j++) {
            double old = get(dtype, before, r * stride + j), now = get(dtype, sums, r * stride + j);
            if (j >= s->columns)
                assert_true(now == old); /* elements outside the columns must not change */
            else
                assert_true(fabs(now - right_sum(dtype, &p, width,
                                                 s->bias ? get(dtype, start, j) : old, r, j)) <=
                            allowed(dtype));
        }
    free(before);
    free(sums);
    free(start);
    free(w);
    free(a);
}

/* A check of the kernels of one SIMD unit for one dtype. */
typedef void check_kernels(const struct lb_simd_kernels *kernels, enum lb_dtype dtype);

/* Calls check for every SIMD unit that this CPU has. */
static void for_each_unit(enum lb_dtype dtype, check_kernels *check)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    size_t count = lb_simd_kernels_all(dtype, list);
    for (size_t i = 0; i < count; i++)
        check(list[i], dtype);
}

static void for_each_kernels(check_kernels *check)
{
    for_each_unit(LB_F32, check);
    for_each_unit(LB_F64, check);
}

static void try_gemms(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, ROWS},
                        depths[] = {1, 2, 3, 17, DEPTH};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (size_t k = 0; k < sizeof(depths) / sizeof(depths[0]); k++)
            for (int which = 0; which < 4; which++)
                try_accumulate(kernels, dtype,
                               &(struct shape){.rows = rows[r],
                                               .k = depths[k],
                                               .columns = 4 * kernels->simd_width,
                                               .bias = which % 2 == 1,
                                               .segments = which / 2 == 1});
}

static void gemms_are_those_of_plain_loops(void **state)
{
    (void)state;
    for_each_kernels(try_gemms);
}

/* Tries every number of columns, so that the last vector is partly filled. */
static void try_columns(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t columns = 1; columns <= 4 * kernels->simd_width; columns++)
        try_accumulate(kernels, dtype,
                       &(struct shape){.rows = 1 + columns % 7, .k = 70, .columns = columns});
}

static void nothing_is_written_beyond_the_columns(void **state)
{
    (void)state;
    for_each_kernels(try_columns);
}

/* k is so large that it is divided into several blocks; with and without segments. */
static void a_panel_beyond_the_cache_is_summed_in_blocks(void **state)
{
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    size_t count = lb_simd_kernels_all(LB_F64, list);
    (void)state;
    for (size_t i = 0; i < count; i++)
        for (int segments = 0; segments < 2; segments++)
            try_accumulate(list[i], LB_F64,
                           &(struct shape){.rows = 7,
                                           .k = 13000 / list[i]->simd_width * 2,
                                           .columns = 4 * list[i]->simd_width,
                                           .bias = true,
                                           .segments = segments});
}

/* Computes one element of dw in double. */
static double right_outer(enum lb_dtype dtype, const struct lb_cpu_outer *o, const void *in,
                          size_t width, size_t column, size_t j)
{
    double sum = 0;
    for (size_t r = 0; r < o->rows; r++)
        sum += get(dtype, in, r * o->stride + column) * get(dtype, o->da, r * width + j);
    return sum;
}

static void try_outer(const struct lb_simd_kernels *kernels, enum lb_dtype dtype, size_t columns,
                      bool packed, bool add)
{
    unsigned seed = (unsigned)columns;
    size_t width = 4 * kernels->simd_width, rows = 37, stride = columns + 2, group = kernels->group;
    void *in = drawn(dtype, rows * stride, 1, &seed), *da = drawn(dtype, rows * width, 1, &seed);
    void *dw = drawn(dtype, (columns + 1) * width, 1, &seed), *db = drawn(dtype, width, 1, &seed);
    void *old = drawn(dtype, (columns + 1) * width, 0, &seed);
    void *old_db = drawn(dtype, width, 0, &seed);
    void *order = drawn(dtype, (columns + group) * rows, 0, &seed);
    memcpy(old, dw, (columns + 1) * width * lb_dtype_size(dtype));
    memcpy(old_db, db, width * lb_dtype_size(dtype));
    struct lb_cpu_outer o = {.rows = rows,
                             .columns = columns,
                             .in = in,
                             .stride = stride,
                             .da = da,
                             .dw = dw,
                             .db = db,
                             .add = add};
    if (packed) {
        kernels->pack(&o, order);
        o.in = order;
        o.packed = true;
    }
    kernels->outer(&o);
    for (size_t j = 0; j < width; j++) {
        double sum = add ? get(dtype, old_db, j) : 0;
        for (size_t r = 0; r < rows; r++)
            sum += get(dtype, da, r * width + j);
        assert_true(fabs(get(dtype, db, j) - sum) <= allowed(dtype));
        for (size_t c = 0; c < columns; c++) {
            double right = right_outer(dtype, &o, in, width, c, j);
            right += add ? get(dtype, old, c * width + j) : 0;
            assert_true(fabs(get(dtype, dw, c * width + j) - right) <= allowed(dtype));
        }
        assert_true(get(dtype, dw, columns * width + j) == get(dtype, old, columns * width + j));
    }
    void *const arrays[] = {in, da, dw, db, old, old_db, order};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
}

static void try_outers(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t columns = 1; columns <= 2 * kernels->group + 1; columns++)
        for (int which = 0; which < 4; which++)
            try_outer(kernels, dtype, columns, which % 2 == 1, which / 2 == 1);
}

static void weight_gradients_are_those_of_plain_loops(void **state)
{
    (void)state;
    for_each_kernels(try_outers);
}

/* One chain of 8192 additions would have an error of about 2e-6 of the norm of the sums. */
static void long_sums_keep_their_digits(void **state)
{
    enum { TERMS = 8192 };
    const struct lb_simd_kernels *list[LB_SIMD_UNIT_COUNT];
    size_t count = lb_simd_kernels_all(LB_F32, list);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        unsigned seed = 7;
        size_t width = 4 * list[i]->simd_width;
        double error = 0, size = 0;
        void *a = drawn(LB_F32, TERMS, 1, &seed), *w = drawn(LB_F32, TERMS * width, 1, &seed);
        void *start = drawn(LB_F32, width, 0, &seed), *sums = drawn(LB_F32, width, 0, &seed);
        struct lb_cpu_gemm p = {.rows = 1,
                                .k = TERMS,
                                .columns = width,
                                .a = {.base = a, .stride = TERMS},
                                .w = w,
                                .bias = start,
                                .sums = sums,
                                .stride = width};
        list[i]->accumulate(&p);
        for (size_t j = 0; j < width; j++) {
            double right = right_sum(LB_F32, &p, width, 0, 0, j);
            error += pow(get(LB_F32, sums, j) - right, 2);
            size += right * right;
        }
        print_message("    %s: error %.2g of the norm\n", list[i]->name, sqrt(error / size));
        assert_true(sqrt(error / size) < 1e-6);
        free(sums);
        free(start);
        free(w);
        free(a);
    }
}

/* Tries one step of one panel with padding. */
static void try_forward(const struct lb_simd_kernels *kernels, enum lb_dtype dtype, size_t units)
{
    unsigned seed = (unsigned)units;
    size_t simd_width = kernels->simd_width, width = 4 * simd_width, rows = 8, k = 19,
           H = 2 * simd_width;
    void *a = drawn(dtype, rows * k, 1, &seed), *w = drawn(dtype, k * width, 1, &seed);
    void *sums = drawn(dtype, rows * width, 1, &seed), *c = drawn(dtype, rows * H, 1, &seed);
    void *start = drawn(dtype, rows * width, 0, &seed), *old = drawn(dtype, rows * H, 0, &seed);
    void *h = drawn(dtype, rows * H, 0, &seed);
    const void *c_before[8];
    memcpy(start, sums, rows * width * lb_dtype_size(dtype));
    memcpy(old, c, rows * H * lb_dtype_size(dtype));
    for (size_t b = 0; b < rows; b++)
        c_before[b] = (const char *)c + b * H * lb_dtype_size(dtype);
    struct lb_cpu_forward f = {
        .gemm = {.rows = rows,
                 .k = k,
                 .columns = width,
                 .a = {.base = a, .stride = k},
                 .w = w,
                 .sums = sums,
                 .stride = width},
        .units = units,
        .first = 1,
        .c_before = c_before,
        .c = c,
        .h = h,
        .c_stride = H,
        .h_stride = H,
        .gates = sums,
    };
    kernels->forward(&f);
    for (size_t b = 0; b < rows; b++)
        for (size_t j = 0; j < H; j++) {
            double now = get(dtype, c, b * H + j), before = get(dtype, old, b * H + j), gates[4];
            if (j < 1 || j >= 1 + units) {
                assert_true(now == before); /* units outside the panel must not change */
                continue;
            }
            for (size_t g = 0; g < 4; g++) {
                size_t at = g * simd_width + j - 1;
                double sum =
                    right_sum(dtype, &f.gemm, width, get(dtype, start, b * width + at), b, at);
                gates[g] = g == 2 ? tanh(sum) : right_sigmoid(sum);
                assert_true(fabs(get(dtype, sums, b * width + at) - gates[g]) <= allowed(dtype));
            }
            double right = gates[1] * before + gates[0] * gates[2];
            assert_true(fabs(now - right) <= allowed(dtype));
            assert_true(fabs(get(dtype, h, b * H + j - 1) - gates[3] * tanh(right)) <=
                        allowed(dtype));
        }
    void *const arrays[] = {a, w, sums, c, start, old, h};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
}

static void try_steps(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t units = 1; units <= kernels->simd_width; units++)
        try_forward(kernels, dtype, units);
}

static void a_step_is_that_of_plain_loops_and_writes_only_its_units(void **state)
{
    (void)state;
    for_each_kernels(try_steps);
}

/* Also calls check for the model of AMX, which every CPU runs. */
static void for_each_half_kernels(check_kernels *check)
{
    for_each_unit(LB_BF16, check);
    check(&lb_simd_kernels_amx_model_bf16, LB_BF16);
    for_each_unit(LB_F16, check);
    check(&lb_simd_kernels_amx_model_f16, LB_F16);
}

static double half_to_double(enum lb_dtype dtype, uint16_t bits)
{
    double value;
    lb_load(dtype, &bits, &value, 1);
    return value;
}

static void try_conversions(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    enum { COUNT = 67 }; /* whole vectors and a part of one */
    uint16_t halves[COUNT];
    float floats[COUNT];
    for (uint32_t bits = 0; bits <= UINT16_MAX; bits += COUNT) {
        for (uint32_t i = 0; i < COUNT; i++)
            halves[i] = (uint16_t)(bits + i);
        kernels->to_f32(halves, floats, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            double right = half_to_double(dtype, halves[i]);
            assert_true(isnan(right) ? isnan(floats[i]) : (double)floats[i] == right);
        }
    }
    for (uint64_t pattern = 0; pattern <= UINT32_MAX; pattern += (uint64_t)10007 * COUNT) {
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t bits = (uint32_t)pattern + 10007 * i;
            memcpy(&floats[i], &bits, sizeof(bits));
        }
        kernels->from_f32(floats, halves, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            double right = lb_round(dtype, (double)floats[i]);
            double now = half_to_double(dtype, halves[i]);
            /* AVX512-BF16 flushes subnormals of bf16 to zero. */
            bool flushed = dtype == LB_BF16 && fabs(right) <= 0x1p-126 && now == 0;
            assert_true(isnan(right) ? isnan(now) : now == right || flushed);
        }
    }
}

static void bf16_and_f16_convert_as_the_harness_does(void **state)
{
    (void)state;
    for_each_half_kernels(try_conversions);
}

/* sums [rows, columns] = bias, or what they are, + a [rows, k] w [k, columns]. */
static void try_half_gemm(const struct lb_simd_kernels *kernels, enum lb_dtype dtype, size_t rows,
                          size_t k, size_t vectors)
{
    unsigned seed = (unsigned)(1000 * rows + k);
    size_t columns = vectors * kernels->simd_width, stride = columns + 16;
    size_t padded = (k + kernels->k_multiple - 1) / kernels->k_multiple * kernels->k_multiple;
    void *a = drawn(dtype, rows * (k + 3), 1, &seed), *w = drawn(dtype, padded * columns, 0, &seed);
    void *plain = drawn(dtype, k * columns, 1, &seed),
         *sums = drawn(LB_F32, rows * stride, 1, &seed);
    void *bias = drawn(LB_F32, columns, 1, &seed), *old = drawn(LB_F32, rows * stride, 0, &seed);
    void *operand = drawn(LB_F64, rows * padded, 0, &seed);
    bool start = k % 2 == 1;
    double tolerance = allowed(LB_F32) * (1 + (double)k / 500); /* sums are single chains */
    memcpy(old, sums, rows * stride * sizeof(float));
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < columns; j++) {
            size_t at = (i / kernels->pair * columns + j) * kernels->pair + i % kernels->pair;
            put(dtype, w, at, get(dtype, plain, i * columns + j));
        }
    struct lb_cpu_rows in = {.base = a, .stride = k + 3};
    kernels->pack_operand(&in, rows, k, operand);
    kernels->accumulate(&(struct lb_cpu_gemm){.rows = rows,
                                              .k = k,
                                              .columns = columns,
                                              .a = {.base = operand, .stride = padded},
                                              .w = w,
                                              .bias = start ? bias : NULL,
                                              .sums = sums,
                                              .stride = stride});
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < stride; j++) {
            double before = get(LB_F32, old, r * stride + j),
                   now = get(LB_F32, sums, r * stride + j);
            double right = start && j < columns ? get(LB_F32, bias, j) : before;
            for (size_t i = 0; i < k && j < columns; i++)
                right += get(dtype, a, r * (k + 3) + i) * get(dtype, plain, i * columns + j);
            assert_true(j < columns ? fabs(now - right) <= tolerance : now == before);
        }
    if (kernels->release)
        kernels->release();
    void *const arrays[] = {a, w, plain, sums, bias, old, operand};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
}

static void try_half_gemms(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 35, 50},
                        depths[] = {1, 2, 33, 96};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (size_t k = 0; k < sizeof(depths) / sizeof(depths[0]); k++)
            for (size_t vectors = 1; vectors <= 4; vectors++)
                try_half_gemm(kernels, dtype, rows[r], depths[k], vectors);
    try_half_gemm(kernels, dtype, 7, 3500, 4); /* long enough for several blocks of k */
}

static void gemms_of_bf16_and_f16_are_those_of_plain_loops(void **state)
{
    (void)state;
    for_each_half_kernels(try_half_gemms);
}

/* dw [columns, width] (+)= in [rows, columns] transposed times da [rows, width], with odd sizes. */
static void try_half_outer(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    unsigned seed = 5;
    size_t width = 4 * kernels->simd_width, rows = 301, columns = 35, stride = columns + 2;
    size_t padded = (rows + kernels->k_multiple - 1) / kernels->k_multiple * kernels->k_multiple;
    void *in = drawn(dtype, rows * stride, 1, &seed), *da = drawn(dtype, rows * width, 1, &seed);
    void *dw = drawn(LB_F32, columns * width, 1, &seed), *db = drawn(LB_F32, width, 1, &seed);
    void *operand = drawn(LB_F64, columns * padded, 0, &seed);
    for (int add = 0; add < 2; add++) {
        void *old = drawn(LB_F32, columns * width, 0, &seed),
             *old_db = drawn(LB_F32, width, 0, &seed);
        memcpy(old, dw, columns * width * sizeof(float));
        memcpy(old_db, db, width * sizeof(float));
        struct lb_cpu_outer o = {.rows = rows,
                                 .columns = columns,
                                 .in = in,
                                 .stride = stride,
                                 .da = da,
                                 .dw = dw,
                                 .db = db,
                                 .add = add == 1};
        kernels->pack(&o, operand);
        o.in = operand;
        o.packed = true;
        kernels->outer(&o);
        o.in = in;
        for (size_t j = 0; j < width; j++) {
            double sum = add ? get(LB_F32, old_db, j) : 0;
            for (size_t r = 0; r < rows; r++)
                sum += get(dtype, da, r * width + j);
            assert_true(fabs(get(LB_F32, db, j) - sum) <= 10 * allowed(LB_F32));
            for (size_t c = 0; c < columns; c++)
                assert_true(
                    fabs(get(LB_F32, dw, c * width + j) - right_outer(dtype, &o, in, width, c, j) -
                         (add ? get(LB_F32, old, c * width + j) : 0)) <= 2 * allowed(LB_F32));
        }
        free(old);
        free(old_db);
    }
    if (kernels->release)
        kernels->release();
    void *const arrays[] = {in, da, dw, db, operand};
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
}

static void weight_gradients_of_bf16_and_f16_are_those_of_plain_loops(void **state)
{
    (void)state;
    for_each_half_kernels(try_half_outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sigmoid_and_tanh_keep_their_bounds),
        cmocka_unit_test(tanh_is_never_beyond_one),
        cmocka_unit_test(gemms_are_those_of_plain_loops),
        cmocka_unit_test(nothing_is_written_beyond_the_columns),
        cmocka_unit_test(weight_gradients_are_those_of_plain_loops),
        cmocka_unit_test(long_sums_keep_their_digits),
        cmocka_unit_test(a_panel_beyond_the_cache_is_summed_in_blocks),
        cmocka_unit_test(a_step_is_that_of_plain_loops_and_writes_only_its_units),
        cmocka_unit_test(bf16_and_f16_convert_as_the_harness_does),
        cmocka_unit_test(gemms_of_bf16_and_f16_are_those_of_plain_loops),
        cmocka_unit_test(weight_gradients_of_bf16_and_f16_are_those_of_plain_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

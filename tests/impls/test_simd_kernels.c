/* Compares the vector kernels with plain loops at each width that this CPU supports, and
 * measures the error of their sigmoid and tanh over the range of f32. */
#include "impls/common/simd_kernels.h"
#include "tests/helpers/test.h"

/* A check of the kernels of one SIMD unit for one dtype. */
typedef void check_kernels(const struct lb_simd_kernels *kernels, enum lb_dtype dtype);

/* A check of all kernels for some dtypes. */
struct check {
    const char *property;
    unsigned dtypes; /* bit d: of dtype d */
    check_kernels *kernels;
    bool gemms;
};

enum { F32 = 1 << LB_F32, F64 = 1 << LB_F64, BF16 = 1 << LB_BF16, F16 = 1 << LB_F16 };

/* Makes the check for every SIMD unit that this CPU has. Units with tiles have other GEMMs, which
 * test_tiles.c checks. */
static void run_check(void **state)
{
    const struct check *check = *state;
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
        enum lb_dtype dtype = (enum lb_dtype)d;
        size_t count = check->dtypes >> d & 1 ? lb_simd_kernels_all(dtype, list) : 0;
        for (size_t i = 0; i < count; i++)
            if (!list[i]->tiles || !check->gemms)
                check->kernels(list[i], dtype);
    }
}

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

static void hold_functions(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    bool bf16 = dtype == LB_BF16;
    print_message("%s\n", kernels->name);
    hold_over_f32(&(struct function){kernels->sigmoid, right_sigmoid,
                                     bf16 ? LB_CPU_BF16_ULP : LB_CPU_SIGMOID_ULP, 0x1p-125});
    hold_over_f32(
        &(struct function){kernels->tanh, tanh, bf16 ? LB_CPU_BF16_ULP : LB_CPU_TANH_ULP, 0});
}

/* 1 - tanh^2 is a factor of every gradient, so it must not become negative. */
static void try_tanh_near_one(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    (void)dtype;
    for (float start = 7; start < 12; start += 1e-3f) {
        float v[BATCH], out[BATCH];
        for (size_t j = 0; j < BATCH; j++)
            v[j] = (j % 2 ? 1 : -1) * (start + (float)j * 1e-6f);
        kernels->tanh(v, out, BATCH);
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

/* Results do not depend on how many there are, and nothing is written behind the last. */
static void try_counts(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    enum { MOST = 40 };
    void (*const functions[])(const void *v, void *out, size_t count) = {kernels->sigmoid,
                                                                         kernels->tanh};
    size_t size = lb_dtype_size(dtype);
    double v[MOST], all[MOST], some[MOST], untouched[MOST];
    unsigned seed = 1;
    memset(untouched, 0x5a, sizeof(untouched));
    for (size_t i = 0; i < MOST; i++)
        put(dtype, v, i, 8 * draw(&seed));
    for (size_t f = 0; f < 2; f++) {
        functions[f](v, all, MOST);
        for (size_t count = 0; count < MOST; count++) {
            memcpy(some, untouched, sizeof(some));
            functions[f](v, some, count);
            assert_memory_equal(some, all, count * size);
            assert_memory_equal((char *)some + count * size, untouched, (MOST - count) * size);
        }
    }
}

static void *all_drawn[16]; /* the arrays of one check */
static size_t drawn_count;

static void *drawn(enum lb_dtype dtype, size_t count, double scale, unsigned *seed)
{
    void *array = NULL;
    assert_int_equal(posix_memalign(&array, 64, count * sizeof(double) + 8192), 0);
    memset(array, 0, count * sizeof(double));
    for (size_t i = 0; i < count; i++)
        put(dtype, array, i, scale * draw(seed));
    all_drawn[drawn_count++] = array;
    return array;
}

/* A copy of an array that was drawn. */
static void *copy_of(enum lb_dtype dtype, const void *array, size_t count)
{
    unsigned seed = 0;
    return memcpy(drawn(dtype, count, 0, &seed), array, count * lb_dtype_size(dtype));
}

static void free_drawn(void)
{
    while (drawn_count > 0)
        free(all_drawn[--drawn_count]);
}

static size_t round_up(size_t count, size_t to)
{
    return (count + to - 1) / to * to;
}

/* Kernels for bf16 and f16 have packed operands and sums in f32. */
static bool is_half(enum lb_dtype dtype)
{
    return lb_dtype_size(dtype) == 2;
}

static enum lb_dtype sums_of(enum lb_dtype dtype)
{
    return is_half(dtype) ? LB_F32 : dtype;
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
    return dtype == LB_F64 ? 1e-13 : 2e-5;
}

/* The shape of a GEMM, whether its sums start from a bias, and whether `a` has segments. */
struct shape {
    size_t rows, k, columns;
    bool bias, segments;
};

static void try_gemm(const struct lb_simd_kernels *kernels, enum lb_dtype dtype,
                     const struct shape *s)
{
    unsigned seed = (unsigned)(s->rows * 1000 + s->k);
    enum lb_dtype sum = sums_of(dtype);
    size_t panel = 4 * kernels->simd_width, rows = s->rows, k = s->k, stride = panel + 8;
    size_t width = round_up(s->columns, kernels->simd_width), pair = kernels->pair;
    size_t padded = round_up(k, kernels->k_multiple), segment_stride = rows * panel + 24;
    void *a = drawn(dtype, rows * (k + 3) + (k / panel + 1) * segment_stride, 1, &seed);
    void *plain = drawn(dtype, k * width, 1, &seed), *start = drawn(sum, width, 1, &seed);
    void *sums = drawn(sum, rows * stride, 1, &seed), *w = drawn(dtype, padded * width, 0, &seed);
    void *operand = drawn(LB_F64, rows * padded, 0, &seed);
    const void *before = copy_of(sum, sums, rows * stride);
    double tolerance = allowed(dtype) * (is_half(dtype) ? 1 + (double)k / 500 : 1);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < width; j++)
            put(dtype, w, (i / pair * width + j) * pair + i % pair,
                get(dtype, plain, i * width + j));
    struct lb_cpu_gemm p = {.rows = rows,
                            .k = k,
                            .columns = s->columns,
                            .a = {.base = a, .stride = k + 3},
                            .w = plain,
                            .bias = s->bias ? start : NULL,
                            .sums = sums,
                            .stride = stride};
    if (s->segments)
        p.a = (struct lb_cpu_rows){
            .base = a, .stride = panel, .segment = panel, .segment_stride = segment_stride};
    struct lb_cpu_gemm packed = p;
    packed.w = w;
    if (kernels->pack_operand) {
        kernels->pack_operand(&p.a, rows, k, operand);
        packed.a = (struct lb_cpu_rows){.base = operand, .stride = padded};
    }
    kernels->accumulate(&packed);
    for (size_t r = 0; r < rows; r++)
        for (size_t j = 0; j < stride; j++) {
            double old = get(sum, before, r * stride + j), now = get(sum, sums, r * stride + j);
            if (j >= s->columns)
                assert_true(now == old); /* elements outside the columns must not change */
            else
                assert_true(fabs(now - right_sum(dtype, &p, width,
                                                 s->bias ? get(sum, start, j) : old, r, j)) <=
                            tolerance);
        }
    free_drawn();
}

static void try_gemms(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ROWS},
                        depths[] = {1, 2, 3, 17, DEPTH};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (size_t k = 0; k < sizeof(depths) / sizeof(depths[0]); k++)
            for (int which = 0; which < 4; which++)
                try_gemm(kernels, dtype,
                         &(struct shape){.rows = rows[r],
                                         .k = depths[k],
                                         .columns = 4 * kernels->simd_width,
                                         .bias = which % 2 == 1,
                                         .segments = which / 2 == 1});
}

/* Tries every number of columns, so that the last vector is partly filled. */
static void try_columns(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t columns = 1; columns <= 4 * kernels->simd_width; columns++)
        try_gemm(kernels, dtype,
                 &(struct shape){.rows = 1 + columns % 13, .k = 70, .columns = columns});
}

/* k is so large that it is divided into several blocks; with and without segments. */
static void try_long_gemms(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (int segments = 0; segments < 2; segments++)
        try_gemm(kernels, dtype,
                 &(struct shape){.rows = 7,
                                 .k = 13000 / kernels->simd_width * 2,
                                 .columns = 4 * kernels->simd_width,
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

/* dw [columns, width] (+)= in [rows, columns] transposed times da [rows, width]. */
static void try_outer(const struct lb_simd_kernels *kernels, enum lb_dtype dtype, size_t columns,
                      bool packed, bool add)
{
    unsigned seed = (unsigned)columns;
    enum lb_dtype sum = sums_of(dtype);
    size_t width = 4 * kernels->simd_width, rows = is_half(dtype) ? 301 : 37, stride = columns + 2;
    size_t padded = round_up(rows, kernels->k_multiple), size = (columns + 1) * width;
    double tolerance = allowed(dtype) * (is_half(dtype) ? 2 : 1);
    void *in = drawn(dtype, rows * stride, 1, &seed), *da = drawn(dtype, rows * width, 1, &seed);
    void *dw = drawn(sum, size, 1, &seed), *db = drawn(sum, width, 1, &seed);
    void *order = drawn(LB_F64, (columns + kernels->group) * padded, 0, &seed);
    const void *old = copy_of(sum, dw, size), *old_db = copy_of(sum, db, width);
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
        double right_db = add ? get(sum, old_db, j) : 0;
        for (size_t r = 0; r < rows; r++)
            right_db += get(dtype, da, r * width + j);
        assert_true(fabs(get(sum, db, j) - right_db) <= tolerance * (is_half(dtype) ? 5 : 1));
        for (size_t c = 0; c < columns; c++) {
            double right = right_outer(dtype, &o, in, width, c, j);
            right += add ? get(sum, old, c * width + j) : 0;
            assert_true(fabs(get(sum, dw, c * width + j) - right) <= tolerance);
        }
        assert_true(get(sum, dw, columns * width + j) == get(sum, old, columns * width + j));
    }
    free_drawn();
}

static void try_outers(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t columns = 1; columns <= 13; columns++)
        for (int which = 0; which < 4; which++)
            try_outer(kernels, dtype, columns, which % 2 == 1, which / 2 == 1);
}

/* One chain of 8192 additions would have an error of about 2e-6 of the norm of the sums. */
static void try_long_sum(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    enum { TERMS = 8192 };
    unsigned seed = 7;
    size_t width = 4 * kernels->simd_width;
    double error = 0, size = 0;
    struct lb_cpu_gemm p = {.rows = 1,
                            .k = TERMS,
                            .columns = width,
                            .a = {.base = drawn(dtype, TERMS, 1, &seed), .stride = TERMS},
                            .w = drawn(dtype, TERMS * width, 1, &seed),
                            .bias = drawn(dtype, width, 0, &seed),
                            .sums = drawn(dtype, width, 0, &seed),
                            .stride = width};
    kernels->accumulate(&p);
    for (size_t j = 0; j < width; j++) {
        double right = right_sum(dtype, &p, width, 0, 0, j);
        error += pow(get(dtype, p.sums, j) - right, 2);
        size += right * right;
    }
    print_message("    %s: error %.2g of the norm\n", kernels->name, sqrt(error / size));
    assert_true(sqrt(error / size) < 1e-6);
    free_drawn();
}

/* Tries one step of the last of three panels, which has padding, and mostly of the second too. */
static void try_forward(const struct lb_simd_kernels *kernels, enum lb_dtype dtype, size_t rows,
                        size_t units, bool backwards)
{
    enum { MOST_ROWS = 8, PANELS = 3 };
    unsigned seed = (unsigned)units;
    size_t simd_width = kernels->simd_width, width = 4 * simd_width, k = backwards ? 19 : 7;
    size_t H = PANELS * simd_width, sums_panel = rows * width + 8, w_panel = k * width;
    void *a = drawn(dtype, rows * k, 1, &seed), *w = drawn(dtype, PANELS * w_panel, 1, &seed);
    void *sums = drawn(dtype, PANELS * sums_panel, 1, &seed), *c = drawn(dtype, rows * H, 1, &seed);
    const void *start = copy_of(dtype, sums, PANELS * sums_panel);
    const void *old = copy_of(dtype, c, rows * H);
    void *h = drawn(dtype, rows * H, 0, &seed);
    const void *c_before[MOST_ROWS];
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
        .panels_from = units % 3 == 0 ? 2 : 1,
        .panels_to = PANELS,
        .backwards = backwards,
        .w_panel = w_panel,
        .sums_panel = sums_panel,
        .units = (PANELS - 1) * simd_width + units,
        .c_before = c_before,
        .c = c,
        .h = h,
        .c_stride = H,
        .h_stride = H,
        .gates = sums,
        .gates_panel = sums_panel,
    };
    kernels->forward(&f);
    for (size_t b = 0; b < rows; b++)
        for (size_t j = 0; j < H; j++) {
            double now = get(dtype, c, b * H + j), before = get(dtype, old, b * H + j), gates[4];
            size_t panel = j / simd_width;
            struct lb_cpu_gemm gemm = f.gemm;
            gemm.w = (const char *)w + panel * w_panel * lb_dtype_size(dtype);
            if (panel < f.panels_from || j >= f.units) {
                assert_true(now == before); /* units outside the panels must not change */
                assert_true(get(dtype, h, b * H + j) == 0);
                continue;
            }
            for (size_t g = 0; g < 4; g++) {
                size_t column = g * simd_width + j % simd_width;
                size_t at = panel * sums_panel + b * width + column;
                double sum = right_sum(dtype, &gemm, width, get(dtype, start, at), b, column);
                gates[g] = g == 2 ? tanh(sum) : right_sigmoid(sum);
                assert_true(fabs(get(dtype, sums, at) - gates[g]) <= allowed(dtype));
            }
            double right = gates[1] * before + gates[0] * gates[2];
            assert_true(fabs(now - right) <= allowed(dtype));
            assert_true(fabs(get(dtype, h, b * H + j) - gates[3] * tanh(right)) <= allowed(dtype));
        }
    free_drawn();
}

static void try_steps(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (size_t units = 1; units <= kernels->simd_width; units++) {
        try_forward(kernels, dtype, 8, units, units % 2 == 1);
        try_forward(kernels, dtype, 1, units, units % 2 == 1);
    }
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

static void try_half_gemms(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 13, 16, 17, 35, 50},
                        depths[] = {1, 2, 33, 96};
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (size_t k = 0; k < sizeof(depths) / sizeof(depths[0]); k++)
            for (size_t vectors = 1; vectors <= 4; vectors++)
                try_gemm(kernels, dtype,
                         &(struct shape){.rows = rows[r],
                                         .k = depths[k],
                                         .columns = vectors * kernels->simd_width,
                                         .bias = depths[k] % 2 == 1});
    /* Long enough for several blocks of k. */
    try_gemm(kernels, dtype,
             &(struct shape){.rows = 7, .k = 3500, .columns = 4 * kernels->simd_width});
}

static void try_half_outers(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    for (int add = 0; add < 2; add++)
        try_outer(kernels, dtype, 35, true, add == 1);
}

static struct check checks[] = {
    {"sigmoid_and_tanh_keep_their_bounds", F32 | BF16 | F16, hold_functions, false},
    {"tanh_is_never_beyond_one", F32, try_tanh_near_one, false},
    {"sigmoid_and_tanh_take_any_count", F32 | F64, try_counts, false},
    {"gemms_are_those_of_plain_loops", F32 | F64, try_gemms, false},
    {"nothing_is_written_beyond_the_columns", F32 | F64, try_columns, false},
    {"weight_gradients_are_those_of_plain_loops", F32 | F64, try_outers, false},
    {"long_sums_keep_their_digits", F32, try_long_sum, false},
    {"a_panel_beyond_the_cache_is_summed_in_blocks", F64, try_long_gemms, false},
    {"a_step_is_that_of_plain_loops_and_writes_only_its_units", F32 | F64, try_steps, false},
    {"bf16_and_f16_convert_as_the_harness_does", BF16 | F16, try_conversions, false},
    {"gemms_of_bf16_and_f16_are_those_of_plain_loops", BF16 | F16, try_half_gemms, true},
    {"weight_gradients_of_bf16_and_f16_are_those_of_plain_loops", BF16 | F16, try_half_outers,
     true},
};
enum { CHECKS = sizeof(checks) / sizeof(checks[0]) };

int main(void)
{
    struct CMUnitTest tests[CHECKS];
    for (size_t i = 0; i < CHECKS; i++)
        tests[i] = (struct CMUnitTest){checks[i].property, run_check, NULL, NULL, &checks[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

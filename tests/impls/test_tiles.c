/* Compares the kernels on tiles with plain loops, on the model of AMX and on this CPU's AMX, and
 * checks on the model the order of their instructions, on which their speed depends. */
#include "impls/common/simd_kernels.h"
#include "tests/helpers/test.h"
#include "tests/impls/amx_model.h"

enum { WIDTH = 64, TILE_HALVES = 512, UNITS = 16 };

static const enum lb_dtype dtypes[] = {LB_BF16, LB_F16};

/* Calls a check for each dtype with the model's kernels, and with this CPU's where it has tiles. */
static void each(void (*check)(const struct lb_simd_kernels *kernels, enum lb_dtype dtype))
{
    for (size_t d = 0; d < 2; d++) {
        const struct lb_simd_kernels *here = lb_simd_kernels_best(dtypes[d]);
        check(d == 0 ? &lb_simd_kernels_amx_model_bf16 : &lb_simd_kernels_amx_model_f16, dtypes[d]);
        if (here->tiles) {
            check(here, dtypes[d]);
            here->tiles->release();
        }
    }
}

static void *zeroed(size_t bytes)
{
    void *array = aligned_alloc(64, (bytes + 127) / 64 * 64);
    assert_non_null(array);
    return memset(array, 0, bytes);
}

/* An array of numbers in [-0.5, 0.5). */
static uint16_t *drawn(enum lb_dtype dtype, size_t count, unsigned seed)
{
    uint16_t *array = zeroed(count * sizeof(*array));
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        double value = (double)(seed >> 8) / 0x1p24 - 0.5;
        lb_store(dtype, array + i, &value, 1);
    }
    return array;
}

static double get(enum lb_dtype dtype, const uint16_t *array, size_t index)
{
    double value;
    lb_load(dtype, array + index, &value, 1);
    return value;
}

static size_t cover(size_t n, size_t step)
{
    return (n + step - 1) / step;
}

/* w [k, 64] as the weights of one panel. */
static uint16_t *weights_of(const struct lb_simd_kernels *kernels, const uint16_t *w, size_t k)
{
    uint16_t *weights = zeroed(cover(k, 32) * 4 * TILE_HALVES * sizeof(*weights));
    kernels->tiles->pair(&(struct lb_cpu_outer){.rows = k, .da = w}, weights);
    return weights;
}

/* Rows of a matrix of k columns as an operand. Segments of 64 columns follow one another. */
static uint16_t *operand_of(const struct lb_simd_kernels *kernels, const uint16_t *a, size_t rows,
                            size_t k, size_t group_rows, bool segments)
{
    size_t groups = cover(rows, group_rows);
    uint16_t *operand = zeroed(groups * cover(k, 32) * TILE_HALVES * sizeof(*operand));
    struct lb_tile_rows packed = {.from = a,
                                  .count = rows,
                                  .k = k,
                                  .stride = segments ? WIDTH : k,
                                  .segment = segments ? WIDTH : 0,
                                  .segment_stride = rows * WIDTH,
                                  .group_rows = group_rows,
                                  .operand = operand};
    kernels->tiles->pack(&packed, 0, rows);
    return operand;
}

/* The element of a that operand_of packs for row r and column i. */
static double element(enum lb_dtype dtype, const uint16_t *a, size_t rows, size_t k, size_t r,
                      size_t i, bool segments)
{
    return get(dtype, a, segments ? (i / WIDTH * rows + r) * WIDTH + i % WIDTH : r * k + i);
}

struct shape {
    size_t rows, k, first_k; /* first_k of k are the first term */
    size_t columns, pairs;
    bool segments;
};

/* out [rows, columns] = a w, by two terms where first_k is not 0; out is rounded to the dtype. */
static void try_product(const struct lb_simd_kernels *kernels, enum lb_dtype dtype,
                        const struct shape *s)
{
    static const float zeros[UNITS];
    size_t group_rows = cover(s->rows, cover(s->rows, 16)), second = s->k - s->first_k;
    size_t stride = s->columns + 3;
    uint16_t *a[2], *w[2], *operand[2], *weights[2], *out = zeroed(s->rows * stride * 2 + 64);
    struct lb_tile_pass pass = {.gemm = {.start = zeros,
                                         .rows = s->rows,
                                         .group_rows = group_rows,
                                         .pairs = s->pairs,
                                         .panels_to = 1,
                                         .prefetch = true},
                                .cell = {.hidden = s->columns, .h = out, .h_stride = stride}};
    for (size_t t = 0; t < 2; t++) {
        size_t k = t == 0 ? s->first_k : second;
        a[t] = drawn(dtype, s->rows * cover(k, WIDTH) * WIDTH + 1, (unsigned)t);
        w[t] = drawn(dtype, k * WIDTH + 1, (unsigned)t + 7);
        operand[t] = operand_of(kernels, a[t], s->rows, k, group_rows, s->segments);
        weights[t] = weights_of(kernels, w[t], k);
        pass.gemm.terms[t] =
            (struct lb_tile_terms){.a = operand[t], .w = weights[t], .tiles = cover(k, 32)};
    }
    memset(out, 0xee, s->rows * stride * 2 + 64);
    kernels->tiles->product(&pass);
    for (size_t r = 0; r < s->rows; r++)
        for (size_t j = 0; j < stride; j++) {
            double right = 0, tolerance = dtype == LB_BF16 ? 0x1p-8 : 0x1p-11;
            if (j >= s->columns) {
                assert_int_equal(out[r * stride + j], 0xeeee);
                continue;
            }
            for (size_t t = 0; t < 2; t++)
                for (size_t i = 0, k = t == 0 ? s->first_k : second; i < k; i++)
                    right += element(dtype, a[t], s->rows, k, r, i, s->segments) *
                             get(dtype, w[t], i * WIDTH + j);
            if (fabs(get(dtype, out, r * stride + j) - right) > tolerance * (fabs(right) + 0.01))
                fail_msg("%s: row %zu, column %zu is %g, not %g", kernels->name, r, j,
                         get(dtype, out, r * stride + j), right);
        }
    for (size_t t = 0; t < 2; t++) {
        free(a[t]);
        free(w[t]);
        free(operand[t]);
        free(weights[t]);
    }
    free(out);
}

static void try_products(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const struct shape shapes[] = {
        {1, 1, 0, 1, 2, false},    {1, 130, 0, 64, 2, false},  {5, 33, 32, 17, 2, false},
        {16, 64, 0, 48, 2, false}, {17, 96, 33, 64, 2, false}, {32, 31, 0, 32, 1, false},
        {40, 192, 0, 50, 2, true}, {70, 128, 64, 64, 2, true}, {130, 150, 50, 64, 2, false},
        {9, 256, 0, 20, 1, true},  {48, 65, 1, 63, 2, false},  {128, 320, 0, 64, 2, true},
    };
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        try_product(kernels, dtype, &shapes[i]);
}

TEST(products_are_those_of_plain_loops)
{
    each(try_products);
}

/* dw [columns, 64] (+)= in transposed times da, where the first `skip` rows of `in` and the last
 * ones are missing. */
static void try_weight_gradient(const struct lb_simd_kernels *kernels, enum lb_dtype dtype,
                                size_t columns, size_t skip, bool add)
{
    enum { ROWS = 77, MISSING = 5 };
    static const float zeros[UNITS];
    size_t stride = columns + 3, whole = cover(columns, 16) * 16, tiles = cover(ROWS, 32);
    uint16_t *in = drawn(dtype, ROWS * stride, 3), *da = drawn(dtype, ROWS * WIDTH, 4);
    uint16_t *operand = zeroed(whole / 16 * tiles * 1024);
    uint16_t *weights = weights_of(kernels, da, ROWS);
    float *dw = zeroed(whole * WIDTH * sizeof(*dw)), db[WIDTH];
    struct lb_cpu_outer o = {
        .rows = ROWS - MISSING, .skip = skip, .columns = columns, .in = in, .stride = stride};
    for (size_t i = 0; i < whole * WIDTH; i++)
        dw[i] = (float)i / 1024;
    kernels->tiles->transpose(&o, ROWS, operand);
    kernels->tiles->gemm(
        &(struct lb_tile_gemm){.terms = {{.a = operand, .w = weights, .tiles = tiles}},
                               .start = add ? dw : zeros,
                               .start_column = add ? UNITS : 0,
                               .start_row = add ? WIDTH : 0,
                               .rows = columns,
                               .pairs = 2,
                               .panels_to = 1,
                               .sums = dw,
                               .sums_column = UNITS,
                               .sums_row = WIDTH});
    kernels->tiles->sum_rows(&(struct lb_cpu_outer){.rows = ROWS, .da = da, .db = db});
    for (size_t j = 0; j < WIDTH; j++) {
        double sum = 0;
        for (size_t r = 0; r < ROWS; r++)
            sum += get(dtype, da, r * WIDTH + j);
        assert_true(fabs((double)db[j] - sum) < 1e-5);
        for (size_t c = 0; c < columns; c++) {
            double right = add ? (double)(c * WIDTH + j) / 1024 : 0;
            for (size_t r = skip; r < ROWS - MISSING; r++)
                right += get(dtype, in, (r - skip) * stride + c) * get(dtype, da, r * WIDTH + j);
            assert_true(fabs((double)dw[c * WIDTH + j] - right) < 1e-4);
        }
    }
    free(in);
    free(da);
    free(operand);
    free(weights);
    free(dw);
}

static void try_weight_gradients(const struct lb_simd_kernels *kernels, enum lb_dtype dtype)
{
    static const size_t columns[] = {1, 16, 31, 64, 75}, skips[] = {0, 1, 32, 70};
    for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++)
        for (size_t s = 0; s < sizeof(skips) / sizeof(skips[0]); s++)
            try_weight_gradient(kernels, dtype, columns[c], skips[s], s % 2 == 1);
}

TEST(weight_gradients_are_those_of_plain_loops)
{
    each(try_weight_gradients);
}

/* What the model saw: the instructions, and how many rows of h the cells had written by then. */
enum { STEP_ROWS = 64, STEP_TILES = 8, STEP_PANELS = 2, MOST_SEEN = 2048 };
static char seen[MOST_SEEN + 1];
static size_t rows_written[MOST_SEEN], seen_count;
static uint16_t step_h[STEP_ROWS][STEP_PANELS * UNITS];

static void watch(char instruction)
{
    size_t rows = 0;
    while (rows < STEP_ROWS && step_h[rows][0] != 0xffff)
        rows++;
    assert_true(seen_count < MOST_SEEN);
    rows_written[seen_count] = rows;
    seen[seen_count++] = instruction;
}

/* A step of two panels, fused: as many k tiles of x as of h. */
static void watch_step(void)
{
    const struct lb_tile_kernels *tiles = lb_simd_kernels_amx_model_bf16.tiles;
    enum { TERM_TILES = STEP_TILES / 2, OPERAND = STEP_ROWS / 16 * TERM_TILES * TILE_HALVES };
    uint16_t *a = zeroed(OPERAND * 2), *next = zeroed(OPERAND * 2);
    uint16_t *w = zeroed(STEP_PANELS * TERM_TILES * 4 * 1024);
    float *bias = zeroed(STEP_PANELS * WIDTH * 4);
    float *c = zeroed(STEP_PANELS * STEP_ROWS * UNITS * 4);
    memset(step_h, 0xff, sizeof(step_h));
    seen_count = 0;
    tiles->release(); /* so that the step configures the tiles */
    amx_model_watch = watch;
    tiles->forward(&(struct lb_tile_pass){
        .gemm = {.terms = {{a, w, TERM_TILES}, {a, w, TERM_TILES}},
                 .start = bias,
                 .start_panel = WIDTH,
                 .start_column = UNITS,
                 .rows = STEP_ROWS,
                 .group_rows = 16,
                 .pairs = 2,
                 .panels_to = STEP_PANELS},
        .cell = {.hidden = STEP_PANELS * UNITS,
                 .state = c,
                 .state_rows = STEP_ROWS,
                 .next_operand = next,
                 .operand_tiles = TERM_TILES,
                 .h = step_h,
                 .h_stride = STEP_PANELS * UNITS},
    });
    amx_model_watch = NULL;
    free(a);
    free(next);
    free(w);
    free(bias);
    free(c);
}

/* Four products share two tiles of weights and two of the operand; weights bypass the L1 cache;
 * every panel is configured once and reads and writes its sums once. */
TEST(a_k_step_loads_four_tiles_and_multiplies_four_times)
{
    char block[16 * STEP_TILES] = "LLLL", panel[4 * sizeof(block)] = "", step[MOST_SEEN] = "C";
    for (size_t k = 0; k < STEP_TILES; k++)
        strcat(block, "SSLLDDDD");
    strcat(block, "WWWW");
    for (size_t i = 0; i < 4; i++)
        strcat(panel, block);
    for (size_t p = 0; p < STEP_PANELS; p++)
        strcat(step, panel);
    watch_step();
    seen[seen_count] = '\0';
    assert_string_equal(seen, step);
}

/* While the second panel is multiplied, the cells of the first are computed at an even pace: two
 * rows for each of its 32 k-steps. */
TEST(cells_run_between_the_products_of_the_next_panel)
{
    size_t dots = 0;
    watch_step();
    for (size_t i = 0; i < seen_count; i++) {
        size_t k_steps = dots / 4, first = (size_t)STEP_ROWS / 2;
        size_t right = k_steps < first ? 0 : 2 * (k_steps - first);
        if (seen[i] == 'D' && dots++ % 4 == 0)
            assert_int_equal(rows_written[i], right);
    }
    assert_int_equal(dots, 4 * STEP_ROWS);
}

/* The tensors of a problem, and its input data: distinct rows (classes) drawn by seed, and how a
 * batch is dealt from them. */
#include "reference/input_data.h"

#include <math.h>
#include <string.h>

#include "base/random.h"
#include "device/weight_packing.h"
#include "model/tensor_files.h"

/* All rows of a batch are distinct while the oracle's forward pass takes at most this many flops,
 * about 5 ms. A larger batch is dealt from 4 rows, or from 8 when it is ragged, because a ragged
 * row costs about half. */
static const double distinct_flops = 5e7;
enum { FEW_ROWS = 4, FEW_RAGGED_ROWS = 8, MOST_CLASSES = FEW_RAGGED_ROWS };

/* Tensors are uniform in +-amplitude, weights in +-amplitude over the root of their fan-in. Chosen
 * by experiment (TOLERANCES.md has the numbers). Pre-activations have a standard deviation
 * near 1, of which h contributes 0.4, so gates leave their linear range, and a wrong h, a swapped
 * gate or a row of another place changes results by tenths of their size, which is visible in bf16
 * too. The recurrence still forgets: rounding errors at T = 1024 are as large as at T = 16. With 4
 * for w_hh errors begin to grow in deep networks, with 6 the recurrence is chaotic. */
static const double amplitudes[LB_Y] = {
    [LB_X] = 1.0,    [LB_H0] = 0.5,   [LB_C0] = 1.0,  [LB_DY] = 0.25,
    [LB_DHN] = 0.25, [LB_DCN] = 0.25, [LB_MASK] = 1.0};
static const double weight_amplitudes[LB_W_CELL] = {2.5, 2.5, 0.5, 0.5};

/* Likewise of w_cell. The projection keeps the magnitude of h: w_hr is in +-1.75 over the root of
 * its fan-in H, so its variance is about 1 / H. Gains of layernorm are drawn around 1. */
static const double cell_amplitudes[LB_CELL_COUNT] = {
    [LB_CELL_PROJECTION] = 1.75, [LB_CELL_PEEPHOLE] = 0.5, [LB_CELL_LAYERNORM] = 0.25};

/* One of eight units has a forget gate near sigmoid(5), so that c remembers some 150 steps: results
 * computed without what lies 50 steps back, as by a sequence cut into pieces or by a truncated
 * backward, are wrong. relu would let c grow without bound, and layernorm takes its biases from
 * w_cell. */
static const double long_memory_bias = 5;
enum { LONG_MEMORY_EVERY = 8 };

/* Recurrent dropout of rate 0.2: 1 / (1 - 0.2) is exact in every dtype. */
static const double dropout_rate = 0.2, dropout_scale = 1.25;

/* relu does not saturate: with the weights above h would grow without bound, with these it stays
 * below 10. The bias of gate g keeps most pre-activations away from the kink, where one rounding
 * can switch a gradient on or off. */
static const double relu_w_ih = 1.0, relu_w_hh = 0.5, relu_gate_bias = 0.5;

const char *lb_tensor_name(enum lb_tensor tensor)
{
    static const char *const names[] = {
        [LB_X] = "x",     [LB_H0] = "h0",   [LB_C0] = "c0",    [LB_DY] = "dy", [LB_DHN] = "dhn",
        [LB_DCN] = "dcn", [LB_Y] = "y",     [LB_HN] = "hn",    [LB_CN] = "cn", [LB_DX] = "dx",
        [LB_DH0] = "dh0", [LB_DC0] = "dc0", [LB_MASK] = "mask"};
    return names[tensor];
}

bool lb_has_tensor(const struct lb_problem *problem, enum lb_tensor t)
{
    bool of_backward = (t >= LB_DY && t <= LB_DCN) || t >= LB_DX;
    if (t == LB_MASK)
        return problem->cell == LB_CELL_RECURRENT_DROPOUT;
    return !of_backward || lb_has_backward(problem);
}

void lb_tensor_shape(const struct lb_problem *problem, enum lb_tensor t, size_t *steps,
                     size_t *width)
{
    size_t P = (size_t)lb_h_size(problem);
    bool like_x = t == LB_X || t == LB_DX, like_y = t == LB_Y || t == LB_DY;
    bool like_h = t == LB_H0 || t == LB_HN || t == LB_DHN || t == LB_DH0;
    *steps = like_x || like_y ? (size_t)problem->seq_len : lb_layer_dir_count(problem);
    *width = like_h ? P : (size_t)problem->hidden;
    if (like_x)
        *width = (size_t)problem->input;
    if (like_y)
        *width = (size_t)problem->directions * P;
}

size_t lb_tensor_elements(const struct lb_problem *problem, enum lb_tensor t)
{
    size_t steps, width;
    lb_tensor_shape(problem, t, &steps, &width);
    return lb_has_tensor(problem, t) ? steps * (size_t)problem->batch * width : 0;
}

/* The sequences that were given as x; NULL when x is drawn. */
static const struct lb_sequence_file *given_inputs(void)
{
    const struct lb_sequence_file *given = NULL;
    return lb_inputs_given(&given, NULL) == LB_OK ? given : NULL;
}

size_t lb_class_count(const struct lb_problem *problem)
{
    struct lb_problem forward = *problem;
    forward.pass = LB_FORWARD;
    int64_t few = problem->ragged ? FEW_RAGGED_ROWS : FEW_ROWS;
    bool distinct =
        problem->batch <= few || lb_problem_flops(&forward) <= distinct_flops || given_inputs();
    return (size_t)(distinct ? problem->batch : few);
}

/* Whether the batch of one set repeats rows. */
static bool is_dealt(const struct lb_problem *problem)
{
    return lb_class_count(problem) < (size_t)problem->batch;
}

size_t lb_row_count(const struct lb_problem *problem)
{
    size_t classes = lb_class_count(problem);
    if (problem->ragged || problem->batch == 1)
        return classes + LB_INPUT_SETS - 1;
    return is_dealt(problem) ? classes : classes + 1;
}

/* Every tensor is drawn from random streams of its own: kind << 48, plus the row, layer or batch.
 */
enum { LENGTHS_KIND = 10, BATCH_KIND };
static const uint64_t kinds[LB_Y] = {
    [LB_X] = 0, [LB_H0] = 1, [LB_C0] = 2, [LB_DY] = 3, [LB_DHN] = 4, [LB_DCN] = 5, [LB_MASK] = 12};
static const uint64_t weight_kinds[LB_WEIGHT_COUNT] = {6, 7, 8, 9, 13};

static uint64_t stream_of(uint64_t kind, size_t part)
{
    return kind << 48 | part;
}

void lb_draw_lengths(const struct lb_problem *problem, uint64_t seed, size_t rows, int32_t *lengths)
{
    uint64_t stream = stream_of(LENGTHS_KIND, 0);
    lengths[0] = (int32_t)problem->seq_len;
    /* Row k gets a length from part k of rows - 1 equal parts of 1 .. T, longest first. */
    for (size_t k = 1; k < rows; k++) {
        double u = 0.5 + 0.5 * (double)lb_random_float(seed, stream, k); /* [0, 1) */
        double part = ((double)(rows - 1 - k) + u) / (double)(rows - 1);
        lengths[k] = 1 + (int32_t)((double)problem->seq_len * part);
    }
}

/* Draws values [count] of a stream, uniform in +-amplitude: scaled in f32, rounded once to dtype.
 */
static void draw(const struct lb_problem *problem, uint64_t seed, uint64_t stream, size_t first,
                 double amplitude, double *values, size_t count)
{
    float scale = (float)amplitude;
    for (size_t i = 0; i < count; i++) {
        float value = scale * lb_random_float(seed, stream, first + i);
        values[i] = lb_round(problem->dtype, (double)value);
    }
}

/* Puts the given sequences into the rows of x [T, rows, I], or zeros into those of h0 and c0
 * [L*D, rows, H], since a trained layer begins with them. The rows that set 0 does not have stay
 * drawn, so that the sets differ: rows 1 and 2 where lengths are ragged, else the last. */
static void give_rows(const struct lb_problem *problem, enum lb_tensor what, size_t steps,
                      size_t width, size_t rows, double *values)
{
    const struct lb_sequence_file *given = given_inputs();
    const size_t others = given ? rows - (size_t)given->batch : 0;
    const size_t drawn = problem->ragged ? 1 : rows - others;
    if (!given || what > LB_C0)
        return;
    for (size_t s = 0; s < steps; s++)
        for (size_t k = 0; k < rows; k++) {
            double *row = values + (s * rows + k) * width;
            bool is_drawn = k >= drawn && k < drawn + others;
            size_t in_file = k < drawn ? k : k - others;
            size_t from = (s * (size_t)given->batch + in_file) * width;
            for (size_t i = 0; !is_drawn && i < width; i++)
                row[i] = what == LB_X ? lb_round(problem->dtype, given->values[from + i]) : 0;
        }
}

void lb_draw_rows(const struct lb_problem *problem, uint64_t seed, enum lb_tensor what, size_t rows,
                  double *values)
{
    size_t steps, width;
    lb_tensor_shape(problem, what, &steps, &width);
    for (size_t s = 0; s < steps; s++)
        for (size_t k = 0; k < rows; k++)
            draw(problem, seed, stream_of(kinds[what], k), s * width, amplitudes[what],
                 values + (s * rows + k) * width, width);
    for (size_t i = 0; what == LB_MASK && i < steps * rows * width; i++)
        values[i] = values[i] < 2 * dropout_rate - 1 ? 0 : dropout_scale;
    give_rows(problem, what, steps, width, rows, values);
}

/* Draws w_cell, [rows, H]. */
static void draw_cell_weights(const struct lb_problem *problem, uint64_t seed, size_t layer_dir,
                              double *values)
{
    size_t H = (size_t)problem->hidden, count = lb_cell_weight_count(problem);
    double amplitude = cell_amplitudes[problem->cell];
    if (problem->cell == LB_CELL_PROJECTION)
        amplitude /= sqrt((double)H);
    draw(problem, seed, stream_of(weight_kinds[LB_W_CELL], layer_dir), 0, amplitude, values, count);
    for (size_t j = 0; problem->cell == LB_CELL_LAYERNORM && j < 5 * H; j++)
        values[j] = lb_round(problem->dtype, 1 + values[j]);
}

void lb_draw_weights(const struct lb_problem *problem, uint64_t seed, enum lb_weight what,
                     size_t layer_dir, double *values)
{
    size_t H = (size_t)problem->hidden, count = lb_weight_elements(problem, layer_dir, what);
    bool relu = problem->act == LB_ACT_RELU;
    const struct lb_weights_file *given = NULL;
    if (what == LB_W_CELL) {
        draw_cell_weights(problem, seed, layer_dir, values);
        return;
    }
    if (lb_weights_given(&given, NULL) == LB_OK && given) {
        for (size_t i = 0; i < count; i++)
            values[i] = lb_round(problem->dtype, given->values[what][layer_dir][i]);
        return;
    }
    double amplitude = weight_amplitudes[what];
    if (relu && what <= LB_W_HH)
        amplitude = what == LB_W_HH ? relu_w_hh : relu_w_ih;
    draw(problem, seed, stream_of(weight_kinds[what], layer_dir), 0,
         amplitude / sqrt((double)(count / (4 * H))), values, count);
    for (size_t j = 2 * H; relu && what == LB_B_IH && j < 3 * H; j++)
        values[j] = lb_round(problem->dtype, values[j] + relu_gate_bias);
    if (what == LB_B_IH && !relu && problem->cell != LB_CELL_LAYERNORM)
        for (size_t j = H + 1; j < 2 * H; j += LONG_MEMORY_EVERY)
            values[j] = lb_round(problem->dtype, values[j] + long_memory_bias);
}

/* lb_deal_set at random by seed, where the set has each of the rows: class_of is the identity where
 * rows = B. counts [rows]. */
static void deal(const struct lb_problem *problem, uint64_t seed, size_t rows, int32_t *class_of,
                 int32_t *counts)
{
    size_t B = (size_t)problem->batch;
    uint64_t stream = stream_of(BATCH_KIND, B);
    memset(counts, 0, rows * sizeof(*counts));
    for (size_t b = 0; b < B; b++) {
        class_of[b] = (int32_t)(b < rows ? b : lb_random_below(seed, stream, b, rows));
        counts[class_of[b]]++;
    }
    if (rows == B)
        return;
    if (problem->ragged) { /* rows ascend, so lengths descend */
        for (size_t k = 0, b = 0; k < rows; k++)
            for (int32_t n = 0; n < counts[k]; n++)
                class_of[b++] = (int32_t)k;
        return;
    }
    for (size_t b = B - 1; b > 0; b--) { /* Fisher-Yates */
        size_t other = (size_t)lb_random_below(seed, stream, B + b, b + 1);
        int32_t swapped = class_of[b];
        class_of[b] = class_of[other];
        class_of[other] = swapped;
    }
}

/* Whether one of the first `sets` sets has these counts [classes]. */
static bool has_counts(int32_t before[][MOST_CLASSES], int sets, size_t classes,
                       const int32_t *counts)
{
    for (int s = 0; s < sets; s++)
        if (memcmp(before[s], counts, classes * sizeof(*counts)) == 0)
            return true;
    return false;
}

void lb_deal_set(const struct lb_problem *problem, uint64_t seed, int set, int32_t *class_of,
                 int32_t *counts)
{
    size_t classes = lb_class_count(problem), rows = lb_row_count(problem);
    size_t B = (size_t)problem->batch;
    if (problem->ragged || !is_dealt(problem)) {
        deal(problem, seed, classes, class_of, counts);
        memset(counts, 0, rows * sizeof(*counts));
        for (size_t b = 0; b < B; b++) {
            bool follows = problem->ragged && class_of[b] > 0;
            class_of[b] += follows ? LB_INPUT_SETS - 1 : set;
            class_of[b] %= (int32_t)rows; /* set 2 begins with row 2 and ends with row 0 */
            counts[class_of[b]]++;
        }
        return;
    }
    int32_t before[LB_INPUT_SETS][MOST_CLASSES];
    uint64_t deals = 0;
    for (int s = 0; s <= set; s++) {
        do
            deal(problem, seed + (deals++ << 32), classes, class_of, counts);
        while (has_counts(before, s, classes, counts));
        memcpy(before[s], counts, classes * sizeof(*counts));
    }
}

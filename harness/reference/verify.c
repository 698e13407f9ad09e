/* The comparison of a result with the expected one: how results are cut into slices, how far one is
 * from its expected values, and how far it may be. */
#include "reference/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/weight_packing.h"

/* ---- Slices. -------------------------------------------------------------------------------- */

struct slice {
    const char *tensor; /* "y", "dw_ih", ... */
    size_t layer_dir;   /* l*D + d; 0 where the tensor has no such index */
    int gate;           /* 0..3 (i f g o) of weight gradients, 4 of c's in layernorm, else -1 */
    bool gradient;      /* produced by backward */
    int weight;         /* enum lb_weight of a weight gradient, which is a sum over steps and rows;
                           else -1 */

    /* result [steps, batch, width] in the problem's dtype. Batch row b is compared with row
     * class_of[b] of expected [steps, rows, width]; with row b where class_of is NULL. */
    size_t steps, batch, rows, width;
    const void *result;
    const double *expected;
    const int32_t *class_of;
};

enum { GATES = 4, WEIGHT_SLICES = 4 * GATES, STATES = 2 };

/* How dw_cell is cut: into one slice for each vector [H], each with a gate of its own, or the whole
 * matrix of the projection. */
struct cell_slices {
    size_t count;
    const char *names[2]; /* of the first and of the second half of them */
    int gates[10];
};

static const struct cell_slices cell_slices[LB_CELL_COUNT] = {
    [LB_CELL_PROJECTION] = {1, {"dw_hr", "dw_hr"}, {-1}},
    [LB_CELL_PEEPHOLE] = {3, {"dw_peephole", "dw_peephole"}, {0, 1, 3}},
    [LB_CELL_LAYERNORM] = {10, {"dgain", "dbias"}, {0, 1, 2, 3, 4, 0, 1, 2, 3, 4}},
};

static size_t weight_slices(const struct lb_problem *problem)
{
    return WEIGHT_SLICES + cell_slices[problem->cell].count;
}

size_t lb_slice_count(const struct lb_problem *problem)
{
    size_t layer_dirs = lb_layer_dir_count(problem);
    size_t forward = 1 + STATES * layer_dirs;
    return lb_has_backward(problem) ? 2 * forward + weight_slices(problem) * layer_dirs : forward;
}

/* Slices of y, hn, cn, or of dx, dh0, dc0: the first tensor, then each layer and direction of the
 * other two. */
static struct slice row_slice(const struct lb_comparison *from, size_t index, bool gradient)
{
    const struct lb_oracle *net = from->oracle;
    const struct lb_problem *p = &net->problem;
    size_t rows = (size_t)p->batch, layer_dir = index == 0 ? 0 : (index - 1) / STATES;
    size_t which = index == 0 ? 0 : 1 + (index - 1) % STATES, steps, width;
    enum lb_tensor t = (enum lb_tensor)((gradient ? LB_DX : LB_Y) + which);
    size_t y_width = (size_t)(p->directions * lb_h_size(p));
    const double *y = net->y + (size_t)((p->layers - 1) * p->seq_len) * rows * y_width;
    const double *const expected[] = {y, net->hn, net->cn, net->dx, net->dh0, net->dc0};
    lb_tensor_shape(p, t, &steps, &width);
    return (struct slice){
        .tensor = lb_tensor_name(t),
        .layer_dir = layer_dir,
        .gate = -1,
        .gradient = gradient,
        .weight = -1,
        .steps = which == 0 ? steps : 1,
        .batch = from->batch,
        .rows = rows,
        .width = width,
        .result = (const char *)from->results->at[t] +
                  layer_dir * from->batch * width * lb_dtype_size(p->dtype),
        .expected = expected[t - LB_Y] + layer_dir * rows * width,
        .class_of = from->class_of,
    };
}

/* Slices of the weight gradients: one gate's rows of a matrix or a bias, or a part of dw_cell. */
static struct slice weight_slice(const struct lb_comparison *from, size_t index)
{
    static const char *const names[] = {"dw_ih", "dw_hh", "db_ih", "db_hh"};
    const struct lb_problem *p = &from->oracle->problem;
    const struct lb_gradients *g = &from->results->gradients;
    const struct cell_slices *cut = &cell_slices[p->cell];
    void *const *const results[] = {g->dw_ih, g->dw_hh, g->db_ih, g->db_hh, g->dw_cell};
    size_t layer_dir = index / weight_slices(p), offset = lb_gradient_offset(p, layer_dir);
    index %= weight_slices(p);
    bool of_cell = index >= WEIGHT_SLICES;
    size_t part = of_cell ? index - WEIGHT_SLICES : index % GATES;
    enum lb_weight which = of_cell ? LB_W_CELL : (enum lb_weight)(index / GATES);
    size_t width = lb_weight_elements(p, layer_dir, which) / (of_cell ? cut->count : GATES);
    for (int w = 0; w < (int)which; w++)
        if (w != LB_B_IH) /* both biases have one gradient */
            offset += lb_weight_elements(p, layer_dir, (enum lb_weight)w);
    return (struct slice){
        .tensor = of_cell ? cut->names[part >= cut->count / 2] : names[which],
        .layer_dir = layer_dir,
        .gate = of_cell ? cut->gates[part] : (int)part,
        .gradient = true,
        .weight = (int)which,
        .steps = 1,
        .batch = 1,
        .rows = 1,
        .width = width,
        .result = (const char *)results[which][layer_dir] + part * width * lb_dtype_size(p->dtype),
        .expected = from->dw + offset + part * width,
    };
}

/* Slice number index. Those of backward need dw and the gradients of the results. */
static struct slice slice_at(const struct lb_comparison *from, size_t index)
{
    size_t forward = 1 + STATES * lb_layer_dir_count(&from->oracle->problem);
    if (index < 2 * forward)
        return row_slice(from, index % forward, index >= forward);
    return weight_slice(from, index - 2 * forward);
}

enum { PARTIAL_SUMS = 8, BLOCK = 512 };

/* Running maxima and sums, each kept as several partial ones so that the compiler can vectorise the
 * loop over them. */
struct partial_sums {
    double max[PARTIAL_SUMS], squares[PARTIAL_SUMS];
    double expected_max[PARTIAL_SUMS], expected_squares[PARTIAL_SUMS];
};

static void compare_block(const double *result, const double *expected, size_t count,
                          struct partial_sums *sums)
{
    for (size_t i = 0; i < count; i += PARTIAL_SUMS) {
        size_t n = count - i < PARTIAL_SUMS ? count - i : PARTIAL_SUMS;
        for (size_t j = 0; j < n; j++) {
            double error = fabs(result[i + j] - expected[i + j]), size = fabs(expected[i + j]);
            sums->max[j] = error > sums->max[j] ? error : sums->max[j]; /* passes over a NaN */
            sums->squares[j] += error * error;                          /* propagates a NaN */
            sums->expected_max[j] = size > sums->expected_max[j] ? size : sums->expected_max[j];
            sums->expected_squares[j] += size * size;
        }
    }
}

/* Where batch row b of step s starts in the result; size: bytes per element. */
static const char *result_row(const struct slice *slice, size_t s, size_t b, size_t size)
{
    return (const char *)slice->result + (s * slice->batch + b) * slice->width * size;
}

/* The row of expected values that batch row b of step s is compared with. */
static const double *expected_row(const struct slice *slice, size_t s, size_t b)
{
    size_t row = slice->class_of ? (size_t)slice->class_of[b] : b;
    return slice->expected + (s * slice->rows + row) * slice->width;
}

/* Compares every element of a slice whose results are of dtype. */
static struct lb_deviation measure(const struct slice *slice, enum lb_dtype dtype)
{
    struct lb_deviation all = {.count = slice->steps * slice->batch * slice->width};
    struct partial_sums sums = {0};
    double block[BLOCK];
    size_t size = lb_dtype_size(dtype);
    for (size_t s = 0; s < slice->steps; s++)
        for (size_t b = 0; b < slice->batch; b++) {
            const char *result = result_row(slice, s, b, size);
            const double *expected = expected_row(slice, s, b);
            for (size_t first = 0; first < slice->width; first += BLOCK) {
                size_t n = slice->width - first < BLOCK ? slice->width - first : BLOCK;
                lb_load(dtype, result + first * size, block, n);
                compare_block(block, expected + first, n, &sums);
            }
        }
    for (size_t j = 0; j < PARTIAL_SUMS; j++) {
        all.max_abs = fmax(all.max_abs, sums.max[j]);
        all.expected_max = fmax(all.expected_max, sums.expected_max[j]);
        all.sum_squares += sums.squares[j];
        all.expected_squares += sums.expected_squares[j];
    }
    return all;
}

/* One element of a slice. */
struct slice_element {
    size_t step, batch_row, column;
    double value, expected;
};

/* The first element that is not finite, or else the one that is farthest from its expected value.
 */
static struct slice_element worst_element(const struct slice *slice, enum lb_dtype dtype)
{
    struct slice_element worst = {0};
    double largest = -1, value;
    size_t size = lb_dtype_size(dtype);
    for (size_t s = 0; s < slice->steps; s++)
        for (size_t b = 0; b < slice->batch; b++) {
            const char *result = result_row(slice, s, b, size);
            const double *expected = expected_row(slice, s, b);
            for (size_t j = 0; j < slice->width; j++) {
                lb_load(dtype, result + j * size, &value, 1);
                double error = isfinite(value) ? fabs(value - expected[j]) : (double)INFINITY;
                if (error <= largest)
                    continue;
                worst = (struct slice_element){s, b, j, value, expected[j]};
                largest = error;
                if (!isfinite(value))
                    return worst;
            }
        }
    return worst;
}

/* The step to which int8 rounds h. */
static const double int8_step = 1 / 127.0;

/* Whether all results of a slice of int8 are multiples of it: then the implementation also rounds
 * what it gives, as oneDNN and OpenVINO do with y and hn. */
static bool are_whole_steps(const struct slice *slice)
{
    for (size_t s = 0; s < slice->steps; s++)
        for (size_t b = 0; b < slice->batch; b++) {
            const char *row = result_row(slice, s, b, sizeof(float));
            for (size_t j = 0; j < slice->width; j++) {
                float value;
                memcpy(&value, row + j * sizeof(value), sizeof(value));
                double steps = (double)value / int8_step;
                if (!(fabs(steps - nearbyint(steps)) < 1e-3))
                    return false;
            }
        }
    return true;
}

void lb_measure_results(const struct lb_oracle *oracle, const double *dw,
                        const struct lb_results *results, struct lb_deviation *deviations)
{
    const struct lb_comparison from = {
        .oracle = oracle, .dw = dw, .results = results, .batch = (size_t)oracle->problem.batch};
    for (size_t i = 0; i < lb_slice_count(&oracle->problem); i++) {
        struct slice slice = slice_at(&from, i);
        deviations[i] = measure(&slice, oracle->problem.dtype);
    }
}

/* ---- Tolerances. ---------------------------------------------------------------------------- */

/* What a slice may be off by: in its worst element, and in Euclidean norm. */
struct tolerance {
    double max_abs, norm;
    double usual_norm; /* the error in norm that honest results have */
};

/* A result may be this many times as far from the oracle as the rounded evaluation is, in its worst
 * element and in norm, and in addition a few roundings of the slice's natural size. TOLERANCES.md
 * has the measurements behind these numbers. */
static const double max_factor = 8, norm_factor = 4, max_roundings = 8, norm_roundings = 4;

/* The same of the coarse evaluation: its errors are those of a known arithmetic, not of the best,
 * and wider factors would let faults of single rows pass for low precision. */
static const double coarse_max_factor = 4, coarse_norm_factor = 2;

/* The same of int8, whose evaluation is off by quantisation, not by roundings of sums: a correct
 * implementation is off by about as much, and one with weights of 6 bits by 2.4 times as much. */
static const double int8_max_factor = 4, int8_norm_factor = 1.7;
/* With weights of 7 bits these are wider for several layers of two directions, which share scales
 * in oneDNN: 4 of 360 random ones needed up to 1.45 times as much, and none of 1,140 others. */
static const double seven_bits_wider = 1.8;
static const double int8_max_roundings = 1, int8_norm_roundings = 0.5;

/* The errors of n elements are a sample of n, so the largest and the norm of them are uncertain by
 * 1/sqrt(n), and by more because elements share the errors made before them. Tolerances are
 * therefore 1 + few_elements/sqrt(n) times as wide. */
static const double few_elements = 6;

bool lb_is_wide(const struct lb_problem *p)
{
    return (p->dtype == LB_F32 || p->dtype == LB_F64) && p->math == LB_IEEE;
}

/* Over how many steps the elements of a row share errors. A unit that forgets slowly carries a
 * rounding error through all steps, and a sharp turn of the state makes it larger for all units at
 * once. That is allowed for in the wide types, where no fault hides in a few roundings; in int8,
 * where a row's elements also share the errors of its quantised x and h; and in streams, where c is
 * rounded to the dtype as it is carried. */
static double shared_steps(const struct lb_oracle *net)
{
    const struct lb_problem *p = &net->problem;
    bool shares = lb_is_wide(p) || p->dtype == LB_INT8 || net->carried_every > 0;
    return shares ? (double)p->seq_len : 1;
}

/* How much wider a tolerance is because it follows from the errors of so many elements. */
static double widening(double count, double steps)
{
    return 1 + few_elements / sqrt(fmax(1, count / steps));
}

/* How much wider the tolerance of a cell is. Gradients of layernorm are what is left when a mean
 * over H elements, and the part along them, have been subtracted. The outputs of residual grow from
 * layer to layer, and with them the turns of the next layer's states. */
static double widening_of_cell(const struct lb_problem *p)
{
    switch (p->cell) {
    case LB_CELL_LAYERNORM: return 1 + few_elements / (double)p->hidden;
    case LB_CELL_RESIDUAL: return 1.5;
    default: return 1;
    }
}

/* Sum of squares of the first `width` columns of rows [T, R, stride], over the steps that each row
 * has. */
static double active_squares(const struct lb_oracle *net, const double *rows, size_t stride,
                             size_t width)
{
    size_t R = (size_t)net->problem.batch;
    double sum = 0;
    for (size_t t = 0; t < (size_t)net->problem.seq_len; t++)
        for (size_t r = 0; r < R; r++) {
            const double *row = rows + (t * R + r) * stride;
            if (net->lengths && t >= (size_t)net->lengths[r])
                break; /* lengths descend */
            for (size_t j = 0; j < width; j++)
                sum += row[j] * row[j];
        }
    return sum;
}

void lb_measure_layer_dirs(const struct lb_oracle *net, struct lb_layer_dir_size *sizes)
{
    const struct lb_problem *p = &net->problem;
    size_t T = (size_t)p->seq_len, R = (size_t)p->batch, H = (size_t)p->hidden;
    size_t D = (size_t)p->directions, P = (size_t)lb_h_size(p), rows = T * R, y_width = D * P;
    double steps = 0;
    for (size_t r = 0; r < R; r++)
        steps += net->lengths ? net->lengths[r] : (double)T;
    for (size_t e = 0; e < lb_layer_dir_count(p); e++) {
        size_t l = e / D, input = (size_t)lb_layer_input(p, (int64_t)l);
        const double *in = l == 0 ? net->x : net->y + (l - 1) * rows * y_width;
        const double *y = net->y + l * rows * y_width + e % D * P;
        const double *da = net->gates + e * rows * 4 * H;
        double h = active_squares(net, y, y_width, P);
        for (size_t i = 0; i < R * P; i++)
            h += net->h0[e * R * P + i] * net->h0[e * R * P + i];
        double in_squares = active_squares(net, in, input, input);
        double da_squares = active_squares(net, da, 4 * H, 4 * H);
        sizes[e] = (struct lb_layer_dir_size){
            .steps = steps,
            .gradients = sqrt(da_squares / (steps * 4 * (double)H)),
            .input = sqrt(in_squares / (steps * (double)input)),
            .state = sqrt(h / ((steps + (double)R) * (double)P)),
        };
    }
}

static const double unit_size = 0.25; /* x, h0, c0 and gates are of size 1, outputs below */

/* The magnitude that a slice's elements have unless terms happen to cancel, each row counted once.
 * The expected values of a few elements may be small by chance, while their errors are not. The
 * constants are below the usual magnitude: a smaller one makes the tolerance stricter. */
static double natural_size(const struct lb_comparison *c, const struct slice *slice)
{
    if (!slice->gradient)
        return unit_size;
    const struct lb_layer_dir_size *size = &c->layer_dir_sizes[slice->layer_dir];
    if (slice->weight <
        0) /* sums of 4H products with weights of size 1.4/sqrt(H) are 2.8 times it */
        return 2 * size->gradients;
    double operand = slice->weight == LB_W_IH   ? size->input
                     : slice->weight == LB_W_HH ? size->state
                                                : 1;
    return sqrt(size->steps) * size->gradients * operand;
}

/* How many batch rows share the most frequent row. */
static double largest_count(const struct lb_comparison *c)
{
    int32_t largest = 1;
    for (size_t r = 0; c->counts && r < (size_t)c->oracle->problem.batch; r++)
        largest = c->counts[r] > largest ? c->counts[r] : largest;
    return largest;
}

/* The tolerance of one slice. rounded: how far the rounded evaluation (rounded_lstm.h) is off over
 * the same slice, with each row counted once. now: the result that is looked at, of which only the
 * magnitude of its expected values is read. TOLERANCES.md has the formula. */
static struct tolerance tolerance_of(const struct lb_comparison *c, const struct slice *slice,
                                     const struct lb_deviation *rounded,
                                     const struct lb_deviation *now)
{
    const struct lb_problem *p = &c->oracle->problem;
    double roundoff = lb_dtype_roundoff(p->dtype), sum_rounding = 0, times = 1;
    double norm = sqrt(now->expected_squares), rounded_norm = sqrt(rounded->sum_squares);
    double walk = 0; /* what the sum over further rows usually adds to the error in norm */
    if (slice->weight >= 0) {
        /* Equal rows are rounded alike, so their errors add up. Besides, the sum is rounded after
         * each of its terms, alike for equal terms, in float or better. */
        double sum_roundoff = p->dtype == LB_F64 ? 0x1p-53 : 0x1p-24;
        times = largest_count(c);
        double steps = c->layer_dir_sizes[slice->layer_dir].steps;
        sum_rounding = times * sqrt(steps) * sum_roundoff;
        rounded_norm *= times;
        walk = sqrt((times - 1) * steps) * sum_roundoff * norm;
    } else if (rounded->expected_squares > 0) {
        /* From the norm of the distinct rows to the norm of the batch that was dealt from them. */
        rounded_norm *= norm / sqrt(rounded->expected_squares);
    }
    /* In f64 the evaluation is as precise as the oracle, and their distance says less of others. */
    double more = p->dtype == LB_F64 ? 64 : 1;
    double size = times * natural_size(c, slice), root = sqrt((double)now->count);
    double few = widening((double)now->count, slice->weight < 0 ? shared_steps(c->oracle) : 1) *
                 widening_of_cell(p);
    bool int8 = p->dtype == LB_INT8;
    /* Results that are rounded like h have that error too, which is large where h is small. */
    double step = int8 && are_whole_steps(slice) ? int8_step : 0,
           steps_norm = step / sqrt(12) * root;
    bool coarse = c->arithmetic == LB_COARSE;
    bool shares = c->arithmetic == LB_SEVEN_BITS && p->layers > 1 && p->directions > 1;
    double wider = shares ? seven_bits_wider : 1;
    double max_times = int8 ? wider * int8_max_factor : coarse ? coarse_max_factor : max_factor;
    double norm_times = int8 ? wider * int8_norm_factor : coarse ? coarse_norm_factor : norm_factor;
    double in_max = int8 ? int8_max_roundings : more * max_roundings;
    double in_norm = int8 ? int8_norm_roundings : more * norm_roundings;
    return (struct tolerance){
        .max_abs = few * (max_times * times * rounded->max_abs + step / 2 +
                          (in_max * roundoff + sum_rounding) * fmax(now->expected_max, size)),
        .norm = few * (hypot(norm_times * rounded_norm, steps_norm) +
                       (in_norm * roundoff + sum_rounding) * fmax(norm, size * root)),
        .usual_norm = hypot(hypot(rounded_norm, steps_norm), walk),
    };
}

/* Relative errors in norm of several slices together: of a result and of the rounded evaluation. */
struct group_errors {
    double result, rounded; /* squares, each weighted by the slice's number of elements */
    double count;           /* elements */
};

static void add_to_group(struct group_errors *group, const struct lb_comparison *c,
                         const struct slice *slice, double norm, const struct lb_deviation *now,
                         const struct tolerance *allowed)
{
    const enum lb_dtype dtype = c->oracle->problem.dtype;
    double count = (double)now->count, size = natural_size(c, slice);
    if (dtype == LB_INT8) /* steps of integers are not relative to the values */
        size *= sqrt(count);
    size = fmax(size, sqrt(now->expected_squares)); /* one element may be small by chance */
    double least = lb_dtype_roundoff(dtype) / 2;    /* of values that are exact by chance */
    if (!(size > 0))
        return;
    group->result += count * pow(norm / size, 2);
    group->rounded += count * (pow(allowed->usual_norm / size, 2) + least * least);
    group->count += count;
}

/* How many times the rounded evaluation's error results may have before they have less precision
 * than the dtype gives. Honest ones are within 1.1 in bf16 and f16, and within 2 in f32, where the
 * order of sums matters more (TOLERANCES.md); in int8 up to 1.1, but libraries quantise in ways of
 * their own; in streams up to 1.9, where tiny errors decide to which neighbour c is rounded. */
static double usual_ratio(const struct lb_oracle *net)
{
    if (lb_is_wide(&net->problem))
        return 3;
    return net->problem.dtype == LB_INT8 || net->carried_every > 0 ? 2 : 1.5;
}

static void judge_precision(const struct lb_oracle *net, const struct group_errors groups[2],
                            struct lb_check *check)
{
    for (int g = 0; g < 2 && !isnan(check->error_ratio); g++) {
        double ratio = sqrt(groups[g].result / groups[g].rounded);
        double usual = usual_ratio(net) * widening(groups[g].count, shared_steps(net)) *
                       widening_of_cell(&net->problem);
        if (groups[g].count == 0 || ratio / usual <= check->error_ratio / check->usual_error_ratio)
            continue;
        check->error_ratio = ratio;
        check->usual_error_ratio = usual;
    }
}

/* ---- The comparison. ------------------------------------------------------------------------ */

/* "dw_ih of layer 1, direction 0, gate f [3, 7]" or "y [t 3, b 0, column 7]". */
static void name_element(const struct lb_problem *p, const struct slice *slice,
                         const struct slice_element *at, char *text, size_t size)
{
    size_t D = (size_t)p->directions, H = (size_t)p->hidden, column = at->column;
    bool whole_tensor = strcmp(slice->tensor, "y") == 0 || strcmp(slice->tensor, "dx") == 0;
    char layer_dir[64] = "", index[96];
    if (!whole_tensor)
        snprintf(layer_dir, sizeof(layer_dir), " of layer %zu, direction %zu", slice->layer_dir / D,
                 slice->layer_dir % D);
    if (slice->weight == LB_W_CELL && slice->gate < 0) /* w_hr [P, H] */
        snprintf(index, sizeof(index), " [%zu, %zu]", column / H, column % H);
    else if (slice->weight == LB_W_CELL)
        snprintf(index, sizeof(index), ", %c [%zu]", "ifgoc"[slice->gate], column);
    else if (slice->weight >= 0) {
        size_t columns = slice->width / H, first_row = (size_t)slice->gate * H;
        snprintf(index, sizeof(index), ", gate %c [%zu, %zu]", "ifgo"[slice->gate],
                 first_row + column / columns, column % columns);
    } else if (!whole_tensor)
        snprintf(index, sizeof(index), " [b %zu, column %zu]", at->batch_row, column);
    else
        snprintf(index, sizeof(index), " [t %zu, b %zu, column %zu]", at->step, at->batch_row,
                 column);
    snprintf(text, size, "%s%s%s", slice->tensor, layer_dir, index);
}

/* Writes why a slice is wrong. */
static void explain(const struct lb_problem *p, const struct slice *slice,
                    const struct lb_deviation *now, const struct tolerance *allowed,
                    struct lb_check *check)
{
    struct slice_element at = worst_element(slice, p->dtype);
    char name[160];
    name_element(p, slice, &at, name, sizeof(name));
    if (!isfinite(at.value))
        snprintf(check->reason, sizeof(check->reason), "%s is %s, should be %.6g: %s", name,
                 isnan(at.value) ? "NaN" : "infinite", at.expected,
                 isnan(at.value) ? "not written, or computed from NaN" : "an overflow");
    else if (now->max_abs > allowed->max_abs)
        snprintf(check->reason, sizeof(check->reason),
                 "%s is %.9g, should be %.9g: off by %.3g, allowed %.3g", name, at.value,
                 at.expected, now->max_abs, allowed->max_abs);
    else
        snprintf(check->reason, sizeof(check->reason),
                 "off by %.3g in norm, allowed %.3g of %.3g; the worst element is %s",
                 sqrt(now->sum_squares), allowed->norm, sqrt(now->expected_squares), name);
}

/* The maximum, which propagates NaN. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* The share of the allowed error that is used. It is 0 for an error of 0, even where none is
 * allowed. */
static double share(double error, double allowed)
{
    return error == 0 ? 0 : error / allowed;
}

void lb_compare(const struct lb_comparison *c, struct lb_check *check)
{
    struct lb_problem p = c->oracle->problem;
    if (!c->dw) /* expected results with a backward also serve a pass without one */
        p.pass = LB_INFER;
    struct group_errors groups[2] = {{0}};
    *check = (struct lb_check){.right = true, .usual_error_ratio = INFINITY};
    for (size_t i = 0; i < lb_slice_count(&p); i++) {
        struct slice slice = slice_at(c, i);
        struct lb_deviation now = measure(&slice, p.dtype);
        struct tolerance allowed = tolerance_of(c, &slice, &c->deviations[i], &now);
        if (!isfinite(c->deviations[i].sum_squares)) /* the dtype can't hold the right result */
            allowed = (struct tolerance){0};
        double error = isfinite(now.sum_squares) ? now.max_abs : (double)NAN;
        double norm = isfinite(now.sum_squares) ? sqrt(now.sum_squares) : (double)NAN;
        check->err_max_abs = larger(check->err_max_abs, error);
        if (now.expected_max > 0) {
            check->err_max_rel = larger(check->err_max_rel, error / now.expected_max);
            double relative = norm / sqrt(now.expected_squares);
            check->err_norm = larger(check->err_norm, relative);
            if (slice.gradient)
                check->gradient_err_norm = larger(check->gradient_err_norm, relative);
        }
        add_to_group(&groups[slice.gradient], c, &slice, norm, &now, &allowed);
        check->tolerance_used = larger(check->tolerance_used, share(error, allowed.max_abs));
        check->tolerance_used = larger(check->tolerance_used, share(norm, allowed.norm));
        if (check->right && !(error <= allowed.max_abs && norm <= allowed.norm)) {
            check->right = false;
            check->in_gradient = slice.gradient;
            explain(&p, &slice, &now, &allowed, check);
        }
    }
    judge_precision(c->oracle, groups, check);
}

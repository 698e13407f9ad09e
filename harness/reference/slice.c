/* Slices of results: how they are cut, and how far one is from its expected values. */
#include "reference/slice.h"

#include <math.h>

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

/* Slices of y, hn, cn, or of dx, dh0, dc0. */
static struct lb_slice row_slice(const struct lb_slice_source *from, size_t index, bool gradient)
{
    const struct lb_oracle *net = from->oracle;
    const struct lb_results *results = from->results;
    const struct lb_problem *p = &net->problem;
    size_t H = (size_t)p->hidden, T = (size_t)p->seq_len, rows = (size_t)p->batch;
    size_t P = (size_t)lb_h_size(p);
    struct lb_slice slice = {.gate = -1,
                             .gradient = gradient,
                             .batch = from->batch,
                             .rows = rows,
                             .class_of = from->class_of};
    if (index == 0) {
        size_t y_width = (size_t)p->directions * P;
        slice.tensor = gradient ? "dx" : "y";
        slice.steps = T;
        slice.width = gradient ? (size_t)p->input : y_width;
        slice.result = gradient ? results->dx : results->y;
        slice.expected = gradient ? net->dx : net->y + (size_t)(p->layers - 1) * T * rows * y_width;
        return slice;
    }
    static const char *const names[2][STATES] = {{"hn", "cn"}, {"dh0", "dc0"}};
    const void *const actual[2][STATES] = {{results->hn, results->cn},
                                           {results->dh0, results->dc0}};
    const double *const expected[2][STATES] = {{net->hn, net->cn}, {net->dh0, net->dc0}};
    size_t which = (index - 1) % STATES;
    slice.layer_dir = (index - 1) / STATES;
    slice.tensor = names[gradient][which];
    slice.steps = 1;
    slice.width = which == 0 ? P : H;
    slice.expected = expected[gradient][which] + slice.layer_dir * rows * slice.width;
    slice.result = (const char *)actual[gradient][which] +
                   slice.layer_dir * from->batch * slice.width * lb_dtype_size(p->dtype);
    return slice;
}

/* Slice number index of dw_cell of one layer and direction. */
static struct lb_slice cell_slice(const struct lb_slice_source *from, size_t layer_dir,
                                  size_t index)
{
    const struct lb_problem *p = &from->oracle->problem;
    const struct cell_slices *cut = &cell_slices[p->cell];
    size_t count = lb_cell_weight_count(p), width = count / cut->count;
    const char *result = from->results->gradients.dw_cell[layer_dir];
    return (struct lb_slice){
        .tensor = cut->names[index >= cut->count / 2],
        .layer_dir = layer_dir,
        .gate = cut->gates[index],
        .gradient = true,
        .summed = true,
        .steps = 1,
        .batch = 1,
        .rows = 1,
        .width = width,
        .result = result + index * width * lb_dtype_size(p->dtype),
        .expected = from->dw + lb_gradient_offset(p, layer_dir + 1) - count + index * width,
    };
}

/* Slices of the weight gradients: one gate's rows of a matrix or a bias. */
static struct lb_slice weight_slice(const struct lb_slice_source *from, size_t index)
{
    static const char *const names[] = {"dw_ih", "dw_hh", "db_ih", "db_hh"};
    const struct lb_problem *p = &from->oracle->problem;
    const struct lb_gradients *g = &from->results->gradients;
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p);
    size_t layer_dir = index / weight_slices(p);
    index %= weight_slices(p);
    if (index >= WEIGHT_SLICES)
        return cell_slice(from, layer_dir, index - WEIGHT_SLICES);
    size_t which = index / GATES, gate = index % GATES;
    size_t input = (size_t)lb_layer_input(p, (int64_t)layer_dir / p->directions);
    void *const actual[] = {g->dw_ih[layer_dir], g->dw_hh[layer_dir], g->db_ih[layer_dir],
                            g->db_hh[layer_dir]};
    const double *dw = from->dw + lb_gradient_offset(p, layer_dir);
    const double *const expected[] = {dw, dw + 4 * H * input, dw + 4 * H * (input + P),
                                      dw + 4 * H * (input + P)}; /* both biases have one gradient */
    size_t columns = which == 0 ? input : which == 1 ? P : 1;
    return (struct lb_slice){
        .tensor = names[which],
        .layer_dir = layer_dir,
        .gate = (int)gate,
        .gradient = true,
        .summed = true,
        .steps = 1,
        .batch = 1,
        .rows = 1,
        .width = H * columns,
        .result = (const char *)actual[which] + gate * H * columns * lb_dtype_size(p->dtype),
        .expected = expected[which] + gate * H * columns,
    };
}

struct lb_slice lb_slice_at(const struct lb_slice_source *source, size_t index)
{
    size_t forward = 1 + STATES * lb_layer_dir_count(&source->oracle->problem);
    if (index < 2 * forward)
        return row_slice(source, index % forward, index >= forward);
    return weight_slice(source, index - 2 * forward);
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
static const char *result_row(const struct lb_slice *slice, size_t s, size_t b, size_t size)
{
    return (const char *)slice->result + (s * slice->batch + b) * slice->width * size;
}

/* The row of expected values that batch row b of step s is compared with. */
static const double *expected_row(const struct lb_slice *slice, size_t s, size_t b)
{
    size_t row = slice->class_of ? (size_t)slice->class_of[b] : b;
    return slice->expected + (s * slice->rows + row) * slice->width;
}

struct lb_deviation lb_slice_measure(const struct lb_slice *slice, enum lb_dtype dtype)
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

struct lb_slice_element lb_slice_worst_element(const struct lb_slice *slice, enum lb_dtype dtype)
{
    struct lb_slice_element worst = {0};
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
                worst = (struct lb_slice_element){s, b, j, value, expected[j]};
                largest = error;
                if (!isfinite(value))
                    return worst;
            }
        }
    return worst;
}

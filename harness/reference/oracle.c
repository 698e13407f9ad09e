/* The oracle: the LSTM's forward and backward passes in double precision. */
#include "reference/oracle.h"

#include <math.h>
#include <string.h>

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

#define real                            double
#define LSTM                            lb_oracle
#define SIGMOID(v)                      sigmoid(v)
#define TANH(v)                         tanh(v)
#define GATE_RELU(net, a)               ((a) > 0 ? (a) : 0)
#define GATE_SLOPE(net, g)              ((g) > 0 ? 1 : 0)
#define CELL_SLOPE(net, c, kept, added) ((c) > 0 ? 1 : 0)
#define STORED(net, v)                  (v)
#define OPERAND(net, v)                 (v)
#define DESCENDING                      0
#include "reference/lstm_body.inc"

/* More elements than any memory holds, and few enough that byte counts and sums do not overflow. */
static const size_t beyond_memory = (size_t)1 << 56;

/* a * b * c, or beyond_memory. */
static size_t times(size_t a, size_t b, size_t c)
{
    size_t product;
    bool wraps = __builtin_mul_overflow(a, b, &product) ||
                 __builtin_mul_overflow(product, c, &product) || product > beyond_memory;
    return wraps ? beyond_memory : product;
}

struct lb_lstm_counts lb_lstm_counts(const struct lb_problem *problem)
{
    size_t I = (size_t)problem->input, H = (size_t)problem->hidden, D = (size_t)problem->directions;
    size_t layer_dirs = times((size_t)problem->layers, D, 1), y_width = times(D, H, 1);
    size_t rows = times((size_t)problem->seq_len, (size_t)problem->batch, 1);
    size_t first = 2 * (I + H) + 1, later = 2 * (y_width + H) + 1;
    bool trains = lb_trains(problem), backward = lb_has_backward(problem);
    return (struct lb_lstm_counts){
        .weights = times(4 * D, H, first) + times(4 * (layer_dirs - D), H, later),
        .x = times(rows, I, 1),
        .state = times(layer_dirs, (size_t)problem->batch, H),
        .y = times((size_t)problem->layers, rows, y_width),
        .gates = times(trains ? layer_dirs : 1, rows, 4 * H),
        .cells = trains ? times(layer_dirs, rows, H) : 0,
        .between = backward ? times(rows, y_width, 1) : 0,
        .operand = backward ? times(rows, I > y_width ? I : y_width, 1) : 0,
    };
}

/* from [rows, columns] -> matrix [rows, columns] and transpose [columns, rows], by tiles that fit
 * the cache. */
static void pack_matrix(const double *from, size_t rows, size_t columns, double *matrix,
                        double *transpose)
{
    enum { TILE = 32 };
    memcpy(matrix, from, rows * columns * sizeof(double));
    for (size_t top = 0; top < rows; top += TILE)
        for (size_t left = 0; left < columns; left += TILE) {
            size_t bottom = rows - top < TILE ? rows : top + TILE;
            size_t right = columns - left < TILE ? columns : left + TILE;
            for (size_t i = top; i < bottom; i++)
                for (size_t j = left; j < right; j++)
                    transpose[j * rows + i] = from[i * columns + j];
        }
}

size_t lb_gradient_offset(const struct lb_problem *problem, size_t layer_dir)
{
    size_t H = (size_t)problem->hidden, offset = 0;
    for (size_t e = 0; e < layer_dir; e++) {
        size_t input = (size_t)lb_layer_input(problem, (int64_t)e / problem->directions);
        offset += 4 * H * (input + H + 1);
    }
    return offset;
}

void lb_oracle_pack(const struct lb_oracle *oracle, size_t layer_dir, const double *w_ih,
                    const double *w_hh, const double *b_ih, const double *b_hh)
{
    size_t H = (size_t)oracle->problem.hidden;
    struct weights w = weights_of(oracle, layer_dir);
    pack_matrix(w_ih, 4 * H, input_of(oracle, layer_dir), w.w_ih, w.w_ih_t);
    pack_matrix(w_hh, 4 * H, H, w.w_hh, w.w_hh_t);
    for (size_t j = 0; j < 4 * H; j++)
        w.bias[j] = b_ih[j] + b_hh[j];
}

void lb_oracle_forward(const struct lb_oracle *oracle)
{
    size_t layer_dirs = lb_layer_dir_count(&oracle->problem);
    for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
        forward_layer_dir(oracle, layer_dir);
}

void lb_oracle_backward(const struct lb_oracle *oracle)
{
    backward_layers(oracle);
}

void lb_oracle_weight_gradients(const struct lb_oracle *oracle, size_t layer_dir,
                                const int32_t *counts, double *dw_ih, double *dw_hh, double *db)
{
    weight_gradients(oracle, layer_dir, counts, dw_ih, dw_hh, db);
}

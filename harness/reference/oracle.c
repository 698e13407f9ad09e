/* The oracle: the LSTM's forward and backward passes in double precision. */
#include "reference/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static double sigmoid(double v)
{
    return 1 / (1 + exp(-v));
}

#define real                            double
#define LSTM                            lb_oracle
#define GATE_RELU(net, a)               ((a) > 0 ? (a) : 0)
#define GATE_SLOPE(net, g)              ((g) > 0 ? 1 : 0)
#define CELL_SLOPE(net, c, kept, added) ((c) > 0 ? 1 : 0)
#define STORED(net, v)                  (v)
#define OPERAND(net, v)                 (v)
#define CELL(net, v)                    (v)
#define BY_OPERATION(net)               false
#define COMPUTED(net, v)                (v)
#define CARRIED(net, v, t, i)           ((void)(t), lb_round((net)->problem.dtype, v))
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
    size_t input = (size_t)problem->input, H = (size_t)problem->hidden;
    size_t D = (size_t)problem->directions, P = (size_t)lb_h_size(problem);
    size_t B = (size_t)problem->batch;
    size_t layer_dirs = times((size_t)problem->layers, D, 1), y_width = times(D, P, 1);
    size_t rows = times((size_t)problem->seq_len, B, 1), widest = input > y_width ? input : y_width;
    size_t first = 2 * (input + P) + 1, later = 2 * (y_width + P) + 1;
    bool trains = lb_trains(problem), backward = lb_has_backward(problem);
    bool projects = problem->cell == LB_CELL_PROJECTION;
    bool drops = problem->cell == LB_CELL_RECURRENT_DROPOUT;
    bool keeps = trains && (projects || problem->cell == LB_CELL_RESIDUAL);
    size_t states = times(layer_dirs, rows, H);
    return (struct lb_lstm_counts){
        .weights = times(4 * D, H, first) + times(4 * (layer_dirs - D), H, later) +
                   times(projects ? 2 : 1, layer_dirs, lb_cell_weight_count(problem)),
        .x = times(rows, input, 1),
        .state = times(layer_dirs, B, H),
        .h = times(layer_dirs, B, P),
        .y = times((size_t)problem->layers, rows, y_width),
        .gates = times(trains ? layer_dirs : 1, rows, 4 * H),
        .cells = trains ? states : 0,
        .between = backward ? times(rows, y_width, 1) : 0,
        .operand = backward ? times(rows, 4 * H + (widest > H ? widest : H), 1) : 0,
        .mask = drops ? times(layer_dirs, B, H) : 0,
        .scratch = projects || drops ? times(B, H, 1) : 0,
        .kept = keeps ? states : 0,
        .dkept = projects && backward ? times(layer_dirs, rows, P) : 0,
        .norm =
            trains && problem->cell == LB_CELL_LAYERNORM ? times(layer_dirs, rows, 10 * H + 5) : 0,
    };
}

struct lb_lstm_arrays lb_lstm_arrays(const struct lb_problem *problem)
{
    struct lb_lstm_counts n = lb_lstm_counts(problem);
    bool backward = lb_has_backward(problem);
    size_t x = backward ? n.x : 0, h = backward ? n.h : 0, state = backward ? n.state : 0;
#define ARRAY(name, count, drawn)                      \
    {                                                  \
        offsetof(struct lb_oracle, name), count, drawn \
    }
    return (struct lb_lstm_arrays){{
        ARRAY(weights, n.weights, -1),
        ARRAY(x, n.x, LB_X),
        ARRAY(h0, n.h, LB_H0),
        ARRAY(c0, n.state, LB_C0),
        ARRAY(y, n.y, -1),
        ARRAY(gates, n.gates, -1),
        ARRAY(cells, n.cells, -1),
        ARRAY(hn, n.h, -1),
        ARRAY(cn, n.state, -1),
        ARRAY(mask, n.mask, LB_MASK),
        ARRAY(scratch, n.scratch, -1),
        ARRAY(kept, n.kept, -1),
        ARRAY(dkept, n.dkept, -1),
        ARRAY(norm, n.norm, -1),
        ARRAY(dy, n.between, LB_DY),
        ARRAY(dhn, h, LB_DHN),
        ARRAY(dcn, state, LB_DCN),
        ARRAY(dx, x, -1),
        ARRAY(dh0, h, -1),
        ARRAY(dc0, state, -1),
        ARRAY(between, n.between, -1),
        ARRAY(operand, n.operand, -1),
    }};
#undef ARRAY
}

void *lb_lstm_at(const void *net, const struct lb_lstm_array *array)
{
    void *at;
    memcpy(&at, (const char *)net + array->offset, sizeof(at));
    return at;
}

enum lb_status lb_lstm_allocate(void *net, size_t element_bytes, struct lb_error *err)
{
    struct lb_lstm_arrays arrays = lb_lstm_arrays(net); /* the first member is the problem */
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++) {
        void *at = arrays.at[i].count > 0 ? calloc(arrays.at[i].count, element_bytes) : NULL;
        memcpy((char *)net + arrays.at[i].offset, &at, sizeof(at));
        if (arrays.at[i].count > 0 && !at) {
            lb_lstm_free(net);
            return lb_fail(err, LB_OOM, "out of memory for the oracle");
        }
    }
    return LB_OK;
}

void lb_lstm_free(void *net)
{
    struct lb_lstm_arrays arrays = lb_lstm_arrays(net);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++) {
        free(lb_lstm_at(net, &arrays.at[i]));
        memset((char *)net + arrays.at[i].offset, 0, sizeof(void *));
    }
}

/* from [rows, columns] -> matrix [rows, columns] and transpose [columns, rows], both in strips. */
static void pack_matrix(const double *from, size_t rows, size_t columns, double *matrix,
                        double *transpose)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            matrix[in_strips(rows, columns, i, j)] = from[i * columns + j];
            transpose[in_strips(columns, rows, j, i)] = from[i * columns + j];
        }
}

size_t lb_gradient_offset(const struct lb_problem *problem, size_t layer_dir)
{
    size_t H = (size_t)problem->hidden, P = (size_t)lb_h_size(problem), offset = 0;
    for (size_t e = 0; e < layer_dir; e++) {
        size_t input = (size_t)lb_layer_input(problem, (int64_t)e / problem->directions);
        offset += 4 * H * (input + P + 1) + lb_cell_weight_count(problem);
    }
    return offset;
}

void lb_oracle_pack(const struct lb_oracle *oracle, size_t layer_dir, const double *weights)
{
    size_t H = (size_t)oracle->problem.hidden, P = (size_t)lb_h_size(&oracle->problem);
    const double *w_ih = weights, *w_hh = w_ih + 4 * H * input_of(oracle, layer_dir);
    const double *b_ih = w_hh + 4 * H * P, *b_hh = b_ih + 4 * H, *w_cell = b_hh + 4 * H;
    struct weights w = weights_of(oracle, layer_dir);
    pack_matrix(w_ih, 4 * H, input_of(oracle, layer_dir), w.w_ih, w.w_ih_t);
    pack_matrix(w_hh, 4 * H, P, w.w_hh, w.w_hh_t);
    for (size_t j = 0; j < 4 * H; j++)
        w.bias[j] = b_ih[j] + b_hh[j];
    if (oracle->problem.cell == LB_CELL_PROJECTION)
        pack_matrix(w_cell, (size_t)oracle->problem.projection, H, w.cell, w.cell_t);
    else if (w.cell)
        memcpy(w.cell, w_cell, lb_cell_weight_count(&oracle->problem) * sizeof(double));
}

void lb_oracle_forward(const struct lb_oracle *oracle)
{
    forward_layers(oracle);
}

void lb_oracle_backward(const struct lb_oracle *oracle)
{
    backward_layers(oracle);
}

void lb_oracle_weight_gradients(const struct lb_oracle *oracle, size_t layer_dir, const bool *rows,
                                double *dw)
{
    weight_gradients(oracle, layer_dir, rows, dw);
}

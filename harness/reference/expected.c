/* The expected results of the distinct rows of a problem, and how far the rounded evaluation is
 * from them. */
#include "reference/expected.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/weight_packing.h"
#include "host/fp_environment.h"
#include "reference/input_data.h"
#include "reference/rounded_lstm.h"

static size_t input_of(const struct lb_problem *p, size_t layer_dir)
{
    return (size_t)lb_layer_input(p, (int64_t)layer_dir / p->directions);
}

static void free_array(double **array)
{
    free(*array);
    *array = NULL;
}

/* Rows 0 and 1, of which each input set has one, both have the length T. */
static void draw_lengths(struct lb_expected *expected)
{
    size_t classes = expected->rows > 1 ? expected->rows - 1 : 1;
    lb_draw_lengths(&expected->problem, expected->seed, classes, expected->lengths);
    memmove(expected->lengths + expected->rows - classes, expected->lengths,
            classes * sizeof(int32_t));
}

/* Allocates all arrays but `operand`, which lb_expected_gradients has of its own, and draws the
 * inputs. */
static enum lb_status make_arrays(struct lb_expected *expected, struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    struct lb_oracle *net = &expected->net;
    struct lb_lstm_array arrays[LB_LSTM_ARRAYS];
    *net = (struct lb_oracle){.problem = *p};
    enum lb_status st = lb_lstm_allocate(net, sizeof(double), err);
    if (st != LB_OK)
        return st;
    free_array(&net->operand);
    expected->deviations = calloc(lb_slice_count(p), sizeof(*expected->deviations));
    expected->layer_dir_sizes = calloc(lb_layer_dir_count(p), sizeof(*expected->layer_dir_sizes));
    expected->lengths = p->ragged ? calloc(expected->rows, sizeof(int32_t)) : NULL;
    if (!expected->deviations || !expected->layer_dir_sizes || (p->ragged && !expected->lengths))
        return lb_fail(err, LB_OOM, "out of memory for the oracle");
    if (p->ragged)
        draw_lengths(expected);
    net->lengths = expected->lengths;
    lb_lstm_arrays(p, arrays);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        if (arrays[i].drawn >= 0 && arrays[i].count > 0)
            lb_draw_rows(p, expected->seed, (enum lb_drawn)arrays[i].drawn, expected->rows,
                         lb_lstm_at(net, &arrays[i]));
    return LB_OK;
}

/* Draws the weights of one layer and direction, stores them in canonical form at *at, which moves
 * past them, and packs them for the oracle. */
static enum lb_status draw_layer_dir(struct lb_expected *expected, size_t layer_dir, char **at,
                                     struct lb_error *err)
{
    static const enum lb_drawn parts[LB_WEIGHT_COUNT] = {
        LB_DRAWN_W_IH, LB_DRAWN_W_HH, LB_DRAWN_B_IH, LB_DRAWN_B_HH, LB_DRAWN_W_CELL};
    const struct lb_problem *p = &expected->problem;
    size_t layer_dirs = lb_layer_dir_count(p), total = 0;
    for (int i = 0; i < LB_WEIGHT_COUNT; i++)
        total += lb_weight_elements(p, layer_dir, (enum lb_weight)i);
    double *values = malloc(total * sizeof(double)), *part = values;
    double *drawn[LB_WEIGHT_COUNT];
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory for drawing weights");
    for (size_t i = 0; i < LB_WEIGHT_COUNT; i++) {
        size_t count = lb_weight_elements(p, layer_dir, (enum lb_weight)i);
        drawn[i] = part;
        if (count > 0)
            lb_draw_weights(p, expected->seed, parts[i], layer_dir, part);
        lb_store(p->dtype, *at, part, count);
        expected->weight_table[i * layer_dirs + layer_dir] = *at;
        *at += count * lb_dtype_size(p->dtype);
        part += count;
    }
    lb_oracle_pack(&expected->net, layer_dir, drawn[LB_W_IH], drawn[LB_W_HH], drawn[LB_B_IH],
                   drawn[LB_B_HH], drawn[LB_W_CELL]);
    free(values);
    return LB_OK;
}

static enum lb_status draw_weights(struct lb_expected *expected, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_problem *p = &expected->problem;
    struct lb_counts counts;
    size_t layer_dirs = lb_layer_dir_count(p);
    LB_TRY(lb_problem_counts(p, &counts, err));
    expected->weight_bytes = counts.weights * lb_dtype_size(p->dtype);
    expected->weight_storage = malloc(expected->weight_bytes);
    expected->weight_table = calloc(LB_WEIGHT_COUNT * layer_dirs, sizeof(*expected->weight_table));
    if (!expected->weight_storage || !expected->weight_table)
        return lb_fail(err, LB_OOM, "out of memory for the weights");
    const void **table = expected->weight_table;
    expected->weights = (struct lb_weights){.w_ih = table,
                                            .w_hh = table + layer_dirs,
                                            .b_ih = table + 2 * layer_dirs,
                                            .b_hh = table + 3 * layer_dirs,
                                            .w_cell = table + 4 * layer_dirs};
    char *at = expected->weight_storage;
    for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
        LB_TRY(draw_layer_dir(expected, layer_dir, &at, err));
    expected->weight_hash = lb_hash_bytes(0, expected->weight_storage, expected->weight_bytes);
done:
    return st;
}

enum lb_status lb_expected_gradients(const struct lb_expected *expected, const int32_t *counts,
                                     double *dw, struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    struct lb_oracle net = expected->net;
    size_t H = (size_t)p->hidden, P = (size_t)lb_h_size(p);
    net.operand = malloc(lb_lstm_counts(p).operand * sizeof(double));
    if (!net.operand)
        return lb_fail(err, LB_OOM, "out of memory for the oracle's weight gradients");
    for (size_t layer_dir = 0; layer_dir < lb_layer_dir_count(p); layer_dir++) {
        double *dw_ih = dw + lb_gradient_offset(p, layer_dir);
        double *dw_hh = dw_ih + 4 * H * input_of(p, layer_dir);
        double *db = dw_hh + 4 * H * P;
        lb_oracle_weight_gradients(&net, layer_dir, counts, dw_ih, dw_hh, db, db + 4 * H);
    }
    free(net.operand);
    return LB_OK;
}

/* Measures the rounded evaluation as if it were an implementation's result. */
static enum lb_status measure_rounded(struct lb_expected *expected, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_results results = {0};
    const struct lb_problem *p = &expected->problem;
    double *dw = NULL; /* each row counted once */
    if (lb_has_backward(p)) {
        dw = malloc(lb_gradient_offset(p, lb_layer_dir_count(p)) * sizeof(double));
        if (!dw)
            return lb_fail(err, LB_OOM, "out of memory for the oracle's weight gradients");
        LB_TRY(lb_expected_gradients(expected, NULL, dw, err));
    }
    LB_TRY(lb_results_create(&expected->problem, &results, err));
    LB_TRY(lb_rounded_evaluate(&expected->net, &results, err));
    lb_measure_results(&expected->net, dw, &results, expected->deviations);
done:
    free(dw);
    lb_results_destroy(&results);
    return st;
}

enum lb_status lb_expected_draw(const struct lb_problem *problem, uint64_t seed, size_t rows,
                                struct lb_expected **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_expected *expected = calloc(1, sizeof(*expected));
    *out = NULL;
    if (!expected)
        return lb_fail(err, LB_OOM, "out of memory for the oracle");
    expected->problem = *problem;
    expected->problem.batch = (int64_t)rows;
    expected->problem.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    expected->seed = seed;
    expected->rows = rows;
    LB_TRY(make_arrays(expected, err));
    LB_TRY(draw_weights(expected, err));
    *out = expected;
    expected = NULL;
done:
    lb_expected_destroy(expected);
    return st;
}

/* Bytes of the arrays that stay, but for small ones. */
static size_t bytes_of(const struct lb_expected *expected)
{
    struct lb_lstm_array arrays[LB_LSTM_ARRAYS];
    size_t bytes = sizeof(*expected) + expected->weight_bytes;
    lb_lstm_arrays(&expected->problem, arrays);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        if (lb_lstm_at(&expected->net, &arrays[i]))
            bytes += arrays[i].count * sizeof(double);
    return bytes;
}

enum lb_status lb_expected_create(const struct lb_problem *problem, uint64_t seed, size_t rows,
                                  struct lb_expected **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_fp_environment environment;
    struct lb_expected *expected = NULL;
    *out = NULL;
    lb_fp_enter(&environment);
    LB_TRY(lb_expected_draw(problem, seed, rows, &expected, err));
    lb_oracle_forward(&expected->net);
    if (lb_has_backward(problem)) {
        lb_oracle_backward(&expected->net);
        /* Later calls of lb_expected_gradients, for other batches, read the arrays that stay. */
        if (problem->cell != LB_CELL_PEEPHOLE && problem->cell != LB_CELL_LAYERNORM)
            free_array(&expected->net.cells);
        free_array(&expected->net.between);
        lb_measure_layer_dirs(&expected->net, expected->layer_dir_sizes);
    } else {
        free_array(&expected->net.gates);
    }
    LB_TRY(measure_rounded(expected, err));
    free_array(&expected->net.weights);
    expected->bytes = bytes_of(expected);
    *out = expected;
    expected = NULL;
done:
    lb_fp_leave(&environment);
    lb_expected_destroy(expected);
    return st;
}

void lb_expected_destroy(struct lb_expected *expected)
{
    if (!expected)
        return;
    free(expected->lengths);
    free(expected->weight_storage);
    free(expected->weight_table);
    free(expected->batch_dw);
    free(expected->deviations);
    free(expected->layer_dir_sizes);
    lb_lstm_free(&expected->net);
    free(expected);
}

double lb_expected_bytes(const struct lb_problem *problem, size_t rows)
{
    struct lb_problem p = *problem;
    p.batch = (int64_t)rows;
    p.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    struct lb_lstm_counts n = lb_lstm_counts(&p);
    struct lb_lstm_array arrays[LB_LSTM_ARRAYS];
    double size = (double)lb_dtype_size(p.dtype), states = (double)n.state + (double)n.h, net = 0;
    lb_lstm_arrays(&p, arrays);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        net += (double)arrays[i].count;
    double results = (double)n.y / (double)p.layers + states;
    /* Packed weights hold the matrices twice, and the vectors of peephole or layernorm once. */
    double canonical =
        (double)n.weights / 2 + 10 * (double)p.hidden * (double)(p.layers * p.directions);
    double gradients = 0;
    if (lb_has_backward(&p)) {
        results += (double)n.x + states + canonical;
        gradients = 2 * canonical; /* of both input sets; earlier, of each row once */
    }
    /* The sum counts the oracle's arrays, those of the rounded evaluation with its results, and
     * the weights as drawn. */
    double evaluation = net * (p.dtype == LB_F64 ? sizeof(double) : sizeof(float));
    return (net + gradients + canonical) * sizeof(double) + evaluation +
           (results + canonical) * size;
}

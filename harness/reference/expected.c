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

/* Zeroed memory for count elements of size bytes, added to expected->bytes; sets *failed when
 * memory runs out. */
static void *take(struct lb_expected *expected, size_t count, size_t size, bool *failed)
{
    void *memory = calloc(count + 1, size); /* never NULL for a count of 0 */
    *failed |= memory == NULL;
    expected->bytes += (count + 1) * size;
    return memory;
}

static double *take_doubles(struct lb_expected *expected, size_t count, bool *failed)
{
    return take(expected, count, sizeof(double), failed);
}

static void free_early(struct lb_expected *expected, double **memory, size_t count)
{
    if (*memory)
        expected->bytes -= (count + 1) * sizeof(double);
    free(*memory);
    *memory = NULL;
}

/* Draws the rows of one input tensor into memory of expected. */
static const double *draw_input(struct lb_expected *expected, enum lb_drawn what, size_t count,
                                bool *failed)
{
    double *values = take_doubles(expected, count, failed);
    if (values)
        lb_draw_rows(&expected->problem, expected->seed, what, expected->rows, values);
    return values;
}

/* Rows 0 and 1, of which each input set has one, both have the length T. */
static void draw_lengths(struct lb_expected *expected)
{
    size_t classes = expected->rows > 1 ? expected->rows - 1 : 1;
    lb_draw_lengths(&expected->problem, expected->seed, classes, expected->lengths);
    memmove(expected->lengths + expected->rows - classes, expected->lengths,
            classes * sizeof(int32_t));
}

static enum lb_status make_arrays(struct lb_expected *expected, struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    struct lb_oracle *net = &expected->net;
    bool failed = false;

    if (p->ragged) {
        expected->lengths = take(expected, expected->rows, sizeof(int32_t), &failed);
        if (expected->lengths)
            draw_lengths(expected);
    }
    *net = (struct lb_oracle){.problem = *p, .lengths = expected->lengths};
    net->weights = take_doubles(expected, n.weights, &failed);
    net->x = draw_input(expected, LB_DRAWN_X, n.x, &failed);
    net->h0 = draw_input(expected, LB_DRAWN_H0, n.h, &failed);
    net->c0 = draw_input(expected, LB_DRAWN_C0, n.state, &failed);
    net->y = take_doubles(expected, n.y, &failed);
    net->gates = take_doubles(expected, n.gates, &failed);
    net->mask = n.mask ? draw_input(expected, LB_DRAWN_MASK, n.mask, &failed) : NULL;
    net->scratch = n.scratch ? take_doubles(expected, n.scratch, &failed) : NULL;
    net->kept = n.kept ? take_doubles(expected, n.kept, &failed) : NULL;
    net->dkept = n.dkept ? take_doubles(expected, n.dkept, &failed) : NULL;
    net->norm = n.norm ? take_doubles(expected, n.norm, &failed) : NULL;
    net->hn = take_doubles(expected, n.h, &failed);
    net->cn = take_doubles(expected, n.state, &failed);
    if (lb_has_backward(p)) {
        net->cells = take_doubles(expected, n.cells, &failed);
        net->dy = draw_input(expected, LB_DRAWN_DY, n.between, &failed);
        net->dhn = draw_input(expected, LB_DRAWN_DHN, n.h, &failed);
        net->dcn = draw_input(expected, LB_DRAWN_DCN, n.state, &failed);
        net->dx = take_doubles(expected, n.x, &failed);
        net->dh0 = take_doubles(expected, n.h, &failed);
        net->dc0 = take_doubles(expected, n.state, &failed);
        net->between = take_doubles(expected, n.between, &failed);
        expected->layer_dir_sizes =
            take(expected, lb_layer_dir_count(p), sizeof(*expected->layer_dir_sizes), &failed);
    }
    expected->deviations =
        take(expected, lb_slice_count(p), sizeof(*expected->deviations), &failed);
    return failed ? lb_fail(err, LB_OOM, "out of memory for the oracle") : LB_OK;
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
    bool failed = false;
    LB_TRY(lb_problem_counts(p, &counts, err));
    expected->weight_bytes = counts.weights * lb_dtype_size(p->dtype);
    expected->weight_storage = take(expected, expected->weight_bytes, 1, &failed);
    expected->weight_table =
        take(expected, LB_WEIGHT_COUNT * layer_dirs, sizeof(*expected->weight_table), &failed);
    if (failed)
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
    const struct lb_slice_source source = {
        .oracle = &expected->net, .dw = dw, .results = &results, .batch = expected->rows};
    for (size_t i = 0; i < lb_slice_count(&expected->problem); i++) {
        struct lb_slice slice = lb_slice_at(&source, i);
        expected->deviations[i] = lb_slice_measure(&slice, expected->problem.dtype);
    }
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
    expected->bytes = sizeof(*expected);

    LB_TRY(make_arrays(expected, err));
    LB_TRY(draw_weights(expected, err));
    *out = expected;
    expected = NULL;
done:
    lb_expected_destroy(expected);
    return st;
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
    struct lb_lstm_counts n = lb_lstm_counts(&expected->problem);
    if (lb_has_backward(problem)) {
        lb_oracle_backward(&expected->net);
        /* Later calls of lb_expected_gradients, for other batches, read the arrays that stay. */
        if (problem->cell != LB_CELL_PEEPHOLE && problem->cell != LB_CELL_LAYERNORM)
            free_early(expected, &expected->net.cells, n.cells);
        free_early(expected, &expected->net.between, n.between);
        lb_measure_layer_dirs(&expected->net, expected->layer_dir_sizes);
    } else {
        free_early(expected, &expected->net.gates, n.gates);
    }
    LB_TRY(measure_rounded(expected, err));
    free_early(expected, &expected->net.weights, n.weights);
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
    struct lb_oracle *net = &expected->net;
    void *const arrays[] = {
        expected->lengths,
        expected->weight_storage,
        expected->weight_table,
        expected->batch_dw,
        expected->deviations,
        expected->layer_dir_sizes,
        net->weights,
        net->y,
        net->gates,
        net->cells,
        net->hn,
        net->cn,
        net->dx,
        net->dh0,
        net->dc0,
        net->between,
        net->scratch,
        net->kept,
        net->dkept,
        net->norm,
        (void *)net->mask,
        (void *)net->x,
        (void *)net->h0,
        (void *)net->c0,
        (void *)net->dy,
        (void *)net->dhn,
        (void *)net->dcn,
    };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
    free(expected);
}

double lb_expected_bytes(const struct lb_problem *problem, size_t rows)
{
    struct lb_problem p = *problem;
    p.batch = (int64_t)rows;
    p.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    struct lb_lstm_counts n = lb_lstm_counts(&p);
    double size = (double)lb_dtype_size(p.dtype), states = (double)n.state + (double)n.h;
    double net = (double)n.weights + (double)n.x + 2 * states + (double)n.y + (double)n.gates +
                 (double)n.cells + 2 * (double)n.between + (double)n.operand;
    net += (double)n.mask + (double)n.scratch + (double)n.kept + (double)n.dkept + (double)n.norm;
    double results = (double)n.y / (double)p.layers + states;
    /* Packed weights hold the matrices twice, and the vectors of peephole or layernorm once. */
    double canonical =
        (double)n.weights / 2 + 10 * (double)p.hidden * (double)(p.layers * p.directions);
    double gradients = 0;
    if (lb_has_backward(&p)) {
        net += (double)n.x + 2 * states;
        results += (double)n.x + states + canonical;
        gradients = 2 * canonical; /* of both input sets; earlier, of each row once */
    }
    /* The sum counts the oracle's arrays, those of the rounded evaluation with its results, and
     * the weights as drawn. */
    double evaluation = net * (p.dtype == LB_F64 ? sizeof(double) : sizeof(float));
    return (net + gradients + canonical) * sizeof(double) + evaluation +
           (results + canonical) * size;
}

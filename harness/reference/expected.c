/* The oracle's answer for the distinct rows of a problem, and how exact a result can be expected
 * to be. */
#include "reference/expected.h"

#include <stdlib.h>
#include <string.h>

#include "reference/input_data.h"
#include "reference/rounded_lstm.h"
#include "reference/tolerance.h"
#include "reference/verify.h"

static size_t input_of(const struct lb_problem *p, size_t entry)
{
    return (size_t)lb_layer_input(p, (int64_t)entry / p->directions);
}

size_t lb_gradient_offset(const struct lb_problem *problem, size_t entry)
{
    size_t H = (size_t)problem->hidden, offset = 0;
    for (size_t e = 0; e < entry; e++)
        offset += 4 * H * (input_of(problem, e) + H + 1);
    return offset;
}

/* Memory for count elements of size, kept in the answer's account; *failed is set where there is
 * none. */
static void *take(struct lb_expected *answer, size_t count, size_t size, bool *failed)
{
    void *memory = calloc(count + 1, size); /* not NULL where there is nothing to keep */
    *failed |= memory == NULL;
    answer->bytes += (count + 1) * size;
    return memory;
}

static double *take_doubles(struct lb_expected *answer, size_t count, bool *failed)
{
    return take(answer, count, sizeof(double), failed);
}

static void give_back(struct lb_expected *answer, double **memory, size_t count)
{
    if (*memory)
        answer->bytes -= (count + 1) * sizeof(double);
    free(*memory);
    *memory = NULL;
}

/* Rows of one input tensor, drawn. */
static const double *draw_input(struct lb_expected *answer, enum lb_drawn what, size_t count,
                                bool *failed)
{
    double *values = take_doubles(answer, count, failed);
    if (values)
        lb_draw_rows(&answer->problem, answer->seed, what, answer->rows, values);
    return values;
}

static enum lb_status make_arrays(struct lb_expected *answer, struct lb_error *err)
{
    const struct lb_problem *p = &answer->problem;
    struct lb_lstm_counts n = lb_lstm_counts(p);
    struct lb_oracle *net = &answer->net;
    bool failed = false;

    if (p->ragged) {
        answer->lengths = take(answer, answer->rows, sizeof(int32_t), &failed);
        if (answer->lengths)
            lb_draw_lengths(p, answer->seed, answer->rows, answer->lengths);
    }
    *net = (struct lb_oracle){.problem = *p, .lengths = answer->lengths};
    net->weights = take_doubles(answer, n.weights, &failed);
    net->x = draw_input(answer, LB_DRAWN_X, n.x, &failed);
    net->h0 = draw_input(answer, LB_DRAWN_H0, n.state, &failed);
    net->c0 = draw_input(answer, LB_DRAWN_C0, n.state, &failed);
    net->y = take_doubles(answer, n.y, &failed);
    net->gates = take_doubles(answer, n.gates, &failed);
    net->hn = take_doubles(answer, n.state, &failed);
    net->cn = take_doubles(answer, n.state, &failed);
    if (lb_has_backward(p)) {
        net->cells = take_doubles(answer, n.cells, &failed);
        net->dy = draw_input(answer, LB_DRAWN_DY, n.between, &failed);
        net->dhn = draw_input(answer, LB_DRAWN_DHN, n.state, &failed);
        net->dcn = draw_input(answer, LB_DRAWN_DCN, n.state, &failed);
        net->dx = take_doubles(answer, n.x, &failed);
        net->dh0 = take_doubles(answer, n.state, &failed);
        net->dc0 = take_doubles(answer, n.state, &failed);
        net->between = take_doubles(answer, n.between, &failed);
        answer->dw = take_doubles(answer, lb_gradient_offset(p, lb_layer_dir_count(p)), &failed);
        answer->layer_dir_sizes =
            take(answer, lb_layer_dir_count(p), sizeof(*answer->layer_dir_sizes), &failed);
    }
    answer->deviations = take(answer, lb_slice_count(p), sizeof(*answer->deviations), &failed);
    return failed ? lb_fail(err, LB_OOM, "out of memory for the oracle") : LB_OK;
}

/* Draws one entry's weights: to canonical storage at *at, which moves on, and to the oracle. */
static enum lb_status draw_entry(struct lb_expected *answer, size_t entry, char **at,
                                 struct lb_error *err)
{
    static const enum lb_drawn parts[4] = {LB_DRAWN_W_IH, LB_DRAWN_W_HH, LB_DRAWN_B_IH,
                                           LB_DRAWN_B_HH};
    const struct lb_problem *p = &answer->problem;
    size_t H = (size_t)p->hidden, entries = lb_layer_dir_count(p);
    const size_t counts[4] = {4 * H * input_of(p, entry), 4 * H * H, 4 * H, 4 * H};
    double *values = malloc((counts[0] + counts[1] + 8 * H) * sizeof(double)), *part = values;
    double *drawn[4];
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory for drawing weights");
    for (size_t i = 0; i < 4; i++) {
        drawn[i] = part;
        lb_draw_weights(p, answer->seed, parts[i], entry, part);
        lb_store(p->dtype, *at, part, counts[i]);
        answer->weight_table[i * entries + entry] = *at;
        *at += counts[i] * lb_dtype_size(p->dtype);
        part += counts[i];
    }
    lb_oracle_pack(&answer->net, entry, drawn[0], drawn[1], drawn[2], drawn[3]);
    free(values);
    return LB_OK;
}

static enum lb_status draw_weights(struct lb_expected *answer, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_problem *p = &answer->problem;
    struct lb_counts counts;
    size_t entries = lb_layer_dir_count(p);
    bool failed = false;
    LB_TRY(lb_problem_counts(p, &counts, err));
    answer->weight_storage = take(answer, counts.weights, lb_dtype_size(p->dtype), &failed);
    answer->weight_table = take(answer, 4 * entries, sizeof(*answer->weight_table), &failed);
    if (failed)
        return lb_fail(err, LB_OOM, "out of memory for the weights");
    const void **table = answer->weight_table;
    answer->weights = (struct lb_weights){.w_ih = table,
                                          .w_hh = table + entries,
                                          .b_ih = table + 2 * entries,
                                          .b_hh = table + 3 * entries};
    char *at = answer->weight_storage;
    for (size_t entry = 0; entry < entries; entry++)
        LB_TRY(draw_entry(answer, entry, &at, err));
done:
    return st;
}

enum lb_status lb_expected_gradients(const struct lb_expected *answer, const int32_t *counts,
                                     double *dw, struct lb_error *err)
{
    const struct lb_problem *p = &answer->problem;
    struct lb_oracle net = answer->net;
    size_t H = (size_t)p->hidden;
    net.operand = malloc(lb_lstm_counts(p).operand * sizeof(double));
    if (!net.operand)
        return lb_fail(err, LB_OOM, "out of memory for the oracle's weight gradients");
    for (size_t entry = 0; entry < lb_layer_dir_count(p); entry++) {
        double *dw_ih = dw + lb_gradient_offset(p, entry);
        double *dw_hh = dw_ih + 4 * H * input_of(p, entry);
        lb_oracle_weight_gradients(&net, entry, counts, dw_ih, dw_hh, dw_hh + 4 * H * H);
    }
    free(net.operand);
    return LB_OK;
}

/* Measures the faithful evaluation as if it were an implementation's result. */
static enum lb_status measure_faithful(struct lb_expected *answer, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_results results = {0};
    LB_TRY(lb_results_create(&answer->problem, &results, err));
    /* Before the oracle's backward, which replaces nothing that the evaluation reads. */
    LB_TRY(lb_rounded_evaluate(&answer->net, &results, err));
    struct lb_comparison c = {
        .answer = answer, .results = &results, .batch = answer->rows, .dw = answer->dw};
    for (size_t i = 0; i < lb_slice_count(&answer->problem); i++) {
        struct lb_slice piece = lb_slice_at(&c, i);
        answer->deviations[i] = lb_slice_measure(&piece, answer->problem.dtype);
    }
done:
    lb_results_destroy(&results);
    return st;
}

enum lb_status lb_expected_create(const struct lb_problem *problem, uint64_t seed, size_t rows,
                                  struct lb_expected **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_expected *answer = calloc(1, sizeof(*answer));
    *out = NULL;
    if (!answer)
        return lb_fail(err, LB_OOM, "out of memory for the oracle");
    answer->problem = *problem;
    answer->problem.batch = (int64_t)rows;
    answer->problem.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    answer->seed = seed;
    answer->rows = rows;
    answer->bytes = sizeof(*answer);

    LB_TRY(make_arrays(answer, err));
    LB_TRY(draw_weights(answer, err));
    lb_oracle_forward(&answer->net);
    struct lb_lstm_counts n = lb_lstm_counts(&answer->problem);
    if (answer->dw) {
        lb_oracle_backward(&answer->net);
        give_back(answer, &answer->net.cells, n.cells);
        give_back(answer, &answer->net.between, n.between);
        LB_TRY(lb_expected_gradients(answer, NULL, answer->dw, err));
    } else {
        give_back(answer, &answer->net.gates, n.gates);
    }
    if (answer->dw)
        lb_measure_layer_dirs(answer, answer->layer_dir_sizes);
    LB_TRY(measure_faithful(answer, err));
    give_back(answer, &answer->net.weights, n.weights);
    *out = answer;
    answer = NULL;
done:
    lb_expected_destroy(answer);
    return st;
}

void lb_expected_destroy(struct lb_expected *answer)
{
    if (!answer)
        return;
    struct lb_oracle *net = &answer->net;
    void *const arrays[] = {
        answer->lengths,
        answer->dw,
        answer->weight_storage,
        answer->weight_table,
        answer->batch_dw,
        answer->deviations,
        answer->layer_dir_sizes,
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
        (void *)net->x,
        (void *)net->h0,
        (void *)net->c0,
        (void *)net->dy,
        (void *)net->dhn,
        (void *)net->dcn,
    };
    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        free(arrays[i]);
    free(answer);
}

double lb_expected_bytes(const struct lb_problem *problem, size_t rows)
{
    struct lb_problem p = *problem;
    p.batch = (int64_t)rows;
    p.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    struct lb_lstm_counts n = lb_lstm_counts(&p);
    double size = (double)lb_dtype_size(p.dtype), state = (double)n.state;
    double net = (double)n.weights + (double)n.x + 4 * state + (double)n.y + (double)n.gates +
                 (double)n.cells + 2 * (double)n.between + (double)n.operand;
    double results = (double)n.y / (double)p.layers + 2 * state;
    double canonical = (double)n.weights / 2; /* packed weights hold each twice */
    double gradients = 0;
    if (lb_has_backward(&p)) {
        net += (double)n.x + 4 * state;
        results += (double)n.x + 2 * state + canonical;
        gradients = 2 * canonical; /* of rows that count once, and of the batch */
    }
    /* The oracle's net, the evaluation's beside it with its results, the weights as drawn. */
    double evaluation = net * (p.dtype == LB_F64 ? sizeof(double) : sizeof(float));
    return (net + gradients + canonical) * sizeof(double) + evaluation +
           (results + canonical) * size;
}

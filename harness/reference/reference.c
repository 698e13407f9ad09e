/* Inputs and expected results of one problem at one batch size, and what batch sizes share: the
 * expected results of the distinct rows, how far the rounded evaluation is from them, and a cache
 * of these. */
#include "reference/reference.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "api/impl.h"
#include "base/given_files.h"
#include "base/memory.h"
#include "base/random.h"
#include "device/weight_packing.h"
#include "host/cpu_affinity.h"
#include "host/cpu_units.h"
#include "host/fp_environment.h"
#include "model/case.h"
#include "model/tensor_files.h"
#include "reference/input_data.h"
#include "reference/rounded_lstm.h"

static void free_array(double **array)
{
    free(*array);
    *array = NULL;
}

/* The first rows, of which each input set has one, all have the length T. */
static void draw_lengths(struct lb_expected *expected)
{
    size_t first = LB_INPUT_SETS, others = expected->rows > first ? expected->rows - first : 0;
    int32_t *lengths = expected->lengths + (expected->rows > first ? first - 1 : 0);
    lb_draw_lengths(&expected->problem, expected->seed, others + 1, lengths);
    for (size_t r = 0; r < expected->rows - others; r++)
        expected->lengths[r] = (int32_t)expected->problem.seq_len;
}

/* The largest |x| of the steps that the rows have. */
static double largest_input(const struct lb_oracle *net)
{
    size_t T = (size_t)net->problem.seq_len, R = (size_t)net->problem.batch;
    size_t input = (size_t)net->problem.input;
    double most = 0;
    for (size_t row = 0; row < T * R; row++)
        for (size_t i = 0; i < input; i++)
            if (!net->lengths || row / R < (size_t)net->lengths[row % R])
                most = fmax(most, fabs(net->x[row * input + i]));
    return most;
}

/* Allocates all arrays but `operand`, which lb_expected_gradients has of its own, and draws the
 * inputs. */
static enum lb_status make_arrays(struct lb_expected *expected, struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    struct lb_oracle *net = &expected->net;
    *net = (struct lb_oracle){.problem = *p};
    LB_CHECK(lb_lstm_allocate(net, sizeof(double), err));
    free_array(&net->operand);
    expected->deviations[LB_PLAIN] =
        lb_needed(calloc(lb_slice_count(p), sizeof(struct lb_deviation)));
    expected->layer_dir_sizes =
        lb_needed(calloc(lb_layer_dir_count(p), sizeof(*expected->layer_dir_sizes)));
    if (p->ragged) {
        expected->lengths = lb_needed(calloc(expected->rows, sizeof(int32_t)));
        draw_lengths(expected);
    }
    net->lengths = expected->lengths;
    struct lb_lstm_arrays arrays = lb_lstm_arrays(p);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        if (arrays.at[i].drawn >= 0 && arrays.at[i].count > 0)
            lb_draw_rows(p, expected->seed, (enum lb_tensor)arrays.at[i].drawn, expected->rows,
                         lb_lstm_at(net, &arrays.at[i]));
    net->x_max = (float)largest_input(net);
    return LB_OK;
}

/* Draws the weights of one layer and direction, stores them in canonical form, and packs them for
 * the oracle. */
static enum lb_status draw_layer_dir(struct lb_expected *expected, size_t layer_dir,
                                     struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    size_t layer_dirs = lb_layer_dir_count(p), total = 0;
    for (int i = 0; i < LB_WEIGHT_COUNT; i++)
        total += lb_weight_elements(p, layer_dir, (enum lb_weight)i);
    double *values = malloc(total * sizeof(double)), *part = values;
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory for drawing weights");
    for (size_t i = 0; i < LB_WEIGHT_COUNT; i++) {
        size_t count = lb_weight_elements(p, layer_dir, (enum lb_weight)i);
        if (count > 0)
            lb_draw_weights(p, expected->seed, (enum lb_weight)i, layer_dir, part);
        lb_store(p->dtype, expected->weight_table[i * layer_dirs + layer_dir], part, count);
        part += count;
    }
    lb_oracle_pack(&expected->net, layer_dir, values);
    free(values);
    return LB_OK;
}

static enum lb_status draw_weights(struct lb_expected *expected, struct lb_error *err)
{
    const struct lb_problem *p = &expected->problem;
    size_t layer_dirs = lb_layer_dir_count(p);
    expected->weight_storage = calloc(1, lb_packed_bytes(p, p->dtype));
    expected->weight_table = lb_needed(calloc(LB_WEIGHT_COUNT * layer_dirs, sizeof(void *)));
    if (!expected->weight_storage)
        return lb_fail(err, LB_OOM, "out of memory for the weights");
    lb_packed_table(p, p->dtype, expected->weight_storage, expected->weight_table);
    expected->weights = lb_weights_of(expected->weight_table, layer_dirs);
    for (size_t layer_dir = 0; layer_dir < layer_dirs; layer_dir++)
        LB_CHECK(draw_layer_dir(expected, layer_dir, err));
    return LB_OK;
}

static size_t gradient_count(const struct lb_expected *expected)
{
    return lb_gradient_offset(&expected->problem, lb_layer_dir_count(&expected->problem));
}

/* rows [R] = row r and those after it that count as often as it in every batch. */
static void find_alike(const int32_t *counts, size_t batches, size_t R, size_t r, bool *rows)
{
    for (size_t q = 0; q < R; q++) {
        rows[q] = q >= r;
        for (size_t i = 0; i < batches; i++)
            rows[q] = rows[q] && counts[i * R + q] == counts[i * R + r];
    }
}

/* dw [batches + 1] += part, times how often row r counts in each, and once. */
static void add_part(const int32_t *counts, size_t batches, size_t R, size_t r, const double *part,
                     size_t count, double *dw)
{
    enum { BLOCK = 1024 };
    for (size_t first = 0; first < count; first += BLOCK)
        for (size_t i = 0; i <= batches; i++) {
            const double times = i < batches ? counts[i * R + r] : 1;
            double *to = dw + i * count;
            for (size_t k = first; times > 0 && k < count && k < first + BLOCK; k++)
                to[k] += times * part[k];
        }
}

enum lb_status lb_expected_gradients(const struct lb_expected *expected, const int32_t *counts,
                                     size_t batches, double *dw, struct lb_error *err)
{
    struct lb_oracle net = expected->net;
    const size_t R = expected->rows, count = gradient_count(expected);
    bool *rows = lb_needed(calloc(2 * R, sizeof(*rows))), *summed = rows + R;
    double *part = malloc(count * sizeof(*part));
    enum lb_status st = LB_OK;
    net.operand = malloc(lb_lstm_counts(&expected->problem).operand * sizeof(double));
    if (!part || !net.operand)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for the oracle's weight gradients"));
    memset(dw, 0, (batches + 1) * count * sizeof(*dw));
    for (size_t r = 0; r < R; r++) {
        if (summed[r])
            continue;
        find_alike(counts, batches, R, r, rows);
        for (size_t q = r; q < R; q++)
            summed[q] = summed[q] || rows[q];
        for (size_t e = 0; e < lb_layer_dir_count(&net.problem); e++)
            lb_oracle_weight_gradients(&net, e, rows, part + lb_gradient_offset(&net.problem, e));
        add_part(counts, batches, R, r, part, count, dw);
    }
done:
    free(net.operand);
    free(part);
    free(rows);
    return st;
}

/* A rounded evaluation, on a thread of its own, which inherits the floating-point environment: the
 * oracle is computed meanwhile. */
struct evaluation {
    struct lb_oracle inputs; /* a copy: the oracle releases arrays of its own */
    enum lb_arithmetic arithmetic;
    bool started;
    pthread_t thread;
    struct lb_results results;
    enum lb_status status;
    struct lb_error err;
};

static void *evaluate(void *user)
{
    struct evaluation *evaluation = user;
    evaluation->status = lb_rounded_evaluate(&evaluation->inputs, evaluation->arithmetic,
                                             &evaluation->results, &evaluation->err);
    return NULL;
}

/* lb_while_unpinned: a case of one thread leaves the other CPUs idle. */
static void start_thread(void *user)
{
    struct evaluation *evaluation = user;
    evaluation->started = pthread_create(&evaluation->thread, NULL, evaluate, evaluation) == 0;
}

/* Begins the rounded evaluation of `inputs`, the problem's inputs and weights. */
static enum lb_status begin_evaluation(const struct lb_oracle *inputs,
                                       enum lb_arithmetic arithmetic, struct evaluation *evaluation,
                                       struct lb_error *err)
{
    *evaluation = (struct evaluation){.inputs = *inputs, .arithmetic = arithmetic};
    LB_CHECK(lb_results_create(&inputs->problem, &evaluation->results, err));
    lb_while_unpinned(start_thread, evaluation);
    return LB_OK;
}

/* Measures the evaluation as if it were an implementation's result. dw: the oracle's weight
 * gradients of each row once; NULL: no backward. */
static enum lb_status measure_evaluation(const struct lb_expected *expected,
                                         struct evaluation *evaluation, const double *dw,
                                         struct lb_deviation *deviations, struct lb_error *err)
{
    if (evaluation->started)
        pthread_join(evaluation->thread, NULL);
    else
        evaluate(evaluation);
    evaluation->started = false;
    if (evaluation->status != LB_OK)
        return lb_fail(err, evaluation->status, "%s", evaluation->err.text);
    lb_measure_results(&expected->net, dw, &evaluation->results, deviations);
    return LB_OK;
}

static void end_evaluation(struct evaluation *evaluation)
{
    if (evaluation->started)
        pthread_join(evaluation->thread, NULL);
    lb_results_destroy(&evaluation->results);
}

/* Draws the inputs and weights alone: results, deviations and gradients stay unset. */
static enum lb_status draw_expected(const struct lb_problem *problem, uint64_t seed, size_t rows,
                                    struct lb_expected **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_expected *expected = lb_needed(calloc(1, sizeof(*expected)));
    *out = NULL;
    expected->problem = *problem;
    expected->problem.batch = (int64_t)rows;
    expected->problem.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    expected->seed = seed;
    expected->given = lb_given_files_version();
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
    size_t bytes = lb_packed_bytes(&expected->problem, expected->problem.dtype);
    if (expected->batch_dw)
        bytes += (LB_INPUT_SETS + 1) * gradient_count(expected) * sizeof(double);
    struct lb_lstm_arrays arrays = lb_lstm_arrays(&expected->problem);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        if (lb_lstm_at(&expected->net, &arrays.at[i]))
            bytes += arrays.at[i].count * sizeof(double);
    return bytes;
}

/* Keeps the weight gradients of these batches, of B rows each. */
static enum lb_status keep_gradients(struct lb_expected *expected, const int32_t *counts,
                                     size_t batches, int64_t batch, struct lb_error *err)
{
    free(expected->batch_dw);
    expected->batch = 0;
    expected->batch_dw = malloc((batches + 1) * gradient_count(expected) * sizeof(double));
    if (!expected->batch_dw)
        return lb_fail(err, LB_OOM, "out of memory for the oracle's weight gradients");
    LB_CHECK(lb_expected_gradients(expected, counts, batches, expected->batch_dw, err));
    expected->batch = batch;
    return LB_OK;
}

enum lb_status lb_expected_create(const struct lb_problem *problem, size_t carried_every,
                                  uint64_t seed, size_t rows, const int32_t *counts, size_t batches,
                                  struct lb_expected **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const double *once = NULL;
    fenv_t environment;
    struct evaluation evaluation = {.started = false};
    struct lb_expected *expected = NULL;
    *out = NULL;
    lb_fp_enter(&environment);
    LB_TRY(draw_expected(problem, seed, rows, &expected, err));
    expected->net.carried_every = carried_every;
    LB_TRY(begin_evaluation(&expected->net, LB_PLAIN, &evaluation, err));
    lb_oracle_forward(&expected->net);
    if (lb_has_backward(problem)) {
        lb_oracle_backward(&expected->net);
        /* Later calls of lb_expected_gradients, for other batches, read the arrays that stay. */
        if (problem->cell != LB_CELL_PEEPHOLE && problem->cell != LB_CELL_LAYERNORM)
            free_array(&expected->net.cells);
        free_array(&expected->net.between);
        lb_measure_layer_dirs(&expected->net, expected->layer_dir_sizes);
        LB_TRY(keep_gradients(expected, counts, batches, problem->batch, err));
        once = expected->batch_dw + batches * gradient_count(expected);
    } else {
        free_array(&expected->net.gates);
    }
    LB_TRY(measure_evaluation(expected, &evaluation, once, expected->deviations[LB_PLAIN], err));
    if (problem->dtype != LB_INT8) /* lb_reference_scheme_error evaluates again */
        free_array(&expected->net.weights);
    *out = expected;
    expected = NULL;
done:
    end_evaluation(&evaluation);
    fesetenv(&environment);
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
    for (int i = 0; i < LB_ARITHMETICS; i++)
        free(expected->deviations[i]);
    free(expected->layer_dir_sizes);
    lb_lstm_free(&expected->net);
    free(expected);
}

/* One set of inputs: which rows it has, and their values. */
struct input_set {
    struct lb_inputs inputs;
    int32_t *class_of; /* [B] */
};

struct lb_reference {
    struct lb_reference_cache *cache, own; /* own: which keeps nothing after close */
    struct lb_expected *expected;
    size_t batch;
    struct input_set sets[LB_INPUT_SETS];
    int32_t *counts;  /* [LB_INPUT_SETS][R] how often each set has each row */
    int32_t *lengths; /* [B]; NULL when not ragged */
};

/* Whether these results serve the problem; those with a backward also serve one without. */
static bool serves(const struct lb_expected *expected, const struct lb_problem *p,
                   size_t carried_every, uint64_t seed, size_t rows)
{
    struct lb_case a = {.problem = expected->problem}, b = {.problem = *p};
    b.problem.batch = a.problem.batch;
    b.problem.pass = a.problem.pass;
    return expected->net.carried_every == carried_every && expected->seed == seed &&
           expected->given == lb_given_files_version() && expected->rows == rows &&
           lb_case_same_problem(&a, &b) &&
           lb_has_backward(&expected->problem) >= lb_has_backward(p);
}

/* Drops the oldest results that nobody uses until the others fit. */
static void trim(struct lb_reference_cache *cache)
{
    for (;;) {
        size_t bytes = 0;
        struct lb_expected **oldest = NULL;
        for (struct lb_expected **at = &cache->newest; *at; at = &(*at)->older) {
            bytes += bytes_of(*at);
            if ((*at)->users == 0)
                oldest = at;
        }
        if (bytes <= cache->max_bytes || !oldest)
            return;
        struct lb_expected *expected = *oldest;
        *oldest = expected->older;
        lb_expected_destroy(expected);
    }
}

void lb_reference_cache_clear(struct lb_reference_cache *cache)
{
    cache->max_bytes = 0;
    trim(cache);
}

/* The expected results of a problem, found or computed, with one more user. counts NULL: the inputs
 * alone. */
static enum lb_status get_expected(struct lb_reference_cache *cache,
                                   const struct lb_problem *problem, size_t carried_every,
                                   uint64_t seed, const int32_t *counts, struct lb_expected **out,
                                   struct lb_error *err)
{
    size_t rows = lb_row_count(problem);
    struct lb_expected **at = &cache->newest, *expected = NULL;
    while (counts && *at && !serves(*at, problem, carried_every, seed, rows))
        at = &(*at)->older;
    if (!counts) {
        LB_CHECK(draw_expected(problem, seed, rows, &expected, err));
    } else if (*at) {
        expected = *at;
        *at = expected->older;
    } else {
        LB_CHECK(lb_expected_create(problem, carried_every, seed, rows, counts, LB_INPUT_SETS,
                                    &expected, err));
        cache->computed++;
    }
    expected->older = cache->newest;
    cache->newest = expected;
    expected->users++;
    *out = expected;
    return LB_OK;
}

/* Deals the rows of an input tensor to the batch: from [steps, R, width] -> *out [steps, B, width]
 * in the problem's dtype. */
static enum lb_status deal_rows(const struct lb_reference *reference, const int32_t *class_of,
                                const double *from, size_t steps, size_t width, void **out,
                                struct lb_error *err)
{
    enum lb_dtype dtype = reference->expected->problem.dtype;
    size_t rows = reference->expected->rows, row_bytes = width * lb_dtype_size(dtype);
    char *stored = malloc(rows * row_bytes), *to = malloc(steps * reference->batch * row_bytes);
    *out = to;
    if (!stored || !to) {
        free(stored);
        return lb_fail(err, LB_OOM, "out of memory for inputs");
    }
    for (size_t s = 0; s < steps; s++) {
        lb_store(dtype, stored, from + s * rows * width, rows * width);
        for (size_t b = 0; b < reference->batch; b++, to += row_bytes)
            memcpy(to, stored + (size_t)class_of[b] * row_bytes, row_bytes);
    }
    free(stored);
    return LB_OK;
}

static enum lb_status deal_inputs(struct lb_reference *reference, struct input_set *set,
                                  const struct lb_problem *p, struct lb_error *err)
{
    const struct lb_oracle *net = &reference->expected->net;
    set->inputs.weights = reference->expected->weights;
    set->inputs.lengths = reference->lengths;
    set->inputs.x_max = net->x_max;
    struct lb_lstm_arrays arrays = lb_lstm_arrays(&net->problem);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++) {
        enum lb_tensor t = (enum lb_tensor)arrays.at[i].drawn;
        size_t steps, width;
        if (arrays.at[i].drawn < 0 || !lb_has_tensor(p, t))
            continue;
        lb_tensor_shape(p, t, &steps, &width);
        LB_CHECK(deal_rows(reference, set->class_of, lb_lstm_at(net, &arrays.at[i]), steps, width,
                           &set->inputs.at[t], err));
    }
    return LB_OK;
}

static void deal_sets(struct lb_reference *reference, const struct lb_problem *p, uint64_t seed)
{
    const size_t R = lb_row_count(p), B = (size_t)p->batch;
    reference->counts = lb_needed(malloc(LB_INPUT_SETS * R * sizeof(int32_t)));
    for (int i = 0; i < LB_INPUT_SETS; i++) {
        reference->sets[i].class_of = lb_needed(malloc(B * sizeof(int32_t)));
        lb_deal_set(p, seed, i, reference->sets[i].class_of, reference->counts + (size_t)i * R);
    }
}

static enum lb_status deal_all_inputs(struct lb_reference *reference, const struct lb_problem *p,
                                      struct lb_error *err)
{
    if (p->ragged)
        reference->lengths = lb_needed(malloc(reference->batch * sizeof(int32_t)));
    for (size_t b = 0; p->ragged && b < reference->batch; b++)
        reference->lengths[b] = reference->expected->lengths[reference->sets[0].class_of[b]];
    for (int i = 0; i < LB_INPUT_SETS; i++)
        LB_CHECK(deal_inputs(reference, &reference->sets[i], p, err));
    return LB_OK;
}

/* Whether the problem's dtype can hold values up to max_abs. */
static enum lb_status check_range(const char *what, double max_abs,
                                  const struct lb_problem *problem, struct lb_error *err)
{
    if (!isinf(lb_round(problem->dtype, max_abs)))
        return LB_OK;
    return lb_fail(err, LB_UNSUPPORTED, "the given %s go up to %.3g, which %s can't hold", what,
                   max_abs, lb_dtype_name(problem->dtype));
}

/* Reads the files of weights and inputs, where they are given, and holds the problem to them. */
static enum lb_status check_given(const struct lb_problem *problem, struct lb_error *err)
{
    const struct lb_weights_file *weights;
    const struct lb_sequence_file *x;
    LB_CHECK(lb_weights_given(&weights, err));
    LB_CHECK(lb_inputs_given(&x, err));
    if (weights &&
        (weights->input != problem->input || weights->hidden != problem->hidden ||
         weights->layers != problem->layers || weights->directions != problem->directions ||
         problem->cell != LB_CELL_STANDARD))
        return lb_fail(err, LB_INVALID, "the problem does not fit the file of weights");
    if (x && (x->seq_len != problem->seq_len || x->batch != problem->batch ||
              x->width != problem->input))
        return lb_fail(err, LB_INVALID, "the problem has other sizes than the file of inputs");
    if (x)
        LB_CHECK(check_range("inputs", x->max_abs, problem, err));
    return weights ? check_range("weights", weights->max_abs, problem, err) : LB_OK;
}

enum lb_status lb_reference_open(struct lb_reference_cache *cache, const struct lb_problem *problem,
                                 size_t carried_every, uint64_t seed, bool with_oracle,
                                 struct lb_reference **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    fenv_t environment;
    struct lb_reference *reference = lb_needed(calloc(1, sizeof(*reference)));
    *out = NULL;
    lb_fp_enter(&environment);
    LB_TRY(check_given(problem, err));
    reference->cache = cache && with_oracle ? cache : &reference->own;
    reference->batch = (size_t)problem->batch;
    deal_sets(reference, problem, seed);
    LB_TRY(get_expected(reference->cache, problem, carried_every, seed,
                        with_oracle ? reference->counts : NULL, &reference->expected, err));
    LB_TRY(deal_all_inputs(reference, problem, err));
    if (with_oracle && lb_has_backward(problem) && reference->expected->batch != problem->batch)
        LB_TRY(keep_gradients(reference->expected, reference->counts, LB_INPUT_SETS, problem->batch,
                              err));
    *out = reference;
    reference = NULL;
done:
    fesetenv(&environment);
    lb_reference_close(reference);
    return st;
}

void lb_reference_close(struct lb_reference *reference)
{
    if (!reference)
        return;
    if (reference->expected) {
        reference->expected->users--;
        trim(reference->cache);
    }
    for (int i = 0; i < LB_INPUT_SETS; i++) {
        struct input_set *set = &reference->sets[i];
        for (int t = 0; t < LB_Y; t++)
            free(set->inputs.at[t]);
        free(set->class_of);
    }
    free(reference->counts);
    free(reference->lengths);
    free(reference);
}

const struct lb_inputs *lb_reference_inputs(const struct lb_reference *reference, int set)
{
    return &reference->sets[set].inputs;
}

bool lb_reference_lengths_intact(const struct lb_reference *reference)
{
    for (size_t b = 0; reference->lengths && b < reference->batch; b++)
        if (reference->lengths[b] != reference->expected->lengths[reference->sets[0].class_of[b]])
            return false;
    return true;
}

double lb_reference_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    struct lb_problem p = *problem; /* of the distinct rows, as lb_expected_create has it */
    double size = (double)lb_dtype_size(p.dtype), inputs = 0, net = 0, gradients = 0, results = 0;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return 0;
    p.batch = (int64_t)lb_row_count(problem);
    p.pass = lb_has_backward(problem) ? LB_TRAIN : LB_INFER;
    double weights = (double)n.weights;
    if (lb_has_backward(&p)) {
        results = weights;                         /* their gradients */
        gradients = (LB_INPUT_SETS + 2) * weights; /* of all sets, each row once, and some rows */
    }
    struct lb_lstm_arrays arrays = lb_lstm_arrays(&p);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        net += (double)arrays.at[i].count;
    for (enum lb_tensor t = LB_X; t < LB_Y; t++)
        inputs += (double)lb_tensor_elements(problem, t);
    for (enum lb_tensor t = LB_Y; t < LB_TENSOR_COUNT; t++)
        results += (double)lb_tensor_elements(&p, t);
    /* The sum counts the oracle's arrays, those of the rounded evaluation with its results, and
     * the weights as drawn. */
    double evaluation =
        net * (p.dtype == LB_F64 || p.dtype == LB_INT8 ? sizeof(double) : sizeof(float));
    return (net + gradients + weights) * sizeof(double) + evaluation +
           (LB_INPUT_SETS * inputs + results + weights) * size;
}

/* Moves every weight by about a rounding of the dtype, up or down at random. */
static void shake_weights(const struct lb_oracle *net)
{
    const size_t count = lb_lstm_counts(&net->problem).weights;
    const double rounding = lb_dtype_roundoff(net->problem.dtype);
    for (size_t i = 0; i < count; i++)
        net->weights[i] *= lb_random_bits(0, 0, i) & 1 ? 1 + rounding : 1 - rounding;
}

/* Measures another evaluation; a plain one has shaken weights. The oracle's weights are gone, so
 * all inputs are drawn anew. */
static enum lb_status measure_other(const struct lb_expected *expected,
                                    enum lb_arithmetic arithmetic, struct lb_deviation *deviations)
{
    enum lb_status st = LB_OK;
    struct evaluation evaluation = {.started = false};
    struct lb_expected *drawn = NULL;
    double *once = NULL;
    LB_TRY(draw_expected(&expected->problem, expected->seed, expected->rows, &drawn, NULL));
    drawn->net.carried_every = expected->net.carried_every;
    if (arithmetic == LB_PLAIN)
        shake_weights(&drawn->net);
    LB_TRY(begin_evaluation(&drawn->net, arithmetic, &evaluation, NULL));
    if (lb_has_backward(&expected->problem)) {
        once = lb_needed(malloc(gradient_count(expected) * sizeof(*once)));
        LB_TRY(lb_expected_gradients(expected, NULL, 0, once, NULL));
    }
    LB_TRY(measure_evaluation(expected, &evaluation, once, deviations, NULL));
done:
    end_evaluation(&evaluation);
    free(once);
    lb_expected_destroy(drawn);
    return st;
}

/* In f32 and f64, errors that grow from step to step mostly have one cause, and the rounded
 * evaluation may be close to the oracle by luck. Where a result is too far off, the larger
 * deviations of two evaluations count, for it and for all that follow. Returns whether they are
 * new. */
static bool take_larger_deviations(struct lb_expected *expected, const struct lb_check *check)
{
    const struct lb_problem *p = &expected->problem;
    const size_t slices = lb_slice_count(p);
    bool near = check->right && check->error_ratio <= check->usual_error_ratio;
    if (!lb_is_wide(p) || near || expected->twice || !isfinite(check->err_norm))
        return false;
    struct lb_deviation *others = lb_needed(calloc(slices, sizeof(*others)));
    expected->twice = measure_other(expected, LB_PLAIN, others) == LB_OK;
    for (size_t i = 0; i < slices && expected->twice; i++) {
        struct lb_deviation *own = &expected->deviations[LB_PLAIN][i];
        own->max_abs = fmax(own->max_abs, others[i].max_abs);
        own->sum_squares = fmax(own->sum_squares, others[i].sum_squares);
    }
    free(others);
    return expected->twice;
}

/* Compares with the deviations of an arithmetic, which are measured at their first use. Returns
 * false without memory for that. */
static bool compare_by(struct lb_expected *expected, enum lb_arithmetic arithmetic,
                       struct lb_comparison *comparison, struct lb_check *check)
{
    struct lb_deviation **deviations = &expected->deviations[arithmetic];
    if (!*deviations) {
        *deviations = lb_needed(calloc(lb_slice_count(&expected->problem), sizeof(**deviations)));
        if (measure_other(expected, arithmetic, *deviations) != LB_OK) {
            free(*deviations);
            *deviations = NULL;
            return false;
        }
    }
    comparison->deviations = *deviations;
    comparison->arithmetic = arithmetic;
    lb_compare(comparison, check);
    return true;
}

/* The arithmetic of a right implementation with these traits. Where the CPU lacks AVX512-VNNI, a
 * library may have weights of 7 bits without saying so (impls/onednn/onednn.c). */
static enum lb_arithmetic arithmetic_of(const struct lb_problem *problem, uint32_t traits)
{
    if (traits & LB_ROUNDS_OPERATIONS && lb_rounds_by_operation(problem))
        return LB_BY_OPERATION;
    if (problem->dtype == LB_INT8 && !(traits & LB_QUANTISES_PLAINLY) && lb_cpu_lacks_avx512_vnni())
        return LB_SEVEN_BITS;
    return LB_PLAIN;
}

/* Results outside their tolerance are still those of the network where the coarse evaluation is as
 * far off: they have low precision. */
static void compare_in(struct lb_expected *expected, enum lb_arithmetic arithmetic,
                       struct lb_comparison *comparison, struct lb_check *check)
{
    struct lb_check coarse;
    if (!compare_by(expected, arithmetic, comparison, check))
        compare_by(expected, LB_PLAIN, comparison, check);
    if (take_larger_deviations(expected, check))
        lb_compare(comparison, check);
    if (!check->right && isfinite(check->err_norm) && arithmetic != LB_BY_OPERATION &&
        lb_coarse_arithmetic(&expected->problem) &&
        compare_by(expected, LB_COARSE, comparison, &coarse))
        check->coarse = coarse.right;
}

void lb_reference_check(const struct lb_reference *reference, int set,
                        const struct lb_results *results, uint32_t traits, struct lb_check *check)
{
    struct lb_expected *expected = reference->expected;
    struct lb_comparison comparison = {
        .oracle = &expected->net,
        .layer_dir_sizes = expected->layer_dir_sizes,
        .results = results,
        .batch = reference->batch,
        .class_of = reference->sets[set].class_of,
        .counts = reference->counts + (size_t)set * expected->rows,
    };
    fenv_t environment;
    if (results->at[LB_DX])
        comparison.dw = expected->batch_dw + (size_t)set * gradient_count(expected);
    lb_fp_enter(&environment);
    compare_in(expected, arithmetic_of(&expected->problem, traits), &comparison, check);
    fesetenv(&environment);
}

/* The results [R rows] of the first batch row of each class; a class that the set lacks has those
 * of the first row. */
static void gather_rows(const struct lb_reference *reference, int set,
                        const struct lb_results *results, enum lb_tensor tensor, double *to)
{
    const struct lb_problem *p = &reference->expected->problem;
    size_t steps, width, R = reference->expected->rows, B = reference->batch;
    lb_tensor_shape(p, tensor, &steps, &width);
    for (size_t r = 0; r < R; r++) {
        size_t b = 0;
        for (size_t i = B; i-- > 0;)
            if ((size_t)reference->sets[set].class_of[i] == r)
                b = i;
        for (size_t s = 0; s < steps; s++)
            lb_load(p->dtype,
                    (const char *)results->at[tensor] +
                        (s * B + b) * width * results->element_bytes,
                    to + (s * R + r) * width, width);
    }
}

/* The largest difference of these rows and the evaluation's in the classes of the set, relative to
 * values above 1, as of a c that is kept for many steps; NaN where a result is. */
static double largest_difference(const struct lb_reference *reference, int set,
                                 const struct lb_results *results,
                                 const struct lb_results *evaluated, enum lb_tensor tensor,
                                 double *scratch)
{
    const struct lb_problem *p = &reference->expected->problem;
    size_t steps, width, R = reference->expected->rows;
    const float *own = evaluated->at[tensor];
    double largest = 0;
    lb_tensor_shape(p, tensor, &steps, &width);
    gather_rows(reference, set, results, tensor, scratch);
    for (size_t i = 0; i < steps * R * width && !isnan(largest); i++) {
        double off = fabs(scratch[i] - (double)own[i]) / fmax(1, fabs((double)own[i]));
        if (reference->counts[(size_t)set * R + i / width % R] > 0 && !(off <= largest))
            largest = off;
    }
    return largest;
}

enum lb_status lb_reference_scheme_error(const struct lb_reference *reference, int set,
                                         const struct lb_results *results, double *error,
                                         struct lb_error *err)
{
    enum lb_status st = LB_OK;
    fenv_t environment;
    struct lb_oracle net = reference->expected->net;
    struct lb_results evaluated = {0};
    struct lb_lstm_counts n = lb_lstm_counts(&net.problem);
    size_t last = n.y / (size_t)net.problem.layers;
    double *rows = malloc((last > n.state ? last : n.state) * sizeof(*rows));
    double *given = malloc(last * sizeof(*given));
    lb_fp_enter(&environment);
    *error = 0;
    if (!rows || !given)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for the evaluation of int8"));
    gather_rows(reference, set, results, LB_Y, given);
    net.given_h = given;
    LB_TRY(lb_results_create(&net.problem, &evaluated, err));
    LB_TRY(lb_rounded_evaluate(&net, LB_PLAIN, &evaluated, err));
    for (enum lb_tensor tensor = LB_Y; tensor <= LB_CN; tensor++) {
        double off = largest_difference(reference, set, results, &evaluated, tensor, rows);
        *error = *error > off || isnan(*error) ? *error : off;
    }
done:
    fesetenv(&environment);
    lb_results_destroy(&evaluated);
    free(given);
    free(rows);
    return st;
}

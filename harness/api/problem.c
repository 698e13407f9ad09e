/* What follows from a problem's sizes: counts, flops, bytes. */
#include "problem.h"

const char *lb_pass_name(enum lb_pass pass)
{
    static const char *const names[LB_PASS_COUNT] = {"infer", "forward", "backward", "train"};
    return names[pass];
}

const char *lb_math_name(enum lb_math math)
{
    static const char *const names[LB_MATH_COUNT] = {"ieee", "tf32", "half"};
    return names[math];
}

const char *lb_act_name(enum lb_act act)
{
    static const char *const names[LB_ACT_COUNT] = {"tanh", "relu"};
    return names[act];
}

bool lb_trains(const struct lb_problem *problem)
{
    return problem->pass != LB_INFER;
}

bool lb_has_backward(const struct lb_problem *problem)
{
    return problem->pass == LB_BACKWARD || problem->pass == LB_TRAIN;
}

int64_t lb_layer_input(const struct lb_problem *problem, int64_t layer)
{
    return layer == 0 ? problem->input : problem->directions * problem->hidden;
}

size_t lb_layer_dir_count(const struct lb_problem *problem)
{
    return (size_t)(problem->layers * problem->directions);
}

/* Multiplies the n factors; false when the product is larger than INT64_MAX. */
static bool multiply(const int64_t *factors, size_t n, int64_t *product)
{
    *product = 1;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(*product, factors[i], product))
            return false;
    return true;
}

/* Weights and biases of a layer: D * 4H * (I_l + H + 2). */
static bool layer_weights(const struct lb_problem *p, int64_t layer_input, int64_t *count)
{
    int64_t columns;
    if (__builtin_add_overflow(layer_input, p->hidden, &columns) ||
        __builtin_add_overflow(columns, 2, &columns))
        return false;
    return multiply((const int64_t[]){4, p->directions, p->hidden, columns}, 4, count);
}

enum lb_status lb_problem_counts(const struct lb_problem *problem, struct lb_counts *counts,
                                 struct lb_error *err)
{
    const struct lb_problem *p = problem;
    int64_t size = (int64_t)lb_dtype_size(p->dtype);
    int64_t x, y, state, first, later, weights, total, bytes, wide;

    bool fits =
        multiply((const int64_t[]){p->directions, p->hidden}, 2, &wide) &&
        multiply((const int64_t[]){p->seq_len, p->batch, p->input}, 3, &x) &&
        multiply((const int64_t[]){p->seq_len, p->batch, wide}, 3, &y) &&
        multiply((const int64_t[]){p->layers, p->batch, wide}, 3, &state) &&
        layer_weights(p, p->input, &first) && layer_weights(p, wide, &later) &&
        multiply((const int64_t[]){p->layers - 1, later}, 2, &weights) &&
        !__builtin_add_overflow(weights, first, &weights) &&
        !__builtin_add_overflow(x, y, &total) && !__builtin_add_overflow(total, state, &total) &&
        !__builtin_add_overflow(total, weights, &total) &&
        /* 16: room for the gradients and for the oracle's doubles, which have the same shapes. */
        multiply((const int64_t[]){total, size, 16}, 3, &bytes);
    if (!fits)
        return lb_fail(err, LB_OOM, "needs more bytes than 64 bits can count");
    *counts = (struct lb_counts){(size_t)x, (size_t)y, (size_t)state, (size_t)weights};
    return LB_OK;
}

double lb_problem_flops(const struct lb_problem *problem)
{
    const struct lb_problem *p = problem;
    double columns = 0;
    for (int64_t l = 0; l < p->layers && l < 2; l++) /* all later layers have the same input size */
        columns += (l == 0 ? 1.0 : (double)(p->layers - 1)) *
                   ((double)lb_layer_input(p, l) + (double)p->hidden);
    double forward = 2.0 * (double)p->seq_len * (double)p->batch * (double)p->directions * 4.0 *
                     (double)p->hidden * columns;
    static const double passes[LB_PASS_COUNT] = {1, 1, 2, 3};
    return forward * passes[p->pass];
}

double lb_problem_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return 0;
    double x = (double)n.x, y = (double)n.y, state = (double)n.state, w = (double)n.weights;
    double forward = x + w + 2 * state + y + 2 * state;
    /* Backward reads x, y, the weights, dy, h0, c0, dhn and dcn, and writes dx, dh0, dc0 and dW. */
    double backward = x + y + w + y + 4 * state + x + 2 * state + w;
    double elements = problem->pass == LB_BACKWARD ? backward
                      : problem->pass == LB_TRAIN  ? forward + backward
                                                   : forward;
    return elements * (double)lb_dtype_size(problem->dtype);
}

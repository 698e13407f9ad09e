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

const char *lb_cell_name(enum lb_cell_kind cell)
{
    static const char *const names[LB_CELL_COUNT] = {"standard",   "layernorm", "recurrent-dropout",
                                                     "projection", "peephole",  "residual"};
    return names[cell];
}

bool lb_trains(const struct lb_problem *problem)
{
    return problem->pass != LB_INFER;
}

bool lb_has_backward(const struct lb_problem *problem)
{
    return problem->pass == LB_BACKWARD || problem->pass == LB_TRAIN;
}

int64_t lb_h_size(const struct lb_problem *problem)
{
    return problem->cell == LB_CELL_PROJECTION ? problem->projection : problem->hidden;
}

size_t lb_h_count(const struct lb_problem *problem)
{
    return lb_layer_dir_count(problem) * (size_t)problem->batch * (size_t)lb_h_size(problem);
}

/* Rows of w_cell [rows, H]. */
static int64_t cell_weight_rows(const struct lb_problem *problem)
{
    switch (problem->cell) {
    case LB_CELL_LAYERNORM: return 10;
    case LB_CELL_PROJECTION: return problem->projection;
    case LB_CELL_PEEPHOLE: return 3;
    default: return 0;
    }
}

size_t lb_cell_weight_count(const struct lb_problem *problem)
{
    return (size_t)cell_weight_rows(problem) * (size_t)problem->hidden;
}

int64_t lb_layer_input(const struct lb_problem *problem, int64_t layer)
{
    return layer == 0 ? problem->input : problem->directions * lb_h_size(problem);
}

size_t lb_layer_dir_count(const struct lb_problem *problem)
{
    return (size_t)(problem->layers * problem->directions);
}

enum lb_status lb_problem_counts(const struct lb_problem *problem, struct lb_counts *counts,
                                 struct lb_error *err)
{
    const struct lb_problem *p = problem;
    double rows = (double)p->seq_len * (double)p->batch, H = (double)p->hidden;
    double L = (double)p->layers, D = (double)p->directions, P = (double)lb_h_size(p);
    double own = (double)cell_weight_rows(p), input = (double)p->input;
    double x = rows * input, y = rows * D * P, state = L * D * (double)p->batch * H;
    double weights = D * H * (4 * (input + P + 2) + own);
    weights += (L - 1) * D * H * (4 * (D * P + P + 2) + own);
    /* 16: room for the gradients and for the oracle's doubles, which have the same shapes. Below
     * the limit all counts are exact. */
    if ((x + y + state + weights) * (double)lb_dtype_size(p->dtype) * 16 >= 0x1p56)
        return lb_fail(err, LB_OOM, "needs more bytes than any memory has");
    *counts = (struct lb_counts){(size_t)x, (size_t)y, (size_t)state, (size_t)weights};
    return LB_OK;
}

double lb_problem_flops(const struct lb_problem *problem)
{
    const struct lb_problem *p = problem;
    double D = (double)p->directions, P = (double)lb_h_size(p);
    double projected = p->cell == LB_CELL_PROJECTION ? P : 0;
    double columns = 4 * ((double)p->input + P) + projected;
    columns += ((double)p->layers - 1) * (4 * (D * P + P) + projected);
    double forward = 2.0 * (double)p->seq_len * (double)p->batch * D * (double)p->hidden * columns;
    static const double passes[LB_PASS_COUNT] = {1, 1, 2, 3};
    return forward * passes[p->pass];
}

double lb_problem_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return 0;
    double x = (double)n.x, y = (double)n.y, w = (double)n.weights;
    if (problem->dtype == LB_INT8) /* which alone are kept as integers */
        w /= (double)lb_dtype_size(LB_INT8);
    double states = (double)n.state + (double)lb_h_count(problem); /* of h and c together */
    double mask = problem->cell == LB_CELL_RECURRENT_DROPOUT ? (double)n.state : 0;
    double forward = x + w + mask + states + y + states;
    /* Backward reads x, y, the weights, dy, h0, c0, dhn and dcn, and writes dx, dh0, dc0 and dW. */
    double backward = x + y + w + mask + y + 2 * states + x + states + w;
    double elements = problem->pass == LB_BACKWARD ? backward
                      : problem->pass == LB_TRAIN  ? forward + backward
                                                   : forward;
    return elements * (double)lb_dtype_size(problem->dtype);
}

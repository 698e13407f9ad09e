/* The oracle: its gradients against finite differences, ragged rows, rows that count several times.
 */
#include "device/weight_packing.h"
#include "model/case.h"
#include "reference/input_data.h"
#include "reference/oracle.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

enum { PARTS = 5 }; /* w_ih, w_hh, b_ih, b_hh, w_cell */

/* A small network that owns its arrays, and the weights that were packed into it. */
struct network {
    struct lb_oracle oracle;
    struct lb_lstm_counts n;
    size_t layer_dirs;
    double *x, *h0, *c0, *dy, *dhn, *dcn;
    double *weights[8][PARTS]; /* of each layer and direction */
    size_t sizes[8][PARTS];
    double *dw[8][PARTS];
};

static double *numbers(size_t count)
{
    return calloc(count + 1, sizeof(double));
}

static void pack(struct network *net)
{
    for (size_t e = 0; e < net->layer_dirs; e++)
        lb_oracle_pack(&net->oracle, e, net->weights[e][0]);
}

static void open_network(struct network *net, const char *text, const int32_t *lengths)
{
    struct lb_problem p = trial_problem(text);
    struct lb_lstm_counts n = lb_lstm_counts(&p);
    *net = (struct network){.n = n, .layer_dirs = (size_t)(p.layers * p.directions)};
    net->oracle = (struct lb_oracle){.problem = p, .lengths = lengths};
    assert_int_equal(lb_lstm_allocate(&net->oracle, sizeof(double), NULL), LB_OK);
    struct lb_lstm_arrays arrays = lb_lstm_arrays(&p);
    for (size_t i = 0; i < LB_LSTM_ARRAYS; i++)
        if (arrays.at[i].drawn >= 0 && arrays.at[i].count > 0)
            lb_draw_rows(&p, 5, (enum lb_tensor)arrays.at[i].drawn, (size_t)p.batch,
                         lb_lstm_at(&net->oracle, &arrays.at[i]));
    net->x = (double *)net->oracle.x, net->h0 = (double *)net->oracle.h0;
    net->c0 = (double *)net->oracle.c0, net->dy = (double *)net->oracle.dy;
    net->dhn = (double *)net->oracle.dhn, net->dcn = (double *)net->oracle.dcn;
    for (size_t e = 0; e < net->layer_dirs; e++) {
        double *weights = numbers(lb_gradient_offset(&p, 1 + e) + 4 * (size_t)p.hidden);
        for (size_t part = 0; part < PARTS; part++) {
            size_t count = lb_weight_elements(&p, e, (enum lb_weight)part);
            net->sizes[e][part] = count;
            net->weights[e][part] = weights; /* one after the other */
            net->dw[e][part] = numbers(count);
            if (count > 0)
                lb_draw_weights(&p, 5, (enum lb_weight)part, e, weights);
            weights += count;
        }
    }
    pack(net);
}

static void close_network(struct network *net)
{
    lb_lstm_free(&net->oracle);
    for (size_t e = 0; e < net->layer_dirs; e++) {
        free(net->weights[e][0]);
        for (size_t part = 0; part < PARTS; part++)
            free(net->dw[e][part]);
    }
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

static bool past_end(const struct network *net, size_t step_and_row)
{
    size_t R = (size_t)net->oracle.problem.batch;
    const int32_t *lengths = net->oracle.lengths;
    return lengths && step_and_row / R >= (size_t)lengths[step_and_row % R];
}

/* The scalar whose gradients dy, dhn and dcn make the backward pass compute. */
static double loss(struct network *net)
{
    const struct lb_problem *p = &net->oracle.problem;
    size_t y_width = (size_t)(p->directions * lb_h_size(p));
    size_t rows = (size_t)(p->seq_len * p->batch);
    const double *y = net->oracle.y + (size_t)(p->layers - 1) * rows * y_width;
    pack(net);
    lb_oracle_forward(&net->oracle);
    double sum =
        dot(net->oracle.hn, net->dhn, net->n.h) + dot(net->oracle.cn, net->dcn, net->n.state);
    for (size_t i = 0; i < rows; i++)
        if (!past_end(net, i))
            sum += dot(y + i * y_width, net->dy + i * y_width, y_width);
    return sum;
}

/* Runs forward and backward, and computes all gradients. */
static void differentiate(struct network *net, const bool *rows)
{
    pack(net);
    lb_oracle_forward(&net->oracle);
    lb_oracle_backward(&net->oracle);
    for (size_t e = 0; e < net->layer_dirs; e++) {
        const struct lb_problem *p = &net->oracle.problem;
        double *dw = numbers(lb_gradient_offset(p, e + 1) - lb_gradient_offset(p, e)), *at = dw;
        lb_oracle_weight_gradients(&net->oracle, e, rows, dw);
        for (size_t part = 0; part < PARTS; part++) {
            memcpy(net->dw[e][part], at, net->sizes[e][part] * sizeof(double));
            at += part == LB_B_IH ? 0 : net->sizes[e][part]; /* both biases have one gradient */
        }
        free(dw);
    }
}

/* Largest difference between gradient [count] and the central differences over values [count]. */
static double worst_difference(struct network *net, double *values, const double *gradient,
                               size_t count)
{
    const double step = 1e-5; /* errors: rounding 1e-16 / 1e-5, truncation 1e-10 */
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double kept = values[i];
        values[i] = kept + step;
        double above = loss(net);
        values[i] = kept - step;
        double below = loss(net);
        values[i] = kept;
        worst = fmax(worst, fabs((above - below) / (2 * step) - gradient[i]));
    }
    return worst;
}

static double worst_of_all(struct network *net)
{
    struct lb_oracle *o = &net->oracle;
    double worst = worst_difference(net, net->x, o->dx, net->n.x);
    worst = fmax(worst, worst_difference(net, net->h0, o->dh0, net->n.h));
    worst = fmax(worst, worst_difference(net, net->c0, o->dc0, net->n.state));
    for (size_t e = 0; e < net->layer_dirs; e++)
        for (size_t part = 0; part < PARTS; part++)
            worst = fmax(worst, worst_difference(net, net->weights[e][part], net->dw[e][part],
                                                 net->sizes[e][part]));
    return worst;
}

static const int32_t ragged_lengths[3] = {4, 2, 1};

/* Several layers and both directions, of the standard cell with each activation. The layernorm of
 * few numbers is badly conditioned, and differences see that, so there are more. */
TEST(gradients_match_finite_differences)
{
    static const char *const problems[][2] = {
        {"T4_B3_I2_H3_L3_D2", ""},
        {"T4_B3_I2_H3_L3_D2", "/act-relu"},
        {"T4_B3_I2_H7_L3_D2", "/cell-layernorm"},
        {"T4_B3_I2_H3_L3_D2", "/cell-recurrent-dropout"},
        {"T4_B3_I2_H5_P3_L3_D2", ""},
        {"T4_B3_I2_H3_L3_D2", "/cell-peephole"},
        {"T4_B3_I2_H3_L3_D2", "/cell-residual"},
        {"T1_B1_I1_H1", ""},
    };
    unsigned cells = 0;
    for (size_t i = 0; i < 2 * sizeof(problems) / sizeof(problems[0]) - 1; i++) {
        const bool ragged = i % 2; /* not of the last, which has one row */
        struct network net;
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text), "%s/f64/train%s%s", problems[i / 2][0],
                 ragged ? "/ragged" : "", problems[i / 2][1]);
        open_network(&net, text, ragged ? ragged_lengths : NULL);
        differentiate(&net, NULL);
        cells |= 1u << net.oracle.problem.cell;
        double worst = worst_of_all(&net);
        if (!(worst < (net.oracle.problem.cell == LB_CELL_LAYERNORM ? 1e-6 : 1e-8)))
            fail_msg("%s: off by %g", text, worst);
        close_network(&net);
    }
    assert_int_equal(cells, (1u << LB_CELL_COUNT) - 1);
}

/* Those of the weights that only a cell has take part too. */
TEST(finite_differences_find_a_wrong_gradient)
{
    static const struct {
        const char *problem;
        size_t layer_dir, part;
    } cases[] = {
        {"T4_B3_I2_H3_L3_D2/f64/train", 2, LB_W_HH},
        {"T4_B3_I2_H5_P3_L2/f64/train", 1, LB_W_CELL},
        {"T4_B3_I2_H3_L2/f64/train/cell-peephole", 1, LB_W_CELL},
        {"T4_B3_I2_H3_L2/f64/train/cell-layernorm", 1, LB_W_CELL},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct network net;
        open_network(&net, cases[i].problem, NULL);
        differentiate(&net, NULL);
        memset(net.dw[cases[i].layer_dir][cases[i].part], 0, 9 * sizeof(double));
        double worst = worst_of_all(&net);
        if (!(worst > 1e-4))
            fail_msg("%s: off by %g", cases[i].problem, worst);
        close_network(&net);
    }
}

TEST(ragged_rows_are_zero_past_their_end_and_ignore_inputs_there)
{
    struct network net;
    open_network(&net, "T4_B3_I2_H3_L3_D2/f64/train/ragged", ragged_lengths);
    differentiate(&net, NULL);
    double *y = net.oracle.y + 2 * 4 * 3 * 6, first = dot(net.oracle.hn, net.dhn, net.n.state);
    double first_dw = net.dw[0][0][0];
    for (size_t i = 0; i < 4 * 3; i++)
        for (size_t j = 0; past_end(&net, i) && j < 6; j++) {
            assert_true(y[i * 6 + j] == 0);
            assert_true(net.oracle.dx[i * 2 + j % 2] == 0);
            net.x[i * 2 + j % 2] = 1e3;
            net.dy[i * 6 + j] = 1e3;
        }
    differentiate(&net, NULL);
    assert_true(dot(net.oracle.hn, net.dhn, net.n.state) == first);
    assert_true(net.dw[0][0][0] == first_dw);
    close_network(&net);
}

/* A ragged row gives the same hn, in both directions, as a full-length problem of that row alone.
 */
TEST(a_ragged_row_equals_the_row_alone)
{
    struct network batch, alone;
    open_network(&batch, "T4_B3_I2_H3_L1_D2/f64/train/ragged", ragged_lengths);
    open_network(&alone, "T2_B1_I2_H3_L1_D2/f64/train", NULL);
    differentiate(&batch, NULL);
    for (size_t t = 0; t < 2; t++)
        memcpy(alone.x + t * 2, batch.x + (t * 3 + 1) * 2, 2 * sizeof(double));
    for (size_t e = 0; e < 2; e++) {
        memcpy(alone.h0 + e * 3, batch.h0 + (e * 3 + 1) * 3, 3 * sizeof(double));
        memcpy(alone.c0 + e * 3, batch.c0 + (e * 3 + 1) * 3, 3 * sizeof(double));
    }
    differentiate(&alone, NULL);
    for (size_t e = 0; e < 2; e++)
        for (size_t j = 0; j < 3; j++)
            assert_true(fabs(alone.oracle.hn[e * 3 + j] - batch.oracle.hn[(e * 3 + 1) * 3 + j]) <
                        1e-15);
    close_network(&alone);
    close_network(&batch);
}

TEST(gradients_of_some_rows_are_the_sum_over_them)
{
    static const bool some[3] = {true, false, true}, only[2][3] = {{true}, {false, false, true}};
    struct network net;
    double expected[12 * 6] = {0};
    open_network(&net, "T4_B3_I2_H3_L2_D2/f64/train", NULL);
    for (size_t r = 0; r < 2; r++) {
        differentiate(&net, only[r]);
        for (size_t i = 0; i < net.sizes[3][0]; i++)
            expected[i] += net.dw[3][0][i];
    }
    differentiate(&net, some);
    for (size_t i = 0; i < net.sizes[3][0]; i++)
        assert_true(fabs(net.dw[3][0][i] - expected[i]) < 1e-13);
    close_network(&net);
}

TEST(sizes_beyond_any_memory_do_not_wrap)
{
    struct lb_problem p = trial_problem("T1_B1_H1/f64/train");
    p.seq_len = p.batch = p.layers = (int64_t)1 << 40;
    struct lb_lstm_counts n = lb_lstm_counts(&p);
    assert_true(n.gates >= (size_t)1 << 50 && n.gates <= SIZE_MAX / 64);
    assert_true(n.y >= (size_t)1 << 50 && n.y <= SIZE_MAX / 64);
}

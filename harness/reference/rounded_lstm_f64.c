/* The rounded evaluation in double, for f64, and for int8 with the quantisation of int8.h. */
#include "api/int8.h"
#include "reference/rounded_lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* Computed by tanh, where the oracle uses exp, because correct implementations use either. */
static double sigmoid(double v)
{
    return 0.5 + 0.5 * tanh(0.5 * v);
}

/* What a product of int8 reads: of x, which quantise_x has rounded, the same value, and of h in +-1
 * the nearest 127th. */
static double operand(const struct lb_problem *p, double v)
{
    return p->dtype == LB_INT8 ? lb_int8_round((float)v, 127) / 127.0 : v;
}

struct rounded;
static void quantise(const struct rounded *net, const double *weights);

#define EVALUATE               lb_rounded_f64
#define real                   double
#define STORED(net, v)         (v)
#define OPERAND(net, v)        operand(&(net)->problem, v)
#define CELL(net, v)           (v)
#define BY_OPERATION(net)      false
#define COMPUTED(net, v)       (v)
#define QUANTISE(net, weights) quantise(net, weights)
#define GIVEN_H(oracle)        (oracle)->given_h
#include "reference/rounded_lstm.inc"

/* Sets the weights of one layer and direction to those of `from` rounded to the integers of int8.h,
 * times m / 127. The factor x_max of a product goes from x to w_ih. Coarse: with the largest m for
 * all channels. Seven bits: 64 takes the place of 127. `from` may be the weights of net: each row
 * is read before it is written. */
static void quantise_layer_dir(const struct rounded *net, const double *from, size_t layer_dir,
                               float x_max)
{
    struct weights w = weights_of(net, layer_dir);
    const double *w_ih_t = from + (w.w_ih_t - net->weights);
    const double *w_hh_t = from + (w.w_hh_t - net->weights);
    size_t H = (size_t)net->problem.hidden, input = input_of(net, layer_dir), gates = 4 * H;
    float *row = lb_needed(malloc((input + H) * sizeof(*row))), largest = 0;
    const float levels = net->arithmetic == LB_SEVEN_BITS ? 64 : 127;
    for (size_t i = 0; i < gates * input; i++)
        largest = fmaxf(largest, fabsf((float)w_ih_t[i] * x_max));
    for (size_t i = 0; i < gates * H; i++)
        largest = fmaxf(largest, fabsf((float)w_hh_t[i]));
    for (size_t g = 0; g < gates; g++) {
        for (size_t k = 0; k < input; k++)
            row[k] = (float)w_ih_t[in_strips(input, gates, k, g)];
        for (size_t k = 0; k < H; k++)
            row[input + k] = (float)w_hh_t[in_strips(H, gates, k, g)];
        float most = net->arithmetic == LB_COARSE
                         ? largest
                         : lb_int8_channel(row, input, x_max, row + input, H);
        float factor = lb_int8_factor(most) * (levels / 127);
        for (size_t k = 0; k < input; k++)
            w.w_ih_t[in_strips(input, gates, k, g)] =
                lb_int8_round(row[k] * x_max, factor) * (double)most / (double)levels;
        for (size_t k = 0; k < H; k++)
            w.w_hh_t[in_strips(H, gates, k, g)] =
                lb_int8_round(row[input + k], factor) * (double)most / (double)levels;
    }
    free(row);
}

static void quantise_weights(const struct rounded *net, const double *from)
{
    for (size_t layer_dir = 0; layer_dir < lb_layer_dir_count(&net->problem); layer_dir++)
        quantise_layer_dir(net, from, layer_dir,
                           layer_dir < (size_t)net->problem.directions ? net->x_max : 1);
}

/* Rounds x to the integers of int8.h over 127. */
static void quantise_x(const struct rounded *net)
{
    float factor = lb_int8_factor(net->x_max);
    double *x = (double *)(uintptr_t)net->x;
    for (size_t i = 0; i < lb_lstm_counts(&net->problem).x; i++)
        x[i] = lb_int8_round((float)x[i], factor) / 127.0;
}

static void quantise(const struct rounded *net, const double *weights)
{
    if (net->problem.dtype != LB_INT8)
        return;
    quantise_x(net);
    quantise_weights(net, weights);
}

/* The rounded evaluation on the oracle's own arrays. */
static struct rounded in_place(const struct lb_oracle *oracle)
{
    struct rounded net;
    memcpy(&net, oracle, sizeof(net)); /* both have the same members */
    return net;
}

void lb_int8_pack(const struct lb_oracle *oracle)
{
    struct rounded net = in_place(oracle);
    quantise_weights(&net, oracle->weights);
}

void lb_int8_forward(const struct lb_oracle *oracle)
{
    struct rounded net = in_place(oracle);
    quantise_x(&net);
    forward_layers(&net);
}

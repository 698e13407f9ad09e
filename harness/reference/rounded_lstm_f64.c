/* The rounded evaluation in double, for f64. */
#include "reference/rounded_lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Computed by tanh, where the oracle uses exp, because correct implementations use either. */
static double sigmoid(double v)
{
    return 0.5 + 0.5 * tanh(0.5 * v);
}

/* How close to the kink of relu a value may come, relative to the terms that it is the sum of,
 * before correct implementations disagree on which side of it they are: a few roundings. There the
 * slope is one half, which is off by as much from either side. */
static const double kink = 16 * 0x1p-53;

/* relu of a pre-activation, which is a sum of terms of size 1. A value just below the kink becomes
 * a tiny positive number, by which gate_slope recognises it. */
static double gate_relu(double a)
{
    if (a > 0)
        return a;
    return a > -kink ? 1e-300 : 0;
}

static double gate_slope(double g)
{
    if (g > 0 && g < kink)
        return 0.5;
    return g > 0 ? 1 : 0;
}

/* The slope of relu at c = kept + added. */
static double cell_slope(double c, double kept, double added)
{
    if (fabs(c) < kink * (fabs(kept) + fabs(added)))
        return 0.5;
    return c > 0 ? 1 : 0;
}

#define real                            double
#define LSTM                            rounded
#define SIGMOID(v)                      sigmoid(v)
#define TANH(v)                         tanh(v)
#define SQRT(v)                         sqrt(v)
#define GATE_RELU(net, a)               gate_relu(a)
#define GATE_SLOPE(net, g)              gate_slope(g)
#define CELL_SLOPE(net, c, kept, added) cell_slope(c, kept, added)
#define STORED(net, v)                  (v)
#define OPERAND(net, v)                 (v)
#define DESCENDING                      1
#include "reference/lstm_struct.inc"

#include "reference/lstm_body.inc"

#include "reference/rounded_lstm_body.inc"

enum lb_status lb_rounded_f64(const struct lb_oracle *oracle, const struct lb_results *results,
                              struct lb_error *err)
{
    return evaluate(oracle, results, err);
}

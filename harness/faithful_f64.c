/* The dtype-faithful evaluation in double, for f64. */
#include "faithful.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By tanh, where the oracle uses exp: a right implementation may use either. */
static double sigmoid(double v)
{
    return 0.5 + 0.5 * tanh(0.5 * v);
}

/* How near the kink of relu a pre-activation may come before right implementations disagree. */
static const double kink = 0x1p-53;

/* relu, taken from the other side near the kink; 1e-300 stands for "0, with slope 1". */
static double relu_or_not(double v)
{
    if (fabs(v) >= kink)
        return v > 0 ? v : 0;
    return v > 0 ? 0 : 1e-300;
}

#define real              double
#define LSTM              faithful
#define SIGMOID(v)        sigmoid(v)
#define TANH(v)           tanh(v)
#define GATE_RELU(net, a) relu_or_not(a)
#define STORED(net, v)    (v)
#define OPERAND(net, v)   (v)
#define DESCENDING        1
#include "lstm_struct.inc"

#include "lstm_body.inc"

#include "faithful_body.inc"

enum lb_status lb_faithful_f64(const struct lb_oracle *oracle, const struct lb_results *results,
                               struct lb_error *err)
{
    return evaluate(oracle, results, err);
}

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

#define real            double
#define SIGMOID(v)      sigmoid(v)
#define STORED(net, v)  (v)
#define OPERAND(net, v) (v)
#define CELL(net, v)    (v)
#include "reference/rounded_lstm.inc"

enum lb_status lb_rounded_f64(const struct lb_oracle *oracle, const struct lb_results *results,
                              struct lb_error *err)
{
    return evaluate(oracle, false, results, err);
}

/* The dtype-faithful evaluation in float, for f32, f16 and bf16. */
#include "faithful.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* v with the significand cut by `dropped` bits, to nearest even. An overflow carries to infinity by
 * itself: exponent and fraction are neighbours in the encoding. */
static float cut(float v, int dropped)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));
    bits += (1U << (dropped - 1)) - 1 + (bits >> dropped & 1);
    bits &= ~((1U << dropped) - 1);
    memcpy(&v, &bits, sizeof(bits));
    return v;
}

/* Rounded to binary16: 10 fraction bits, subnormals in steps of 2^-24, infinity from 65520 up. */
static float cut_to_half(float v)
{
    float size = fabsf(v);
    if (size < 0x1p-14f) /* adding 0.75 leaves a last bit of 2^-24 */
        return copysignf(size + 0.75f - 0.75f, v);
    return size < 65520.0f ? cut(v, 13) : copysignf(INFINITY, v);
}

static float stored(enum lb_dtype dtype, float v)
{
    switch (dtype) {
    case LB_F16: return cut_to_half(v);
    case LB_BF16: return cut(v, 16);
    default: return v;
    }
}

static float operand(enum lb_math math, float v)
{
    switch (math) {
    case LB_TF32: return cut(v, 13);
    case LB_HALF: return cut_to_half(v);
    default: return v; /* f16 and bf16 are stored as such already */
    }
}

/* How near the kink of relu a pre-activation may come before right implementations disagree on its
 * side: a rounding of h, of which it is a sum. Wider would let real errors through. */
static float kink(const struct lb_problem *p)
{
    return (float)(p->math == LB_IEEE ? lb_dtype_roundoff(p->dtype) : 0x1p-11);
}

/* relu, taken from the other side near the kink; 1e-30 stands for "0, with slope 1". */
static float relu_or_not(const struct lb_problem *p, float v)
{
    if (fabsf(v) >= kink(p))
        return v > 0 ? v : 0;
    return v > 0 ? 0 : 1e-30f;
}

static float sigmoid(float v)
{
    return 1 / (1 + expf(-v));
}

#define real              float
#define LSTM              faithful
#define SIGMOID(v)        sigmoid(v)
#define TANH(v)           tanhf(v)
#define GATE_RELU(net, a) relu_or_not(&(net)->problem, a)
#define STORED(net, v)    stored((net)->problem.dtype, v)
#define OPERAND(net, v)   operand((net)->problem.math, v)
#define DESCENDING        1
#include "lstm_struct.inc"

#include "lstm_body.inc"

#include "faithful_body.inc"

enum lb_status lb_faithful_f32(const struct lb_oracle *oracle, const struct lb_results *results,
                               struct lb_error *err)
{
    return evaluate(oracle, results, err);
}

enum lb_status lb_faithful_evaluate(const struct lb_oracle *oracle,
                                    const struct lb_results *results, struct lb_error *err)
{
    return oracle->problem.dtype == LB_F64 ? lb_faithful_f64(oracle, results, err)
                                           : lb_faithful_f32(oracle, results, err);
}

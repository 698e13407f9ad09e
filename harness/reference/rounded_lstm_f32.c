/* The rounded evaluation in float, for f32, f16 and bf16. */
#include "reference/rounded_lstm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* v with its significand shortened by `dropped` bits, rounded to nearest even. An overflow carries
 * into the exponent, and so becomes infinity, because exponent and fraction are neighbours in the
 * encoding. */
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

/* How close to the kink of relu a value may come, relative to the terms that it is the sum of,
 * before correct implementations disagree on which side of it they are: a few roundings. There the
 * slope is one half, which is off by as much from either side. For dtypes as coarse as bf16 the
 * limit is smaller, because with a wider one real errors of gradients would pass. */
static float kink(const struct lb_problem *p)
{
    float roundoff = (float)(p->math == LB_IEEE ? lb_dtype_roundoff(p->dtype) : 0x1p-11);
    return fminf(16 * roundoff, 0x1p-6f);
}

/* relu of a pre-activation, which is a sum of terms of size 1. A value just below the kink becomes
 * a tiny positive number, by which gate_slope recognises it. */
static float gate_relu(const struct lb_problem *p, float a)
{
    if (a > 0)
        return a;
    return a > -kink(p) ? 1e-30f : 0;
}

static float gate_slope(const struct lb_problem *p, float g)
{
    if (g > 0 && g < kink(p))
        return 0.5f;
    return g > 0 ? 1 : 0;
}

/* The slope of relu at c = kept + added. */
static float cell_slope(const struct lb_problem *p, float c, float kept, float added)
{
    if (fabsf(c) < kink(p) * (fabsf(kept) + fabsf(added)))
        return 0.5f;
    return c > 0 ? 1 : 0;
}

static float sigmoid(float v)
{
    return 1 / (1 + expf(-v));
}

#define real                            float
#define LSTM                            rounded
#define SIGMOID(v)                      sigmoid(v)
#define TANH(v)                         tanhf(v)
#define SQRT(v)                         sqrtf(v)
#define GATE_RELU(net, a)               gate_relu(&(net)->problem, a)
#define GATE_SLOPE(net, g)              gate_slope(&(net)->problem, g)
#define CELL_SLOPE(net, c, kept, added) cell_slope(&(net)->problem, c, kept, added)
#define STORED(net, v)                  stored((net)->problem.dtype, v)
#define OPERAND(net, v)                 operand((net)->problem.math, v)
#define DESCENDING                      1
#include "reference/lstm_struct.inc"

#include "reference/lstm_body.inc"

#include "reference/rounded_lstm_body.inc"

enum lb_status lb_rounded_f32(const struct lb_oracle *oracle, const struct lb_results *results,
                              struct lb_error *err)
{
    return evaluate(oracle, results, err);
}

enum lb_status lb_rounded_evaluate(const struct lb_oracle *oracle, const struct lb_results *results,
                                   struct lb_error *err)
{
    return oracle->problem.dtype == LB_F64 ? lb_rounded_f64(oracle, results, err)
                                           : lb_rounded_f32(oracle, results, err);
}

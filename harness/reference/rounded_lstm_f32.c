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

static float operand(const struct lb_problem *p, enum lb_arithmetic arithmetic, float v)
{
    switch (p->math) {
    case LB_TF32: return cut(v, 13);
    case LB_HALF: return cut_to_half(v);
    default: /* f16 and bf16 are stored as such already */
        return arithmetic == LB_COARSE && p->dtype == LB_F32 ? cut(v, 13) : v;
    }
}

static float sigmoid(float v)
{
    return 1 / (1 + expf(-v));
}

#define EVALUATE          lb_rounded_f32
#define real              float
#define STORED(net, v)    stored((net)->problem.dtype, v)
#define OPERAND(net, v)   operand(&(net)->problem, (net)->arithmetic, v)
#define CELL(net, v)      ((net)->arithmetic != LB_PLAIN ? stored((net)->problem.dtype, v) : (v))
#define BY_OPERATION(net) ((net)->arithmetic == LB_BY_OPERATION)
#define COMPUTED(net, v)  (BY_OPERATION(net) ? stored((net)->problem.dtype, v) : (v))
#define QUANTISE(net, weights)
#define GIVEN_H(oracle) NULL
#include "reference/rounded_lstm.inc"

enum lb_status lb_rounded_evaluate(const struct lb_oracle *oracle, enum lb_arithmetic arithmetic,
                                   const struct lb_results *results, struct lb_error *err)
{
    return oracle->problem.dtype == LB_F64 || oracle->problem.dtype == LB_INT8
               ? lb_rounded_f64(oracle, arithmetic, results, err)
               : lb_rounded_f32(oracle, arithmetic, results, err);
}

bool lb_rounds_by_operation(const struct lb_problem *problem)
{
    return (problem->dtype == LB_F16 || problem->dtype == LB_BF16) && problem->math == LB_IEEE;
}

const char *lb_coarse_arithmetic(const struct lb_problem *problem)
{
    if (problem->math != LB_IEEE || problem->act == LB_ACT_RELU)
        return NULL;
    switch (problem->dtype) {
    case LB_F32: return "a product of TF32 operands";
    case LB_F16: return "a cell state kept in f16";
    case LB_INT8: return "one scale for all channels";
    default: return NULL;
    }
}

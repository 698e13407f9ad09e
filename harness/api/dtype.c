/* Storage types of tensors, and their conversion to and from double. */
#include "dtype.h"

#include <math.h>
#include <string.h>

struct small_float {
    int significand_bits; /* stored ones, without the hidden 1 */
    int exponent_bits;
};

static const struct small_float binary16 = {10, 5};
static const struct small_float bfloat16 = {7, 8};

size_t lb_dtype_size(enum lb_dtype dtype)
{
    static const size_t sizes[LB_DTYPE_COUNT] = {8, 4, 2, 2, 4};
    return sizes[dtype];
}

const char *lb_dtype_name(enum lb_dtype dtype)
{
    static const char *const names[LB_DTYPE_COUNT] = {"f64", "f32", "f16", "bf16", "int8"};
    return names[dtype];
}

double lb_dtype_roundoff(enum lb_dtype dtype)
{
    static const double roundoff[LB_DTYPE_COUNT] = {0x1p-53, 0x1p-24, 0x1p-11, 0x1p-8, 0x1p-8};
    return roundoff[dtype];
}

/* Encodes the value in the 16-bit format. It works on the double's bits: the significand, with its
 * hidden 1, is shifted right and rounded to nearest even. A carry out of the significand must raise
 * the exponent, and does so by itself, because the two fields are added. */
static uint16_t encode(struct small_float format, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    unsigned sign = (unsigned)(bits >> 63) << 15;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t fraction = bits & 0xfffffffffffff;
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    unsigned infinity = ((1U << format.exponent_bits) - 1) << format.significand_bits;

    if (exponent == 0x7ff)
        return (uint16_t)(sign | infinity | (fraction ? 1U << (format.significand_bits - 1) : 0));
    int target = exponent - 1023 + bias; /* biased exponent in the small format */
    if (exponent == 0 || target < -format.significand_bits - 1)
        return (uint16_t)sign; /* far below the smallest subnormal */

    uint64_t significand = fraction | 1ULL << 52;
    int shift = 52 - format.significand_bits;
    if (target < 1) /* subnormal: the exponent is fixed, so fewer bits remain */
        shift += 1 - target;
    uint64_t rounded = significand >> shift;
    uint64_t dropped = significand & ((1ULL << shift) - 1), half = 1ULL << (shift - 1);
    if (dropped > half || (dropped == half && (rounded & 1)))
        rounded++;
    /* The hidden 1 adds 1 to the exponent field when the number is normal. */
    uint64_t field = target < 1 ? 0 : (uint64_t)(target - 1) << format.significand_bits;
    uint64_t code = field + rounded;
    return (uint16_t)(sign | (code < infinity ? (unsigned)code : infinity));
}

/* Decodes through f32, which can hold every value of both formats: sign, exponent and fraction are
 * moved to their positions in an f32, and a multiplication by a power of two corrects the exponent
 * bias. It makes subnormals right too; infinity and NaN are given f32's largest exponent. There are
 * no branches, so that the compiler can vectorise loops that decode. */
static double decode(struct small_float format, uint16_t bits)
{
    int shift = 23 - format.significand_bits;
    int bias = (1 << (format.exponent_bits - 1)) - 1;
    uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.significand_bits;
    uint32_t size = bits & 0x7fffU;
    uint32_t wide = size << shift | (size >= infinity ? 0x7f800000U : 0);
    uint32_t sign = (uint32_t)(bits & 0x8000U) << 16;
    uint32_t power = (uint32_t)(127 + 127 - bias) << 23; /* 2^(127 - bias) */
    float value, factor;
    wide |= sign;
    memcpy(&value, &wide, sizeof(value));
    memcpy(&factor, &power, sizeof(factor));
    return (double)(value * factor);
}

uint16_t lb_f16_from_double(double value)
{
    return encode(binary16, value);
}

uint16_t lb_bf16_from_double(double value)
{
    return encode(bfloat16, value);
}

double lb_round(enum lb_dtype dtype, double value)
{
    switch (dtype) {
    case LB_F32:
    case LB_INT8: return (double)(float)value;
    case LB_F16: return decode(binary16, encode(binary16, value));
    case LB_BF16: return decode(bfloat16, encode(bfloat16, value));
    default: return value;
    }
}

void lb_store(enum lb_dtype dtype, void *storage, const double *values, size_t count)
{
    if (dtype == LB_F64) {
        memcpy(storage, values, count * sizeof(double));
    } else if (dtype == LB_F32 || dtype == LB_INT8) {
        float *out = storage;
        for (size_t i = 0; i < count; i++)
            out[i] = (float)values[i];
    } else {
        uint16_t *out = storage;
        struct small_float format = dtype == LB_F16 ? binary16 : bfloat16;
        for (size_t i = 0; i < count; i++)
            out[i] = encode(format, values[i]);
    }
}

void lb_load(enum lb_dtype dtype, const void *storage, double *values, size_t count)
{
    if (dtype == LB_F64) {
        memcpy(values, storage, count * sizeof(double));
    } else if (dtype == LB_F32 || dtype == LB_INT8) {
        const float *in = storage;
        for (size_t i = 0; i < count; i++)
            values[i] = (double)in[i];
    } else {
        const uint16_t *in = storage;
        struct small_float format = dtype == LB_F16 ? binary16 : bfloat16;
        for (size_t i = 0; i < count; i++)
            values[i] = decode(format, in[i]);
    }
}

/* Storage types: every 16-bit code, rounding at every tie, and conversion of arrays. */
#include "api/dtype.h"
#include "tests/helpers/test.h"

struct format {
    uint16_t (*encode)(double);
    enum lb_dtype dtype;
    int fraction_bits, exponent_bits;
};

static const struct format formats[] = {
    {lb_f16_from_double, LB_F16, 10, 5},
    {lb_bf16_from_double, LB_BF16, 7, 8},
};

static double decode(const struct format *f, uint16_t bits)
{
    double value;
    lb_load(f->dtype, &bits, &value, 1);
    return value;
}

enum { CODES = 1 << 16, SIGN = 1 << 15 };

static uint16_t infinity_of(const struct format *f)
{
    return (uint16_t)(((1 << f->exponent_bits) - 1) << f->fraction_bits);
}

/* The value of a non-negative 16-bit code, from the definition in IEEE 754. */
static double defined_value(const struct format *f, int code)
{
    int bias = (1 << (f->exponent_bits - 1)) - 1;
    int exponent = code >> f->fraction_bits, fraction = code & ((1 << f->fraction_bits) - 1);
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - f->fraction_bits);
    return ldexp(fraction + (1 << f->fraction_bits), exponent - bias - f->fraction_bits);
}

TEST(every_code_decodes_to_its_definition)
{
    for (size_t i = 0; i < 2; i++) {
        const struct format *f = &formats[i];
        for (int code = 0; code < infinity_of(f); code++) {
            assert_true(decode(f, (uint16_t)code) == defined_value(f, code));
            assert_true(decode(f, (uint16_t)(code | SIGN)) == -defined_value(f, code));
        }
        assert_true(signbit(decode(f, SIGN)));
        assert_true(decode(f, infinity_of(f)) == (double)INFINITY);
        assert_true(decode(f, infinity_of(f) | SIGN) == -(double)INFINITY);
    }
}

TEST(every_code_survives_a_round_trip)
{
    for (size_t i = 0; i < 2; i++)
        for (int code = 0; code < CODES; code++) {
            const struct format *f = &formats[i];
            double value = decode(f, (uint16_t)code);
            if ((code & ~SIGN) > infinity_of(f))
                assert_true(isnan(value) && isnan(decode(f, f->encode(value))));
            else
                assert_int_equal(f->encode(value), code);
        }
}

/* How many codes are wrong when each midpoint between neighbours, and what lies just beside it, is
 * rounded by encode. */
static int wrong_ties(const struct format *f, uint16_t (*encode)(double))
{
    int wrong = 0;
    for (int code = 0; code < infinity_of(f) - 1; code++) {
        double low = decode(f, (uint16_t)code), high = decode(f, (uint16_t)(code + 1));
        double middle = (low + high) / 2; /* exact in double */
        int even = code & 1 ? code + 1 : code;
        wrong += encode(middle) != even;
        wrong += encode(-middle) != (even | SIGN);
        wrong += encode(nextafter(middle, 0)) != code;
        wrong += encode(nextafter(middle, (double)INFINITY)) != code + 1;
    }
    return wrong;
}

TEST(rounding_is_to_nearest_even_at_every_tie)
{
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(wrong_ties(&formats[i], formats[i].encode), 0);
}

static uint16_t f16_by_way_of_f32(double value)
{
    return lb_f16_from_double((double)(float)value);
}

TEST(double_rounding_by_way_of_f32_is_found)
{
    assert_true(wrong_ties(&formats[0], f16_by_way_of_f32) > 0);
}

TEST(values_beyond_the_largest_become_infinite)
{
    assert_int_equal(lb_f16_from_double(65504), 0x7bff);
    assert_int_equal(lb_f16_from_double(nextafter(65520, 0)), 0x7bff);
    assert_int_equal(lb_f16_from_double(65520), 0x7c00);
    assert_int_equal(lb_f16_from_double(-1e300), 0xfc00);
    assert_int_equal(lb_bf16_from_double(0x1.fep127), 0x7f7f);
    assert_int_equal(lb_bf16_from_double(0x1.ffp127), 0x7f80);
}

TEST(values_below_the_smallest_become_zero_with_their_sign)
{
    assert_int_equal(lb_f16_from_double(-1e-300), SIGN);
    assert_int_equal(lb_bf16_from_double(5e-324), 0);
}

TEST(arrays_convert_as_elements_do)
{
    enum { COUNT = 37 };
    double values[COUNT], loaded[COUNT];
    unsigned char storage[COUNT * sizeof(double)];
    for (size_t i = 0; i < COUNT; i++)
        values[i] = sin((double)i) * ldexp(1, (int)i - 20);
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        lb_store((enum lb_dtype)dtype, storage, values, COUNT);
        lb_load((enum lb_dtype)dtype, storage, loaded, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            double u = lb_dtype_roundoff((enum lb_dtype)dtype);
            assert_true(loaded[i] == lb_round((enum lb_dtype)dtype, values[i]));
            assert_true(fabs(loaded[i] - values[i]) <= u * fabs(values[i]) + 0x1p-25);
        }
    }
}

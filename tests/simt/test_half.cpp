/* test_half.cpp: half and bfloat16 arithmetic rounds once, to nearest, ties to even, as the
 * device does. The expected value is the exact result in 113 bits. */
#include "check.h"

#include <cmath>

#include "cuda/common/ptx.cuh"

using namespace simt_test;

/* Whether `got` is the exact result rounded to nearest: no neighbour of it is nearer, and of two
 * equally near values it is the even one. */
template <class Type> static bool nearest(__float128 exact, Type got, double (*value)(Type))
{
    auto distance = [&](Type t) {
        __float128 d = exact - static_cast<__float128>(value(t));
        return d < 0 ? -d : d;
    };
    unsigned short bits;
    __builtin_memcpy(&bits, &got, sizeof bits);
    for (int step : {-1, 1}) {
        unsigned short next_bits = static_cast<unsigned short>(bits + step);
        Type next;
        __builtin_memcpy(static_cast<void *>(&next), &next_bits, sizeof next);
        if (!std::isfinite(value(next)) || std::signbit(value(next)) != std::signbit(value(got)))
            continue;
        if (distance(next) < distance(got))
            return false;
        if (distance(next) == distance(got) && bits % 2)
            return false;
    }
    return true;
}

static double half_value(__half h)
{
    return __half2float(h);
}

static double bfloat_value(__nv_bfloat16 b)
{
    return __bfloat162float(b);
}

/* Whether a + b == sum without rounding (two-sum): the exponents of bfloat16 are so far apart that
 * 113 bits do not always hold a product and an addend. */
static bool held_exactly(__float128 a, __float128 b, __float128 sum)
{
    __float128 b_part = sum - a;
    return sum - b_part == a && b == b_part;
}

/* Draws finite numbers of all magnitudes. */
template <class Type> static Type draw(uint64_t &state, double (*value)(Type))
{
    for (;;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned short bits = static_cast<unsigned short>(state >> 48);
        Type t;
        __builtin_memcpy(static_cast<void *>(&t), &bits, sizeof t);
        if (std::isfinite(value(t)))
            return t;
    }
}

template <class Type> static void check_rounding(double (*value)(Type), double largest)
{
    uint64_t state = 1;
    int wrong = 0, tried = 0;
    for (int i = 0; i < 400000; i++) {
        Type a = draw(state, value), b = draw(state, value), c = draw(state, value);
        __float128 x = value(a), y = value(b), z = value(c);
        struct {
            __float128 exact;
            Type got;
        } const results[] = {
            {x + y, a + b}, {x * y, a * b}, {x * y + z, __hfma(a, b, c)}, {x - y, a - b}};
        for (const auto &r : results) {
            __float128 size = r.exact < 0 ? -r.exact : r.exact;
            if (size > static_cast<__float128>(largest)) /* another rule applies to overflow */
                continue;
            if (!held_exactly(x * y, z, r.exact) && &r == &results[2])
                continue;
            tried++;
            wrong += !nearest(r.exact, r.got, value);
        }
    }
    CHECK(wrong == 0);
    CHECK(tried > 100000);
}

TEST(half_rounds_once)
{
    check_rounding(half_value, 65504);
}

TEST(bfloat16_rounds_once)
{
    check_rounding(bfloat_value, 3e38);
}

/* There are operands for which rounding a fused multiply-add to float first gives another
 * result. */
TEST(fused_half_differs_from_float_then_half)
{
    uint64_t state = 1;
    int differ = 0;
    for (int i = 0; i < 400000; i++) {
        __half a = draw(state, half_value), b = draw(state, half_value);
        __half c = draw(state, half_value);
        float twice = fmaf(__half2float(a), __half2float(b), __half2float(c));
        if (std::fabs(twice) < 65504)
            differ += half_value(__float2half_rn(twice)) != half_value(__hfma(a, b, c));
    }
    CHECK(differ > 0);
}

TEST(pairs_work_on_both_halves)
{
    __half2 a = __floats2half2_rn(1.5f, -2), b = __floats2half2_rn(3, 0.5f);
    __half2 sum = __hadd2(a, b), fused = __hfma2(a, b, a);
    CHECK(__low2float(sum) == 4.5f && __high2float(sum) == -1.5f);
    CHECK(__low2float(fused) == 6.0f && __high2float(fused) == -3.0f);
    __nv_bfloat162 c = __floats2bfloat162_rn(1.5f, -2), d = __hfma2(c, c, c);
    CHECK(__low2float(d) == 3.75f && __high2float(d) == 2.0f);
    CHECK(__high2float(h2tanh(__floats2half2_rn(0, 20))) == 1.0f);
}

TEST(functions_are_near_their_double)
{
    for (int i = 1; i < 128; i += 3) {
        __half h = __float2half_rn(static_cast<float>(i) / 16);
        double exact = half_value(h), half_unit = std::ldexp(1.0, -11);
        CHECK(std::fabs(half_value(hexp(h)) / std::exp(exact) - 1) <= half_unit);
        CHECK(std::fabs(half_value(hrcp(h)) * exact - 1) <= half_unit);
        CHECK(std::fabs(half_value(htanh(h)) / std::tanh(exact) - 1) <= half_unit);
        CHECK(std::fabs(half_value(hsqrt(h)) / std::sqrt(exact) - 1) <= half_unit);
    }
}

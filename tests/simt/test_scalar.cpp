/* test_scalar.cpp: the scalar functions of the kernels at the ends of their range, at ties and at
 * values that are no numbers. Each test names mutants that it catches. */
#include "check.h"
#include "device/device.h"

#include "cuda/common/cell.cuh"
#include "cuda/common/ptx.cuh"
#include "cuda/common/scalar.cuh"
#include "cuda/fused/common/recurrence.cuh"
#include "cuda/fused/common/weight_layout.h"

#include <limits>
#include <sys/mman.h>

using namespace simt_test;
using lb_recurrence::exact_functions;
using lb_recurrence::fast_functions;
using lb_recurrence::functions_of;

static const float infinity = std::numeric_limits<float>::infinity();
static const float not_a_number = std::numeric_limits<float>::quiet_NaN();

template <class Functions, class R> static void check_ends()
{
    for (R far : {R(100), R(infinity)}) {
        CHECK(Functions::sigmoid(far) == 1);
        CHECK(Functions::sigmoid(-far) >= 0 && Functions::sigmoid(-far) < 1e-37);
        CHECK(Functions::tangent(far) == 1);
        CHECK(Functions::tangent(-far) == -1);
    }
    CHECK(Functions::sigmoid(R(0)) == R(0.5));
    CHECK(std::fabs(Functions::tangent(R(0))) < 1e-6);
    CHECK(std::isnan(Functions::sigmoid(R(not_a_number))));
    CHECK(std::isnan(Functions::tangent(R(not_a_number))));
    for (R v = -20; v <= 20; v += R(0.125)) {
        CHECK(std::fabs(Functions::sigmoid(v) - 1 / (1 + std::exp(-double(v)))) < 3e-7);
        CHECK(std::fabs(Functions::tangent(v) - std::tanh(double(v))) < 3e-7);
    }
}

/* Mutants: e^v / (e^v + 1) and (e^2v - 1) / (e^2v + 1), which are NaN at 100; 2^-v for 2^(-v log2
 * e); an argument that is limited by fminf(v, 15), which turns NaN into 15. */
TEST(sigmoid_and_tanh_reach_their_limits_and_keep_nan)
{
    check_ends<fast_functions, float>();
    check_ends<exact_functions, float>();
    check_ends<exact_functions, double>();
}

/* Mutant: the functions of __nv_bfloat16 left out, which then are the slow ones. */
TEST(types_of_16_bits_have_the_fast_functions)
{
    CHECK((std::is_base_of<fast_functions, functions_of<__half>>::value));
    CHECK((std::is_base_of<fast_functions, functions_of<__nv_bfloat16>>::value));
    CHECK((std::is_base_of<exact_functions, functions_of<float>>::value));
    CHECK((std::is_base_of<exact_functions, functions_of<double>>::value));
}

template <class R> static void check_relu(R (*squash)(R, bool))
{
    CHECK(std::isnan(squash(R(not_a_number), true)));
    CHECK(squash(-100, true) == 0 && squash(R(-infinity), true) == 0);
    CHECK(squash(100, true) == 100 && squash(R(infinity), true) == R(infinity));
    CHECK(squash(100, false) == 1 && squash(-100, false) == -1);
}

/* Mutants: fmaxf(v, 0) and v > 0 ? v : 0, which turn NaN into 0; a slope of 1 at 0. */
TEST(relu_keeps_nan_and_has_no_slope_at_zero)
{
    check_relu(lb_cell::squash<float>);
    check_relu(lb_cell::squash<double>);
    check_relu(lb_recurrence::squash<__half, float>);
    check_relu(lb_recurrence::squash<double, double>);
    CHECK(lb_cell::squash_slope(0.0f, true) == 0 && lb_cell::squash_slope(2.0f, true) == 1);
    CHECK(lb_cell::squash_slope(0.5f, false) == 0.75f);
}

template <class T> static uint16_t bits_of(float v)
{
    T t = lb_cell::convert_to_storage<T>(v);
    uint16_t bits;
    __builtin_memcpy(&bits, &t, sizeof(bits));
    return bits;
}

/* Ties go to the even number, what is halfway to the first number out of range and beyond becomes
 * infinite, and numbers below the normal ones are kept. Mutants: rounding towards zero
 * (__float2half_rz), ties away from zero, saturation to the largest number (cvt.sat). */
TEST(conversion_to_storage_rounds_ties_to_even_and_overflows_to_infinity)
{
    static const struct {
        float from;
        uint16_t half, bfloat;
    } cases[] = {
        {1 + 0x1p-11f, 0x3c00, 0x3f80},            /* f16: a tie, down to even */
        {1 + 3 * 0x1p-11f, 0x3c02, 0x3f80},        /* f16: a tie, up to even */
        {1 + 0x1p-11f + 0x1p-23f, 0x3c01, 0x3f80}, /* f16: just above a tie */
        {1 + 0x1p-8f, 0x3c04, 0x3f80},             /* bf16: a tie, down to even */
        {1 + 3 * 0x1p-8f, 0x3c0c, 0x3f82},         /* bf16: a tie, up to even */
        {-1 - 0x1p-8f - 0x1p-23f, 0xbc04, 0xbf81}, /* bf16: just beyond a tie */
        {65504, 0x7bff, 0x4780},                   /* the largest f16 */
        {65519.996f, 0x7bff, 0x4780},              /* f16: just below the tie with 65536 */
        {65520, 0x7c00, 0x4780},                   /* f16: that tie, to infinity */
        {-1e6f, 0xfc00, 0xc974},
        {0x1.fefffep127f, 0x7c00, 0x7f7f}, /* bf16: just below the tie with 2^128 */
        {0x1.ffp127f, 0x7c00, 0x7f80},     /* bf16: that tie, to infinity */
        {infinity, 0x7c00, 0x7f80},
        {-infinity, 0xfc00, 0xff80},
        {0x1p-24f, 0x0001, 0x3380},            /* the smallest f16 */
        {0x1p-25f, 0x0000, 0x3300},            /* f16: the tie with 0 */
        {0x1p-25f + 0x1p-40f, 0x0001, 0x3300}, /* f16: just above it */
        {-0.0f, 0x8000, 0x8000},
    };
    for (const auto &c : cases) {
        CHECK(bits_of<__half>(c.from) == c.half);
        CHECK(bits_of<__nv_bfloat16>(c.from) == c.bfloat);
    }
    CHECK((bits_of<__half>(not_a_number) & 0x7fff) > 0x7c00);
    CHECK((bits_of<__nv_bfloat16>(not_a_number) & 0x7fff) > 0x7f80);
    uint32_t high_nan = 0x7f800001; /* whose upper half alone would be infinite */
    float nan;
    __builtin_memcpy(&nan, &high_nan, sizeof(nan));
    CHECK((bits_of<__nv_bfloat16>(nan) & 0x7fff) > 0x7f80);
}

/* Ties go away from zero. Mutants: ties to even, the lower bits cut off, 0x0fff added for 0x1000,
 * and no exception for infinities and NaN, which then become other numbers. */
TEST(weights_are_rounded_to_tf32_with_ties_away_from_zero)
{
    static const uint32_t cases[][2] = {
        {0x3f800000, 0x3f800000}, {0x3f800fff, 0x3f800000}, /* 1, and just below a tie */
        {0x3f801000, 0x3f802000}, {0x3f803000, 0x3f804000}, /* ties */
        {0xbf801000, 0xbf802000}, {0xbf800fff, 0xbf800000}, /* the same below zero */
        {0x3ffff000, 0x40000000},                           /* up to the next exponent */
        {0x7f7fefff, 0x7f7fe000}, {0x7f7ff000, 0x7f800000}, /* the largest; beyond it */
        {0x7f800000, 0x7f800000}, {0xff800000, 0xff800000}, /* infinities */
        {0x7fffffff, 0x7fffffff}, {0x7f800001, 0x7f800001}, /* NaN stays NaN */
        {0x00000fff, 0x00000000}, {0x00001000, 0x00002000}, /* denormals */
        {0x80000000, 0x80000000},
    };
    for (const auto &c : cases)
        CHECK(lb_weight_tf32(c[0]) == c[1]);
    for (uint32_t bits = 0; bits < 0x7f800000u; bits += 0x10431) { /* as the state is rounded */
        float value;
        __builtin_memcpy(&value, &bits, sizeof(value));
        CHECK(lb_weight_tf32(bits) == lb_ptx::to_tf32(value));
    }
}

/* Memory of which only the pages that are touched take room. */
template <class T> static T *sparse(size_t count)
{
    void *memory = mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    return static_cast<T *>(memory);
}

/* Mutant: blockIdx.x * blockDim.x without the cast to 64 bits. */
TEST(threads_have_indices_of_64_bits)
{
    const size_t past = size_t{1} << 32, count = past + 300;
    float *to = sparse<float>(count), *from = sparse<float>(count);
    for (size_t i = 0; i < 300; i++)
        from[past + i] = static_cast<float>(i + 1);
    CHECK(clean(simt::launch(grid_of(2, 256), [=] {
        simt::self->block_index.x += past / 256;
        lb_cell::elementwise_kernel<LB_OP_RELU, float>(to, from, nullptr,
                                                       static_cast<int64_t>(count));
    })));
    for (size_t i = 0; i < 300; i++)
        CHECK(to[past + i] == static_cast<float>(i + 1) && to[i] == 0);
    munmap(to, count * sizeof(float));
    munmap(from, count * sizeof(float));
}

/* Mutants: the product of gate, hidden and columns in 32 bits; the test of index >> 32 left out. */
TEST(weights_have_indices_of_64_bits)
{
    const int64_t hidden = 40000, columns = 40000;
    const lb_weight_layout layout = lb_weight_layout_by_unit(hidden, columns);
    CHECK(layout.elements == 4 * static_cast<uint64_t>(hidden * columns));
    for (int64_t index : {int64_t{0}, int64_t{1} << 32, (int64_t{1} << 32) - 1,
                          (int64_t{1} << 32) + 123456789, 4 * hidden * columns - 1}) {
        int64_t column = index % columns, gate = index / columns % 4, unit = index / columns / 4;
        CHECK(lb_weight_source(&layout, static_cast<uint64_t>(index)) ==
              (gate * hidden + unit) * columns + column);
    }
}

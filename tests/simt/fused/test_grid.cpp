/* The cases of the fused grid kernels, and what else they need: waits that end, numbers that are
 * none, messages, and the kernels that pack weights. */
#include "cuda/fused/grid/backward.cuh"
#include "cuda/fused/grid/ffma.cuh"
#include "cuda/fused/grid/forward.cuh"
#include "run.h"

#include "cuda/fused/common/weights.cuh" /* behind what brings the names of CUDA */

#include <cmath>
#include <cstdio>
#include <cstring>

namespace simt_fused
{

namespace
{

using lb_grid::bf16_math;
using lb_grid::f16_math;
using lb_grid::f32_math;
using lb_grid::tf32_math;

/* units, warps, packets, resident, columns: at most 512 threads. */
using narrow = lb_grid::tile<8, 2, 1, 4, 8>;   /* H up to 64 in f16 and bf16, up to 32 in f32 */
using spilled = lb_grid::tile<16, 2, 1, 3, 8>; /* most weights in shared memory */
using wide = lb_grid::tile<8, 2, 2, 5, 16>;    /* two blocks of columns, two cells per thread */
using idle = lb_grid::tile<8, 4, 1, 4, 8>;     /* more threads than cells */
using deep = lb_grid::tile<8, 1, 4, 8, 8>;     /* a warp has up to four packets */
using windows = lb_grid::tile<8, 1, 8, 8, 8>;  /* backward reads from 16 blocks at the same time */
using halves = lb_grid::tile<8, 1, 8, 8, 16>;  /* forward reads its packets in two windows */

template <class Math> subject of(const std::string &name, const grid_kernel &kernel, bool train)
{
    constexpr lb_grid_math math = Math::figure;
    lb_dtype dtype = math == LB_GRID_F16 ? LB_F16 : math == LB_GRID_BF16 ? LB_BF16 : LB_F32;
    return {name, kernel, dtype, math == LB_GRID_TF32 ? LB_TF32 : LB_IEEE, train};
}

template <class Math, class Tile> subject forward(const std::string &name, bool train)
{
    auto *kernel = lb_grid::fused_grid_forward_kernel<Math, Tile>;
    return of<Math>(name, {Tile::figures, Math::figure, kernel, nullptr}, train);
}

template <class Math, class Tile> subject backward(const std::string &name)
{
    auto *kernel = lb_grid::fused_grid_backward_kernel<Math, Tile>;
    return of<Math>(name, {Tile::figures, Math::figure, nullptr, kernel}, false);
}

/* When a block never runs, a block that waits for it reports that, and the launch ends. */
int test_waits()
{
    /* spin_limit is just high enough that no schedule of a complete launch reaches it. In the
     * second manner there are 4 blocks in each of 2 directions. */
    const manner alone = {.missing = 2, .spin_limit = 1000};
    const manner second = {.groups = 2, .missing = 9, .spin_limit = 1000};
    const struct {
        check_case c;
        int first, last; /* blocks of the group of which one must report */
    } stuck[] = {
        {{forward<f16_math, narrow>("forward f16", false), {5, 5, 29, 1, false}, alone}, 0, 3},
        {{backward<f16_math, narrow>("backward f16"), {5, 5, 29, 1, false}, alone}, 0, 3},
        {{forward<f32_math, narrow>("forward f32", true), {4, 12, 27, 2, true}, second}, 8, 11},
        {{backward<bf16_math, narrow>("backward bf16"), {4, 12, 27, 2, true}, second}, 8, 11},
    };
    int failures = 0;
    for (const auto &s : stuck) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            verdict v = run(s.c, seed);
            const lb_fused_fault &f = v.fault;
            int step = s.c.kernel.backward() ? s.c.size.seq_len - 2
                                             : 1; /* the first that needs another block */
            bool right = v.outcome.ok() && f.raised && f.awaited == s.c.how.missing &&
                         f.block != f.awaited && f.block >= s.first && f.block <= s.last &&
                         f.step == step;
            failures += !right;
            printf("%s %s seed %lu: block %d waited at step %d for block %d\n%s",
                   right ? "ok" : "FAILED", s.c.kernel.name.c_str(),
                   static_cast<unsigned long>(seed), f.block, f.step, f.awaited,
                   v.outcome.text().c_str());
        }
    }
    return failures != 0;
}

/* A block gives up once another block has, whatever its own limit is. */
int test_others_gave_up()
{
    int failures = 0;
    /* No wait reaches its own limit: only the record of another block ends it. */
    const manner how = {.missing = 2, .given_up = true};
    for (const subject &kernel : {forward<f16_math, narrow>("forward f16", false),
                                  backward<f16_math, narrow>("backward f16")}) {
        verdict v = run({kernel, {5, 5, 29, 1, false}, how}, 1);
        failures += !v.outcome.ok();
        printf("%s %s leaves once others gave up\n%s", v.outcome.ok() ? "ok" : "FAILED",
               kernel.name.c_str(), v.outcome.text().c_str());
    }
    return failures != 0;
}

/* NaN must survive the exchange, although the bit of the epoch is free only in numbers. */
int test_numbers()
{
    return test_no_number({forward<f16_math, narrow>("forward f16", false),
                           forward<bf16_math, wide>("forward bf16", false),
                           forward<f32_math, narrow>("forward f32", false),
                           forward<tf32_math, spilled>("forward tf32", false),
                           backward<f16_math, narrow>("backward f16"),
                           backward<bf16_math, wide>("backward bf16"),
                           backward<f32_math, narrow>("backward f32"),
                           backward<tf32_math, spilled>("backward tf32")}) |
           test_late({forward<f16_math, narrow>("forward f16", true),
                      backward<f16_math, narrow>("backward f16")});
}

/* Infinite sums must arrive as what they are. */
int test_overflow()
{
    verdict v =
        run({backward<f16_math, narrow>("backward f16"), {1, 5, 13, 1, false}, {.loud = 2}}, 3);
    printf("%s infinite sums %s\n%s", v.ok() && v.spread ? "ok" : "FAILED",
           v.spread ? "arrive" : "become something else", v.outcome.text().c_str());
    return !v.ok() || !v.spread;
}

/* Returns x rounded to nearest, ties to even, with so many significant bits, or fewer below the
 * smallest normal number; infinite from `above` on. */
double rounded(double x, int digits, double smallest, double above)
{
    if (!std::isfinite(x) || x == 0)
        return x;
    double unit = std::ldexp(1, std::ilogb(std::fmax(std::fabs(x), smallest)) - digits + 1);
    double nearest = std::nearbyint(x / unit) * unit;
    return std::fabs(nearest) < above ? nearest : std::copysign(HUGE_VAL, x);
}

/* Checks how sums of all magnitudes, NaN and infinite ones travel: the first of four with a bit
 * less than T has, and with the epoch in that bit. From `cut` on, it may be cut off instead,
 * and overflow 2 % below the largest number. */
template <class T>
int test_messages(const char *name, int digits, double smallest, double above, double cut)
{
    using message = lb_grid::message<T>;
    int wrong = 0;
    auto high = [=](double x) { return std::fabs(x) >= cut && std::isfinite(x); };
    auto near = [=](double got, double x) {
        return std::fabs(got / x - 1) < 4.0 / (1 << digits) ||
               (std::fabs(x) > 0.98 * above && got == std::copysign(HUGE_VAL, x));
    };
    for (uint32_t upper = 0; upper < 1 << 16; upper++)
        for (uint32_t lower : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x2000u, 0x3000u, 0x6000u, 0x7fffu,
                               0x8000u, 0x8001u, 0xa000u, 0xffffu}) {
            uint32_t bits = upper << 16 | lower, epoch = bits / 7 % 2;
            float v;
            memcpy(&v, &bits, sizeof(v));
            const float four[] = {v, v, -v, v};
            uint64_t sent = message::pack(four, epoch);
            const uint32_t words[] = {static_cast<uint32_t>(sent),
                                      static_cast<uint32_t>(sent >> 32)};
            float4 got = message::take(words, epoch);
            double x = static_cast<double>(v * message::scale);
            const double taken[] = {got.x, got.y, -got.z, got.w};
            bool right = sent % 2 == epoch;
            for (int n = 0; n < 4; n++) {
                double expected = rounded(x, n == 0 ? digits - 1 : digits, smallest, above);
                right = right && (std::isnan(x)       ? std::isnan(taken[n])
                                  : n == 0 && high(x) ? near(taken[n], x)
                                                      : taken[n] == expected);
            }
            wrong += !right;
        }
    printf("%s sums in %s: %d of them wrong\n", wrong ? "FAILED" : "ok", name, wrong);
    return wrong != 0;
}

/* ---- What ships ------------------------------------------------------------------------------ */

/* One pass in two types, of which the other pass has none. */
template <class Forward, class Backward, int... figures> void add_builtin(cases &to)
{
    using one = lb_grid::tile<figures...>;
    const std::string text = figures_text({figures...});
    const shape size = {2, one::columns + 1, 12 * one::units - 3, 1, false};
    auto name = [&](lb_grid_math math) {
        static const char *const names[] = {"f16", "bf16", "tf32", "f32"};
        return names[math] + text;
    };
    to.push_back({forward<Forward, one>("forward " + name(Forward::figure), true), size});
    to.push_back({backward<Backward, one>("backward " + name(Backward::figure)), size});
}

/* Both passes of a built-in tile in one type, on the smallest shapes that take the paths of
 * bench/cases: chunks, groups, directions, padding and two launches at a small H; then two packets
 * or row tiles per warp, then three and more, windows and weights in shared memory, as far as the
 * tile goes, forward in two chunks. */
template <class Math, class Tile> void add_paths(cases &to)
{
    constexpr int columns = Tile::columns, units = Tile::units, small = 7 * units - 3;
    constexpr int level = lb_grid::deep<Math> * Tile::warps; /* units of a packet of each warp */
    constexpr int two = columns == 8 ? 13 : 27; /* rows of two groups, of which one has fewer */
    int reach = lb_grid_reach(&Tile::figures, Math::figure);
    bool sixteen = lb_grid_lane_units(Math::figure) == 8;
    int large = sixteen ? (reach > 1024 ? 1160 : 520) : (units == 8 ? 648 : 400);
    int window = 8 * 32 * Tile::warps / (units * columns / 4); /* blocks read at the same time */
    for (bool back : {false, true}) {
        auto kernel = [=](bool train) {
            return back ? backward<Math, Tile>("backward") : forward<Math, Tile>("forward", train);
        };
        to.push_back({kernel(true), {2, columns + 1, small, 2, false}, {.apart = true}});
        to.push_back({kernel(false), {3, 3 * columns + 1, small, 1, false}, {.cut = 1}});
        to.push_back({kernel(true), {2, two, 7 * units, 2, false}, {.groups = 2}});
        to.push_back({kernel(false), {2, columns, back ? 136 : level + 8, 1, false}});
        bool several = !back || (sixteen && large > window * units); /* chunks as well as windows */
        to.push_back({kernel(false), {back ? 2 : 3, several ? columns + 1 : 3, large, 1, false}});
    }
}

template <int... figures> void add_half_paths(cases &to)
{
    add_paths<f16_math, lb_grid::tile<figures...>>(to);
    add_paths<bf16_math, lb_grid::tile<figures...>>(to);
}

template <int... figures> void add_float_paths(cases &to)
{
    add_paths<tf32_math, lb_grid::tile<figures...>>(to);
    add_paths<f32_math, lb_grid::tile<figures...>>(to);
}

/* Checks that packed weights have each element of w_hh exactly once, and else zeros. */
int test_round_trip(bool backward, lb_grid_math math, int hidden)
{
    const lb_grid_tile tile = {16, 2, 2, 3, 8};
    size_t count = 4 * static_cast<size_t>(hidden) * static_cast<size_t>(hidden);
    size_t element = 16 / static_cast<size_t>(lb_grid_lane_units(math));
    std::vector<unsigned char> w_hh(count * element);
    std::vector<int> seen(count + 1);
    for (size_t i = 0; i < count;
         i++) { /* element i has the value i + 1, in TF32 in the upper bits */
        uint32_t bits = static_cast<uint32_t>(i + 1) << (math == LB_GRID_TF32 ? 13 : 0);
        memcpy(&w_hh[i * element], &bits, element);
    }
    const lb_weight_layout layout = lb_grid_layout(&tile, math, backward, hidden);
    std::vector<unsigned char> packed(layout.elements * element);
    pack_weights(layout, element, w_hh.data(), packed.data());
    for (size_t i = 0; i < packed.size(); i += element) {
        uint32_t bits = 0;
        memcpy(&bits, &packed[i], element);
        bits >>= math == LB_GRID_TF32 ? 13 : 0;
        if (bits > count)
            return printf("FAILED round trip: an element that was not there\n"), 1;
        seen[bits]++;
    }
    for (size_t i = 1; i <= count; i++)
        if (seen[i] != 1)
            return printf("FAILED round trip: element %zu %d times\n", i - 1, seen[i]), 1;
    return 0;
}

int test_packing()
{
    int failures = 0;
    for (bool backward : {false, true}) {
        failures += test_round_trip(backward, LB_GRID_F16, 61);
        failures += test_round_trip(backward, LB_GRID_F32, 50);
        failures += test_round_trip(backward, LB_GRID_TF32, 33);
    }
    printf("%s packed weights are a round trip\n", failures ? "FAILED" : "ok");
    return failures;
}

/* Launches body for each element of a layout, as the device does. */
template <class Body> bool converts(const lb_weight_layout &layout, const Body &body)
{
    simt::launch_config config = {"weights"};
    config.block.x = 64;
    config.grid.x = static_cast<unsigned>((layout.elements + 63) / 64);
    simt::outcome outcome = simt::launch(config, body);
    if (!outcome.ok())
        printf("%s", outcome.text().c_str());
    return outcome.ok();
}

/* Checks that the kernel packs what the host packs, and writes all of it. */
template <class Bits> int test_pack_kernel(bool backward, lb_grid_math math, int hidden)
{
    const lb_grid_tile tile = {16, 2, 2, 3, 8};
    const lb_weight_layout layout = lb_grid_layout(&tile, math, backward, hidden);
    std::vector<Bits> w_hh(4 * static_cast<size_t>(hidden * hidden)), expected(layout.elements);
    for (size_t i = 0; i < w_hh.size(); i++)
        w_hh[i] = static_cast<Bits>(0x3f812345u + 97 * i);
    pack_weights(layout, sizeof(Bits), w_hh.data(), expected.data());
    simt::device_reset();
    const Bits *matrix = simt::device_copy(w_hh, "matrix");
    Bits *packed = simt::device_array<Bits>(expected.size(), "packed");
    bool right =
        converts(layout, [=] { lb_fused_weights::pack_kernel<Bits>(packed, matrix, layout); });
    right = right && !memcmp(packed, expected.data(), expected.size() * sizeof(Bits));
    printf("%s pack_kernel<%zu bytes> %s\n", right ? "ok" : "FAILED", sizeof(Bits),
           backward ? "backward" : "forward");
    return !right;
}

/* Checks that the kernel that unpacks rounds once and writes both biases. */
int test_unpack_kernel()
{
    const lb_weight_layout layout = lb_weight_layout_by_unit(13, 5);
    std::vector<float> sums(layout.elements);
    for (size_t i = 0; i < sums.size(); i++)
        sums[i] = 1.0f + static_cast<float>(i) / 4099;
    simt::device_reset();
    const float *packed = simt::device_copy(sums, "packed");
    __half *matrix = simt::device_array<__half>(sums.size(), "matrix");
    __half *also = simt::device_array<__half>(sums.size(), "also");
    bool right = converts(layout, [=] {
        lb_fused_weights::unpack_kernel<float, __half>(matrix, also, packed, layout);
    });
    for (uint64_t i = 0; right && i < layout.elements; i++) {
        double value = sums[i];
        uint16_t rounded;
        int64_t at = lb_weight_source(&layout, i);
        lb_store(LB_F16, &rounded, &value, 1);
        right = !memcmp(&matrix[at], &rounded, 2) && !memcmp(&also[at], &rounded, 2);
    }
    printf("%s unpack_kernel\n", right ? "ok" : "FAILED");
    return !right;
}

} // namespace

cases clean_cases()
{
    return {
        {forward<f16_math, narrow>("forward f16", false), {6, 5, 29, 1, false}},
        {forward<f16_math, narrow>("forward f16 chunks", true), {4, 19, 33, 1, true}},
        {forward<bf16_math, narrow>("forward bf16", true), {1, 1, 1, 1, false}},
        {forward<bf16_math, spilled>("forward bf16 spilled", true), {4, 3, 37, 2, true}},
        {forward<f16_math, wide>("forward f16 wide", false), {5, 13, 41, 1, false}},
        {forward<f16_math, wide>("forward f16 groups", true), {4, 18, 23, 1, true}, {.groups = 2}},
        {forward<f16_math, narrow>("forward f16 cut", true), {6, 5, 29, 2, true}, {.cut = 3}},
        {forward<bf16_math, narrow>("forward bf16 apart", false),
         {5, 9, 20, 2, true},
         {.apart = true}},
        {forward<f16_math, narrow>("forward f16 six apart", true),
         {6, 5, 61, 2, false},
         {.apart = true}},
        {forward<f16_math, idle>("forward f16 idle", true), {6, 5, 29, 1, false}},
        {forward<f16_math, narrow>("forward f16 saturated", true),
         {9, 5, 29, 1, false},
         {.saturated = true}},
        {forward<bf16_math, narrow>("forward bf16 saturated", true),
         {9, 5, 29, 1, false},
         {.saturated = true}},
        {forward<f32_math, narrow>("forward f32 saturated", true),
         {9, 5, 29, 1, false},
         {.saturated = true}},
        {forward<f16_math, narrow>("forward f16 four chunks", false), {4, 27, 33, 1, false}},
        {forward<f16_math, deep>("forward f16 three packets", false), {5, 5, 90, 1, false}},
        {forward<f16_math, deep>("forward f16 packets, chunks", true), {5, 19, 90, 1, true}},
        {forward<f32_math, halves>("forward f32 windows, chunks", true), {4, 27, 93, 1, true}},
        {forward<f16_math, deep>("forward f16 chunks cut", true), {6, 11, 61, 2, true}, {.cut = 3}},
        {forward<f32_math, narrow>("forward f32", true), {6, 5, 29, 1, false}},
        {forward<f32_math, wide>("forward f32 wide", false), {4, 11, 35, 2, true}},
        {forward<f32_math, spilled>("forward f32 cut", true), {5, 9, 21, 1, true}, {.cut = 2}},
        {forward<tf32_math, narrow>("forward tf32", true), {6, 5, 29, 1, false}},
        {forward<tf32_math, spilled>("forward tf32 spilled", false), {4, 9, 31, 2, true}},
        {backward<f16_math, narrow>("backward f16"), {6, 5, 29, 1, false}},
        {backward<f16_math, narrow>("backward f16 chunks"), {4, 19, 33, 1, true}},
        {backward<bf16_math, narrow>("backward bf16"), {1, 1, 1, 1, false}},
        {backward<bf16_math, spilled>("backward bf16 spilled"), {4, 3, 37, 2, true}},
        {backward<f16_math, wide>("backward f16 wide"), {5, 13, 41, 1, false}},
        {backward<f16_math, windows>("backward f16 windows"), {3, 5, 137, 1, false}},
        {backward<f16_math, windows>("backward f16 windows chunks"), {4, 13, 137, 1, true}},
        {backward<f16_math, wide>("backward f16 groups"), {4, 18, 23, 1, true}, {.groups = 2}},
        {backward<f16_math, narrow>("backward f16 cut"), {6, 5, 29, 2, true}, {.cut = 3}},
        {backward<bf16_math, narrow>("backward bf16 apart"), {5, 9, 20, 2, true}, {.apart = true}},
        {backward<f16_math, narrow>("backward f16 six apart"),
         {6, 5, 29, 2, false},
         {.apart = true}},
        {backward<f16_math, narrow>("backward f16 one step of chunks"), {1, 11, 33, 1, false}},
        {backward<f16_math, idle>("backward f16 idle"), {6, 5, 29, 1, false}},
        {backward<f32_math, narrow>("backward f32"), {6, 5, 29, 1, false}},
        {backward<f32_math, wide>("backward f32 wide"), {4, 11, 35, 2, true}},
        {backward<f32_math, spilled>("backward f32 cut"), {5, 9, 21, 1, true}, {.cut = 2}},
        {backward<tf32_math, narrow>("backward tf32"), {6, 5, 29, 1, false}},
        {backward<tf32_math, spilled>("backward tf32 spilled"), {4, 9, 31, 2, true}},
    };
}

cases builtin_cases()
{
    cases all;
#define LB_HALF(...)  add_builtin<f16_math, bf16_math, __VA_ARGS__>(all);
#define LB_FLOAT(...) add_builtin<f32_math, tf32_math, __VA_ARGS__>(all);
    LB_GRID_HALF_TILES(LB_HALF)
    LB_GRID_FLOAT_TILES(LB_FLOAT)
    return all;
}

cases path_cases()
{
    cases all;
#define LB_PATHS_HALF(...)  add_half_paths<__VA_ARGS__>(all);
#define LB_PATHS_FLOAT(...) add_float_paths<__VA_ARGS__>(all);
    LB_GRID_HALF_TILES(LB_PATHS_HALF)
    LB_GRID_FLOAT_TILES(LB_PATHS_FLOAT)
    return all;
}

int test_more()
{
    int failures = test_waits() | test_others_gave_up() | test_numbers() | test_overflow() |
                   test_packing() | test_unpack_kernel() |
                   test_messages<__half>("f16", 11, 0x1p-14, 0x1p16, HUGE_VAL) |
                   test_messages<__nv_bfloat16>("bf16", 8, 0x1p-126, 0x1p128, 0x1p105);
    for (bool backward : {false, true}) {
        failures |= test_pack_kernel<uint16_t>(backward, LB_GRID_BF16, 61);
        failures |= test_pack_kernel<uint32_t>(backward, LB_GRID_TF32, 33);
    }
    return failures;
}

} // namespace simt_fused

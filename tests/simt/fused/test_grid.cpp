/* Checks that the fused grid kernels are right and clean under many schedules.
 *
 *   test_simt_grid_fast clean SEEDS      runs small tiles on odd sizes; checks packing by kernels
 *   test_simt_grid_fast waits            checks that endless waits are reported
 *   test_simt_grid_fast builtin          runs every built-in tile once; checks packing and sizes
 *   test_simt_grid_fast paths [I N]      runs every built-in tile on the paths of bench/cases, or
 *                                        the I-th of N parts of these cases
 *   test_simt_grid_fast list             prints which paths the cases of `paths` take
 *   test_simt_grid_check counts TABLE    compares what accesses cost with a table
 *
 * test_simt_grid_check also takes `clean` and `waits`, and looks for races there. */
#include "grid_run.h"
#include "paths.h"

#include "cuda/fused/grid/backward.cuh"
#include "cuda/fused/grid/forward.cuh"

#include "cuda/fused/common/weights.cuh" /* behind what brings the names of CUDA */

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace simt_grid;
using lb_grid::bf16_math;
using lb_grid::f16_math;
using lb_grid::f32_math;
using lb_grid::tf32_math;
using simt_fused::test_clean;

namespace
{

/* units, warps, packets, resident, columns: at most 512 threads. */
using narrow = lb_grid::tile<8, 2, 1, 4, 8>;   /* H up to 64 in f16 and bf16, up to 32 in f32 */
using spilled = lb_grid::tile<16, 2, 1, 3, 8>; /* most weights in shared memory */
using wide = lb_grid::tile<8, 2, 2, 5, 16>;    /* two blocks of columns, two cells per thread */
using deep = lb_grid::tile<8, 1, 4, 8, 8>;     /* a warp has up to four packets */
using windows = lb_grid::tile<8, 1, 8, 8, 8>;  /* backward reads from 16 blocks at the same time */
using halves = lb_grid::tile<8, 1, 8, 8, 16>;  /* forward reads its packets in two windows */

template <class Math, class Tile> subject forward(const char *name, bool train)
{
    return {name,         lb_grid::fused_grid_forward_kernel<Math, Tile>,
            nullptr,      Tile::figures,
            Math::figure, train};
}

template <class Math, class Tile> subject backward(const char *name)
{
    return {name,          nullptr,      lb_grid::fused_grid_backward_kernel<Math, Tile>,
            Tile::figures, Math::figure, false};
}

struct check_case {
    subject kernel;
    shape size; /* T, B, H, D, ragged */
    manner how;
};

manner apart()
{
    manner m;
    m.apart = true;
    return m;
}

const check_case cases[] = {
    {forward<f16_math, narrow>("forward f16", false), {6, 5, 29, 1, false}, {}},
    {forward<f16_math, narrow>("forward f16 chunks", true), {4, 19, 33, 1, true}, {}},
    {forward<bf16_math, narrow>("forward bf16", true), {1, 1, 1, 1, false}, {}},
    {forward<bf16_math, spilled>("forward bf16 spilled", true), {4, 3, 37, 2, true}, {}},
    {forward<f16_math, wide>("forward f16 wide", false), {5, 13, 41, 1, false}, {}},
    {forward<f16_math, wide>("forward f16 groups", true), {4, 18, 23, 1, true}, with_groups(2)},
    {forward<f16_math, narrow>("forward f16 cut", true), {6, 5, 29, 2, true}, cut_at(3)},
    {forward<bf16_math, narrow>("forward bf16 apart", false), {5, 9, 20, 2, true}, apart()},
    {forward<f16_math, narrow>("forward f16 saturated", true), {9, 5, 29, 1, false, 0, true}, {}},
    {forward<bf16_math, narrow>("forward bf16 saturated", true), {9, 5, 29, 1, false, 0, true}, {}},
    {forward<f32_math, narrow>("forward f32 saturated", true), {9, 5, 29, 1, false, 0, true}, {}},
    {forward<f16_math, narrow>("forward f16 four chunks", false), {4, 27, 33, 1, false}, {}},
    {forward<f16_math, deep>("forward f16 three packets", false), {5, 5, 90, 1, false}, {}},
    {forward<f16_math, deep>("forward f16 packets, chunks", true), {5, 19, 90, 1, true}, {}},
    {forward<f32_math, halves>("forward f32 windows, chunks", true), {4, 27, 93, 1, true}, {}},
    {forward<f16_math, deep>("forward f16 chunks cut", true), {6, 11, 61, 2, true}, cut_at(3)},
    {forward<f32_math, narrow>("forward f32", true), {6, 5, 29, 1, false}, {}},
    {forward<f32_math, wide>("forward f32 wide", false), {4, 11, 35, 2, true}, {}},
    {forward<f32_math, spilled>("forward f32 cut", true), {5, 9, 21, 1, true}, cut_at(2)},
    {forward<tf32_math, narrow>("forward tf32", true), {6, 5, 29, 1, false}, {}},
    {forward<tf32_math, spilled>("forward tf32 spilled", false), {4, 9, 31, 2, true}, {}},
    {backward<f16_math, narrow>("backward f16"), {6, 5, 29, 1, false}, {}},
    {backward<f16_math, narrow>("backward f16 chunks"), {4, 19, 33, 1, true}, {}},
    {backward<bf16_math, narrow>("backward bf16"), {1, 1, 1, 1, false}, {}},
    {backward<bf16_math, spilled>("backward bf16 spilled"), {4, 3, 37, 2, true}, {}},
    {backward<f16_math, wide>("backward f16 wide"), {5, 13, 41, 1, false}, {}},
    {backward<f16_math, windows>("backward f16 windows"), {3, 5, 137, 1, false}, {}},
    {backward<f16_math, windows>("backward f16 windows chunks"), {4, 13, 137, 1, true}, {}},
    {backward<f16_math, wide>("backward f16 groups"), {4, 18, 23, 1, true}, with_groups(2)},
    {backward<f16_math, narrow>("backward f16 cut"), {6, 5, 29, 2, true}, cut_at(3)},
    {backward<bf16_math, narrow>("backward bf16 apart"), {5, 9, 20, 2, true}, apart()},
    {backward<f32_math, narrow>("backward f32"), {6, 5, 29, 1, false}, {}},
    {backward<f32_math, wide>("backward f32 wide"), {4, 11, 35, 2, true}, {}},
    {backward<f32_math, spilled>("backward f32 cut"), {5, 9, 21, 1, true}, cut_at(2)},
    {backward<tf32_math, narrow>("backward tf32"), {6, 5, 29, 1, false}, {}},
    {backward<tf32_math, spilled>("backward tf32 spilled"), {4, 9, 31, 2, true}, {}},
};

verdict run_case(const check_case &c, uint64_t seed)
{
    return run(c.kernel, c.size, c.how, seed);
}

/* When a block never runs, a block that waits for it reports that, and the launch ends. */
int test_waits()
{
    manner alone = without_block(2), second = without_block(9);
    second.groups = 2; /* 4 blocks in each of 2 directions */
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
            verdict v = run(s.c.kernel, s.c.size, s.c.how, seed);
            const lb_fused_fault &f = v.fault;
            bool backward = s.c.kernel.backward;
            int step = backward ? s.c.size.seq_len - 2 : 1; /* the first that needs another block */
            bool right = v.outcome.ok() && f.raised && f.awaited == s.c.how.missing &&
                         f.block != f.awaited && f.block >= s.first && f.block <= s.last &&
                         f.step == step;
            failures += !right;
            printf("%s %s seed %lu: block %d waited at step %d for block %d\n%s",
                   right ? "ok" : "FAILED", s.c.kernel.name, static_cast<unsigned long>(seed),
                   f.block, f.step, f.awaited, v.outcome.text().c_str());
        }
    }
    return failures != 0;
}

/* A block gives up once another block has, whatever its own limit is. */
int test_others_gave_up()
{
    const check_case waiting[] = {
        {forward<f16_math, narrow>("forward f16", false), {5, 5, 29, 1, false}, after_giving_up(2)},
        {backward<f16_math, narrow>("backward f16"), {5, 5, 29, 1, false}, after_giving_up(2)},
    };
    int failures = 0;
    for (const check_case &c : waiting) {
        verdict v = run_case(c, 1);
        failures += !v.outcome.ok();
        printf("%s %s leaves once others gave up\n%s", v.outcome.ok() ? "ok" : "FAILED",
               c.kernel.name, v.outcome.text().c_str());
    }
    return failures != 0;
}

/* NaN must survive the exchange, although the bit of the epoch is free only in numbers. */
int test_no_number()
{
    const subject kernels[] = {forward<f16_math, narrow>("forward f16", false),
                               forward<bf16_math, wide>("forward bf16", false),
                               forward<f32_math, narrow>("forward f32", false),
                               forward<tf32_math, spilled>("forward tf32", false),
                               backward<f16_math, narrow>("backward f16"),
                               backward<bf16_math, wide>("backward bf16"),
                               backward<f32_math, narrow>("backward f32"),
                               backward<tf32_math, spilled>("backward tf32")};
    int failures = 0;
    for (const subject &kernel : kernels) {
        verdict v = run(kernel, {6, 5, 29, 1, false}, with_spoiled(2), 3);
        failures += !v.ok() || !v.spread;
        printf("%s %s: no number %s its row, others %.2g of the limit\n%s",
               v.ok() && v.spread ? "ok" : "FAILED", kernel.name,
               v.spread ? "spreads over" : "is lost in", v.excess, v.outcome.text().c_str());
    }
    return failures != 0;
}

/* Infinite sums must arrive as what they are. */
int test_overflow()
{
    verdict v =
        run(backward<f16_math, narrow>("backward f16"), {1, 5, 13, 1, false}, with_loud(2), 3);
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

/* ---- What ships -------------------------------------------------------------------------------
 */

#define LB_BUILTIN_HALF(units, warps, packets, resident, columns)                                \
    check_case{forward<f16_math, lb_grid::tile<units, warps, packets, resident, columns>>(       \
                   "forward f16 " #units "x" #packets " columns " #columns, true),               \
               {2, columns + 1, 12 * units - 3, 1, false},                                       \
               {}},                                                                              \
        check_case{backward<bf16_math, lb_grid::tile<units, warps, packets, resident, columns>>( \
                       "backward bf16 " #units "x" #packets " columns " #columns),               \
                   {2, columns + 1, 12 * units - 3, 1, false},                                   \
                   {}},
#define LB_BUILTIN_FLOAT(units, warps, packets, resident, columns)                               \
    check_case{forward<f32_math, lb_grid::tile<units, warps, packets, resident, columns>>(       \
                   "forward f32 " #units "x" #packets " columns " #columns, true),               \
               {2, columns + 1, 12 * units - 3, 1, false},                                       \
               {}},                                                                              \
        check_case{backward<tf32_math, lb_grid::tile<units, warps, packets, resident, columns>>( \
                       "backward tf32 " #units "x" #packets " columns " #columns),               \
                   {2, columns + 1, 12 * units - 3, 1, false},                                   \
                   {}},

/* Without a table it runs every built-in tile once. With a table, or "print", it counts what
 * accesses cost. */
int test_builtin(const char *table = nullptr)
{
    const check_case builtin[] = {LB_GRID_HALF_TILES(LB_BUILTIN_HALF)
                                      LB_GRID_FLOAT_TILES(LB_BUILTIN_FLOAT)};
    if (table)
        return test_counts(builtin, strcmp(table, "print") ? table : nullptr, run_case);
    return test_clean(builtin, 1, 2, run_case);
}

/* Both passes of a built-in tile in one type, on the smallest shapes that take the paths of
 * bench/cases: chunks, groups, directions, padding and two launches at a small H; then two packets
 * or row tiles per warp, then three and more, windows and weights in shared memory, as far as the
 * tile goes, forward in two chunks. */
template <class Math, class Tile> void add_paths(std::vector<check_case> &to)
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
        to.push_back({kernel(true), {2, columns + 1, small, 2, false}, apart()});
        to.push_back({kernel(false), {3, 3 * columns + 1, small, 1, false}, cut_at(1)});
        to.push_back({kernel(true), {2, two, 7 * units, 2, false}, with_groups(2)});
        to.push_back({kernel(false), {2, columns, back ? 136 : level + 8, 1, false}, {}});
        bool several = !back || (sixteen && large > window * units); /* chunks as well as windows */
        to.push_back(
            {kernel(false), {back ? 2 : 3, several ? columns + 1 : 3, large, 1, false}, {}});
    }
}

template <int... figures> void add_half_paths(std::vector<check_case> &to)
{
    add_paths<f16_math, lb_grid::tile<figures...>>(to);
    add_paths<bf16_math, lb_grid::tile<figures...>>(to);
}

template <int... figures> void add_float_paths(std::vector<check_case> &to)
{
    add_paths<tf32_math, lb_grid::tile<figures...>>(to);
    add_paths<f32_math, lb_grid::tile<figures...>>(to);
}

void print_paths(const check_case &c)
{
    const shape &s = c.size;
    const path_shape taken = {s.batch,  s.hidden,       s.directions,
                              s.ragged, c.kernel.train, c.how.cut > 0};
    lb_grid_kernel k = {};
    k.tile = c.kernel.tile;
    k.math = c.kernel.math;
    k.split = lb_grid_split_of(&k.tile, s.batch, c.how.groups);
    k.backward = c.kernel.backward != nullptr;
    k.beside = !c.how.apart;
    printf("case\n");
    print_grid_paths(stdout, &k, &taken);
}

std::vector<check_case> path_cases()
{
    std::vector<check_case> on_paths;
#define LB_PATHS_HALF(...)  add_half_paths<__VA_ARGS__>(on_paths);
#define LB_PATHS_FLOAT(...) add_float_paths<__VA_ARGS__>(on_paths);
    LB_GRID_HALF_TILES(LB_PATHS_HALF)
    LB_GRID_FLOAT_TILES(LB_PATHS_FLOAT)
    return on_paths;
}

/* Runs each parts-th case of `paths`, from the case `part` on, which counts from 1. */
int test_paths(size_t part, size_t parts)
{
    std::vector<check_case> all = path_cases(), chosen;
    if (part < 1 || part > parts)
        return 2;
    for (size_t i = part - 1; i < all.size(); i += parts)
        chosen.push_back(all[i]);
    return test_clean(chosen, 1, 2, run_case);
}

/* Prints which paths each case of `paths` takes. */
int list_paths()
{
    for (const check_case &c : path_cases())
        print_paths(c);
    return 0;
}

/* Checks that host code allocates what the kernels lay out, and no more than a block may have, and
 * that both know when packets are requested early. */
template <class Math, class Tile> int wrong_sizes()
{
    using there = lb_grid::forward_shared<Math, Tile>;
    using back = lb_grid::backward_shared<Math, Tile>;
    int wrong = lb_grid_ahead(&Tile::figures, Math::figure) != lb_grid::ahead<Math, Tile>;
    for (int chunks = 1; chunks <= 3; chunks++) {
        size_t forward = there::bytes + static_cast<size_t>(chunks * there::chunk_bytes);
        size_t backward = back::bytes + static_cast<size_t>(chunks * back::chunk_bytes);
        wrong += lb_grid_forward_shared(&Tile::figures, Math::figure, chunks) != forward ||
                 lb_grid_backward_shared(&Tile::figures, Math::figure, chunks) != backward ||
                 forward > lb_grid::shared_limit || backward > lb_grid::shared_limit;
    }
    return wrong;
}

#define LB_SIZES_HALF(...)                                 \
    +wrong_sizes<f16_math, lb_grid::tile<__VA_ARGS__>>() + \
        wrong_sizes<bf16_math, lb_grid::tile<__VA_ARGS__>>()
#define LB_SIZES_FLOAT(...)                                \
    +wrong_sizes<f32_math, lb_grid::tile<__VA_ARGS__>>() + \
        wrong_sizes<tf32_math, lb_grid::tile<__VA_ARGS__>>()

int test_sizes()
{
    int wrong = 0 LB_GRID_HALF_TILES(LB_SIZES_HALF) LB_GRID_FLOAT_TILES(LB_SIZES_FLOAT);
    printf("%s sizes of shared memory, by the host and by the kernels\n", wrong ? "FAILED" : "ok");
    return wrong;
}

/* Checks that packed weights have each element of w_hh exactly once, and else zeros. */
int test_round_trip(bool backward, lb_grid_math math, int hidden)
{
    const lb_grid_tile tile = {16, 2, 2, 3, 8};
    size_t count = 4 * static_cast<size_t>(hidden) * static_cast<size_t>(hidden);
    size_t element = 16 / static_cast<size_t>(lb_grid_lane_units(math));
    std::vector<unsigned char> w_hh(count * element), packed(lb_grid_weight_bytes(&tile, hidden));
    std::vector<int> seen(count + 1);
    for (size_t i = 0; i < count;
         i++) { /* element i has the value i + 1, in TF32 in the upper bits */
        uint32_t bits = static_cast<uint32_t>(i + 1) << (math == LB_GRID_TF32 ? 13 : 0);
        memcpy(&w_hh[i * element], &bits, element);
    }
    const lb_weight_layout layout =
        (backward ? lb_grid_backward_layout : lb_grid_forward_layout)(&tile, math, hidden);
    lb_weight_pack(&layout, element, w_hh.data(), packed.data());
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
    const lb_weight_layout layout =
        (backward ? lb_grid_backward_layout : lb_grid_forward_layout)(&tile, math, hidden);
    std::vector<Bits> w_hh(4 * static_cast<size_t>(hidden * hidden)), expected(layout.elements);
    for (size_t i = 0; i < w_hh.size(); i++)
        w_hh[i] = static_cast<Bits>(0x3f812345u + 97 * i);
    lb_weight_pack(&layout, sizeof(Bits), w_hh.data(), expected.data());
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

int test_weight_kernels()
{
    int failures = test_unpack_kernel();
    for (bool backward : {false, true}) {
        failures += test_pack_kernel<uint16_t>(backward, LB_GRID_BF16, 61);
        failures += test_pack_kernel<uint32_t>(backward, LB_GRID_TF32, 33);
    }
    return failures;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "clean"))
        return test_clean(cases, 0, strtoul(argv[2], nullptr, 10), run_case) | test_no_number() |
               test_overflow() | test_weight_kernels() |
               test_messages<__half>("f16", 11, 0x1p-14, 0x1p16, HUGE_VAL) |
               test_messages<__nv_bfloat16>("bf16", 8, 0x1p-126, 0x1p128, 0x1p105);
    if (argc == 2 && !strcmp(argv[1], "waits"))
        return test_waits() | test_others_gave_up();
    if (argc == 2 && !strcmp(argv[1], "builtin"))
        return test_builtin() || test_sizes() || test_packing();
    if (argc == 2 && !strcmp(argv[1], "paths"))
        return test_paths(1, 1);
    if (argc == 4 && !strcmp(argv[1], "paths"))
        return test_paths(strtoul(argv[2], nullptr, 10), strtoul(argv[3], nullptr, 10));
    if (argc == 2 && !strcmp(argv[1], "list"))
        return list_paths();
    if (argc == 3 && !strcmp(argv[1], "counts"))
        return test_builtin(argv[2]);
    fprintf(stderr,
            "usage: %s clean SEEDS | waits | builtin | paths [I N] | list | counts TABLE.CSV | "
            "counts print\n",
            argv[0]);
    return 2;
}

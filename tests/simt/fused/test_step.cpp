/* Checks that the fused step kernels are right and clean under many schedules, in every type.
 *
 *   test_simt_step_fast clean SEEDS      runs small tiles on odd sizes; test_simt_step_check too
 *   test_simt_step_fast builtin          runs every built-in tile once in every type
 *   test_simt_step_fast paths            runs every built-in tile on the paths of bench/cases
 *   test_simt_step_fast list             prints which paths the cases of `paths` take
 *   test_simt_step_check counts TABLE    compares what accesses cost with a table */
#include "family.h"
#include "paths.h"
#include "step_run.h"

#include "cuda/fused/step/backward.cuh"
#include "cuda/fused/step/forward.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace simt_step;
using simt_fused::test_clean;
using namespace lb_step;

namespace
{

/* row tiles, columns, split, blocks: at most 512 threads where shapes have D = 1. */
using narrow_tile = tile<1, 16, 1, 1>; /* slices of 64 bytes: 32 halves, 16 f32, 8 f64 */
using split_tile = tile<1, 16, 2, 1>;
using tall_tile = tile<2, 32, 1, 1>;
using pair_tile = tile<2, 32, 1, 2>; /* a thread computes two groups of cells */
using four_tile = tile<1, 16, 2, 4>;

template <class Product, lb_math math = LB_IEEE> struct kind {
    using product = Product;
    static constexpr lb_math of_products = math;
};
using f64 = kind<plain_product<double>>;
using f32 = kind<plain_product<float>>;
using tf32 = kind<tensor_product<float>, LB_TF32>;
using f16 = kind<tensor_product<__half>>;
using bf16 = kind<tensor_product<__nv_bfloat16>>;

template <class T> constexpr lb_dtype dtype_of = LB_F32;
template <> constexpr lb_dtype dtype_of<double> = LB_F64;
template <> constexpr lb_dtype dtype_of<__half> = LB_F16;
template <> constexpr lb_dtype dtype_of<__nv_bfloat16> = LB_BF16;

template <class Kind, class Tile>
subject forward(const char *name, bool train, lb_act act = LB_ACT_TANH)
{
    using product = typename Kind::product;
    return {name,
            fused_step_forward_kernel<product, Tile>,
            nullptr,
            Tile::figures,
            dtype_of<typename product::storage>,
            Kind::of_products,
            act,
            train};
}

template <class Kind, class Tile> subject backward(const char *name, lb_act act = LB_ACT_TANH)
{
    using product = typename Kind::product;
    return {name,
            nullptr,
            fused_step_backward_kernel<product, Tile>,
            Tile::figures,
            dtype_of<typename product::storage>,
            Kind::of_products,
            act,
            false};
}

struct check_case {
    subject kernel;
    shape size; /* T, B, H, D, ragged */
};

/* With H 150, and with H 100 in pairs of blocks, there are 5 slices and more, so that the ring of 4
 * buffers wraps around. Rows are copied element by element where H is odd, and in chunks where it
 * is a multiple of 8. */
const check_case cases[] = {
    {forward<f16, narrow_tile>("forward f16", false), {2, 5, 150, 1, false}},
    {forward<f16, split_tile>("forward f16 train", true), {4, 17, 24, 2, true}},
    {forward<f16, tall_tile>("forward f16 relu", true, LB_ACT_RELU), {3, 3, 29, 1, false}},
    {forward<bf16, split_tile>("forward bf16", true), {3, 9, 31, 1, true}},
    {forward<bf16, narrow_tile>("forward bf16 least", true), {1, 1, 1, 1, false}},
    {forward<tf32, split_tile>("forward tf32", true), {3, 17, 35, 1, true}},
    {forward<tf32, narrow_tile>("forward tf32 relu", false, LB_ACT_RELU), {2, 3, 20, 2, false}},
    {forward<f32, tall_tile>("forward f32", true), {3, 7, 36, 1, true}},
    {forward<f32, narrow_tile>("forward f32 long", false), {2, 3, 83, 2, false}},
    {forward<f64, split_tile>("forward f64", true), {4, 5, 21, 2, true}},
    {forward<f64, narrow_tile>("forward f64 relu", false, LB_ACT_RELU), {2, 18, 42, 1, false}},
    {backward<f16, narrow_tile>("backward f16"), {3, 5, 40, 1, false}},
    {backward<f16, split_tile>("backward f16 ragged"), {4, 17, 19, 2, true}},
    {backward<f16, tall_tile>("backward f16 relu", LB_ACT_RELU), {3, 3, 33, 1, false}},
    {backward<bf16, split_tile>("backward bf16"), {3, 9, 31, 1, true}},
    {backward<bf16, narrow_tile>("backward bf16 least"), {1, 1, 1, 1, false}},
    {backward<tf32, split_tile>("backward tf32"), {3, 17, 22, 1, true}},
    {backward<f32, tall_tile>("backward f32"), {3, 7, 36, 1, true}},
    {backward<f32, narrow_tile>("backward f32 relu", LB_ACT_RELU), {3, 2, 21, 2, true}},
    {backward<f64, split_tile>("backward f64"), {4, 5, 21, 2, true}},
    {backward<f16, pair_tile>("backward f16 pair"), {2, 33, 100, 1, false}},
    {backward<bf16, pair_tile>("backward bf16 pair relu", LB_ACT_RELU), {3, 9, 31, 2, true}},
    {backward<f16, four_tile>("backward f16 four ragged"), {4, 17, 19, 2, true}},
    {backward<bf16, four_tile>("backward bf16 four least"), {1, 1, 1, 1, false}},
    {backward<tf32, four_tile>("backward tf32 four"), {3, 14, 22, 1, true}},
};

verdict run_case(const check_case &c, uint64_t seed)
{
    return run(c.kernel, c.size, seed);
}

#define LB_BUILTIN_FORWARD(kind, ...)                                           \
    {forward<kind, tile<__VA_ARGS__>>("forward " #kind " " #__VA_ARGS__, true), \
     {2, tile<__VA_ARGS__>::columns + 1, 43, 1, false}},
#define LB_BUILTIN_BACKWARD(kind, ...)                                      \
    {backward<kind, tile<__VA_ARGS__>>("backward " #kind " " #__VA_ARGS__), \
     {2, tile<__VA_ARGS__>::columns + 1, 43, 1, false}},
#define LB_BUILTIN_TILES(kind, ...) \
    LB_BUILTIN_FORWARD(kind, __VA_ARGS__) LB_BUILTIN_BACKWARD(kind, __VA_ARGS__)
#define LB_BUILTIN_CLUSTER_TILE(...)       \
    LB_BUILTIN_BACKWARD(f16, __VA_ARGS__)  \
    LB_BUILTIN_BACKWARD(bf16, __VA_ARGS__) \
    LB_BUILTIN_BACKWARD(tf32, __VA_ARGS__)
#define LB_BUILTIN_TENSOR_TILE(...)     \
    LB_BUILTIN_TILES(f16, __VA_ARGS__)  \
    LB_BUILTIN_TILES(bf16, __VA_ARGS__) \
    LB_BUILTIN_TILES(tf32, __VA_ARGS__)
#define LB_BUILTIN_TILE(...)            \
    LB_BUILTIN_TENSOR_TILE(__VA_ARGS__) \
    LB_BUILTIN_TILES(f32, __VA_ARGS__) LB_BUILTIN_TILES(f64, __VA_ARGS__)

/* Without a table it runs every built-in tile once. With a table, or "print", it counts what
 * accesses cost. */
int test_builtin(const char *table = nullptr)
{
    const check_case builtin[] = {LB_STEP_TILES(LB_BUILTIN_TILE) LB_STEP_TENSOR_TILES(
        LB_BUILTIN_TENSOR_TILE) LB_STEP_CLUSTER_TILES(LB_BUILTIN_CLUSTER_TILE)};
    if (table)
        return test_counts(builtin, strcmp(table, "print") ? table : nullptr, run_case);
    return test_clean(builtin, 1, 2, run_case);
}

/* Every type of every built-in tile, on the smallest shapes that take the paths of bench/cases. The
 * first has more slices than buffers and all columns of a tile; the second has padding, two
 * directions and fewer slices than buffers; the third has a second tile of rows. */
template <class Kind, class Tile> constexpr int deep_hidden(bool back)
{
    constexpr int size = sizeof(typename Kind::product::storage);
    int depth = LB_STEP_STAGES * 64 * Tile::split * Tile::blocks / size / (back ? 4 : 1);
    int units = back ? Tile::rows : 0;
    return (depth > units ? depth : units) + 8;
}

#define LB_PATHS_FORWARD(kind, ...)                                                           \
    {forward<kind, tile<__VA_ARGS__>>("forward deep " #kind " " #__VA_ARGS__, false),         \
     {1, tile<__VA_ARGS__>::columns, deep_hidden<kind, tile<__VA_ARGS__>>(false), 1, false}}, \
        {forward<kind, tile<__VA_ARGS__>>("forward " #kind " " #__VA_ARGS__, true),           \
         {2, 3, 24, 2, false}},                                                               \
        {forward<kind, tile<__VA_ARGS__>>("forward padded " #kind " " #__VA_ARGS__, true),    \
         {1, tile<__VA_ARGS__>::columns + 1, 43, 1, false}},
#define LB_PATHS_BACKWARD(kind, ...)                                                         \
    {backward<kind, tile<__VA_ARGS__>>("backward deep " #kind " " #__VA_ARGS__),             \
     {1, tile<__VA_ARGS__>::columns, deep_hidden<kind, tile<__VA_ARGS__>>(true), 1, false}}, \
        {backward<kind, tile<__VA_ARGS__>>("backward " #kind " " #__VA_ARGS__),              \
         {2, 3, 24, 2, false}},                                                              \
        {backward<kind, tile<__VA_ARGS__>>("backward padded " #kind " " #__VA_ARGS__),       \
         {1, tile<__VA_ARGS__>::columns + 1, 43, 1, false}},
#define LB_PATHS_TILE_OF(kind, ...) \
    LB_PATHS_FORWARD(kind, __VA_ARGS__) LB_PATHS_BACKWARD(kind, __VA_ARGS__)
#define LB_PATHS_CLUSTER_TILE(...)       \
    LB_PATHS_BACKWARD(f16, __VA_ARGS__)  \
    LB_PATHS_BACKWARD(bf16, __VA_ARGS__) \
    LB_PATHS_BACKWARD(tf32, __VA_ARGS__)
#define LB_PATHS_TENSOR_TILE(...)       \
    LB_PATHS_TILE_OF(f16, __VA_ARGS__)  \
    LB_PATHS_TILE_OF(bf16, __VA_ARGS__) \
    LB_PATHS_TILE_OF(tf32, __VA_ARGS__)
#define LB_PATHS_TILE(...)            \
    LB_PATHS_TENSOR_TILE(__VA_ARGS__) \
    LB_PATHS_TILE_OF(f32, __VA_ARGS__) LB_PATHS_TILE_OF(f64, __VA_ARGS__)

/* `list`: prints which paths each case takes. Else runs them. */
int test_paths(bool list)
{
    const check_case on_paths[] = {LB_STEP_TILES(LB_PATHS_TILE) LB_STEP_TENSOR_TILES(
        LB_PATHS_TENSOR_TILE) LB_STEP_CLUSTER_TILES(LB_PATHS_CLUSTER_TILE)};
    if (!list)
        return test_clean(on_paths, 1, 2, run_case);
    for (const check_case &c : on_paths) {
        const shape &s = c.size;
        const path_shape taken = {s.batch, s.hidden, s.directions, s.ragged, c.kernel.train, false};
        printf("case\n");
        print_step_paths(stdout, &c.kernel.tile, c.kernel.dtype, c.kernel.math,
                         c.kernel.backward != nullptr, &taken);
    }
    return 0;
}

/* Sums fit where the slices were, and slices fit the device with the least shared memory per block.
 */
template <class R, class Tile> constexpr bool has_room()
{
    static_assert(Tile::split * Tile::rows * (Tile::columns + 1) * sizeof(R) <=
                      LB_STEP_STAGES * Tile::stage,
                  "sums fit where slices were");
    constexpr int received =
        Tile::blocks > 1 ? 16 + Tile::rows * (Tile::columns + Tile::blocks) * 4 : 0;
    static_assert(LB_STEP_STAGES * Tile::stage + received <= 99 << 10, "sm_120's limit");
    return true;
}
#define LB_ROOM(...)        static_assert(has_room<double, tile<__VA_ARGS__>>(), "");
#define LB_TENSOR_ROOM(...) static_assert(has_room<float, tile<__VA_ARGS__>>(), "");
LB_STEP_TILES(LB_ROOM)
LB_STEP_TENSOR_TILES(LB_TENSOR_ROOM)
LB_STEP_CLUSTER_TILES(LB_TENSOR_ROOM)

} // namespace

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "clean"))
        return test_clean(cases, 0, strtoul(argv[2], nullptr, 10), run_case);
    if (argc == 2 && !strcmp(argv[1], "builtin"))
        return test_builtin();
    if (argc == 2 && (!strcmp(argv[1], "paths") || !strcmp(argv[1], "list")))
        return test_paths(!strcmp(argv[1], "list"));
    if (argc == 3 && !strcmp(argv[1], "counts"))
        return test_builtin(argv[2]);
    fprintf(stderr,
            "usage: %s clean SEEDS | builtin | paths | list | counts TABLE.CSV | counts print\n",
            argv[0]);
    return 2;
}

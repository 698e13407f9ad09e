/* The cases of the fused step kernels, in every type. */
#include "cuda/fused/step/backward.cuh"
#include "cuda/fused/step/forward.cuh"
#include "run.h"

namespace simt_fused
{

namespace
{

using namespace lb_step;

/* row tiles, columns, split, blocks: at most 512 threads where shapes have D = 1. */
using narrow_tile = tile<1, 16, 1, 1>; /* slices of 64 bytes: 32 halves, 16 f32, 8 f64 */
using split_tile = tile<1, 16, 2, 1>;
using idle_tile = tile<1, 16, 4, 1>; /* more threads than cells in forward */
using tall_tile = tile<2, 32, 1, 1>;
using pair_tile = tile<2, 32, 1, 2>; /* a thread computes two groups of cells */
using four_tile = tile<1, 16, 2, 4>;

template <class Product, lb_dtype type, lb_math math = LB_IEEE> struct kind {
    using product = Product;
    static constexpr lb_dtype dtype = type;
    static constexpr lb_math of_products = math;
};
using f64 = kind<plain_product<double>, LB_F64>;
using f32 = kind<plain_product<float>, LB_F32>;
using tf32 = kind<tensor_product<float>, LB_F32, LB_TF32>;
using f16 = kind<tensor_product<__half>, LB_F16>;
using bf16 = kind<tensor_product<__nv_bfloat16>, LB_BF16>;

template <class Kind> std::string kind_name()
{
    return Kind::of_products == LB_TF32 ? "tf32" : lb_dtype_name(Kind::dtype);
}

template <class Kind, class Tile>
subject forward(const std::string &name, bool train, lb_act act = LB_ACT_TANH)
{
    auto *kernel = fused_step_forward_kernel<typename Kind::product, Tile>;
    return {name,        step_kernel{Tile::figures, kernel, nullptr},
            Kind::dtype, Kind::of_products,
            train,       act};
}

template <class Kind, class Tile>
subject backward(const std::string &name, lb_act act = LB_ACT_TANH)
{
    auto *kernel = fused_step_backward_kernel<typename Kind::product, Tile>;
    return {name,        step_kernel{Tile::figures, nullptr, kernel},
            Kind::dtype, Kind::of_products,
            false,       act};
}

/* Sums fit where the slices were, and slices fit the device with the least shared memory per block.
 */
template <class Kind, class Tile> constexpr bool has_room()
{
    static_assert(Tile::split * Tile::rows * (Tile::columns + 1) *
                          sizeof(typename Kind::product::real) <=
                      LB_STEP_STAGES * Tile::stage,
                  "sums fit where slices were");
    static_assert(lb_step_shared(&Tile::figures) <= 99 << 10, "sm_120's limit");
    return true;
}

/* One type of a built-in tile, for counts, or on the smallest shapes that take the paths of
 * bench/cases: more slices than buffers and all columns of a tile; two directions and fewer slices
 * than buffers; padding and a second tile of rows. */
template <class Kind, bool back, int... figures> void add(cases &to, bool paths)
{
    using one = tile<figures...>;
    static_assert(has_room<Kind, one>(), "");
    std::string name = kind_name<Kind>() + figures_text({figures...});
    auto kernel = [&](bool train) {
        if constexpr (back)
            return backward<Kind, one>("backward " + name);
        else
            return forward<Kind, one>("forward " + name, train);
    };
    const shape padded = {paths ? 1 : 2, one::columns + 1, 43, 1, false};
    to.push_back({kernel(true), padded});
    if (!paths)
        return;
    int size = static_cast<int>(lb_dtype_size(Kind::dtype));
    int depth = LB_STEP_STAGES * 64 * one::split * one::blocks / size / (back ? 4 : 1);
    int units = back ? one::rows : 0;
    to.push_back({kernel(false), {1, one::columns, (depth > units ? depth : units) + 8, 1, false}});
    to.push_back({kernel(true), {2, 3, 24, 2, false}});
}

template <bool back, int... figures> void add_tensor(cases &to, bool paths)
{
    add<f16, back, figures...>(to, paths);
    if (paths) /* its accesses are those of f16 */
        add<bf16, back, figures...>(to, paths);
    add<tf32, back, figures...>(to, paths);
}

template <bool back, int... figures> void add_all(cases &to, bool paths)
{
    add_tensor<back, figures...>(to, paths);
    add<f32, back, figures...>(to, paths);
    add<f64, back, figures...>(to, paths);
}

cases all_tiles(bool paths)
{
    cases all;
#define LB_ALL(...)                          \
    add_all<false, __VA_ARGS__>(all, paths); \
    add_all<true, __VA_ARGS__>(all, paths);
#define LB_TENSOR(...)                          \
    add_tensor<false, __VA_ARGS__>(all, paths); \
    add_tensor<true, __VA_ARGS__>(all, paths);
#define LB_CLUSTERS(...) add_tensor<true, __VA_ARGS__>(all, paths);
    LB_STEP_TILES(LB_ALL)
    LB_STEP_TENSOR_TILES(LB_TENSOR)
    LB_STEP_CLUSTER_TILES(LB_CLUSTERS)
    return all;
}

} // namespace

/* With H 150, and with H 100 in pairs of blocks, there are 5 slices and more, so that the ring of 4
 * buffers wraps around. Rows are copied element by element where H is odd, and in chunks where it
 * is a multiple of 8. */
cases clean_cases()
{
    return {
        {forward<f16, narrow_tile>("forward f16", false), {2, 5, 150, 1, false}},
        {forward<f16, split_tile>("forward f16 train", true), {4, 17, 24, 2, true}},
        {forward<f16, tall_tile>("forward f16 relu", true, LB_ACT_RELU), {3, 3, 29, 1, false}},
        {forward<bf16, split_tile>("forward bf16", true), {3, 9, 31, 1, true}},
        {forward<f16, idle_tile>("forward f16 idle", true), {3, 9, 31, 1, true}},
        {forward<f16, split_tile>("forward f16 saturated", true),
         {9, 5, 29, 1, false},
         {.saturated = true}},
        {backward<f16, idle_tile>("backward f16 idle"), {3, 9, 31, 1, true}},
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
}

cases builtin_cases()
{
    return all_tiles(false);
}

cases path_cases()
{
    return all_tiles(true);
}

int test_more()
{
    return test_no_number({forward<f16, split_tile>("forward f16", false),
                           forward<f16, split_tile>("forward f16 relu", false, LB_ACT_RELU),
                           forward<f32, tall_tile>("forward f32 relu", false, LB_ACT_RELU),
                           backward<bf16, split_tile>("backward bf16 relu", LB_ACT_RELU)}) |
           test_late({forward<f16, split_tile>("forward f16", true),
                      forward<f64, split_tile>("forward f64", true),
                      backward<f16, four_tile>("backward f16"),
                      backward<f32, tall_tile>("backward f32")});
}

} // namespace simt_fused

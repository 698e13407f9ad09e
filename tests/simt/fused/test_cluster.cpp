/* The cases of the fused cluster kernels. */
#include "cuda/fused/cluster/backward.cuh"
#include "cuda/fused/cluster/forward.cuh"
#include "run.h"

namespace simt_fused
{

namespace
{

/* blocks, warps, split, resident, columns: at most 512 threads where shapes have D = 1. */
using plain = lb_cluster::tile<4, 2, 1, 2, 8>;   /* H up to 32 */
using shared = lb_cluster::tile<4, 2, 2, 1, 16>; /* a depth is split, half of the weights spill */
using groups = lb_cluster::tile<4, 4, 2, 2, 8>;  /* two pairs of warps, each with a barrier */
using wide = lb_cluster::tile<16, 1, 1, 4, 8>;   /* each lane sends to two peers; H up to 64 */

template <class T> constexpr lb_dtype dtype_of = std::is_same<T, __half>::value ? LB_F16 : LB_BF16;

template <class T, class Tile, bool train> subject forward(const std::string &name)
{
    auto *kernel = lb_cluster::fused_cluster_forward_kernel<T, Tile, train>;
    return {name, cluster_kernel{Tile::figures, kernel, nullptr}, dtype_of<T>, LB_IEEE, train};
}

template <class T, class Tile> subject backward(const std::string &name)
{
    auto *kernel = lb_cluster::fused_cluster_backward_kernel<T, Tile>;
    return {name, cluster_kernel{Tile::figures, nullptr, kernel}, dtype_of<T>, LB_IEEE};
}

template <int... figures> using tile = lb_cluster::tile<figures...>;

/* A second cluster with one row, and units of padding. */
template <class Tile> constexpr shape uneven = {2, Tile::columns + 1, Tile::units - 3, 1, false};

template <int... figures> void add_forward(cases &to)
{
    using one = tile<figures...>;
    to.push_back(
        {forward<__half, one, true>("forward f16" + figures_text({figures...})), uneven<one>});
}

template <int... figures> void add_backward(cases &to)
{
    using one = tile<figures...>;
    to.push_back(
        {backward<__nv_bfloat16, one>("backward bf16" + figures_text({figures...})), uneven<one>});
}

/* One type of a built-in tile. The first case has a second cluster with one row, a block without
 * units, units of padding, and a sequence in two launches; the second is full and has two
 * directions. */
template <class Tile> void add_paths(cases &to, const subject &padded, const subject &full)
{
    to.push_back(
        {padded, {2, Tile::columns + 1, Tile::units - Tile::own_units - 1, 1, false}, {.cut = 1}});
    to.push_back({full, {2, Tile::columns, Tile::units, 2, false}});
}

template <int... figures> void add_forward_paths(cases &to)
{
    using one = tile<figures...>;
    add_paths<one>(to, forward<__half, one, true>("train"), forward<__half, one, false>("infer"));
    add_paths<one>(to, forward<__nv_bfloat16, one, true>("train"),
                   forward<__nv_bfloat16, one, false>("infer"));
}

template <int... figures> void add_backward_paths(cases &to)
{
    using one = tile<figures...>;
    for (const subject &s :
         {backward<__half, one>("backward f16"), backward<__nv_bfloat16, one>("backward bf16")})
        add_paths<one>(to, s, s);
}

} // namespace

cases clean_cases()
{
    return {
        {forward<__half, plain, false>("forward f16"), {5, 9, 29, 1, false}},
        {forward<__half, plain, true>("forward f16 rows"), {5, 7, 29, 1, false}, {.rows = 3}},
        {forward<__half, shared, false>("forward f16 split rows"),
         {4, 11, 31, 2, true},
         {.rows = 5}},
        {backward<__half, plain>("backward f16 rows"), {5, 7, 29, 1, false}, {.rows = 3}},
        {backward<__half, shared>("backward f16 spilled rows"), {4, 11, 31, 2, true}, {.rows = 5}},
        {forward<__half, plain, true>("forward f16 train"), {4, 3, 32, 2, true}},
        {forward<__nv_bfloat16, plain, true>("forward bf16"), {1, 1, 1, 1, false}},
        {forward<__nv_bfloat16, shared, false>("forward bf16 split"), {4, 11, 31, 2, true}},
        {forward<__half, shared, true>("forward f16 split"), {6, 13, 32, 1, true}},
        {forward<__half, plain, true>("forward f16 saturated"),
         {9, 5, 29, 1, false},
         {.saturated = true}},
        {forward<__half, groups, true>("forward f16 two groups"), {5, 7, 61, 1, false}},
        {backward<__half, groups>("backward f16 two groups"), {5, 7, 61, 1, false}},
        {forward<__half, wide, false>("forward f16 wide"), {5, 7, 61, 1, false}},
        {forward<__half, plain, false>("forward f16 long"), {12, 5, 29, 1, false}},
        {forward<__half, plain, true>("forward f16 cut"), {5, 3, 29, 1, false}, {.cut = 2}},
        {forward<__half, shared, false>("forward f16 split cut"), {6, 11, 31, 2, true}, {.cut = 3}},
        {backward<__half, plain>("backward f16"), {5, 9, 29, 1, false}},
        {backward<__half, plain>("backward f16 ragged"), {4, 3, 32, 2, true}},
        {backward<__nv_bfloat16, plain>("backward bf16"), {1, 1, 1, 1, false}},
        {backward<__nv_bfloat16, shared>("backward bf16 spilled"), {4, 11, 31, 2, true}},
        {backward<__half, shared>("backward f16 spilled"), {6, 13, 32, 1, true}},
        {backward<__half, wide>("backward f16 wide"), {5, 7, 61, 1, false}},
        {backward<__half, plain>("backward f16 cut"), {5, 3, 29, 1, false}, {.cut = 2}},
        {backward<__half, shared>("backward f16 spilled cut"), {6, 11, 31, 2, true}, {.cut = 3}},
    };
}

cases builtin_cases()
{
    cases all;
#define LB_FORWARD(...)  add_forward<__VA_ARGS__>(all);
#define LB_BACKWARD(...) add_backward<__VA_ARGS__>(all);
    LB_CLUSTER_FORWARD_TILES(LB_FORWARD)
    LB_CLUSTER_BACKWARD_TILES(LB_BACKWARD)
    return all;
}

cases path_cases()
{
    cases all;
#define LB_FORWARD_PATHS(...)  add_forward_paths<__VA_ARGS__>(all);
#define LB_BACKWARD_PATHS(...) add_backward_paths<__VA_ARGS__>(all);
    LB_CLUSTER_FORWARD_TILES(LB_FORWARD_PATHS)
    LB_CLUSTER_BACKWARD_TILES(LB_BACKWARD_PATHS)
    return all;
}

int test_more()
{
    return test_no_number({forward<__half, plain, false>("forward f16"),
                           backward<__nv_bfloat16, plain>("backward bf16")}) |
           test_late({forward<__half, plain, true>("forward f16"),
                      backward<__nv_bfloat16, plain>("backward bf16")});
}

} // namespace simt_fused

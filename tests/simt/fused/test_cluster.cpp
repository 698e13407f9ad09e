/* Checks that the fused cluster kernels are right and clean under many schedules.
 *
 *   test_simt_cluster_fast clean SEEDS      runs small tiles on odd sizes
 *   test_simt_cluster_fast builtin          runs every built-in tile once; compares sizes of memory
 *   test_simt_cluster_fast paths            runs every built-in tile on the paths of bench/cases
 *   test_simt_cluster_fast list             prints which paths the cases of `paths` take
 *   test_simt_cluster_check counts TABLE    compares what accesses cost with a table
 *
 * test_simt_cluster_check also takes `clean`, and looks for races there. */
#include "cluster_run.h"
#include "family.h"
#include "paths.h"

#include "cuda/fused/cluster/backward.cuh"
#include "cuda/fused/cluster/forward.cuh"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace simt_cluster;
using simt_fused::test_clean;

namespace
{

/* blocks, warps, split, resident, columns: at most 512 threads where shapes have D = 1. */
using plain = lb_cluster::tile<4, 2, 1, 2, 8>; /* H up to 32 */
using shared =
    lb_cluster::tile<4, 2, 2, 1, 16>; /* the depth is split, half of the weights are spilled */
using wide = lb_cluster::tile<16, 1, 1, 4, 8>; /* each lane sends to two peers; H up to 64 */

template <class T> constexpr lb_dtype dtype_of = std::is_same<T, __half>::value ? LB_F16 : LB_BF16;

template <class T, class Tile, bool train> subject forward(const char *name)
{
    return {name,        lb_cluster::fused_cluster_forward_kernel<T, Tile, train>,
            nullptr,     Tile::figures,
            dtype_of<T>, train};
}

template <class T, class Tile> subject backward(const char *name)
{
    return {name,          nullptr,     lb_cluster::fused_cluster_backward_kernel<T, Tile>,
            Tile::figures, dtype_of<T>, false};
}

struct check_case {
    subject kernel;
    shape size; /* T, B, H, D, ragged */
};

const check_case cases[] = {
    {forward<__half, plain, false>("forward f16"), {5, 9, 29, 1, false}},
    {forward<__half, plain, true>("forward f16 train"), {4, 3, 32, 2, true}},
    {forward<__nv_bfloat16, plain, true>("forward bf16"), {1, 1, 1, 1, false}},
    {forward<__nv_bfloat16, shared, false>("forward bf16 split"), {4, 11, 31, 2, true}},
    {forward<__half, shared, true>("forward f16 split"), {6, 13, 32, 1, true}},
    {forward<__half, wide, false>("forward f16 wide"), {5, 7, 61, 1, false}},
    {forward<__half, plain, false>("forward f16 long"), {12, 5, 29, 1, false}},
    {forward<__half, plain, true>("forward f16 cut"), {5, 3, 29, 1, false, 2}},
    {forward<__half, shared, false>("forward f16 split cut"), {6, 11, 31, 2, true, 3}},
    {backward<__half, plain>("backward f16"), {5, 9, 29, 1, false}},
    {backward<__half, plain>("backward f16 ragged"), {4, 3, 32, 2, true}},
    {backward<__nv_bfloat16, plain>("backward bf16"), {1, 1, 1, 1, false}},
    {backward<__nv_bfloat16, shared>("backward bf16 spilled"), {4, 11, 31, 2, true}},
    {backward<__half, shared>("backward f16 spilled"), {6, 13, 32, 1, true}},
    {backward<__half, wide>("backward f16 wide"), {5, 7, 61, 1, false}},
    {backward<__half, plain>("backward f16 cut"), {5, 3, 29, 1, false, 2}},
    {backward<__half, shared>("backward f16 spilled cut"), {6, 11, 31, 2, true, 3}},
};

verdict run_case(const check_case &c, uint64_t seed)
{
    return run(c.kernel, c.size, seed);
}

#define LB_BUILTIN_FORWARD(blocks, warps, split, resident, columns)                    \
    {forward<__half, lb_cluster::tile<blocks, warps, split, resident, columns>, true>( \
         "forward f16 " #blocks "x" #warps " columns " #columns),                      \
     {2, columns + 1, 4 * blocks * warps - 3, 1, false}},
#define LB_BUILTIN_BACKWARD(blocks, warps, split, resident, columns)                     \
    {backward<__nv_bfloat16, lb_cluster::tile<blocks, warps, split, resident, columns>>( \
         "backward bf16 " #blocks "x" #warps " columns " #columns),                      \
     {2, columns + 1, 4 * blocks * warps - 3, 1, false}},

/* Without a table it runs every built-in tile once. With a table, or "print", it counts what
 * accesses cost. */
int test_builtin(const char *table = nullptr)
{
    const check_case builtin[] = {LB_CLUSTER_FORWARD_TILES(LB_BUILTIN_FORWARD)
                                      LB_CLUSTER_BACKWARD_TILES(LB_BUILTIN_BACKWARD)};
    if (table)
        return test_counts(builtin, strcmp(table, "print") ? table : nullptr, run_case);
    return test_clean(builtin, 1, 2, run_case);
}

/* Both types of every built-in tile, on the smallest shapes that take the paths of bench/cases. The
 * first has a second cluster with one row, a block without units, units of padding, and a sequence
 * in two launches; the second is full and has two directions. */
#define LB_FULL(...)                                                \
    {                                                               \
        2, columns_of<__VA_ARGS__>, units_of<__VA_ARGS__>, 2, false \
    }
#define LB_PADDED(...)                                                                            \
    {                                                                                             \
        2, columns_of<__VA_ARGS__> + 1, units_of<__VA_ARGS__> - 4 * warps_of<__VA_ARGS__> - 1, 1, \
            false, 1                                                                              \
    }
template <int blocks, int warps, int split, int resident, int columns>
constexpr int columns_of = columns;
template <int blocks, int warps, int split, int resident, int columns>
constexpr int warps_of = warps;
template <int blocks, int warps, int split, int resident, int columns>
constexpr int units_of = 4 * blocks *warps;

#define LB_PATHS_FORWARD_OF(T, ...)                                                            \
    {forward<T, lb_cluster::tile<__VA_ARGS__>, true>("forward " #T " " #__VA_ARGS__ " train"), \
     LB_PADDED(__VA_ARGS__)},                                                                  \
        {forward<T, lb_cluster::tile<__VA_ARGS__>, false>("forward " #T " " #__VA_ARGS__),     \
         LB_FULL(__VA_ARGS__)},
#define LB_PATHS_BACKWARD_OF(T, ...)                                                          \
    {backward<T, lb_cluster::tile<__VA_ARGS__>>("backward " #T " " #__VA_ARGS__),             \
     LB_PADDED(__VA_ARGS__)},                                                                 \
        {backward<T, lb_cluster::tile<__VA_ARGS__>>("backward " #T " " #__VA_ARGS__ " full"), \
         LB_FULL(__VA_ARGS__)},
#define LB_PATHS_FORWARD(...)                \
    LB_PATHS_FORWARD_OF(__half, __VA_ARGS__) \
    LB_PATHS_FORWARD_OF(__nv_bfloat16, __VA_ARGS__)
#define LB_PATHS_BACKWARD(...)                \
    LB_PATHS_BACKWARD_OF(__half, __VA_ARGS__) \
    LB_PATHS_BACKWARD_OF(__nv_bfloat16, __VA_ARGS__)

/* `list`: prints which paths each case takes. Else runs them. */
int test_paths(bool list)
{
    const check_case on_paths[] = {LB_CLUSTER_FORWARD_TILES(LB_PATHS_FORWARD)
                                       LB_CLUSTER_BACKWARD_TILES(LB_PATHS_BACKWARD)};
    if (!list)
        return test_clean(on_paths, 1, 2, run_case);
    for (const check_case &c : on_paths) {
        const shape &s = c.size;
        const path_shape taken = {s.batch,  s.hidden,       s.directions,
                                  s.ragged, c.kernel.train, s.cut > 0};
        printf("case\n");
        print_cluster_paths(stdout, &c.kernel.tile, c.kernel.dtype, c.kernel.backward != nullptr,
                            &taken);
    }
    return 0;
}

/* Checks that host code allocates what the kernels lay out, and no more than a block may have. */
#define LB_SIZE_FORWARD(blocks, warps, split, resident, columns)                              \
    {lb_cluster_forward_shared(&lb_fused_tiles_one<blocks, warps, split, resident, columns>), \
     lb_cluster::forward_shared<                                                              \
         lb_cluster::tile<blocks, warps, split, resident, columns>>::bytes},
#define LB_SIZE_BACKWARD(blocks, warps, split, resident, columns)                              \
    {lb_cluster_backward_shared(&lb_fused_tiles_one<blocks, warps, split, resident, columns>), \
     lb_cluster::backward_shared<                                                              \
         lb_cluster::tile<blocks, warps, split, resident, columns>>::bytes},
template <int... figures> constexpr lb_cluster_tile lb_fused_tiles_one = {figures...};

int test_shared_memory()
{
    const size_t sizes[][2] = {LB_CLUSTER_FORWARD_TILES(LB_SIZE_FORWARD)
                                   LB_CLUSTER_BACKWARD_TILES(LB_SIZE_BACKWARD)};
    int failures = 0;
    for (const auto &s : sizes) {
        bool right = s[0] == s[1] && s[0] <= lb_cluster::shared_limit;
        failures += !right;
        printf("%s %zu bytes by the host, %zu by the kernel\n", right ? "ok" : "FAILED", s[0],
               s[1]);
    }
    return failures != 0;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "clean"))
        return test_clean(cases, 0, strtoul(argv[2], nullptr, 10), run_case);
    if (argc == 2 && !strcmp(argv[1], "builtin"))
        return test_builtin() | test_shared_memory();
    if (argc == 2 && (!strcmp(argv[1], "paths") || !strcmp(argv[1], "list")))
        return test_paths(!strcmp(argv[1], "list"));
    if (argc == 3 && !strcmp(argv[1], "counts"))
        return test_builtin(argv[2]);
    fprintf(stderr,
            "usage: %s clean SEEDS | builtin | paths | list | counts TABLE.CSV | counts print\n",
            argv[0]);
    return 2;
}

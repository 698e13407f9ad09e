/* The table of the cluster kernels, and their launchers. */
#include <type_traits>

#include "cuda/fused/cluster/backward.cuh"
#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/cluster/forward.cuh"
#include "cuda/fused/common/fused_launch.cuh"

namespace lb_cluster
{

struct key {
    lb_cluster_tile tile;
    int dtype, train;
};

using forward_row = lb_fused_launch::row<key, lb_fused_forward_args>;
using backward_row = lb_fused_launch::row<key, lb_fused_backward_args>;

template <class T> constexpr int dtype_of = std::is_same<T, __half>::value ? LB_F16 : LB_BF16;

template <class T, class Tile, bool train> constexpr forward_row forward_kernel()
{
    return {{Tile::figures, dtype_of<T>, train}, fused_cluster_forward_kernel<T, Tile, train>};
}

template <class T, class Tile> constexpr backward_row backward_kernel()
{
    return {{Tile::figures, dtype_of<T>, false}, fused_cluster_backward_kernel<T, Tile>};
}

#define LB_CLUSTER_FORWARD_ROWS(...)                               \
    forward_kernel<__half, tile<__VA_ARGS__>, false>(),            \
        forward_kernel<__half, tile<__VA_ARGS__>, true>(),         \
        forward_kernel<__nv_bfloat16, tile<__VA_ARGS__>, false>(), \
        forward_kernel<__nv_bfloat16, tile<__VA_ARGS__>, true>(),
#define LB_CLUSTER_BACKWARD_ROWS(...)             \
    backward_kernel<__half, tile<__VA_ARGS__>>(), \
        backward_kernel<__nv_bfloat16, tile<__VA_ARGS__>>(),

static const forward_row forward_rows[] = {LB_CLUSTER_FORWARD_TILES(LB_CLUSTER_FORWARD_ROWS)};
static const backward_row backward_rows[] = {LB_CLUSTER_BACKWARD_TILES(LB_CLUSTER_BACKWARD_ROWS)};

static lb_fused_launch::shape shape_of(const lb_cluster_kernel &k, int batch, int directions)
{
    unsigned clusters = static_cast<unsigned>((batch + k.rows - 1) / k.rows);
    unsigned blocks = static_cast<unsigned>(k.tile.blocks);
    return {"cluster",
            {clusters * blocks, static_cast<unsigned>(directions), 1},
            static_cast<unsigned>(lanes * k.tile.warps),
            blocks,
            false,
            lb_cluster_shared(&k.tile, k.backward)};
}

template <class Row, size_t count>
static enum lb_status ready(const Row (&rows)[count], struct lb_cluster_kernel *k, int *clusters,
                            struct lb_error *err)
{
    const Row *row = lb_fused_launch::find(rows, key{k->tile, k->dtype, k->train}, "cluster", err);
    k->row = row;
    return row ? lb_fused_launch::ask_resident(row->kernel, shape_of(*k, 1, 1), clusters, err)
               : LB_UNSUPPORTED;
}

template <class Row, class Args>
static enum lb_status launch(const void *kernel, const Args &args, void *stream,
                             struct lb_error *err)
{
    const auto *k = static_cast<const lb_cluster_kernel *>(kernel);
    Args with = args;
    with.rows = k->rows;
    return lb_fused_launch::enqueue(static_cast<const Row *>(k->row)->kernel,
                                    shape_of(*k, args.batch, args.directions), stream, err, with);
}

} // namespace lb_cluster

enum lb_status lb_cluster_ready(struct lb_cluster_kernel *kernel, int *clusters,
                                struct lb_error *err)
{
    return kernel->backward ? lb_cluster::ready(lb_cluster::backward_rows, kernel, clusters, err)
                            : lb_cluster::ready(lb_cluster::forward_rows, kernel, clusters, err);
}

enum lb_status lb_cluster_forward(const void *kernel, const struct lb_fused_forward_args *args,
                                  void *stream, struct lb_error *err)
{
    return lb_cluster::launch<lb_cluster::forward_row>(kernel, *args, stream, err);
}

enum lb_status lb_cluster_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                   void *stream, struct lb_error *err)
{
    return lb_cluster::launch<lb_cluster::backward_row>(kernel, *args, stream, err);
}

/* The table of the cluster kernels, and their launchers. */
#include "cuda/fused/cluster/backward.cuh"
#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/cluster/forward.cuh"
#include "cuda/fused/common/fused_launch.cuh"

namespace lb_cluster
{

struct key {
    lb_cluster_tile tile;
    int dtype, backward, train;
};

#define LB_CLUSTER_FORWARD_ROWS(T, dtype, ...)                                                 \
    {{{__VA_ARGS__}, dtype, 0, 0}, fused_cluster_forward_kernel<T, tile<__VA_ARGS__>, false>}, \
        {{{__VA_ARGS__}, dtype, 0, 1}, fused_cluster_forward_kernel<T, tile<__VA_ARGS__>, true>},
#define LB_CLUSTER_BACKWARD_ROW(T, dtype, ...) \
    {{{__VA_ARGS__}, dtype, 1, 0}, fused_cluster_backward_kernel<T, tile<__VA_ARGS__>>},
#define LB_CLUSTER_FORWARD(...)                          \
    LB_CLUSTER_FORWARD_ROWS(__half, LB_F16, __VA_ARGS__) \
    LB_CLUSTER_FORWARD_ROWS(__nv_bfloat16, LB_BF16, __VA_ARGS__)
#define LB_CLUSTER_BACKWARD(...)                         \
    LB_CLUSTER_BACKWARD_ROW(__half, LB_F16, __VA_ARGS__) \
    LB_CLUSTER_BACKWARD_ROW(__nv_bfloat16, LB_BF16, __VA_ARGS__)

static const lb_fused_launch::row<key> rows[] = {
    LB_CLUSTER_FORWARD_TILES(LB_CLUSTER_FORWARD) LB_CLUSTER_BACKWARD_TILES(LB_CLUSTER_BACKWARD)};

static lb_fused_launch::shape shape_of(const lb_cluster_kernel &k, int batch, int directions)
{
    int clusters = (batch + k.rows - 1) / k.rows;
    size_t needed = lb_cluster_shared(&k.tile, k.backward);
    return {"cluster",
            {clusters * k.tile.blocks, directions, 1},
            lanes * k.tile.warps,
            needed < k.shared_least ? k.shared_least : needed,
            k.tile.blocks};
}

template <class Args>
static enum lb_status launch(const lb_cluster_kernel &k, const void *of_layer, void *stream,
                             struct lb_error *err)
{
    Args args = *static_cast<const Args *>(of_layer);
    args.rows = k.rows;
    return lb_fused_launch::enqueue(k.function, shape_of(k, args.batch, args.directions), stream,
                                    err, args);
}

} // namespace lb_cluster

enum lb_status lb_cluster_ready(struct lb_cluster_kernel *k, int *clusters, struct lb_error *err)
{
    const lb_cluster::key key = {k->tile, k->dtype, k->backward, k->train};
    k->function = lb_fused_launch::find(lb_cluster::rows, key, "cluster", err);
    return k->function ? lb_fused_launch::ask_resident(k->function, lb_cluster::shape_of(*k, 1, 1),
                                                       clusters, nullptr, err)
                       : LB_UNSUPPORTED;
}

enum lb_status lb_cluster_launch(const void *kernel, const void *args, void *stream,
                                 struct lb_error *err)
{
    const auto &k = *static_cast<const lb_cluster_kernel *>(kernel);
    return k.backward ? lb_cluster::launch<lb_fused_backward_args>(k, args, stream, err)
                      : lb_cluster::launch<lb_fused_forward_args>(k, args, stream, err);
}

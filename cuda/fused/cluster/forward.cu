/* fused_forward.cu: the forward cluster kernels for the device. */
#include "cuda/fused/cluster/launch.cuh"

#include "cuda/fused/cluster/forward.cuh"

using namespace lb_fused;

template <class T, class Tile, bool train> constexpr kernel_row<lb_fused_forward_args> row()
{
    return {Tile::figures, dtype_of<T>, train, fused_forward_kernel<T, Tile, train>};
}

#define LB_FORWARD_ROWS(...)                                                         \
    row<__half, tile<__VA_ARGS__>, false>(), row<__half, tile<__VA_ARGS__>, true>(), \
        row<__nv_bfloat16, tile<__VA_ARGS__>, false>(),                              \
        row<__nv_bfloat16, tile<__VA_ARGS__>, true>(),

static const kernel_row<lb_fused_forward_args> forward_rows[] = {
    LB_FUSED_FORWARD_TILES(LB_FORWARD_ROWS)};

enum lb_status lb_fused_forward(const struct lb_fused_kernel *kernel,
                                const struct lb_fused_forward_args *args, void *stream,
                                struct lb_error *err)
{
    return launch(forward_rows, *kernel, lb_fused_forward_shared(&kernel->tile), *args, stream,
                  err);
}

enum lb_status lb_fused_ready_forward(const struct lb_fused_kernel *kernel, int *clusters,
                                      struct lb_error *err)
{
    return ready(forward_rows, *kernel, lb_fused_forward_shared(&kernel->tile), clusters, err);
}

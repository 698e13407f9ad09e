/* fused_backward.cu: the backward cluster kernels for the device, and readying for both passes. */
#include "cuda/fused/cluster/launch.cuh"

#include "cuda/fused/cluster/backward.cuh"

using namespace lb_fused;

template <class T, class Tile> constexpr kernel_row<lb_fused_backward_args> row()
{
    return {Tile::figures, dtype_of<T>, false, fused_backward_kernel<T, Tile>};
}

#define LB_BACKWARD_ROWS(...) \
    row<__half, tile<__VA_ARGS__>>(), row<__nv_bfloat16, tile<__VA_ARGS__>>(),

static const kernel_row<lb_fused_backward_args> backward_rows[] = {
    LB_FUSED_BACKWARD_TILES(LB_BACKWARD_ROWS)};

enum lb_status lb_fused_backward(const struct lb_fused_kernel *kernel,
                                 const struct lb_fused_backward_args *args, void *stream,
                                 struct lb_error *err)
{
    return launch(backward_rows, *kernel, lb_fused_backward_shared(&kernel->tile), *args, stream,
                  err);
}

enum lb_status lb_fused_ready(const struct lb_fused_kernel *kernel, int *clusters,
                              struct lb_error *err)
{
    if (!kernel->backward)
        return lb_fused_ready_forward(kernel, clusters, err);
    return ready(backward_rows, *kernel, lb_fused_backward_shared(&kernel->tile), clusters, err);
}

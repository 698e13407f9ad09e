/* fused_forward.cu: the forward cluster kernels for the device. */
#include "fused_launch.cuh"

#include "fused_forward.cuh"

using namespace lb_fused;

#define LB_FORWARD_ROWS(...)                                                                       \
    {{__VA_ARGS__}, LB_F16, false, fused_forward_kernel<__half, tile<__VA_ARGS__>, false>},        \
    {{__VA_ARGS__}, LB_F16, true, fused_forward_kernel<__half, tile<__VA_ARGS__>, true>},          \
    {{__VA_ARGS__}, LB_BF16, false, fused_forward_kernel<__nv_bfloat16, tile<__VA_ARGS__>, false>}, \
    {{__VA_ARGS__}, LB_BF16, true, fused_forward_kernel<__nv_bfloat16, tile<__VA_ARGS__>, true>},

static const kernel_row<lb_fused_forward_args> forward_rows[] = {LB_FUSED_FORWARD_TILES(LB_FORWARD_ROWS)};

enum lb_status lb_fused_forward(const struct lb_fused_kernel *kernel,
                                const struct lb_fused_forward_args *args, int directions,
                                void *stream, struct lb_error *err)
{
    return launch(forward_rows, *kernel, lb_fused_forward_shared(&kernel->tile), *args, directions, stream,
                  err);
}

enum lb_status lb_fused_ready_forward(const struct lb_fused_kernel *kernel, int *clusters,
                                      struct lb_error *err)
{
    return ready(forward_rows, *kernel, lb_fused_forward_shared(&kernel->tile), clusters, err);
}

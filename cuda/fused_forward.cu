/* fused_forward.cu: the forward cluster kernel for the device, every tile, f16 and bf16. */
#include "fused_forward.cuh"

#define LB_KERNELS(...)                                                                        \
    template __global__ void                                                                   \
        lb_fused::fused_forward_kernel<__half, lb_fused::tile<__VA_ARGS__>, false>(            \
            lb_fused_forward_args);                                                            \
    template __global__ void                                                                   \
        lb_fused::fused_forward_kernel<__half, lb_fused::tile<__VA_ARGS__>, true>(             \
            lb_fused_forward_args);                                                            \
    template __global__ void                                                                   \
        lb_fused::fused_forward_kernel<__nv_bfloat16, lb_fused::tile<__VA_ARGS__>, false>(     \
            lb_fused_forward_args);                                                            \
    template __global__ void                                                                   \
        lb_fused::fused_forward_kernel<__nv_bfloat16, lb_fused::tile<__VA_ARGS__>, true>(      \
            lb_fused_forward_args);
LB_FUSED_FORWARD_TILES(LB_KERNELS)

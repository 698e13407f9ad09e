/* kernels.cu: the kernels of these tests for the device, without their faults. */
#include "bulk_cell.cuh"
#include "lstm_cluster.cuh"
#include "lstm_grid.cuh"
#include "mma_formats.cuh"
#include "mma_tile.cuh"

template __global__ void lstm_grid_kernel<0>(lstm_args);
template __global__ void lstm_counter_kernel<0>(lstm_args);
template __global__ void mma_tile_kernel<0>(const __nv_bfloat16 *, const __nv_bfloat16 *, float *,
                                            int);
template __global__ void mma_formats_kernel<0>(const float *, const float *, float *);
#ifdef LB_PTX_SM90
template __global__ void lstm_cluster_kernel<0>(lstm_args);
template __global__ void lstm_async_kernel<0>(lstm_args);
template __global__ void bulk_cell_kernel<0>(bulk_args);
#endif

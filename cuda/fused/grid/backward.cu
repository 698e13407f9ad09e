/* fused_grid_backward.cu: the backward grid kernels for the device. */
#include "cuda/fused/grid/launch.cuh"

#include "cuda/fused/grid/backward.cuh"

using namespace lb_grid;

template <class Math, class Tile> constexpr kernel_row<lb_grid_backward_args> backward_row()
{
    return {Tile::figures, Math::figure, fused_grid_backward_kernel<Math, Tile>};
}

#define LB_BACKWARD_HALF_ROWS(...) \
    backward_row<f16_math, tile<__VA_ARGS__>>(), backward_row<bf16_math, tile<__VA_ARGS__>>(),
#define LB_BACKWARD_FLOAT_ROWS(...) \
    backward_row<tf32_math, tile<__VA_ARGS__>>(), backward_row<f32_math, tile<__VA_ARGS__>>(),

static const kernel_row<lb_grid_backward_args> grid_backward_rows[] = {
    LB_GRID_HALF_TILES(LB_BACKWARD_HALF_ROWS) LB_GRID_FLOAT_TILES(LB_BACKWARD_FLOAT_ROWS)};

static size_t backward_shared_of(const struct lb_grid_kernel &k)
{
    return lb_grid_backward_shared(&k.tile, k.math, k.split.chunks);
}

enum lb_status lb_grid_backward(const struct lb_grid_kernel *kernel,
                                const struct lb_fused_backward_args *args, void *stream,
                                struct lb_error *err)
{
    size_t exchange =
        lb_grid_backward_exchange(&kernel->tile, args->hidden, &kernel->split, args->directions);
    return launch(grid_backward_rows, *kernel, backward_shared_of(*kernel), exchange, *args, stream,
                  err);
}

enum lb_status lb_grid_ready(const struct lb_grid_kernel *kernel, int needed, int *resident,
                             struct lb_error *err)
{
    if (!kernel->backward)
        return lb_grid_ready_forward(kernel, needed, resident, err);
    return ready(grid_backward_rows, *kernel, backward_shared_of(*kernel), needed, resident, err);
}

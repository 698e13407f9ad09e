/* fused_grid_forward.cu: the forward grid kernels for the device. */
#include "cuda/fused/grid/launch.cuh"

#include "cuda/fused/grid/forward.cuh"

using namespace lb_grid;

template <class Math, class Tile> constexpr kernel_row<lb_grid_forward_args> forward_row()
{
    return {Tile::figures, Math::figure, fused_grid_forward_kernel<Math, Tile>};
}

#define LB_FORWARD_HALF_ROWS(...) \
    forward_row<f16_math, tile<__VA_ARGS__>>(), forward_row<bf16_math, tile<__VA_ARGS__>>(),
#define LB_FORWARD_FLOAT_ROWS(...) \
    forward_row<tf32_math, tile<__VA_ARGS__>>(), forward_row<f32_math, tile<__VA_ARGS__>>(),

static const kernel_row<lb_grid_forward_args> grid_forward_rows[] = {
    LB_GRID_HALF_TILES(LB_FORWARD_HALF_ROWS) LB_GRID_FLOAT_TILES(LB_FORWARD_FLOAT_ROWS)};

static size_t forward_shared_of(const struct lb_grid_kernel &k)
{
    return lb_grid_forward_shared(&k.tile, k.math, k.split.chunks);
}

enum lb_status lb_grid_forward(const struct lb_grid_kernel *kernel,
                               const struct lb_fused_forward_args *args, void *stream,
                               struct lb_error *err)
{
    size_t exchange = lb_grid_forward_exchange(&kernel->tile, kernel->math, args->hidden,
                                               &kernel->split, args->directions);
    return launch(grid_forward_rows, *kernel, forward_shared_of(*kernel), exchange, *args, stream,
                  err);
}

enum lb_status lb_grid_ready_forward(const struct lb_grid_kernel *kernel, int needed, int *resident,
                                     struct lb_error *err)
{
    return ready(grid_forward_rows, *kernel, forward_shared_of(*kernel), needed, resident, err);
}

/* The table of the grid kernels, and their launchers, which need all blocks to be resident. */
#include "cuda/fused/common/fused_launch.cuh"
#include "cuda/fused/grid/backward.cuh"
#include "cuda/fused/grid/ffma.cuh"
#include "cuda/fused/grid/forward.cuh"
#include "cuda/fused/grid/grid.h"

namespace lb_grid
{

struct key {
    lb_grid_tile tile;
    int math, backward;
};

#define LB_GRID_ROWS(Math, ...)                                                             \
    {{{__VA_ARGS__}, Math::figure, 0}, fused_grid_forward_kernel<Math, tile<__VA_ARGS__>>}, \
        {{{__VA_ARGS__}, Math::figure, 1}, fused_grid_backward_kernel<Math, tile<__VA_ARGS__>>},
#define LB_GRID_HALF_ROWS(...) \
    LB_GRID_ROWS(f16_math, __VA_ARGS__) LB_GRID_ROWS(bf16_math, __VA_ARGS__)
#define LB_GRID_FLOAT_ROWS(...) \
    LB_GRID_ROWS(tf32_math, __VA_ARGS__) LB_GRID_ROWS(f32_math, __VA_ARGS__)

static const lb_fused_launch::row<key> rows[] = {LB_GRID_HALF_TILES(LB_GRID_HALF_ROWS)
                                                     LB_GRID_FLOAT_TILES(LB_GRID_FLOAT_ROWS)};

/* The shape of one launch, which computes all directions or one, as k.beside says. */
static lb_fused_launch::shape shape_of(const lb_grid_kernel &k, int hidden, int directions)
{
    return {"grid",
            {lb_grid_blocks(&k.tile, hidden), k.split.groups, k.beside ? directions : 1},
            lanes * k.tile.warps,
            lb_grid_shared(&k.tile, k.math, k.backward, k.split.chunks),
            0,
            true};
}

/* Enqueues all directions of a layer: in one launch, or in one launch per direction. */
template <class Args>
static enum lb_status launch(const lb_grid_kernel &k, const void *of_layer, void *stream,
                             struct lb_error *err)
{
    Args args = *static_cast<const Args *>(of_layer);
    const lb_fused_launch::shape shape = shape_of(k, args.hidden, args.directions);
    args.rows = k.split.rows;
    args.spin_limit = LB_GRID_SPIN_LIMIT;
    for (args.direction = 0; args.direction < args.directions; args.direction += shape.grid[2])
        LB_CHECK(lb_fused_launch::enqueue(k.function, shape, stream, err, args));
    return LB_OK;
}

} // namespace lb_grid

enum lb_status lb_grid_ready(struct lb_grid_kernel *k, int needed, int *resident,
                             struct lb_error *err)
{
    const lb_grid::key key = {k->tile, k->math, k->backward};
    k->function = lb_fused_launch::find(lb_grid::rows, key, "grid", err);
    if (!k->function)
        return LB_UNSUPPORTED;
    LB_CHECK(lb_fused_launch::ask_resident(k->function, lb_grid::shape_of(*k, 1, 1), resident,
                                           nullptr, err));
    if (*resident < needed)
        return lb_fail(err, LB_UNSUPPORTED,
                       "%d blocks of the grid kernel must run at once, and this device has room "
                       "for %d",
                       needed, *resident);
    return LB_OK;
}

enum lb_status lb_grid_clear(const void *kernel, int hidden, int directions, void *scratch,
                             void *stream, struct lb_error *err)
{
    const auto *k = static_cast<const lb_grid_kernel *>(kernel);
    size_t exchange =
        lb_grid_exchange(&k->tile, k->math, k->backward, hidden, &k->split, directions);
    return lb_fused_launch::clear(lb_grid::shape_of(*k, hidden, directions), scratch, exchange,
                                  stream, err);
}

enum lb_status lb_grid_launch(const void *kernel, const void *args, void *stream,
                              struct lb_error *err)
{
    const auto &k = *static_cast<const lb_grid_kernel *>(kernel);
    return k.backward ? lb_grid::launch<lb_fused_backward_args>(k, args, stream, err)
                      : lb_grid::launch<lb_fused_forward_args>(k, args, stream, err);
}

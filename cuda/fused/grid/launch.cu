/* The table of the grid kernels, and their launchers, which need all blocks to be resident. */
#include "cuda/fused/common/fused_launch.cuh"
#include "cuda/fused/grid/backward.cuh"
#include "cuda/fused/grid/ffma.cuh"
#include "cuda/fused/grid/forward.cuh"

namespace lb_grid
{

struct key {
    lb_grid_tile tile;
    int math;
};

using forward_row = lb_fused_launch::row<key, lb_grid_forward_args>;
using backward_row = lb_fused_launch::row<key, lb_grid_backward_args>;

template <class Math, class Tile> constexpr forward_row forward_kernel()
{
    return {{Tile::figures, Math::figure}, fused_grid_forward_kernel<Math, Tile>};
}

template <class Math, class Tile> constexpr backward_row backward_kernel()
{
    return {{Tile::figures, Math::figure}, fused_grid_backward_kernel<Math, Tile>};
}

#define LB_GRID_HALF_FORWARD_ROWS(...) \
    forward_kernel<f16_math, tile<__VA_ARGS__>>(), forward_kernel<bf16_math, tile<__VA_ARGS__>>(),
#define LB_GRID_FLOAT_FORWARD_ROWS(...) \
    forward_kernel<tf32_math, tile<__VA_ARGS__>>(), forward_kernel<f32_math, tile<__VA_ARGS__>>(),
#define LB_GRID_HALF_BACKWARD_ROWS(...) \
    backward_kernel<f16_math, tile<__VA_ARGS__>>(), backward_kernel<bf16_math, tile<__VA_ARGS__>>(),
#define LB_GRID_FLOAT_BACKWARD_ROWS(...) \
    backward_kernel<tf32_math, tile<__VA_ARGS__>>(), backward_kernel<f32_math, tile<__VA_ARGS__>>(),

static const forward_row forward_rows[] = {LB_GRID_HALF_TILES(LB_GRID_HALF_FORWARD_ROWS)
                                               LB_GRID_FLOAT_TILES(LB_GRID_FLOAT_FORWARD_ROWS)};
static const backward_row backward_rows[] = {LB_GRID_HALF_TILES(LB_GRID_HALF_BACKWARD_ROWS)
                                                 LB_GRID_FLOAT_TILES(LB_GRID_FLOAT_BACKWARD_ROWS)};

/* The shape of one launch, which computes all directions or one, as k.beside says. */
static lb_fused_launch::shape shape_of(const lb_grid_kernel &k, int hidden, int directions)
{
    return {"grid",
            {static_cast<unsigned>(lb_grid_blocks(&k.tile, hidden)),
             static_cast<unsigned>(k.split.groups),
             k.beside ? static_cast<unsigned>(directions) : 1u},
            static_cast<unsigned>(lanes * k.tile.warps),
            0,
            true,
            lb_grid_shared(&k.tile, k.math, k.backward, k.split.chunks)};
}

template <class Row, size_t count>
static enum lb_status ready(const Row (&rows)[count], struct lb_grid_kernel *k, int needed,
                            int *resident, struct lb_error *err)
{
    const Row *row = lb_fused_launch::find(rows, key{k->tile, k->math}, "grid", err);
    k->row = row;
    if (!row)
        return LB_UNSUPPORTED;
    LB_CHECK(lb_fused_launch::ask_resident(row->kernel, shape_of(*k, 1, 1), resident, err));
    if (*resident < needed)
        return lb_fail(err, LB_UNSUPPORTED,
                       "%d blocks of the grid kernel must run at once, and this device has room "
                       "for %d",
                       needed, *resident);
    return LB_OK;
}

/* Enqueues all directions of a layer: in one launch, or in one launch per direction. */
template <class Args, class Layer>
static enum lb_status launch(const void *kernel, const Layer &layer, void *stream,
                             struct lb_error *err)
{
    const auto *k = static_cast<const lb_grid_kernel *>(kernel);
    const auto *row = static_cast<const lb_fused_launch::row<key, Args> *>(k->row);
    lb_fused_launch::shape shape = shape_of(*k, layer.hidden, layer.directions);
    Args args = {};
    args.layer = layer;
    args.rows = k->split.rows;
    args.spin_limit = LB_GRID_SPIN_LIMIT;
    for (; args.direction < layer.directions; args.direction += static_cast<int>(shape.grid[2]))
        LB_CHECK(lb_fused_launch::enqueue(row->kernel, shape, stream, err, args));
    return LB_OK;
}

} // namespace lb_grid

enum lb_status lb_grid_ready(struct lb_grid_kernel *kernel, int needed, int *resident,
                             struct lb_error *err)
{
    return kernel->backward ? lb_grid::ready(lb_grid::backward_rows, kernel, needed, resident, err)
                            : lb_grid::ready(lb_grid::forward_rows, kernel, needed, resident, err);
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

enum lb_status lb_grid_forward(const void *kernel, const struct lb_fused_forward_args *args,
                               void *stream, struct lb_error *err)
{
    return lb_grid::launch<lb_grid_forward_args>(kernel, *args, stream, err);
}

enum lb_status lb_grid_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                void *stream, struct lb_error *err)
{
    return lb_grid::launch<lb_grid_backward_args>(kernel, *args, stream, err);
}

/* The table of the step kernels, and their launchers, which launch one kernel per step. */
#include "cuda/fused/common/fused_launch.cuh"
#include "cuda/fused/step/backward.cuh"
#include "cuda/fused/step/forward.cuh"
#include "cuda/fused/step/step.h"

namespace lb_step
{

struct key {
    lb_step_tile tile;
    int dtype, tensor, backward; /* tensor: uses tensor cores; in f32 that is TF32 */
};

/* The rows of one tile. */
#define LB_STEP_TENSOR_PASS(backward, kernel, ...)                                                 \
    {{{__VA_ARGS__}, LB_F32, 1, backward}, kernel<tensor_product<float>, tile<__VA_ARGS__>>},      \
        {{{__VA_ARGS__}, LB_F16, 1, backward}, kernel<tensor_product<__half>, tile<__VA_ARGS__>>}, \
        {{{__VA_ARGS__}, LB_BF16, 1, backward},                                                    \
         kernel<tensor_product<__nv_bfloat16>, tile<__VA_ARGS__>>},
#define LB_STEP_PLAIN_PASS(backward, kernel, ...)                                             \
    {{{__VA_ARGS__}, LB_F64, 0, backward}, kernel<plain_product<double>, tile<__VA_ARGS__>>}, \
        {{{__VA_ARGS__}, LB_F32, 0, backward}, kernel<plain_product<float>, tile<__VA_ARGS__>>},
#define LB_STEP_BACKWARD_ROWS(...) LB_STEP_TENSOR_PASS(1, fused_step_backward_kernel, __VA_ARGS__)
#define LB_STEP_TENSOR_ROWS(...)                                   \
    LB_STEP_TENSOR_PASS(0, fused_step_forward_kernel, __VA_ARGS__) \
    LB_STEP_BACKWARD_ROWS(__VA_ARGS__)
#define LB_STEP_ROWS(...)                                          \
    LB_STEP_PLAIN_PASS(0, fused_step_forward_kernel, __VA_ARGS__)  \
    LB_STEP_PLAIN_PASS(1, fused_step_backward_kernel, __VA_ARGS__) \
    LB_STEP_TENSOR_ROWS(__VA_ARGS__)

static const lb_fused_launch::row<key> rows[] = {LB_STEP_TILES(LB_STEP_ROWS) LB_STEP_TENSOR_TILES(
    LB_STEP_TENSOR_ROWS) LB_STEP_CLUSTER_TILES(LB_STEP_BACKWARD_ROWS)};

static lb_fused_launch::shape shape_of(const lb_step_kernel &k, int hidden, int batch,
                                       int directions)
{
    int units = lb_step_units(&k.tile, k.backward);
    int tiles = (hidden + units - 1) / units * ((batch + k.tile.columns - 1) / k.tile.columns);
    return {"step",
            {tiles * k.tile.blocks, directions, 1},
            lb_step_threads(&k.tile),
            lb_step_shared(&k.tile),
            k.tile.blocks > 1 ? k.tile.blocks : 0};
}

/* Launches the steps from `first` to `last`, up or down. Each but the first of a call follows the
 * launch of another step; what is in front of the first does not let anything begin before it has
 * ended. */
template <class Args>
static enum lb_status launch(const lb_step_kernel &k, const Args &args, int first, int last,
                             void *stream, struct lb_error *err)
{
    lb_fused_launch::shape shape = shape_of(k, args.hidden, args.batch, args.directions);
    int by = k.backward ? -1 : 1;
    for (int step = first; step != last + by; step += by) {
        shape.follows = k.follows && step != first;
        LB_CHECK(lb_fused_launch::enqueue(k.function, shape, stream, err, args, step,
                                          k.act == LB_ACT_RELU));
    }
    return LB_OK;
}

} // namespace lb_step

enum lb_status lb_step_ready(struct lb_step_kernel *k, int *resident, struct lb_error *err)
{
    bool tensor = k->dtype == LB_F32 ? k->math != LB_IEEE : k->dtype != LB_F64;
    const lb_step::key key = {k->tile, k->dtype, tensor, k->backward};
    const lb_fused_launch::shape shape = lb_step::shape_of(*k, 1, 1, 1);
    k->function = lb_fused_launch::find(lb_step::rows, key, "step", err);
    if (!k->function)
        return LB_UNSUPPORTED;
    return lb_fused_launch::ask_resident(k->function, shape, resident, &k->follows, err);
}

enum lb_status lb_step_launch(const void *kernel, const void *args, void *stream,
                              struct lb_error *err)
{
    const auto &k = *static_cast<const lb_step_kernel *>(kernel);
    const auto &forward = *static_cast<const lb_fused_forward_args *>(args);
    const auto &backward = *static_cast<const lb_fused_backward_args *>(args);
    if (!k.backward)
        return lb_step::launch(k, forward, forward.from, forward.to - 1, stream, err);
    int last = backward.from > 0 ? backward.from : -1; /* step -1 is the initial state */
    return lb_step::launch(k, backward, backward.to - 1, last, stream, err);
}

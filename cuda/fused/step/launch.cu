/* The table of the step kernels, and their launchers, which launch one kernel per step. */
#include "cuda/fused/common/fused_launch.cuh"
#include "cuda/fused/step/backward.cuh"
#include "cuda/fused/step/forward.cuh"
#include "cuda/fused/step/step.h"

namespace lb_step
{

struct key {
    lb_step_tile tile;
    int dtype, tensor; /* tensor: uses tensor cores; in f32 that is TF32 */
};

using forward_row = lb_fused_launch::row<key, lb_fused_forward_args, int, bool>;
using backward_row = lb_fused_launch::row<key, lb_fused_backward_args, int, bool>;

/* The rows of one pass and tile: one for each type. */
#define LB_STEP_TENSOR_ROWS(kernel, ...)                                                    \
    {{{__VA_ARGS__}, LB_F32, true}, kernel<tensor_product<float>, tile<__VA_ARGS__>>},      \
        {{{__VA_ARGS__}, LB_F16, true}, kernel<tensor_product<__half>, tile<__VA_ARGS__>>}, \
        {{{__VA_ARGS__}, LB_BF16, true},                                                    \
         kernel<tensor_product<__nv_bfloat16>, tile<__VA_ARGS__>>},
#define LB_STEP_ROWS(kernel, ...)                                                          \
    {{{__VA_ARGS__}, LB_F64, false}, kernel<plain_product<double>, tile<__VA_ARGS__>>},    \
        {{{__VA_ARGS__}, LB_F32, false}, kernel<plain_product<float>, tile<__VA_ARGS__>>}, \
        LB_STEP_TENSOR_ROWS(kernel, __VA_ARGS__)
#define LB_STEP_FORWARD_ROWS(...)        LB_STEP_ROWS(fused_step_forward_kernel, __VA_ARGS__)
#define LB_STEP_BACKWARD_ROWS(...)       LB_STEP_ROWS(fused_step_backward_kernel, __VA_ARGS__)
#define LB_STEP_TENSOR_FORWARD_ROWS(...) LB_STEP_TENSOR_ROWS(fused_step_forward_kernel, __VA_ARGS__)
#define LB_STEP_TENSOR_BACKWARD_ROWS(...) \
    LB_STEP_TENSOR_ROWS(fused_step_backward_kernel, __VA_ARGS__)

static const forward_row forward_rows[] = {LB_STEP_TILES(LB_STEP_FORWARD_ROWS)
                                               LB_STEP_TENSOR_TILES(LB_STEP_TENSOR_FORWARD_ROWS)};
static const backward_row backward_rows[] = {
    LB_STEP_TILES(LB_STEP_BACKWARD_ROWS) LB_STEP_TENSOR_TILES(LB_STEP_TENSOR_BACKWARD_ROWS)
        LB_STEP_CLUSTER_TILES(LB_STEP_TENSOR_BACKWARD_ROWS)};

static lb_fused_launch::shape shape_of(const lb_step_kernel &k, int hidden, int batch,
                                       int directions)
{
    long units = lb_step_units(&k.tile, k.backward);
    long rows = (batch + k.tile.columns - 1) / k.tile.columns;
    return {"step",
            {static_cast<unsigned>((hidden + units - 1) / units * rows * k.tile.blocks),
             static_cast<unsigned>(directions), 1},
            static_cast<unsigned>(lb_step_threads(&k.tile)),
            k.tile.blocks > 1 ? static_cast<unsigned>(k.tile.blocks) : 0,
            false,
            lb_step_shared(&k.tile)};
}

template <class Row, size_t count>
static enum lb_status ready(const Row (&rows)[count], struct lb_step_kernel *k, int *resident,
                            struct lb_error *err)
{
    bool tensor = k->dtype == LB_F32 ? k->math != LB_IEEE : k->dtype != LB_F64;
    const Row *row = lb_fused_launch::find(rows, key{k->tile, k->dtype, tensor}, "step", err);
    k->row = row;
    if (!row)
        return LB_UNSUPPORTED;
    const lb_fused_launch::shape shape = shape_of(*k, 1, 1, 1);
    enum lb_status st = lb_fused_launch::ask_resident(row->kernel, shape, resident, err);
    return st == LB_OK ? lb_fused_launch::ask_follows(row->kernel, shape, &k->follows, err) : st;
}

/* Launches one step. Where it is not the first of a call, it follows the launch of another step;
 * what is in front of the first does not let anything begin before it has ended. */
template <class Row, class Args>
static enum lb_status launch(const void *kernel, const Args &args, int step, bool first,
                             void *stream, struct lb_error *err)
{
    const auto *k = static_cast<const lb_step_kernel *>(kernel);
    lb_fused_launch::shape shape = shape_of(*k, args.hidden, args.batch, args.directions);
    shape.follows = k->follows && !first;
    return lb_fused_launch::enqueue(static_cast<const Row *>(k->row)->kernel, shape, stream, err,
                                    args, step, k->act == LB_ACT_RELU);
}

} // namespace lb_step

enum lb_status lb_step_ready(struct lb_step_kernel *kernel, int *resident, struct lb_error *err)
{
    return kernel->backward ? lb_step::ready(lb_step::backward_rows, kernel, resident, err)
                            : lb_step::ready(lb_step::forward_rows, kernel, resident, err);
}

enum lb_status lb_step_forward(const void *kernel, const struct lb_fused_forward_args *args,
                               void *stream, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int step = args->from; step < args->to && st == LB_OK; step++)
        st = lb_step::launch<lb_step::forward_row>(kernel, *args, step, step == args->from, stream,
                                                   err);
    return st;
}

enum lb_status lb_step_backward(const void *kernel, const struct lb_fused_backward_args *args,
                                void *stream, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int last = args->from > 0 ? args->from : -1; /* step -1 is the initial state */
    for (int step = args->to - 1; step >= last && st == LB_OK; step--)
        st = lb_step::launch<lb_step::backward_row>(kernel, *args, step, step == args->to - 1,
                                                    stream, err);
    return st;
}

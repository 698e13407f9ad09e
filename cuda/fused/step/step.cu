/* fused_step.cu: the step kernels for the device. */
#include "cuda/fused/step/launch.cuh"

#include "cuda/fused/step/backward.cuh"
#include "cuda/fused/step/forward.cuh"

using namespace lb_fused_step;

/* Every type with every tile, for the launcher of one pass. */
#define LB_STEP_ROWS(kernel, ...)                                                         \
    {{__VA_ARGS__}, LB_F64, false, kernel<plain_product<double>, tile<__VA_ARGS__>>},     \
        {{__VA_ARGS__}, LB_F32, false, kernel<plain_product<float>, tile<__VA_ARGS__>>},  \
        {{__VA_ARGS__}, LB_F32, true, kernel<tensor_product<float>, tile<__VA_ARGS__>>},  \
        {{__VA_ARGS__}, LB_F16, true, kernel<tensor_product<__half>, tile<__VA_ARGS__>>}, \
        {{__VA_ARGS__}, LB_BF16, true, kernel<tensor_product<__nv_bfloat16>, tile<__VA_ARGS__>>},
#define LB_STEP_FORWARD_ROWS(...)  LB_STEP_ROWS(fused_step_forward_kernel, __VA_ARGS__)
#define LB_STEP_BACKWARD_ROWS(...) LB_STEP_ROWS(fused_step_backward_kernel, __VA_ARGS__)

static const kernel_row<lb_fused_forward_args> forward_rows[] = {
    LB_FUSED_STEP_TILES(LB_STEP_FORWARD_ROWS)};
static const kernel_row<lb_fused_backward_args> backward_rows[] = {
    LB_FUSED_STEP_TILES(LB_STEP_BACKWARD_ROWS)};

enum lb_status lb_fused_step_ready(const struct lb_fused_step_kernel *kernel, int *blocks,
                                   struct lb_error *err)
{
    return kernel->backward ? ready(backward_rows, *kernel, blocks, err)
                            : ready(forward_rows, *kernel, blocks, err);
}

enum lb_status lb_fused_step_forward(const struct lb_fused_step_kernel *kernel,
                                     const struct lb_fused_forward_args *args, void *stream,
                                     struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int step = args->from; step < args->to && st == LB_OK; step++)
        st = launch(forward_rows, *kernel, *args, step, stream, err);
    return st;
}

enum lb_status lb_fused_step_backward(const struct lb_fused_step_kernel *kernel,
                                      const struct lb_fused_backward_args *args, void *stream,
                                      struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int last = args->from > 0 ? args->from : -1; /* -1: the initial state */
    for (int step = args->to - 1; step >= last && st == LB_OK; step--)
        st = launch(backward_rows, *kernel, *args, step, stream, err);
    return st;
}

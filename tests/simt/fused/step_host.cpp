/* step_host.cpp: the launchers of the fused step kernels, with the emulator for a device. */
#include "enqueue.h"

#include "cuda/fused/step/launch.cuh"

extern "C" int lb_host_sms;

namespace lb_fused_step
{

static int launches; /* each with another schedule */

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                     int *blocks, struct lb_error *err)
{
    *blocks = lb_host_sms;
    return find(rows, k) ? LB_OK : lb_fail(err, LB_UNSUPPORTED, "no such kernel");
}

template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_step_kernel &k,
                      const Args &args, int step, void *stream, struct lb_error *err)
{
    simt::launch_config config = {"fused step"};
    config.grid.x = static_cast<unsigned>(block_count(k, args));
    config.grid.y = static_cast<unsigned>(args.directions);
    config.block.x = static_cast<unsigned>(lb_fused_step_threads(&k.tile));
    config.shared_bytes = lb_fused_step_shared(&k.tile);
    config.seed = static_cast<uint64_t>(launches++);
    auto kernel = find(rows, k)->kernel;
    bool relu = k.act == LB_ACT_RELU;
    return enqueue_launch(
        stream, config, [=] { kernel(args, step, relu); }, err);
}

} // namespace lb_fused_step

#include "cuda/fused/step/step.cu"

/* fused_host.cpp: the launchers of the fused kernels, with the emulator for a device. */
#include "enqueue.h"

#include "cuda/fused/cluster/launch.cuh"

/* What the emulated device has room for. */
extern "C" int lb_host_sms;
int lb_host_sms = 132;

namespace lb_fused
{

static int launches; /* each with another schedule */

template <class Args, size_t count>
enum lb_status ready(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k, size_t,
                     int *clusters, struct lb_error *err)
{
    *clusters = lb_host_sms / k.tile.blocks;
    return find(rows, k) ? LB_OK : lb_fail(err, LB_UNSUPPORTED, "no such kernel");
}

template <class Args, size_t count>
enum lb_status launch(const kernel_row<Args> (&rows)[count], const lb_fused_kernel &k,
                      size_t shared, const Args &args, void *stream, struct lb_error *err)
{
    simt::launch_config config = {"fused"};
    int clusters = (args.batch + k.tile.columns - 1) / k.tile.columns;
    config.grid.x = static_cast<unsigned>(clusters * k.tile.blocks);
    config.grid.y = static_cast<unsigned>(args.directions);
    config.block.x = static_cast<unsigned>(32 * k.tile.warps);
    config.cluster = static_cast<unsigned>(k.tile.blocks);
    config.shared_bytes = shared;
    config.seed = static_cast<uint64_t>(launches++);
    auto kernel = find(rows, k)->kernel;
    return enqueue_launch(
        stream, config, [=] { kernel(args); }, err);
}

} // namespace lb_fused

#include "cuda/fused/cluster/backward.cu"
#include "cuda/fused/cluster/forward.cu"

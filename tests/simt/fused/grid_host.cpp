/* grid_host.cpp: the launchers of the grid kernels, with the emulator for a device. */
#include "enqueue.h"

#include "cuda/fused/grid/launch.cuh"

/* How many blocks the device says to run at a time, and a block of the next launches that never
 * does; for tests to set. */
extern "C" {
int lb_grid_host_resident = 132, lb_grid_host_missing = -1;
}

namespace lb_grid
{

static uint32_t launches; /* each with another schedule */

template <class Args>
enum lb_status ask_resident(void (*)(Args), const grid_shape &, int *resident, struct lb_error *)
{
    *resident = lb_grid_host_resident;
    return LB_OK;
}

enum lb_status clear_exchange(void *exchange, size_t bytes, void *stream, struct lb_error *err)
{
    auto clear = [=](struct lb_error *) {
        memset(exchange, 0, bytes);
        return LB_OK;
    };
    return fake_enqueue_call(stream, clear, err);
}

template <class Args>
enum lb_status enqueue(void (*kernel)(Args), const grid_shape &shape, const Args &args,
                       void *stream, struct lb_error *err)
{
    simt::launch_config config = {"grid"};
    config.grid = {shape.blocks, shape.groups, shape.directions};
    config.block.x = shape.threads;
    config.shared_bytes = shape.shared;
    config.seed = launches++;
    int missing = lb_grid_host_missing;
    Args hasty = args;
    if (missing >= 0)
        hasty.spin_limit = 1000;
    uint32_t *elsewhere = &launches;
    auto body = [=] {
        using simt::scope;
        if (static_cast<int>(simt::linear_block()) != missing)
            return kernel(hasty);
        /* Writes all the time, so that the emulator sees life and no livelock. */
        for (uint32_t n = 0; simt::linear_thread() == 0 && n < 1 << 16; n++) {
            lb_ptx::store_relaxed<scope::gpu>(elsewhere, *elsewhere + 1);
            if (lb_ptx::load_relaxed<scope::gpu>(&hasty.layer.fault->raised))
                break;
        }
    };
    return enqueue_launch(stream, config, body, err);
}

} // namespace lb_grid

#include "cuda/fused/grid/backward.cu"
#include "cuda/fused/grid/forward.cu"

/* The launchers of the fused kernels, which run them on the emulator. A launch waits for its turn
 * in a stream of the fake device. */
#define LB_FUSED_LAUNCH_CUH /* this file stands for that one */
#include "cuda/fused/common/launch_shape.cuh"

#include <cstring>
#include <vector>

#include "cuda/common/ptx.cuh"
#include "cuda/fused/grid/grid.h"
#include "device/streams.h"
#include "simt.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/launch_limits.h"
#include "tests/fake_gpu/queue.h"

/* Tests may set the number of SMs of the device, the number of blocks of a cooperative launch that
 * it says it runs at the same time, and a block of the next cooperative launches that never runs
 * (-1: none). */
extern "C" {
int lb_host_sms = 132, lb_grid_host_resident = 132, lb_grid_host_missing = -1;

/* What has run, as a text that tests may empty: K is a kernel and C the clearing of exchange
 * buffers, and G stands in front of each where GEMMs have run since the one before. */
char lb_host_log[1 << 12];
}

namespace lb_fused_launch
{

static uint32_t launches; /* each launch gets another schedule */

static void log_run(char what)
{
    static int gemms;
    size_t length = strlen(lb_host_log);
    if (length == 0)
        gemms = 0; /* as on a new device */
    bool multiplied = fake_device_counts()->gemms != gemms;
    gemms = fake_device_counts()->gemms;
    if (length + 2 >= sizeof(lb_host_log))
        return;
    if (multiplied)
        lb_host_log[length++] = 'G';
    lb_host_log[length] = what, lb_host_log[length + 1] = 0;
}

enum lb_status ask_resident(any_kernel, const shape &s, int *resident, bool *follows,
                            struct lb_error *)
{
    if (follows)
        *follows = true; /* as on sm_90 and later with CUDA 12.3 */
    *resident = s.cooperative ? lb_grid_host_resident : lb_host_sms / (s.cluster ? s.cluster : 1);
    return LB_OK;
}

enum lb_status clear(const shape &, void *memory, size_t bytes, void *stream, struct lb_error *err)
{
    auto clear_memory = [=](struct lb_error *) {
        log_run('C');
        memset(memory, 0, bytes);
        return LB_OK;
    };
    return fake_enqueue_call(stream, clear_memory, err);
}

/* Refuses what a real device would refuse at the launch, whose kernel ask_resident has prepared. */
static enum lb_status check(const shape &s, struct lb_error *err)
{
    struct fake_launch launch = {};
    for (int i = 0; i < 3; i++)
        launch.grid[i] = s.grid[i];
    launch.block[0] = s.threads, launch.block[1] = launch.block[2] = 1;
    launch.cluster = s.cluster;
    launch.cooperative = s.cooperative;
    launch.shared = s.shared;
    launch.shared_allowed = SIZE_MAX; /* which leaves the device's own limit */
    launch.wide_clusters = s.cluster > 8;
    launch.follows = s.follows;
    return fake_launch_allow(&launch, s.family, err);
}

static void add_span(void *memory, size_t bytes, void *all)
{
    static_cast<std::vector<simt::span> *>(all)->push_back(
        {static_cast<unsigned char *>(memory), bytes});
}

/* Runs a launch of the step family. One that follows another begins before that has written
 * anything. */
template <class Body>
static simt::outcome launch_step(simt::launch_config config, int stream, bool follows,
                                 const Body &body)
{
    static simt::written written[LB_STREAMS_MAX]; /* by the last launch on each stream */
    std::vector<simt::span> memory;
    fake_device_each_block(add_span, &memory);
    config.memory = memory.data();
    config.memory_count = memory.size();
    config.follows = follows ? &written[stream] : nullptr;
    config.leaves = &written[stream];
    return simt::launch(config, body);
}

/* Enqueues a launch. What the emulator finds is returned to the call that waits for the launch. */
template <class Body>
static enum lb_status enqueue_body(const shape &s, void *stream, struct lb_error *err,
                                   const Body &body)
{
    simt::launch_config config = {s.family};
    config.grid.x = s.grid[0], config.grid.y = s.grid[1], config.grid.z = s.grid[2];
    config.block.x = s.threads;
    config.cluster = s.cluster ? s.cluster : 1;
    config.shared_bytes = s.shared;
    config.seed = launches++;
    if (check(s, err) != LB_OK)
        return LB_FAILED;
    bool step = strcmp(s.family, "step") == 0, follows = s.follows;
    int index = fake_queue_index(stream);
    auto work = [=](struct lb_error *late) {
        if (fake_launch_begin(late) != LB_OK)
            return LB_FAILED;
        log_run('K');
        simt::outcome outcome =
            step ? launch_step(config, index, follows, body) : simt::launch(config, body);
        return outcome.ok() ? LB_OK : lb_fail(late, LB_FAILED, "%.400s", outcome.text().c_str());
    };
    return fake_enqueue_call(stream, work, err);
}

/* Enqueues a cooperative launch in which one block may be missing. The other blocks then give up
 * sooner, and the missing one writes all the time, so that the emulator does not report a livelock.
 */
template <class Args>
static enum lb_status enqueue_waiting(void (*kernel)(Args), const shape &s, void *stream,
                                      struct lb_error *err, Args args)
{
    int missing = lb_grid_host_missing;
    if (missing >= 0)
        args.spin_limit = 1000;
    uint32_t *elsewhere = &launches;
    return enqueue_body(s, stream, err, [=] {
        using simt::scope;
        if (static_cast<int>(simt::linear_block()) != missing)
            return kernel(args);
        for (uint32_t n = 0; simt::linear_thread() == 0 && n < 1 << 16; n++) {
            lb_ptx::store_relaxed<scope::gpu>(elsewhere, *elsewhere + 1);
            if (lb_ptx::load_relaxed<scope::gpu>(&args.fault->raised))
                break;
        }
    });
}

template <class... Arguments>
enum lb_status enqueue(any_kernel kernel, const shape &s, void *stream, struct lb_error *err,
                       Arguments... arguments)
{
    auto *typed = reinterpret_cast<void (*)(Arguments...)>(kernel);
    if constexpr (sizeof...(Arguments) == 1)
        if (s.cooperative)
            return enqueue_waiting(typed, s, stream, err, arguments...);
    return enqueue_body(s, stream, err, [=] { typed(arguments...); });
}

} // namespace lb_fused_launch

#include "cuda/fused/cluster/launch.cu"
#include "cuda/fused/grid/launch.cu"
#include "cuda/fused/step/launch.cu"

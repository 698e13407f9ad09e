/* What a device refuses at a launch. */
#include "launch_limits.h"

#include <driver_types.h>
#include <stdint.h>

#include "fake_device.h"

enum {
    SHARED_UNASKED = 48 << 10, /* per block, without cudaFuncSetAttribute */
    SHARED_SYSTEM = 1 << 10,   /* per block, reserved by the system */
    PORTABLE_CLUSTER = 8,
    WIDEST_CLUSTER = 16
};

/* The most threads, and the most blocks, that a multiprocessor runs at a time. */
static int most_threads(const struct lb_device_info *device)
{
    if (device->major == 7 && device->minor == 5)
        return 1024;
    return (device->major == 8 && device->minor > 0) || device->major == 12 ? 1536 : 2048;
}

static int most_blocks(const struct lb_device_info *device)
{
    if (device->major == 8 && device->minor == 9)
        return 24;
    return device->major == 7 || (device->major == 8 && device->minor > 0) ? 16 : 32;
}

/* Where the kernel allows clusters that are not portable. Source: NVIDIA's tuning guides for Hopper
 * and Blackwell, of which only those of 9.0 and 10.x name more than the portable size. */
static unsigned widest_cluster(const struct lb_device_info *device)
{
    return device->major == 9 || device->major == 10 ? WIDEST_CLUSTER : PORTABLE_CLUSTER;
}

static uint64_t threads_of(const struct fake_launch *l)
{
    return (uint64_t)l->block[0] * l->block[1] * l->block[2];
}

static bool valid_sizes(const struct fake_launch *l)
{
    static const unsigned grid_most[3] = {INT32_MAX, 65535, 65535},
                          block_most[3] = {1024, 1024, 64};
    for (int i = 0; i < 3; i++)
        if (l->grid[i] < 1 || l->grid[i] > grid_most[i] || l->block[i] < 1 ||
            l->block[i] > block_most[i])
            return false;
    return threads_of(l) <= 1024 && (l->cluster == 0 || l->grid[0] % l->cluster == 0);
}

int fake_launch_resident(const struct lb_device_info *device, const struct fake_launch *l)
{
    if (!valid_sizes(l) || l->shared > (size_t)device->shared_bytes)
        return 0;
    size_t all_shared = (size_t)device->shared_bytes + SHARED_SYSTEM;
    size_t by_shared = all_shared / (l->shared + SHARED_SYSTEM);
    size_t per_sm = (size_t)most_threads(device) / threads_of(l);
    per_sm = per_sm < by_shared ? per_sm : by_shared;
    per_sm = per_sm < (size_t)most_blocks(device) ? per_sm : (size_t)most_blocks(device);
    int cluster = l->cluster ? (int)l->cluster : 1;
    return device->sm_count / cluster * cluster * (int)per_sm;
}

int fake_launch_check(const struct lb_device_info *device, const struct fake_launch *l)
{
    size_t allowed = l->shared_allowed ? l->shared_allowed : SHARED_UNASKED;
    unsigned widest = l->wide_clusters ? widest_cluster(device) : PORTABLE_CLUSTER;
    if (!valid_sizes(l))
        return cudaErrorInvalidConfiguration;
    if (l->shared > allowed || l->shared > (size_t)device->shared_bytes)
        return cudaErrorInvalidValue;
    if (l->cluster > 0 && (device->major < 9 || l->cluster > widest))
        return cudaErrorInvalidClusterSize;
    if (l->follows && device->major < 9)
        return cudaErrorNotSupported;
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    return l->cooperative && blocks > (uint64_t)fake_launch_resident(device, l)
               ? cudaErrorCooperativeLaunchTooLarge
               : cudaSuccess;
}

enum lb_status fake_launch_allow(const struct fake_launch *launch, const char *what,
                                 struct lb_error *err)
{
    int error = fake_launch_check(fake_device_info(), launch);
    return error == cudaSuccess ? LB_OK
                                : lb_fail(err, LB_FAILED, "launching %s: error %d", what, error);
}

enum lb_status fake_launch_begin(struct lb_error *err)
{
    return fake_device_strikes(FAKE_LAUNCH_FAULT) ? fake_device_lose(err) : LB_OK;
}

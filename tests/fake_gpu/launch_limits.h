/* What a device refuses at a launch: the limits of the CUDA programming guide's table of compute
 * capabilities. Registers are not among them, because only the compiler knows how many a kernel
 * uses. */
#ifndef LB_LAUNCH_LIMITS_H
#define LB_LAUNCH_LIMITS_H

#include <stdbool.h>
#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_device_info;

struct fake_launch {
    unsigned grid[3], block[3]; /* blocks per grid, threads per block */
    unsigned cluster;           /* blocks per cluster, along x; 0: no clusters */
    bool cooperative;           /* all blocks must be resident at once */
    int priority;               /* 0, or lower numbers for what comes first */
    bool follows;               /* programmatic dependent launch */
    size_t shared;              /* bytes of dynamic shared memory per block */
    /* What cudaFuncSetAttribute has set for the kernel. */
    size_t shared_allowed; /* 0: not set, so the limit is 48 KiB */
    bool wide_clusters;    /* more than 8 blocks per cluster are allowed */
};

/* Returns the cudaError_t with which the device refuses the launch, or cudaSuccess. */
int fake_launch_check(const struct lb_device_info *device, const struct fake_launch *launch);

/* How many blocks of the launch the device runs at a time; 0 when none fits. */
int fake_launch_resident(const struct lb_device_info *device, const struct fake_launch *launch);

/* For kernels that run on the host. fake_launch_allow is called at the launch: LB_FAILED when
 * the fake device refuses it. fake_launch_begin is called when the kernel's turn comes: LB_FAILED
 * when a planted fault makes it touch an illegal address. */
enum lb_status fake_launch_allow(const struct fake_launch *launch, const char *what,
                                 struct lb_error *err);
enum lb_status fake_launch_begin(struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* What a device refuses at a launch: the limits of the CUDA programming guide's table of compute
 * capabilities. Registers are not among them: a kernel's number is known to its compiler alone. */
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
    unsigned grid[3], block[3]; /* blocks of the grid, threads of a block */
    unsigned cluster;           /* blocks of a cluster, along x; 0: no clusters */
    bool cooperative;           /* all blocks must be resident at once */
    size_t shared;              /* bytes of dynamic shared memory of a block */
    /* What the kernel was readied for by cudaFuncSetAttribute. */
    size_t shared_allowed; /* 0: not readied, so 48 KiB */
    bool wide_clusters;    /* more than 8 blocks */
};

/* Why a launch is refused. The names are those of the CUDA runtime's errors. */
enum fake_refusal {
    FAKE_ACCEPTED,
    FAKE_INVALID_CONFIGURATION, /* threads, grid, or a cluster that does not divide it */
    FAKE_INVALID_VALUE,         /* more shared memory than the kernel was readied for */
    FAKE_INVALID_CLUSTER_SIZE,
    FAKE_COOPERATIVE_TOO_LARGE
};

enum fake_refusal fake_launch_check(const struct lb_device_info *device,
                                    const struct fake_launch *launch);

/* How many blocks of the launch the device runs at a time; 0 where none fits. */
int fake_launch_resident(const struct lb_device_info *device, const struct fake_launch *launch);

/* For kernels that run on the host. allow: LB_FAILED where the fake device refuses the launch, with
 * the message that the launchers of cuda/ give: "launching WHAT: words". begin: LB_FAILED where the
 * kernel, whose turn it is, shall touch an illegal address. */
enum lb_status fake_launch_allow(const struct fake_launch *launch, const char *what,
                                 struct lb_error *err);
enum lb_status fake_launch_begin(struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

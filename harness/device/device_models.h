/* GPUs that this machine may lack: what the CUDA runtime would say of them, and the published
 * figures with which the lower bound and the cost models of kernels calculate. DEVICE_MODELS.md
 * says how a file describes another GPU. */
#ifndef LB_DEVICE_MODELS_H
#define LB_DEVICE_MODELS_H

#include "api/dtype.h"
#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the models know of a device. Clocks are those of a multiprocessor (SM). */
struct lb_machine {
    const char *name;    /* "h100", or the name in the file that describes the device */
    double clock_hz;     /* clock during long runs; not used by the lower bound */
    double clock_max_hz; /* highest clock of the device */
    double memory_bytes_s, l2_bytes_s;

    /* Per clock and SM. */
    double flops_clock[LB_DTYPE_COUNT]; /* of GEMMs, on tensor cores where the SM has them */
    double tf32_flops_clock;
    double shared_bytes_clock; /* read by an SM from its shared memory */
    double peer_bytes_clock;   /* received by an SM from its cluster; 0: no clusters */
    double l2_bytes_clock;     /* read by an SM from the second-level cache */

    double peer_clocks;    /* from a store to a peer's shared memory until the peer sees it */
    double l2_clocks;      /* from a store to global memory until another SM sees it */
    double node_ns;        /* from one graph node to the next; not used by the lower bound */
    double register_bytes; /* of an SM's registers, for weights: 64 of 255 per thread stay free */
    int cluster;           /* largest number of SMs in a cluster; 0: no clusters */
};

/* True when a device's own name ("NVIDIA H100 80GB HBM3") is that of the known machine ("h100"). */
bool lb_machine_matches(const char *name, const struct lb_device_info *device);

/* The figures of the machine that matches the device. LB_UNSUPPORTED names the known machines. */
enum lb_status lb_machine_of(const struct lb_device_info *device, struct lb_machine *machine,
                             struct lb_error *err);

/* Fills in the properties of a device that need not be there, for planning. name: its short name,
 * such as "h100", or the path of a file that describes it, which is any text with a '/' or a '.'.
 * lb_machine_of knows the device of the file that was read last. LB_INVALID lists the known names,
 * or names the line and key of the file that is wrong. LB_IO: the file cannot be read. */
enum lb_status lb_device_model(const char *name, struct lb_device_info *info, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

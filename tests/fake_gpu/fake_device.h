/* A device without hardware, for tests. It counts the requests to it, and a test can make it
 * fail. Enqueued work waits in queues (queue.h), and its clock runs only while it works. It
 * refuses what a real device refuses. Its memory is mapped only while it works, so a host that
 * follows a device pointer gets a fault. Work that follows any other pointer loses the device.
 * Blocks are aligned to 256 bytes and no more, copies and fills check their pointers, and a
 * capture accepts only enqueued work. */
#ifndef LB_FAKE_DEVICE_H
#define LB_FAKE_DEVICE_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fake_fault {
    FAKE_NONE,
    FAKE_ABSENT,          /* there is no device */
    FAKE_OOM,             /* it has little memory and reports that */
    FAKE_OOM_LATE,        /* it reports enough memory, and then has none */
    FAKE_ILLEGAL_ADDRESS, /* the first wait after an enqueue fails, as does everything after it */
    FAKE_NO_CAPTURE,      /* a capture does not become a graph */
    FAKE_HANG,            /* waiting never ends */
    FAKE_HANG_UPLOAD,     /* a copy to the device never ends */
    FAKE_SLOW_FIRST,      /* the first timed call takes FAKE_SLOW_NS longer */
    FAKE_HANG_RECHECK,    /* once timing has begun, a copy from the device never ends */
    FAKE_HANG_HASH,       /* a hash of its memory never ends */
    FAKE_LAUNCH_FAULT,    /* the next kernel that runs touches an illegal address */
    FAKE_LIBRARY_FAULT,   /* the next call of a library starts such a kernel */
    FAKE_HOLD_EXPIRES     /* a held stream continues before all work is enqueued */
};

/* Times on the device's clock: two events with nothing between them, the delay of
 * FAKE_SLOW_FIRST, the fixed work, and the wait for the host to launch a graph. */
enum {
    FAKE_EVENTS_NS = 500,
    FAKE_SLOW_NS = 2000000000,
    FAKE_REFERENCE_NS = 40000,
    FAKE_LAUNCH_NS = 5000,
    FAKE_SM_MHZ = 1755 /* while it works */
};

struct fake_counts {
    int allocations; /* living */
    double bytes;    /* of these */
    int waits, events, captures, replays, fills, holds, clocks, gemms;
};

extern const struct lb_device_api fake_device;

/* Makes the fake the device layer's device, in its initial state, with this fault to come. */
void fake_device_install(enum fake_fault fault);

/* Keeps the state of the device and sets another fault to come. */
void fake_device_break(enum fake_fault fault);

/* Gives the device the limits and the description of another one, until the next install. */
void fake_device_be(const struct lb_device_info *info);
const struct lb_device_info *fake_device_info(void);

/* From now on, addresses have no memory behind them. Copies, fills and kernels do nothing, the
 * host reads zeros, and the device has as much memory as its description says. This is for tests
 * of what is launched, not of what is computed. */
void fake_device_hollow_out(void);
bool fake_device_hollow(void);

bool fake_device_capturing(void);

/* Work has touched an illegal address: the device is lost. Returns LB_FAILED with the message. */
enum lb_status fake_device_lose(struct lb_error *err);

/* Whether the fault is due now. True at most once. */
bool fake_device_strikes(enum fake_fault fault);

/* From now on the host may use the device's memory, for implementations that compute on the
 * host. */
void fake_device_share_memory(void);

/* Whether all these bytes lie in one block of the device's memory. */
bool fake_device_holds(const void *memory, size_t bytes);

/* Enqueue a copy and a fill within the device's memory. LB_FAILED when a range lies elsewhere. */
enum lb_status fake_enqueue_copy(void *stream, void *to, const void *from, size_t bytes,
                                 struct lb_error *err);
enum lb_status fake_enqueue_fill(void *stream, void *to, int byte, size_t bytes,
                                 struct lb_error *err);

/* Computes a GEMM of the device's memory on the host, with sums in double. */
struct lb_gemm;
enum lb_status fake_gemm(const struct lb_gemm *gemm, struct lb_error *err);

/* Calls visit for each block of the device's memory. */
void fake_device_each_block(void (*visit)(void *memory, size_t bytes, void *context),
                            void *context);

const struct fake_counts *fake_device_counts(void);

#ifdef __cplusplus
}
#endif
#endif

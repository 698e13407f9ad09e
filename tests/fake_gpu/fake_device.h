/* A device without hardware, for tests: counts what is asked of it, and can be told to fail. What
 * is enqueued on it waits in queues (queue.h), and its clock runs only while it works. It refuses
 * what a real one refuses: its memory is mapped while it works and at no other time, so that a host
 * that follows a device pointer gets a fault; work that follows any other pointer loses the device;
 * blocks are aligned to 256 bytes and no more; copies
 * and fills take the pointers that they say; and a capture takes enqueued work alone. */
#ifndef LB_FAKE_DEVICE_H
#define LB_FAKE_DEVICE_H

#include "device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum fake_fault {
    FAKE_NONE,
    FAKE_ABSENT,          /* there is no device */
    FAKE_OOM,             /* little memory, and it says so */
    FAKE_OOM_LATE,        /* says that there is enough, and then has none */
    FAKE_ILLEGAL_ADDRESS, /* the first wait after an enqueue fails, as does everything after it */
    FAKE_NO_CAPTURE,      /* what is captured does not become a graph */
    FAKE_HANG,            /* waiting never ends */
    FAKE_HANG_UPLOAD,     /* a copy to the device never ends */
    FAKE_SLOW_FIRST,    /* the first timed call takes FAKE_SLOW_NS longer, as one that loads does */
    FAKE_HANG_RECHECK,  /* after timing began, a copy from the device never ends */
    FAKE_LAUNCH_FAULT,  /* the next kernel that runs touches an illegal address */
    FAKE_LIBRARY_FAULT, /* the next call of a library starts a kernel that does */
    FAKE_HOLD_EXPIRES   /* a stream that is held goes on before all is enqueued */
};

/* On the device's clock: a fill; two events with nothing between them; the reference; how long the
 * device waits for the host to launch a graph. */
enum {
    FAKE_FILL_NS = 10000000,
    FAKE_EVENTS_NS = 500,
    FAKE_SLOW_NS = 2000000000,
    FAKE_REFERENCE_NS = 40000,
    FAKE_LAUNCH_NS = 5000
};

struct fake_counts {
    int allocations; /* living */
    double bytes;    /* of these */
    int waits, events, captures, replays, fills, holds;
};

extern const struct lb_device_api fake_device;

/* Puts the fake in the place of the device layer's table, whole, with the fault to come. */
void fake_device_install(enum fake_fault fault);

/* The same device goes on, with another fault to come. */
void fake_device_break(enum fake_fault fault);

/* The device is another one from now on, until the next install: limits and what it says of itself.
 */
void fake_device_be(const struct lb_device_info *info);
const struct lb_device_info *fake_device_info(void);

/* From now on no memory stands behind addresses: copies, fills and kernels that are launched do
 * nothing, the host reads zeros, and the device has the memory that its description says. For what
 * is launched, rather than what is computed. */
void fake_device_hollow_out(void);
bool fake_device_hollow(void);

bool fake_device_capturing(void);

/* Work touched an address that it may not: the device is lost, and LB_FAILED with its message. */
enum lb_status fake_device_lose(struct lb_error *err);

/* Whether the fault is to come now, which it is once. */
bool fake_device_strikes(enum fake_fault fault);

/* From now on the host may use the device's memory, for implementations that compute there. */
void fake_device_share_memory(void);

/* Whether all these bytes are in one block of the device's memory. */
bool fake_device_holds(const void *memory, size_t bytes);

/* The next `count` timed pieces of work are refused, as launches that ask for too much are; the
 * device goes on. */
void fake_device_refuse(int count);

const struct fake_counts *fake_device_counts(void);

#ifdef __cplusplus
}
#endif
#endif

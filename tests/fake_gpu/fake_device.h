/* A device without hardware, for tests: counts what is asked of it, and can be told to fail. What
 * is enqueued on it waits in queues (queue.h), and its clock runs only while it works. It refuses
 * what a real one refuses: its memory is mapped while it works and at no other time, so that a host
 * that follows a device pointer gets a fault; blocks are aligned to 256 bytes and no more; copies
 * and fills take the pointers that they say; and a capture takes enqueued work alone. */
#ifndef LB_FAKE_DEVICE_H
#define LB_FAKE_DEVICE_H

#include "device/device.h"

enum fake_fault {
    FAKE_NONE,
    FAKE_ABSENT,          /* there is no device */
    FAKE_OOM,             /* little memory, and it says so */
    FAKE_OOM_LATE,        /* says that there is enough, and then has none */
    FAKE_ILLEGAL_ADDRESS, /* the first wait after an enqueue fails, as does everything after it */
    FAKE_NO_CAPTURE,      /* what is captured does not become a graph */
    FAKE_HANG,            /* waiting never ends */
    FAKE_HANG_UPLOAD,     /* a copy to the device never ends */
    FAKE_SLOW_FIRST,  /* the first timed call takes FAKE_SLOW_NS longer, as one that loads does */
    FAKE_HANG_RECHECK /* after timing began, a copy from the device never ends */
};

/* On the device's clock: a fill; two events with nothing between them. */
enum { FAKE_FILL_NS = 10000000, FAKE_EVENTS_NS = 500, FAKE_SLOW_NS = 2000000000 };

struct fake_counts {
    int allocations; /* living */
    double bytes;    /* of these */
    int waits, events, captures, replays, fills;
};

extern const struct lb_device_api fake_device;

/* Puts the fake in the place of the device layer's table, whole, with the fault to come. */
void fake_device_install(enum fake_fault fault);

/* The same device goes on, with another fault to come. */
void fake_device_break(enum fake_fault fault);

/* From now on the host may use the device's memory, for implementations that compute there. */
void fake_device_share_memory(void);

/* Whether all these bytes are in one block of the device's memory. */
bool fake_device_holds(const void *memory, size_t bytes);

/* The next `count` timed pieces of work are refused, as launches that ask for too much are; the
 * device goes on. */
void fake_device_refuse(int count);

const struct fake_counts *fake_device_counts(void);

#endif

/* The device layer: everything that the harness asks of a GPU, through one table of functions that
 * tests replace by a fake device. tests/test_includes.py lists who may include CUDA's headers. */
#ifndef LB_DEVICE_H
#define LB_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/host_memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a device. */
struct lb_device_info {
    char name[64];
    char uuid[48];       /* "GPU-...", "MIG-..." for a part of one; "" where unknown */
    char pci[24];        /* address on the PCI bus, "0000:3b:00.0"; "" where unknown */
    int ordinal;         /* in the order of the CUDA runtime */
    int visible;         /* how many devices the process sees; 0 where unknown */
    int major, minor;    /* compute capability */
    int sm_count;        /* multiprocessors */
    double memory_bytes; /* total, used or not */
    double l2_bytes;
    double shared_bytes; /* largest shared memory of one block */
    int driver, runtime; /* CUDA versions, 1000 major + 10 minor; 0 where unknown */
    bool modelled;       /* known from --device-model only: nothing can run on it */
};

/* The longest time for which a stream is held: a graph of a thousand nodes takes a few milliseconds
 * to launch. */
enum { LB_HOLD_NS = 10000000 };

/* A device as a table of functions. There is one device per process, and one stream per thread that
 * uses it. Failures are LB_OOM where memory ran out, else LB_FAILED with the runtime's own message.
 */
struct lb_device_api {
    /* Opens the device. LB_ABSENT with the reason: no driver, no device, or it cannot be used. */
    enum lb_status (*open)(int ordinal, struct lb_device_info *info, struct lb_error *err);
    /* Gives a further thread of the process a stream, until the thread ends. */
    enum lb_status (*enter)(struct lb_error *err);
    void *(*stream)(void); /* the cudaStream_t of all work of the calling thread */

    enum lb_status (*allocate)(size_t bytes, void **out, struct lb_error *err); /* bytes > 0 */
    void (*release)(void *memory);                                              /* accepts NULL */
    double (*available)(void); /* free bytes; 0 where unknown */

    /* upload and download wait for the copy; fill only enqueues. */
    enum lb_status (*upload)(void *to, const void *host, size_t bytes, struct lb_error *err);
    enum lb_status (*download)(void *host, const void *from, size_t bytes, struct lb_error *err);
    enum lb_status (*fill)(void *to, int byte, size_t bytes, struct lb_error *err);
    /* Both wait for the stream's work. hash adds a hash of memory to *hash; overflow sets *found to
     * the number of the f16 values of memory [count] that are infinite or NaN. */
    enum lb_status (*hash)(const void *memory, size_t bytes, uint64_t *hash, struct lb_error *err);
    enum lb_status (*overflow)(const void *memory, size_t count, uint64_t *found,
                               struct lb_error *err);

    enum lb_status (*synchronize)(struct lb_error *err); /* waits for all work of the stream */

    /* start enqueues an event on the stream; stop enqueues another, waits for it and returns the
     * time between them. */
    enum lb_status (*start)(struct lb_error *err);
    enum lb_status (*stop)(double *ns, struct lb_error *err);

    /* The time of a fixed amount of arithmetic on all multiprocessors, which tells their clock. */
    enum lb_status (*reference)(double *ns, struct lb_error *err);
    /* (optional) hold enqueues a kernel that spins until the next stop has enqueued its event, so
     * that work enqueued in between starts only when all of it is enqueued, but no longer than
     * LB_HOLD_NS. held returns whether the last hold lasted until its stop. */
    enum lb_status (*hold)(struct lb_error *err);
    bool (*held)(void);

    /* (optional) clock_begin enqueues a reading of the clocks of all multiprocessors. clock_end
     * enqueues another and waits for it; *mhz as of lb_mean_clock_mhz. */
    enum lb_status (*clock_begin)(struct lb_error *err);
    enum lb_status (*clock_end)(double *mhz, struct lb_error *err);

    /* The work enqueued between capture_begin and capture_end becomes a graph, ready for replay.
     * capture_end must be called after a failure in between too; *graph is then NULL. */
    enum lb_status (*capture_begin)(struct lb_error *err);
    enum lb_status (*capture_end)(void **graph, struct lb_error *err);
    enum lb_status (*replay)(void *graph, struct lb_error *err);
    void (*graph_release)(void *graph); /* accepts NULL */

    bool (*lost)(void); /* after a fault, such as an illegal address, until the process ends */
};

/* What a multiprocessor's clocks said at one moment; both are 0 where it was not read. */
struct lb_clock_reading {
    uint64_t cycles; /* of the multiprocessor */
    uint64_t ns;     /* of the device's timer, which has the same rate at all clocks */
};

/* The mean clock in MHz between two readings [count] of the same multiprocessors: over those that
 * were read twice, NaN where there is none. */
double lb_mean_clock_mhz(const struct lb_clock_reading *from, const struct lb_clock_reading *to,
                         size_t count);

/* Whether the system has an NVIDIA driver, by the files that it makes; asks no library. */
bool lb_has_nvidia_driver(void);

/* The table in use: CUDA's, or, in a build without CUDA, one that is always absent. */
const struct lb_device_api *lb_device(void);

/* Uses another table (NULL: the one that was built in), and forgets what was known of a device. */
void lb_device_use(const struct lb_device_api *api);

/* Opens the device for this process. Later calls return the outcome of the first one. */
enum lb_status lb_device_open(int ordinal, struct lb_error *err);

/* Takes over what another process found: a device (info), or no device (info NULL) and the reason
 * (absent). */
void lb_device_assume(const struct lb_device_info *info, const char *absent);

/* The device of this process: opened, taken over, or modelled. NULL when there is none, with the
 * reason in why. Touches no device. */
const struct lb_device_info *lb_device_known(struct lb_error *why);

/* LB_OK when the device (NULL: unknown) has at least compute capability major.0; else
 * LB_UNSUPPORTED with "what needs compute capability 8.0, this is a Tesla T4 (7.5)"; what "": the
 * implementation. */
enum lb_status lb_device_needs(const struct lb_device_info *device, int major, const char *what,
                               struct lb_error *why);

/* Keeps the device busy for about 50 ms, because an idle device's clock is low and the first of
 * several candidates would be at a disadvantage. */
enum lb_status lb_device_warm_up(struct lb_error *err);

/* Device memory of the table in use, as a memory space. Each block lies between guard bands, as in
 * lb_host_space. */
extern const struct lb_space lb_device_space;

/* Calls end(what) when the calling thread ends, the latest request first. LB_OOM. */
enum lb_status lb_at_thread_end(void (*end)(void *what), void *what, struct lb_error *err);

/* The table of CUDA. This and what follows are defined only with LB_HAVE_CUDA. */
extern const struct lb_device_api lb_device_cuda;

/* Turns a runtime call's cudaError_t into a status: LB_OK, LB_OOM or LB_FAILED with "what:
 * message". Everything in the layer checks its calls here, so that lost() knows of every fault. */
enum lb_status lb_cuda_check(int error, const char *what, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

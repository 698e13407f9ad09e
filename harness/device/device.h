/* The device layer: all that the harness asks of a GPU, through one table of functions, so that a
 * test can stand in for the device. No CUDA header is included outside this layer, cuda/ and the
 * implementations that wrap a vendor's library. */
#ifndef LB_DEVICE_H
#define LB_DEVICE_H

#include <stdbool.h>

#include "device/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What there is to know of a device. */
struct lb_device_info {
    char name[64];
    char uuid[48];       /* "GPU-..."; "" where unknown */
    int ordinal;         /* in the order of the CUDA runtime */
    int major, minor;    /* compute capability */
    int sm_count;        /* multiprocessors */
    double memory_bytes; /* all of it */
    double l2_bytes;
    double shared_bytes; /* most shared memory of one block */
    int driver, runtime; /* CUDA versions, 1000 major + 10 minor; 0 where unknown */
    bool modelled;       /* described by name only: nothing can run */
};

/* A device, as functions. One device and one stream a process; every call is made on one thread.
 * Failures are LB_OOM where memory ran out, else LB_FAILED with the runtime's own words. */
struct lb_device_api {
    /* Takes the device into use. LB_ABSENT says which form of "no device" it was. */
    enum lb_status (*open)(int ordinal, struct lb_device_info *info, struct lb_error *err);
    void *(*stream)(void); /* cudaStream_t that all work goes to */

    enum lb_status (*allocate)(size_t bytes, void **out, struct lb_error *err); /* bytes > 0 */
    void (*release)(void *memory);                                              /* accepts NULL */
    enum lb_status (*memory)(double *free_bytes, double *total_bytes, struct lb_error *err);

    /* The first two wait until the copy is done; fill only enqueues. */
    enum lb_status (*upload)(void *to, const void *host, size_t bytes, struct lb_error *err);
    enum lb_status (*download)(void *host, const void *from, size_t bytes, struct lb_error *err);
    enum lb_status (*fill)(void *to, int byte, size_t bytes, struct lb_error *err);

    enum lb_status (*synchronize)(struct lb_error *err); /* waits for all work of the stream */

    /* Time between two events on the stream: start enqueues the first, stop enqueues the second
     * and waits for it. */
    enum lb_status (*start)(struct lb_error *err);
    enum lb_status (*stop)(double *ns, struct lb_error *err);

    /* What is enqueued between begin and end becomes a graph, uploaded and ready for replay. end
     * must follow begin, also after a failure in between; *graph is then NULL. */
    enum lb_status (*capture_begin)(struct lb_error *err);
    enum lb_status (*capture_end)(void **graph, struct lb_error *err);
    enum lb_status (*replay)(void *graph, struct lb_error *err);
    void (*graph_release)(void *graph); /* accepts NULL */

    /* True after a fault that leaves the process without a device until it ends, such as an
     * illegal address. */
    bool (*lost)(void);
};

/* The table in use: CUDA's, or, in a build without CUDA, one that is always absent. */
const struct lb_device_api *lb_device(void);

/* Puts another table in its place (NULL: the built one) and forgets what is known of a device. */
void lb_device_use(const struct lb_device_api *api);

/* Opens the device for this process, once; later calls return the first one's answer. */
enum lb_status lb_device_open(int ordinal, struct lb_error *err);

/* Notes what another process found out: a device (info), or why there is none (info NULL). */
void lb_device_assume(const struct lb_device_info *info, const char *absent);

/* What is known of this process's device: opened, assumed or modelled. NULL with the reason (as
 * LB_ABSENT) when there is none. Touches no device. */
const struct lb_device_info *lb_device_known(struct lb_error *why);

/* A device's figures by name, such as "h100", for questions about a device that is not there.
 * LB_INVALID names those there are. */
enum lb_status lb_device_model(const char *name, struct lb_device_info *info, struct lb_error *err);

/* Device memory of the table in use, as a memory space. */
extern const struct lb_space lb_device_space;

/* The built table of CUDA; only where LB_HAVE_CUDA is defined, as the next. */
extern const struct lb_device_api lb_device_cuda;

/* A runtime call's answer, a cudaError_t, as a status: LB_OOM or LB_FAILED, "what: its words". All
 * of the layer asks here, so that lost() knows of each fault. */
enum lb_status lb_cuda_check(int answer, const char *what, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

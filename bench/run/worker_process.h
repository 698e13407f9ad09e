/* The processes behind worker.h: how the program starts, watches and ends them. Private to the
 * pool. */
#ifndef LB_WORKER_PROCESS_H
#define LB_WORKER_PROCESS_H

#include <sys/types.h>

#include "run/worker.h"
#include "support/channel.h"

struct lb_worker {
    pid_t pid; /* and its process group */
    struct lb_channel channel;
    char *origin; /* path of the plug-in it serves; "" for the built-ins */
    struct lb_worker *next;
};

struct lb_pool {
    struct lb_worker_limits limits;
    const volatile sig_atomic_t *stop;
    struct lb_worker *workers;
};

/* Why a worker was lost. */
struct lb_fault {
    enum lb_verdict verdict;
    char reason[400];
};

/* Starts a worker and puts it into the pool. LB_FAILED with the system's reason. */
enum lb_status lb_worker_start(struct lb_pool *pool, const char *origin, struct lb_worker **out,
                               struct lb_error *err);

/* Kills the worker, with what it started, if it still lives; takes it from the pool; returns its
 * wait status. */
int lb_worker_end(struct lb_pool *pool, struct lb_worker *worker);

/* Waits for the worker's next message. LB_OK with the message; LB_INTERRUPTED; or LB_FAILED with
 * fault filled and the worker gone: it ended, was silent for limit_s (may be infinite) or held too
 * much memory. phase: what it is doing, for the fault's words. */
enum lb_status lb_worker_await(struct lb_pool *pool, struct lb_worker *worker, const char *phase,
                               double limit_s, json_t **message, struct lb_fault *fault);

#endif

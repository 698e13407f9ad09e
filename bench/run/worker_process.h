/* One worker process, seen from the program: started, awaited and ended. worker.h keeps several.
 * Below: what both sides say to each other. */
#ifndef LB_WORKER_PROCESS_H
#define LB_WORKER_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "record/record.h"
#include "support/channel.h"

struct lb_worker {
    pid_t pid; /* and its process group; 0 once it has ended */
    struct lb_channel channel;
    double oom_kills;       /* lb_oom_kills when the latest request was sent */
    char *name;             /* what it serves: "" the built-in implementations, the path of a
                               plug-in, or a job's own name; owned */
    int threads;            /* of the cases that it has run, where that matters; 0: none yet */
    struct lb_worker *next; /* for its keeper */
};

/* Why a worker was lost, as a row says it. */
struct lb_fault {
    enum lb_verdict verdict;
    char reason[400];
    bool innocent; /* something killed the worker from outside: the case is run again */
};

/* What ends the wait for a worker's message. */
struct lb_watch {
    double limit_s;                    /* longest silence; may be infinite */
    double memory_bytes;               /* most that the worker may hold; 0: what the host has */
    const volatile sig_atomic_t *stop; /* nonzero: the user interrupts; NULL: nobody does */
};

/* Starts a worker that uses the GPU of that ordinal. program: NULL for this one. It ends with the
 * calling thread. LB_FAILED with the system's reason. */
enum lb_status lb_worker_start(const char *name, const char *program, int device,
                               struct lb_worker **worker, struct lb_error *err);

/* Sends a request and releases it. The wait that follows finds out whether the worker is still
 * alive. */
void lb_worker_send(struct lb_worker *worker, json_t *request);

/* Closes the worker's channel, after which the worker ends once it has finished its request. */
void lb_worker_dismiss(struct lb_worker *worker);

/* Waits up to limit_s until a worker that has no request uses no CPU. False when it still does. */
bool lb_worker_is_idle(const struct lb_worker *worker, double limit_s);

/* Waits up to limit_s for the worker to end. True when it has. */
bool lb_worker_has_left(const struct lb_worker *worker, double limit_s);

/* Kills the worker and what it started, if they still live, and frees it. Accepts NULL. */
void lb_worker_destroy(struct lb_worker *worker);

/* Waits for the worker's next message. phase: what the worker is doing, for the fault's reason.
 * LB_OK: *message is the message, a new reference. LB_INTERRUPTED. LB_FAILED: the worker has ended
 * and *fault says why: it left, was silent too long, held too much memory, or its message can't be
 * read. */
enum lb_status lb_worker_await(struct lb_worker *worker, const char *phase,
                               const struct lb_watch *watch, json_t **message,
                               struct lb_fault *fault);

/* The worker's side of worker.h. A worker is the same program, started to run cases for it.
 *
 * Messages travel as JSON, one per line (support/channel.h). Each request has its "op" and "given",
 * the files of base/given_files.h. The worker answers with events, of which the last is the reply:
 *
 *     op        what the request also has           events before the reply   "reply"
 *     plugin    path: serve that plug-in            -                         the plug-in itself
 *     library   implementation: load its library    -                         version
 *     supports  case: can it run?                   phase...                  -
 *     probe     case: and what would it need?       phase...                  bytes by kind, texts
 *     run       case, and its options               phase...                  row, as in run.jsonl
 *     device    -                                   -                         the device's record
 *     ceilings  seconds that measuring may take     figure...                 the ceilings' record
 *
 *     {"phase": the one that begins}
 *     {"figure": what was measured, "failed": why not, or "", "reply": the ceilings known by now}
 *     {"status", "why", "unfit": the worker must not serve another request, "reply"} */

/* Serves requests on descriptor 3 until the program hangs up. parent: the program's process id;
 * device: ordinal of the GPU to use. Returns the exit code. */
int lb_worker_main(long parent, int device);

#endif

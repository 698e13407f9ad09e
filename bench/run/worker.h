/* Worker processes: cases run in them, so that a crash, a hang or a runaway allocation costs one
 * row. The built-in implementations share a worker, each plug-in has its own, unless a job asks for
 * one that serves several; a worker lives from case to case and is replaced after a fault. The
 * program itself never loads a plug-in. */
#ifndef LB_WORKER_H
#define LB_WORKER_H

#include <signal.h>

#include "measure/case_probe.h"
#include "measure/sampler.h"
#include "model/registry.h"
#include "record/record.h"

struct lb_worker_limits {
    double call_s;       /* longest silence of an implementation in one phase */
    double memory_bytes; /* of one worker; 0: what the host has */
    int device;          /* ordinal of the GPU that workers use */
};

struct lb_pool; /* the workers that are alive */

/* stop (may be NULL) is looked at while waiting: once nonzero, waits end with LB_INTERRUPTED. */
enum lb_status lb_pool_create(const struct lb_worker_limits *limits,
                              const volatile sig_atomic_t *stop, struct lb_pool **out,
                              struct lb_error *err);
void lb_pool_destroy(struct lb_pool *pool); /* ends all workers; accepts NULL */

/* Other limits, for workers that are started from now on. */
void lb_pool_limit(struct lb_pool *pool, const struct lb_worker_limits *limits);

/* Ends all workers, so that whatever runs next runs in a fresh process. */
void lb_pool_renew(struct lb_pool *pool);

/* Loads the plug-in in a worker of its own and adds what it says of itself to the registry.
 * LB_INVALID when it can't be loaded, crashes or hangs while it is. */
enum lb_status lb_pool_add_plugin(struct lb_pool *pool, const char *path,
                                  struct lb_registry *registry, struct lb_error *err);

/* lb_case_supported, and lb_case_probe when probe is not NULL, asked where the implementation can
 * be called. LB_FAILED when the worker was lost over it. */
enum lb_status lb_pool_probe(struct lb_pool *pool, const struct lb_impl_entry *entry,
                             const struct lb_case *c, struct lb_probe *probe, struct lb_error *why);

struct lb_job {
    const struct lb_case *c;
    uint64_t seed;
    struct lb_sampler_options sampler;
    const char *process; /* name of a worker for jobs of several implementations, which loads their
                            plug-ins itself; NULL: the implementation's usual worker */
    bool kernels;        /* trace the kernels of one more call */
    double loss_scale;   /* of incoming gradients; 0: as they are */
};

/* Runs one block of a case in a worker and fills row, whatever happens to the worker. Only
 * LB_INTERRUPTED, and failures to start a worker at all, are not turned into a row. */
enum lb_status lb_pool_run(struct lb_pool *pool, const struct lb_impl_entry *entry,
                           const struct lb_job *job, struct lb_row *row, struct lb_error *err);

/* Has the worker of the built-ins look for the device: *device (a new reference) describes it, with
 * the keys of lb_device_to_json. The program itself never touches a GPU. LB_ABSENT with the reason;
 * either way the device layer of this process knows from now on. */
enum lb_status lb_pool_device(struct lb_pool *pool, json_t **device, struct lb_error *why);

/* Has it measure what the device can do at best: *ceilings, a new reference, as
 * lb_ceilings_to_json gives it. */
enum lb_status lb_pool_ceilings(struct lb_pool *pool, json_t **ceilings, struct lb_error *why);

/* The worker's side: serves requests on descriptor 3 until the program hangs up. parent is the
 * program's process id, device the ordinal of the GPU to use. Returns the exit code. */
int lb_worker_main(long parent, int device);

#endif

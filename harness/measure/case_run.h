/* The life of one case in this process: from supports to destroy, with one row as its outcome. */
#ifndef LB_CASE_RUN_H
#define LB_CASE_RUN_H

#include "measure/profiler.h"
#include "measure/sampler.h"
#include "record/record.h"
#include "reference/reference.h"

struct lb_run_options {
    uint64_t seed; /* of inputs, weights, ragged lengths and the dealing of rows */
    struct lb_sampler_options sampler;
    struct lb_reference_cache *cache; /* oracle results, shared between cases */
    double loss_scale;                /* of incoming gradients; 0 or 1: as they are */
    bool kernels;                     /* trace one more call's GPU kernels, after the samples */
    struct lb_profile *profile;       /* a run for profilers in sampling's place; NULL: none */
};

/* Told as the case goes on, so that a watcher can tell a slow case from a hung one. */
struct lb_run_observer {
    void *user;
    /* A phase begins: "create", "oracle", "prepare", "verify", "sample", "destroy". In "oracle"
     * the harness computes by itself; in all others the implementation has the floor. */
    void (*phase)(void *user, const char *phase);
    /* The row is complete; only destroy is still to come. */
    void (*result)(void *user, const struct lb_row *row);
};

/* Runs c on impl and fills row, whatever happens: every outcome is a verdict. The row is the
 * caller's to free, and observer->result has seen it before destroy was called. */
void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row);

#endif

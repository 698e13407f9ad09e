/* Runs one case in this process, from supports to destroy, with one row as its outcome. */
#ifndef LB_CASE_OPTIONS_H
#define LB_CASE_OPTIONS_H

#include "measure/sampler.h"
#include "record/record.h"
#include "reference/reference.h"

struct lb_run_options {
    uint64_t seed; /* of inputs, weights, ragged lengths and the rows that fill the batch */
    struct lb_sampler_options sampler;
    struct lb_reference_cache *cache; /* expected results, shared between cases */
    double loss_scale;                /* factor on incoming gradients; 0 or 1: none */
    bool dynamic_loss_scale; /* f16 only: loss_scale is the first scale; other dtypes have none */
    bool kernels;        /* instead of checking and sampling, trace the GPU kernels of one call */
    const char *outputs; /* instead of sampling, write y of input set 0 to this .npy file */
    struct lb_profile *profile; /* run for profilers instead of sampling; NULL: sample */
};

/* Called as a case goes on, so that a watcher can tell a slow case from a hung one, and knows where
 * it crashed. */
struct lb_run_observer {
    void *user;
    /* (optional) A phase begins: "supports", "create", "sizes", "oracle", "upload", "prepare",
     * "verify", "gradients", "sample", "recheck", "update", "new inputs", "trace", "note",
     * "describe", "destroy" or "release". In "oracle" the harness computes on the host; in
     * "release" the implementation is destroyed; in all others the implementation, the driver or a
     * tool may be called, and may hang. */
    void (*phase)(void *user, const char *phase);
};

/* Runs c on impl and always fills row, because every outcome, a failure too, is a verdict. The
 * caller frees the row. Device memory that stays in use after destroy is not the case's, and does
 * not count in row->peak_bytes. */
void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row);

#endif

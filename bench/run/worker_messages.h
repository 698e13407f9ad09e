/* The messages between the program and its worker processes. They travel as JSON, one message per
 * line (support/channel.h). A worker answers a request with events, of which the last is the reply:
 *
 *     request                                     events before the reply     "reply"
 *     plugin    path: serve that plug-in          phase...                    the plug-in itself
 *     library   implementation: load its library                              version
 *     supports  case: can it run?                 phase...                    -
 *     probe     case: and what would it need?     phase...                    bytes by kind, texts
 *     run       one block of a case               phase..., row, phase...     what is left behind
 *     device    which one is there?                                           the device's record
 *     ceilings  what does it reach at best?       figure...                   the ceilings' record
 *
 *     {"phase": the one that begins}, {"row": as in run.jsonl}
 *     {"figure": what was measured, "failed": why not, or "", "reply": the ceilings known by now}
 *     {"status", "why", "device_lost": the worker's device is unusable, "reply"} */
#ifndef LB_WORKER_MESSAGES_H
#define LB_WORKER_MESSAGES_H

#include <jansson.h>

#include "base/given_files.h"
#include "measure/sampler.h"

struct lb_request {
    const char *op;   /* "plugin", "library", ... as above */
    const char *path; /* for plugin: the plug-in; for run: the plug-in to load and run on, or NULL
                         for the usual implementation of the worker */
    const char *text; /* for supports, probe and run: the canonical text of the case; for library:
                         the name of the implementation */
    struct lb_given_files given; /* weights, inputs and tuned choices that all cases use */

    double seconds; /* for ceilings: about how long measuring may take */

    /* For run only. */
    json_t *ceilings; /* array of what lb_ceilings_to_json makes, borrowed; NULL: none */
    uint64_t seed;
    struct lb_sampler_options sampler;
    double memory_bytes; /* that the worker may hold; 0: what the host has */
    double loss_scale;   /* of incoming gradients */
    bool dynamic_loss_scale;
    bool kernels;        /* instead of sampling, trace the kernels of one call */
    const char *outputs; /* instead of sampling, write y to this file; NULL: sample */
};

#endif

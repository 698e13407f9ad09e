/* The messages between the program and its worker processes: each is encoded and decoded here, and
 * nowhere else. They travel as JSON, one message per line (support/channel.h).
 *
 *     request                                  events before the reply     reply besides the status
 *     plugin    path                                                       the plug-in itself
 *     library   implementation                                             version
 *     supports  case                           phase...                    -
 *     probe     case                           phase...                    bytes by kind, texts
 *     run       case, path or none, sampling   phase..., row, phase...     what is left behind
 *     device                                                               the device's record
 *     ceilings                                 figure...                   the ceilings' record
 *
 * Encoders return a new reference, or NULL when memory runs out or a text is not UTF-8. Decoders
 * borrow: what they fill in points into the message. Both sides are the same program, so a message
 * that lacks a key is damaged: LB_INVALID. */
#ifndef LB_WORKER_MESSAGES_H
#define LB_WORKER_MESSAGES_H

#include <jansson.h>

#include "base/given_files.h"
#include "case/probe.h"
#include "measure/sampler.h"
#include "model/registry.h"
#include "record/record.h"

enum lb_request_kind {
    LB_REQUEST_PLUGIN,   /* load the plug-in at path and serve it from now on */
    LB_REQUEST_LIBRARY,  /* load the library of a built-in implementation: which version is it? */
    LB_REQUEST_SUPPORTS, /* can the case run? */
    LB_REQUEST_PROBE,    /* the same, and what would it need? */
    LB_REQUEST_RUN,      /* run one block of the case */
    LB_REQUEST_DEVICE,   /* which device is there? */
    LB_REQUEST_CEILINGS, /* what does the device reach at best? */
    LB_REQUEST_COUNT
};

struct lb_request {
    enum lb_request_kind kind;
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

json_t *lb_request_encode(const struct lb_request *request);
enum lb_status lb_request_decode(const json_t *message, struct lb_request *request,
                                 struct lb_error *err);

/* What a worker sends while it serves a request; a reply is the last. */
struct lb_event {
    enum lb_event_kind { LB_EVENT_PHASE, LB_EVENT_ROW, LB_EVENT_FIGURE, LB_EVENT_REPLY } kind;
    const char *phase;   /* of PHASE: the one that begins now, "sample" */
    struct lb_row row;   /* of ROW; decoded, the caller's to free with lb_row_free */
    const char *figure;  /* of FIGURE: what was measured */
    const char *failed;  /* of FIGURE: why that failed, or "" */
    const json_t *reply; /* of REPLY: the rest beside the status, or NULL. Of FIGURE: the record of
                            all figures that are known by now */
    enum lb_status status; /* of REPLY */
    struct lb_error why;   /* of REPLY, when the status is not LB_OK */
    bool device_lost;      /* of REPLY: the worker lives, but its device is unusable */
};

json_t *lb_phase_encode(const char *phase);
json_t *lb_row_encode(const struct lb_row *row);
json_t *lb_figure_encode(json_t *known, const char *figure, const char *failed); /* takes known */

/* reply: taken over; NULL: only the status. why: the reason when the status is not LB_OK. */
json_t *lb_reply_encode(enum lb_status status, const struct lb_error *why, json_t *reply,
                        bool device_lost);
enum lb_status lb_event_decode(const json_t *message, struct lb_event *event, struct lb_error *err);

/* ---- Replies that are objects of their own. ---- */

/* A plug-in's description of itself, for lb_registry_add. variants [LB_VARIANTS_MAX + 1] holds
 * impl_entry->variants. The caller sets impl_entry->plugin. */
json_t *lb_plugin_encode(const struct lb_impl *impl);
enum lb_status lb_plugin_decode(const json_t *reply, struct lb_impl_entry *impl_entry,
                                char **variants, struct lb_error *err);

json_t *lb_probe_encode(const struct lb_probe *probe);
enum lb_status lb_probe_decode(const json_t *reply, struct lb_probe *probe, struct lb_error *err);

/* What is known of a case once it is closed. */
struct lb_aftermath {
    const char *left;    /* what the implementation left behind in the worker; or "" */
    double reference_ns; /* time of fixed work around the case; NaN: not measured */
    double peak_bytes;   /* that of the row, now that the case is closed; NaN: as it was */
};

json_t *lb_aftermath_encode(const struct lb_aftermath *aftermath);
enum lb_status lb_aftermath_decode(const json_t *reply, struct lb_aftermath *aftermath,
                                   struct lb_error *err);

#endif

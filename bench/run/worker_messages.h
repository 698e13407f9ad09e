/* The messages between the program and its worker processes: each is encoded and decoded here, and
 * nowhere else. They travel as JSON, one message per line (support/channel.h).
 *
 *     request                                  replies
 *     plugin    path                           status, name, summary, variants, memory, traits
 *     library   implementation                 status, version
 *     supports  case                           status
 *     probe     case                           status, bytes by kind, description
 *     run       case, path or none, sampling   phase..., row, phase "destroy", done
 *     device                                   status, the device's record
 *     ceilings                                 figure..., status and the ceilings' record
 *
 * Each request has a token, a number that every reply to it repeats. A message without that token
 * does not come from the worker: an implementation wrote it to the worker's connection.
 *
 * Encoders return a new reference, or NULL when memory runs out or a text is not UTF-8. Decoders
 * borrow: what they fill in points into the message. */
#ifndef LB_WORKER_MESSAGES_H
#define LB_WORKER_MESSAGES_H

#include <jansson.h>

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

/* Adds the token to a request or a reply, which may be NULL. */
void lb_message_sign(json_t *message, json_int_t token);
json_int_t lb_message_token(const json_t *message); /* 0 where there is none */

/* LB_INVALID: no such request, or a field is missing. */
enum lb_status lb_request_decode(const json_t *message, struct lb_request *request,
                                 struct lb_error *err);

/* The plain reply: err->text is the reason when the status is not LB_OK. Every reply but those to
 * run has a status, and has nothing else when it is not LB_OK. */
json_t *lb_status_encode(enum lb_status status, const struct lb_error *err);

/* Returns the status, with the reason in err; LB_FAILED when the message has none. */
enum lb_status lb_status_decode(const json_t *message, struct lb_error *err);

/* True when the reply says that the worker's device was lost while it answered. */
bool lb_device_lost_decode(const json_t *message);

json_t *lb_plugin_encode(const struct lb_impl *impl);

/* Decodes a plug-in's description of itself, for lb_registry_add. variants [LB_VARIANTS_MAX + 1]
 * holds impl_entry->variants. The caller sets impl_entry->plugin. Returns the reply's status, or
 * LB_FAILED when the message has none. */
enum lb_status lb_plugin_decode(const json_t *message, struct lb_impl_entry *impl_entry,
                                char **variants, struct lb_error *err);

/* version: of the loaded library; the decoder's points into the message. */
json_t *lb_library_encode(const char *version);
enum lb_status lb_library_decode(const json_t *message, const char **version, struct lb_error *err);

json_t *lb_probe_encode(const struct lb_probe *probe);
enum lb_status lb_probe_decode(const json_t *message, struct lb_probe *probe, struct lb_error *err);

/* The reply to device and ceilings. record: as lb_device_to_json or lb_ceilings_to_json makes it;
 * the encoder takes it over, the decoder gives a new reference. */
json_t *lb_device_reply_encode(json_t *record);
enum lb_status lb_device_reply_decode(const json_t *message, json_t **record, struct lb_error *err);

/* The reply to ceilings that is sent after each figure. record: all figures that are known by now;
 * the encoder takes it over. figure: what was measured. failed: why that failed, or "". */
json_t *lb_figure_encode(json_t *record, const char *figure, const char *failed);

/* False when the message is no such reply. What is filled in points into the message. */
bool lb_figure_decode(const json_t *message, json_t **record, const char **figure,
                      const char **failed);

/* One of the replies to run. */
struct lb_run_event {
    enum lb_run_event_kind { LB_EVENT_PHASE, LB_EVENT_ROW, LB_EVENT_DONE } kind;
    const char *phase;   /* of PHASE: the one that begins now, "sample" */
    struct lb_row row;   /* of ROW; decoded, the caller's to free with lb_row_free */
    bool device_lost;    /* of DONE: the worker lives, but its device is unusable */
    const char *left;    /* of DONE: what the implementation left behind in the worker; or "" */
    double reference_ns; /* of DONE: time of the fixed loop around the case; NaN: not measured */
    double peak_bytes;   /* of DONE: that of the row, now that the case is closed; NaN: as it was */
};

json_t *lb_phase_encode(const char *phase);
json_t *lb_row_encode(const struct lb_row *row);
json_t *lb_done_encode(const struct lb_run_event *done);

/* LB_INVALID: the row can't be read, or the message is none of these replies. When a plain reply
 * comes in their place, its status and reason are returned. */
enum lb_status lb_run_event_decode(const json_t *message, struct lb_run_event *event,
                                   struct lb_error *err);

#endif

/* The messages between the program and its worker processes. */
#include "run/worker_messages.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *const request_names[LB_REQUEST_COUNT] = {
    [LB_REQUEST_PLUGIN] = "plugin",     [LB_REQUEST_LIBRARY] = "library",
    [LB_REQUEST_SUPPORTS] = "supports", [LB_REQUEST_PROBE] = "probe",
    [LB_REQUEST_RUN] = "run",           [LB_REQUEST_DEVICE] = "device",
    [LB_REQUEST_CEILINGS] = "ceilings",
};

static bool has_text(enum lb_request_kind kind)
{
    return kind == LB_REQUEST_LIBRARY || kind == LB_REQUEST_SUPPORTS || kind == LB_REQUEST_PROBE ||
           kind == LB_REQUEST_RUN;
}

json_t *lb_request_encode(const struct lb_request *request)
{
    json_t *message = json_pack("{s:s, s:s*, s:s*}", "op", request_names[request->kind], "path",
                                request->path, "case", request->text);
    if (message && request->kind == LB_REQUEST_CEILINGS)
        json_object_set_new(message, "seconds", json_real(request->seconds));
    if (!message || request->kind != LB_REQUEST_RUN)
        return message;
    const struct lb_sampler_options *sampler = &request->sampler;
    json_t *run =
        json_pack("{s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b, s:b, s:s*, s:O*}", "seed",
                  (json_int_t)request->seed, "min_samples", (json_int_t)sampler->min_samples,
                  "max_samples", (json_int_t)sampler->max_samples, "precision", sampler->precision,
                  "max_ns", sampler->max_ns, "memory_bytes", request->memory_bytes, "loss_scale",
                  request->loss_scale, "dynamic_loss_scale", request->dynamic_loss_scale, "kernels",
                  request->kernels, "outputs", request->outputs, "ceilings", request->ceilings);
    if (!run || json_object_update(message, run) != 0) {
        json_decref(message);
        message = NULL;
    }
    json_decref(run);
    return message;
}

enum lb_status lb_request_decode(const json_t *message, struct lb_request *request,
                                 struct lb_error *err)
{
    const char *name = json_string_value(json_object_get(message, "op"));
    int kind = 0, kernels = 0, dynamic = 0;
    json_int_t seed, min_samples, max_samples;
    while (kind < LB_REQUEST_COUNT && !(name && strcmp(request_names[kind], name) == 0))
        kind++;
    if (kind == LB_REQUEST_COUNT)
        return lb_fail(err, LB_INVALID, "a worker does not know the request %s",
                       name ? name : "without a name");
    *request = (struct lb_request){
        .kind = (enum lb_request_kind)kind,
        .path = json_string_value(json_object_get(message, "path")),
        .text = json_string_value(json_object_get(message, "case")),
        .seconds = json_number_value(json_object_get(message, "seconds")),
        .ceilings = json_object_get(message, "ceilings"),
    };
    if ((kind == LB_REQUEST_PLUGIN && !request->path) ||
        (has_text(request->kind) && !request->text))
        return lb_fail(err, LB_INVALID, "the request %s lacks its path or case", name);
    if (kind != LB_REQUEST_RUN)
        return LB_OK;
    struct lb_sampler_options *sampler = &request->sampler;
    if (json_unpack((json_t *)message, "{s:I, s:I, s:I, s:F, s:F, s:F, s:F, s:b, s:b}", "seed",
                    &seed, "min_samples", &min_samples, "max_samples", &max_samples, "precision",
                    &sampler->precision, "max_ns", &sampler->max_ns, "memory_bytes",
                    &request->memory_bytes, "loss_scale", &request->loss_scale,
                    "dynamic_loss_scale", &dynamic, "kernels", &kernels) != 0)
        return lb_fail(err, LB_INVALID, "the request %s lacks a setting", name);
    request->seed = (uint64_t)seed;
    request->dynamic_loss_scale = dynamic != 0;
    request->kernels = kernels != 0;
    request->outputs = json_string_value(json_object_get(message, "outputs"));
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    return LB_OK;
}

void lb_message_sign(json_t *message, json_int_t token)
{
    if (message)
        json_object_set_new(message, "token", json_integer(token));
}

json_int_t lb_message_token(const json_t *message)
{
    return json_integer_value(json_object_get(message, "token"));
}

json_t *lb_status_encode(enum lb_status status, const struct lb_error *err)
{
    struct lb_error clean = {""};
    if (status != LB_OK && err)
        clean = *err;
    lb_clean_text(clean.text);
    return json_pack("{s:i, s:s}", "status", (int)status, "text", clean.text);
}

enum lb_status lb_status_decode(const json_t *message, struct lb_error *err)
{
    const json_t *status = json_object_get(message, "status");
    const char *text = json_string_value(json_object_get(message, "text"));
    if (!json_is_integer(status))
        return lb_fail(err, LB_FAILED, "the worker's reply has no status");
    if (json_integer_value(status) == LB_OK)
        return LB_OK;
    return lb_fail(err, (enum lb_status)json_integer_value(status), "%s",
                   text && text[0] ? text : "no reason was given");
}

bool lb_device_lost_decode(const json_t *message)
{
    return json_is_true(json_object_get(message, "device_lost"));
}

json_t *lb_plugin_encode(const struct lb_impl *impl)
{
    struct lb_error summary;
    snprintf(summary.text, sizeof(summary.text), "%s", impl->summary);
    lb_clean_text(summary.text);
    json_t *variants = json_array();
    for (size_t i = 0; impl->variants && impl->variants[i]; i++)
        json_array_append_new(variants, json_string(impl->variants[i]));
    return json_pack("{s:i, s:s, s:s, s:o, s:i, s:I}", "status", (int)LB_OK, "name", impl->name,
                     "summary", summary.text, "variants", variants, "memory", (int)impl->memory,
                     "traits", (json_int_t)impl->traits);
}

enum lb_status lb_plugin_decode(const json_t *message, struct lb_impl_entry *impl_entry,
                                char **variants, struct lb_error *err)
{
    enum lb_status st = lb_status_decode(message, err);
    if (st != LB_OK)
        return st;
    const json_t *list = json_object_get(message, "variants");
    size_t count = json_array_size(list);
    if (count > LB_VARIANTS_MAX)
        return lb_fail(err, LB_FAILED, "the worker's reply has more than %d variants",
                       LB_VARIANTS_MAX);
    for (size_t i = 0; i < count; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    variants[count] = NULL;
    *impl_entry = (struct lb_impl_entry){
        .name = (char *)json_string_value(json_object_get(message, "name")),
        .summary = (char *)json_string_value(json_object_get(message, "summary")),
        .variants = count > 0 ? variants : NULL,
        .memory = (enum lb_memory)json_integer_value(json_object_get(message, "memory")),
        .traits = (uint32_t)json_integer_value(json_object_get(message, "traits")),
    };
    if (!impl_entry->name || !impl_entry->summary)
        return lb_fail(err, LB_FAILED, "the worker's reply has no name or no summary");
    return LB_OK;
}

json_t *lb_library_encode(const char *version)
{
    return json_pack("{s:i, s:s}", "status", (int)LB_OK, "version", version);
}

enum lb_status lb_library_decode(const json_t *message, const char **version, struct lb_error *err)
{
    enum lb_status st = lb_status_decode(message, err);
    *version = json_string_value(json_object_get(message, "version"));
    if (st != LB_OK)
        return st;
    return *version ? LB_OK : lb_fail(err, LB_FAILED, "the worker's reply has no version");
}

json_t *lb_probe_encode(const struct lb_probe *probe)
{
    struct lb_probe clean = *probe;
    lb_clean_text(clean.description);
    lb_clean_text(clean.note);
    return json_pack(
        "{s:i, s:I, s:I, s:I, s:I, s:s, s:s}", "status", (int)LB_OK, "weights",
        (json_int_t)probe->sizes.weights, "gradients", (json_int_t)probe->sizes.gradients,
        "reserve", (json_int_t)probe->sizes.reserve, "workspace",
        (json_int_t)probe->sizes.workspace, "description", clean.description, "note", clean.note);
}

enum lb_status lb_probe_decode(const json_t *message, struct lb_probe *probe, struct lb_error *err)
{
    json_int_t weights, gradients, reserve, workspace;
    const char *description, *note;
    enum lb_status st = lb_status_decode(message, err);
    if (st != LB_OK)
        return st;
    if (json_unpack((json_t *)message, "{s:I, s:I, s:I, s:I, s:s, s:s}", "weights", &weights,
                    "gradients", &gradients, "reserve", &reserve, "workspace", &workspace,
                    "description", &description, "note", &note) != 0)
        return lb_fail(err, LB_FAILED, "the worker's reply lacks what the case needs");
    probe->sizes =
        (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve, (size_t)workspace};
    snprintf(probe->description, sizeof(probe->description), "%s", description);
    snprintf(probe->note, sizeof(probe->note), "%s", note);
    return LB_OK;
}

json_t *lb_device_reply_encode(json_t *record)
{
    return json_pack("{s:i, s:o}", "status", (int)LB_OK, "record", record);
}

enum lb_status lb_device_reply_decode(const json_t *message, json_t **record, struct lb_error *err)
{
    enum lb_status st = lb_status_decode(message, err);
    *record = NULL;
    if (st != LB_OK)
        return st;
    *record = json_incref(json_object_get(message, "record"));
    return *record ? LB_OK : lb_fail(err, LB_FAILED, "the worker's reply has no record");
}

json_t *lb_figure_encode(json_t *record, const char *figure, const char *failed)
{
    struct lb_error clean;
    snprintf(clean.text, sizeof(clean.text), "%s", failed);
    lb_clean_text(clean.text);
    return json_pack("{s:o, s:s, s:s}", "known", record, "figure", figure, "failed", clean.text);
}

bool lb_figure_decode(const json_t *message, json_t **record, const char **figure,
                      const char **failed)
{
    *record = json_object_get(message, "known");
    *figure = json_string_value(json_object_get(message, "figure"));
    *failed = json_string_value(json_object_get(message, "failed"));
    return *record && *figure && *failed;
}

json_t *lb_phase_encode(const char *phase)
{
    return json_pack("{s:s}", "phase", phase);
}

json_t *lb_row_encode(const struct lb_row *row)
{
    return json_pack("{s:o}", "row", lb_row_to_json(row));
}

json_t *lb_done_encode(const struct lb_run_event *done)
{
    return json_pack(
        "{s:b, s:s, s:o, s:o}", "device_lost", done->device_lost, "left", done->left, "peak_bytes",
        isfinite(done->peak_bytes) ? json_real(done->peak_bytes) : json_null(), "reference_ns",
        done->reference_ns > 0 ? json_real(done->reference_ns) : json_null());
}

enum lb_status lb_run_event_decode(const json_t *message, struct lb_run_event *event,
                                   struct lb_error *err)
{
    const char *phase = json_string_value(json_object_get(message, "phase"));
    const json_t *row = json_object_get(message, "row");
    const json_t *lost = json_object_get(message, "device_lost");
    const char *left = json_string_value(json_object_get(message, "left"));
    double reference = json_number_value(json_object_get(message, "reference_ns"));
    *event = (struct lb_run_event){.kind = LB_EVENT_DONE,
                                   .left = left ? left : "",
                                   .reference_ns = reference > 0 ? reference : (double)NAN};
    if (phase) {
        event->kind = LB_EVENT_PHASE;
        event->phase = phase;
        return LB_OK;
    }
    if (row) {
        event->kind = LB_EVENT_ROW;
        return lb_row_from_json(row, &event->row, err);
    }
    const json_t *peak = json_object_get(message, "peak_bytes");
    event->device_lost = lb_device_lost_decode(message);
    event->peak_bytes = json_is_real(peak) ? json_real_value(peak) : (double)NAN;
    if (json_is_boolean(lost))
        return LB_OK;
    enum lb_status st = lb_status_decode(message, err);
    return st != LB_OK ? st : lb_fail(err, LB_INVALID, "the worker's reply is none to a run");
}

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

json_t *lb_request_encode(const struct lb_request *request)
{
    const struct lb_given_files *given = &request->given;
    const struct lb_sampler_options *sampler = &request->sampler;
    return json_pack(
        "{s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:s*, s:I, s:I, s:I, s:f, s:f, s:f, s:f, "
        "s:b, s:b, s:s*, s:f, s:O*}",
        "op", request_names[request->kind], "path", request->path, "case", request->text, "weights",
        given->weights, "prefix", given->prefix, "inputs", given->inputs, "batch_first",
        given->batch_first, "tune", given->tune, "tuned", given->tuned, "seed",
        (json_int_t)request->seed, "min_samples", (json_int_t)sampler->min_samples, "max_samples",
        (json_int_t)sampler->max_samples, "precision", sampler->precision, "max_ns",
        sampler->max_ns, "memory_bytes", request->memory_bytes, "loss_scale", request->loss_scale,
        "dynamic_loss_scale", request->dynamic_loss_scale, "kernels", request->kernels, "outputs",
        request->outputs, "seconds", request->seconds, "ceilings", request->ceilings);
}

enum lb_status lb_request_decode(const json_t *message, struct lb_request *request,
                                 struct lb_error *err)
{
    const char *name = "";
    int kind = 0, kernels, dynamic, batch_first, tune;
    json_int_t seed, min_samples, max_samples;
    struct lb_sampler_options *sampler = &request->sampler;
    struct lb_given_files *given = &request->given;
    *request = (struct lb_request){0};
    if (json_unpack(
            (json_t *)message,
            "{s:s, s?s, s?s, s?s, s?s, s?s, s:b, s:b, s?s, s:I, s:I, s:I, s:F, s:F, s:F, "
            "s:F, s:b, s:b, s?s, s:F, s?o}",
            "op", &name, "path", &request->path, "case", &request->text, "weights", &given->weights,
            "prefix", &given->prefix, "inputs", &given->inputs, "batch_first", &batch_first, "tune",
            &tune, "tuned", &given->tuned, "seed", &seed, "min_samples", &min_samples,
            "max_samples", &max_samples, "precision", &sampler->precision, "max_ns",
            &sampler->max_ns, "memory_bytes", &request->memory_bytes, "loss_scale",
            &request->loss_scale, "dynamic_loss_scale", &dynamic, "kernels", &kernels, "outputs",
            &request->outputs, "seconds", &request->seconds, "ceilings", &request->ceilings) != 0)
        return lb_fail(err, LB_INVALID, "the request %s lacks a setting", name);
    while (kind < LB_REQUEST_COUNT && strcmp(request_names[kind], name) != 0)
        kind++;
    if (kind == LB_REQUEST_COUNT)
        return lb_fail(err, LB_INVALID, "a worker does not know the request %s", name);
    request->kind = (enum lb_request_kind)kind;
    given->batch_first = batch_first != 0;
    given->tune = tune != 0;
    request->seed = (uint64_t)seed;
    request->dynamic_loss_scale = dynamic != 0;
    request->kernels = kernels != 0;
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    return LB_OK;
}

json_t *lb_phase_encode(const char *phase)
{
    return json_pack("{s:s}", "phase", phase);
}

json_t *lb_row_encode(const struct lb_row *row)
{
    return json_pack("{s:o}", "row", lb_row_to_json(row));
}

/* A JSON string of the text without what is no UTF-8 or controls a terminal. */
static json_t *clean_string(const char *text)
{
    char clean[LB_ROW_TEXT_SIZE];
    snprintf(clean, sizeof(clean), "%s", text);
    lb_clean_text(clean);
    return json_string(clean);
}

json_t *lb_figure_encode(json_t *known, const char *figure, const char *failed)
{
    return json_pack("{s:s, s:o, s:o}", "figure", figure, "failed", clean_string(failed), "reply",
                     known);
}

json_t *lb_reply_encode(enum lb_status status, const struct lb_error *why, json_t *reply,
                        bool device_lost)
{
    return json_pack("{s:i, s:o, s:b, s:o*}", "status", (int)status, "why",
                     clean_string(status != LB_OK ? why->text : ""), "device_lost", device_lost,
                     "reply", reply);
}

enum lb_status lb_event_decode(const json_t *message, struct lb_event *event, struct lb_error *err)
{
    const json_t *row = json_object_get(message, "row");
    const char *why = "";
    int lost = 0, status = -1;
    *event = (struct lb_event){.reply = json_object_get(message, "reply")};
    if (json_unpack((json_t *)message, "{s:s}", "phase", &event->phase) == 0)
        return LB_OK;
    event->kind = LB_EVENT_ROW;
    if (row)
        return lb_row_from_json(row, &event->row, err);
    event->kind = LB_EVENT_FIGURE;
    if (json_unpack((json_t *)message, "{s:s, s:s}", "figure", &event->figure, "failed",
                    &event->failed) == 0)
        return LB_OK;
    event->kind = LB_EVENT_REPLY;
    if (json_unpack((json_t *)message, "{s:i, s:s, s:b}", "status", &status, "why", &why,
                    "device_lost", &lost) != 0)
        return lb_fail(err, LB_INVALID, "a message of a worker is no event");
    event->status = (enum lb_status)status;
    event->device_lost = lost != 0;
    snprintf(event->why.text, sizeof(event->why.text), "%s", why[0] ? why : "no reason was given");
    return LB_OK;
}

json_t *lb_plugin_encode(const struct lb_impl *impl)
{
    json_t *variants = json_array();
    for (size_t i = 0; impl->variants && impl->variants[i]; i++)
        json_array_append_new(variants, json_string(impl->variants[i]));
    return json_pack("{s:s, s:o, s:o, s:i, s:I}", "name", impl->name, "summary",
                     clean_string(impl->summary), "variants", variants, "memory", (int)impl->memory,
                     "traits", (json_int_t)impl->traits);
}

enum lb_status lb_plugin_decode(const json_t *reply, struct lb_impl_entry *impl_entry,
                                char **variants, struct lb_error *err)
{
    const json_t *list = json_object_get(reply, "variants");
    size_t count = json_array_size(list);
    int memory = 0;
    json_int_t traits = 0;
    *impl_entry = (struct lb_impl_entry){0};
    if (count > LB_VARIANTS_MAX ||
        json_unpack((json_t *)reply, "{s:s, s:s, s:i, s:I}", "name", &impl_entry->name, "summary",
                    &impl_entry->summary, "memory", &memory, "traits", &traits) != 0)
        return lb_fail(err, LB_INVALID, "the worker's reply is no plug-in");
    for (size_t i = 0; i < count; i++)
        variants[i] = (char *)json_string_value(json_array_get(list, i));
    variants[count] = NULL;
    impl_entry->variants = count > 0 ? variants : NULL;
    impl_entry->memory = (enum lb_memory)memory;
    impl_entry->traits = (uint32_t)traits;
    return LB_OK;
}

json_t *lb_probe_encode(const struct lb_probe *probe)
{
    const struct lb_sizes *s = &probe->sizes;
    return json_pack("{s:I, s:I, s:I, s:I, s:o, s:o}", "weights", (json_int_t)s->weights,
                     "gradients", (json_int_t)s->gradients, "reserve", (json_int_t)s->reserve,
                     "workspace", (json_int_t)s->workspace, "description",
                     clean_string(probe->description), "note", clean_string(probe->note));
}

enum lb_status lb_probe_decode(const json_t *reply, struct lb_probe *probe, struct lb_error *err)
{
    json_int_t weights, gradients, reserve, workspace;
    const char *description, *note;
    if (json_unpack((json_t *)reply, "{s:I, s:I, s:I, s:I, s:s, s:s}", "weights", &weights,
                    "gradients", &gradients, "reserve", &reserve, "workspace", &workspace,
                    "description", &description, "note", &note) != 0)
        return lb_fail(err, LB_INVALID, "the worker's reply lacks what the case needs");
    probe->sizes =
        (struct lb_sizes){(size_t)weights, (size_t)gradients, (size_t)reserve, (size_t)workspace};
    snprintf(probe->description, sizeof(probe->description), "%s", description);
    snprintf(probe->note, sizeof(probe->note), "%s", note);
    return LB_OK;
}

/* JSON has no NaN. */
static json_t *known_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *lb_aftermath_encode(const struct lb_aftermath *aftermath)
{
    return json_pack("{s:s, s:o, s:o}", "left", aftermath->left, "peak_bytes",
                     known_real(aftermath->peak_bytes), "reference_ns",
                     known_real(aftermath->reference_ns));
}

enum lb_status lb_aftermath_decode(const json_t *reply, struct lb_aftermath *aftermath,
                                   struct lb_error *err)
{
    const json_t *peak, *reference;
    if (json_unpack((json_t *)reply, "{s:s, s:o, s:o}", "left", &aftermath->left, "peak_bytes",
                    &peak, "reference_ns", &reference) != 0)
        return lb_fail(err, LB_INVALID, "the worker's reply is none to a run");
    aftermath->peak_bytes = json_is_real(peak) ? json_real_value(peak) : (double)NAN;
    aftermath->reference_ns = json_is_real(reference) ? json_real_value(reference) : (double)NAN;
    return LB_OK;
}

/* The messages between the program and its worker processes. */
#include "run/worker_messages.h"

json_t *lb_request_encode(const struct lb_request *request)
{
    const struct lb_given_files *given = &request->given;
    const struct lb_sampler_options *sampler = &request->sampler;
    return json_pack(
        "{s:s, s:s*, s:s*, s:s*, s:s*, s:s*, s:b, s:b, s:s*, s:I, s:I, s:I, s:f, s:f, s:f, s:f, "
        "s:b, s:b, s:s*, s:f, s:O*}",
        "op", request->op, "path", request->path, "case", request->text, "weights", given->weights,
        "prefix", given->prefix, "inputs", given->inputs, "batch_first", given->batch_first, "tune",
        given->tune, "tuned", given->tuned, "seed", (json_int_t)request->seed, "min_samples",
        (json_int_t)sampler->min_samples, "max_samples", (json_int_t)sampler->max_samples,
        "precision", sampler->precision, "max_ns", sampler->max_ns, "memory_bytes",
        request->memory_bytes, "loss_scale", request->loss_scale, "dynamic_loss_scale",
        request->dynamic_loss_scale, "kernels", request->kernels, "outputs", request->outputs,
        "seconds", request->seconds, "ceilings", request->ceilings);
}

enum lb_status lb_request_decode(const json_t *message, struct lb_request *request,
                                 struct lb_error *err)
{
    int kernels, dynamic, batch_first, tune;
    json_int_t seed, min_samples, max_samples;
    struct lb_sampler_options *sampler = &request->sampler;
    struct lb_given_files *given = &request->given;
    *request = (struct lb_request){0};
    if (json_unpack(
            (json_t *)message,
            "{s:s, s?s, s?s, s?s, s?s, s?s, s:b, s:b, s?s, s:I, s:I, s:I, s:F, s:F, s:F, "
            "s:F, s:b, s:b, s?s, s:F, s?o}",
            "op", &request->op, "path", &request->path, "case", &request->text, "weights",
            &given->weights, "prefix", &given->prefix, "inputs", &given->inputs, "batch_first",
            &batch_first, "tune", &tune, "tuned", &given->tuned, "seed", &seed, "min_samples",
            &min_samples, "max_samples", &max_samples, "precision", &sampler->precision, "max_ns",
            &sampler->max_ns, "memory_bytes", &request->memory_bytes, "loss_scale",
            &request->loss_scale, "dynamic_loss_scale", &dynamic, "kernels", &kernels, "outputs",
            &request->outputs, "seconds", &request->seconds, "ceilings", &request->ceilings) != 0)
        return lb_fail(err, LB_INVALID, "a request of the program lacks a setting");
    given->batch_first = batch_first != 0;
    given->tune = tune != 0;
    request->seed = (uint64_t)seed;
    request->dynamic_loss_scale = dynamic != 0;
    request->kernels = kernels != 0;
    sampler->min_samples = (size_t)min_samples;
    sampler->max_samples = (size_t)max_samples;
    return LB_OK;
}

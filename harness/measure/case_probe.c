/* What can be said of a case before it runs. */
#include "measure/case_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/device.h"
#include "device/memory.h"
#include "device/timer.h"
#include "model/registry.h"
#include "reference/reference.h"

double lb_case_tensor_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return (double)INFINITY;
    double tensors = (double)n.x + (double)n.y + 4 * (double)n.state;
    return (lb_has_backward(problem) ? 2 * tensors : tensors) *
           (double)lb_dtype_size(problem->dtype);
}

double lb_case_host_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return (double)INFINITY;
    double gradients =
        lb_has_backward(problem) ? (double)n.weights * (double)lb_dtype_size(problem->dtype) : 0;
    return lb_case_tensor_bytes(problem) + gradients + lb_reference_bytes(problem);
}

double lb_case_bytes(const struct lb_problem *problem)
{
    return lb_case_tensor_bytes(problem) + lb_case_host_bytes(problem);
}

enum lb_status lb_check_memory(double needed, double available, const char *space,
                               struct lb_error *err)
{
    char needs[32], has[32];
    if (needed <= available)
        return LB_OK;
    lb_format_bytes(needed, needs);
    lb_format_bytes(available, has);
    return lb_fail(err, LB_OOM, "needs %s, has %s of %s memory", needs, has, space);
}

/* What a case asks of the way of running it, on top of what the implementation supports. */
static enum lb_status check_launch(const struct lb_impl *impl, const struct lb_case *c,
                                   struct lb_error *why)
{
    if (c->launch == LB_GRAPH && impl->memory == LB_HOST)
        return lb_fail(why, LB_UNSUPPORTED, "launch graph: it runs on the host, without a stream");
    if (c->launch == LB_GRAPH && !(impl->traits & LB_CAPTURABLE))
        return lb_fail(why, LB_UNSUPPORTED, "launch graph: its calls can't be captured");
    if (lb_has_backward(&c->problem) && !impl->backward)
        return lb_fail(why, LB_UNSUPPORTED, "pass %s: it has no backward",
                       lb_pass_name(c->problem.pass));
    return LB_OK;
}

/* Whether there is a device for it, and whether the host and the device can hold the tensors. */
static enum lb_status check_room(const struct lb_impl *impl, const struct lb_case *c,
                                 double available_bytes, struct lb_error *why)
{
    enum lb_status st = LB_OK;
    double flush = (double)lb_timer_bytes(impl->memory, c->cache == LB_COLD);
    if (impl->memory == LB_HOST)
        return lb_check_memory(lb_case_bytes(&c->problem) + flush, available_bytes, "host", why);
    const struct lb_device_info *device = lb_device_known(why);
    if (!device)
        return LB_ABSENT;
    LB_TRY(lb_check_memory(lb_case_host_bytes(&c->problem), available_bytes, "host", why));
    LB_TRY(lb_check_memory(lb_case_tensor_bytes(&c->problem) + flush, device->memory_bytes,
                           "device", why));
done:
    return st;
}

enum lb_status lb_case_supported(const struct lb_impl *impl, const struct lb_case *c,
                                 double available_bytes, struct lb_error *why)
{
    struct lb_counts counts;
    struct lb_exec_config place = {.threads = c->threads};
    enum lb_status st = lb_case_check(c, why);
    if (st == LB_OK)
        st = lb_resolve_variant(impl->variants, c->variant, &place.variant, why);
    if (st != LB_OK)
        return LB_UNSUPPORTED;
    LB_TRY(check_launch(impl, c, why));
    LB_TRY(lb_problem_counts(&c->problem, &counts, why));
    LB_TRY(impl->supports(&c->problem, &place, why));
    LB_TRY(check_room(impl, c, available_bytes, why));
done:
    return st;
}

struct lb_exec_config lb_case_exec_config(const struct lb_impl *impl, const struct lb_case *c)
{
    struct lb_exec_config place = {.threads = c->threads, .graph = c->launch == LB_GRAPH};
    const struct lb_device_info *device = lb_device_known(NULL);
    if (impl->memory == LB_DEVICE && device && !device->modelled) {
        place.device = device->ordinal;
        place.stream = lb_device()->stream();
    }
    return place;
}

enum lb_status lb_case_probe(const struct lb_impl *impl, const struct lb_case *c,
                             double available_bytes, struct lb_probe *probe, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_exec_config place = lb_case_exec_config(impl, c);
    void *self = NULL;
    *probe = (struct lb_probe){0};
    LB_TRY(lb_case_supported(impl, c, available_bytes, err));
    LB_TRY(lb_resolve_variant(impl->variants, c->variant, &place.variant, err));
    self = calloc(1, impl->state_size);
    if (!self) {
        st = lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
        goto done;
    }
    LB_TRY(impl->create(self, &c->problem, &place, err));
    LB_TRY(impl->sizes(self, &probe->sizes, err));
    if (impl->describe) {
        const char *description = impl->describe(self);
        snprintf(probe->description, sizeof(probe->description), "%s",
                 description ? description : "");
    }
done:
    if (self)
        impl->destroy(self);
    free(self);
    return st;
}

/* What can be said of a case before it runs. */
#include "case/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "device/device.h"
#include "device/timer.h"
#include "model/registry.h"
#include "model/tensor_files.h"
#include "reference/case_tensors.h"
#include "reference/reference.h"

/* What the harness allocates for the plan's problems: inputs and outputs as space_bytes, and
 * results and oracle as host_bytes. */
static enum lb_status count_needed(struct lb_case_plan *plan, struct lb_error *err)
{
    const struct lb_problem *problem = &plan->problem, *whole = &plan->whole;
    struct lb_counts n;
    double size = (double)lb_dtype_size(problem->dtype), inputs = 0, outputs = 0, kept = 0;
    LB_CHECK(lb_problem_counts(whole, &n, err)); /* its sizes may be too large to be counted */
    LB_CHECK(lb_problem_counts(problem, &n, err));
    for (enum lb_tensor t = LB_X; t < LB_TENSOR_COUNT; t++)
        *(t < LB_Y ? &inputs : &outputs) += (double)lb_tensor_elements(problem, t);
    for (enum lb_tensor t = LB_Y; t <= LB_CN && whole->seq_len > problem->seq_len; t++)
        kept += (double)lb_tensor_elements(whole, t); /* results of all input sets */
    double weights = (double)n.weights * (lb_has_backward(problem) ? 2 : 1); /* and gradients */
    plan->space_bytes = (outputs + LB_TIMED_SETS * inputs) * size;
    plan->host_bytes =
        (outputs + weights + LB_INPUT_SETS * kept) * size + lb_reference_bytes(whole);
    return LB_OK;
}

struct lb_problem lb_case_whole(const struct lb_case *c, int *chunks)
{
    static const double enough_flops = 1e9, fewest = 2, most = 256;
    struct lb_problem whole = c->problem;
    *chunks = 1;
    if (c->timing == LB_STREAMING)
        *chunks = (int)fmin(fmax(enough_flops / lb_problem_flops(&whole), fewest), most);
    if (__builtin_mul_overflow(whole.seq_len, *chunks, &whole.seq_len))
        whole.seq_len = INT64_MAX;
    return whole;
}

double lb_case_bytes(const struct lb_case *c)
{
    struct lb_case_plan plan = {.problem = c->problem};
    plan.whole = lb_case_whole(c, &plan.chunks);
    if (count_needed(&plan, NULL) != LB_OK)
        return (double)INFINITY;
    return c->instances * (plan.space_bytes + plan.host_bytes);
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

/* Whether impl can be called in the way that the case asks for. */
static enum lb_status check_launch(const struct lb_impl *impl, const struct lb_case *c,
                                   struct lb_error *why)
{
    if (c->launch == LB_GRAPH && impl->memory == LB_HOST)
        return lb_fail(why, LB_UNSUPPORTED, "launch graph: it runs on the host, without a stream");
    if (c->launch == LB_GRAPH && !(impl->traits & LB_CAPTURABLE))
        return lb_fail(why, LB_UNSUPPORTED, "launch graph: its calls can't be captured");
    const struct lb_sequence_file *given = NULL;
    if (c->timing == LB_STREAMING && lb_inputs_given(&given, NULL) == LB_OK && given)
        return lb_fail(why, LB_UNSUPPORTED, "timing stream: its inputs are random ones");
    if (c->problem.pass != LB_INFER && !impl->backward)
        return lb_fail(why, LB_UNSUPPORTED, "pass %s: it has no backward",
                       lb_pass_name(c->problem.pass));
    if (c->instances > 1 && !(impl->traits & LB_INSTANCES))
        return lb_fail(why, LB_UNSUPPORTED, "%d instances: calls of two states can't overlap",
                       c->instances);
    if (c->threads % c->instances != 0)
        return lb_fail(why, LB_UNSUPPORTED, "threads %d: %d instances can't have equal shares",
                       c->threads, c->instances);
    return LB_OK;
}

/* Whether there is a device if impl needs one, and enough memory for what the harness allocates
 * and, with sizes, for what impl asks for. */
static enum lb_status check_space(const struct lb_impl *impl, const struct lb_case_plan *plan,
                                  const struct lb_sizes *sizes, double available_bytes,
                                  struct lb_error *why)
{
    const struct lb_device_info *device = NULL;
    double needed = plan->space_bytes;
    if (sizes)
        needed += plan->instances * ((double)sizes->weights + (double)sizes->gradients +
                                     (double)sizes->reserve + (double)sizes->workspace);
    if (impl->memory == LB_HOST)
        return lb_check_memory(needed, available_bytes, "host", why);
    if (!(device = lb_device_known(why)))
        return LB_ABSENT;
    LB_CHECK(lb_check_memory(plan->host_bytes, available_bytes, "host", why));
    return lb_check_memory(needed, device->memory_bytes, "device", why);
}

/* The device and stream of this process for an implementation that needs them. */
static struct lb_exec_config exec_config(const struct lb_impl *impl, const struct lb_case *c)
{
    struct lb_exec_config config = {.threads = c->threads / c->instances,
                                    .graph = c->launch == LB_GRAPH,
                                    .forward_only = c->problem.pass == LB_FORWARD};
    const struct lb_device_info *device = lb_device_known(NULL);
    if (impl->memory == LB_DEVICE && device && !device->modelled) {
        config.device = device->ordinal;
        config.stream = lb_device()->stream();
    }
    return config;
}

enum lb_status lb_case_plan(const struct lb_impl *impl, const struct lb_case *c,
                            double available_bytes, struct lb_case_plan *plan, struct lb_error *why)
{
    enum lb_status st = lb_case_check(c, why);
    *plan = (struct lb_case_plan){.config = exec_config(impl, c),
                                  .problem = c->problem,
                                  .instances = c->instances,
                                  .has_backward = lb_has_backward(&c->problem),
                                  .calls_updates = impl->update && lb_has_backward(&c->problem)};
    plan->whole = lb_case_whole(c, &plan->chunks);
    if (c->problem.pass == LB_FORWARD)
        plan->problem.pass = plan->whole.pass = LB_TRAIN;
    if (st == LB_OK)
        st = lb_resolve_variant(impl->variants, c->variant, &plan->config.variant, why);
    if (st != LB_OK)
        return LB_UNSUPPORTED;
    LB_CHECK(check_launch(impl, c, why));
    LB_CHECK(count_needed(plan, why));
    plan->space_bytes += (impl->memory == LB_HOST ? plan->host_bytes : 0) +
                         (double)lb_timer_bytes(impl->memory, c->cache == LB_COLD) +
                         (plan->calls_updates ? lb_case_update_bytes(&c->problem) : 0);
    plan->space_bytes *= c->instances;
    LB_CHECK(lb_impl_supports(impl, &plan->problem, &plan->config, why));
    return check_space(impl, plan, NULL, available_bytes, why);
}

/* Tells the observer, if there is one, that a phase begins. */
static void phase(const struct lb_run_observer *observer, const char *name)
{
    if (observer)
        observer->phase(observer->user, name);
}

enum lb_status lb_case_probe(const struct lb_impl *impl, const struct lb_case *c,
                             double available_bytes, const struct lb_run_observer *observer,
                             struct lb_probe *probe, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case_plan plan;
    void *self = NULL;
    *probe = (struct lb_probe){0};
    phase(observer, "supports");
    LB_TRY(lb_case_plan(impl, c, available_bytes, &plan, err));
    self = calloc(1, impl->state_size);
    if (!self)
        LB_TRY(lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size));
    phase(observer, "create");
    LB_TRY(impl->create(self, &plan.problem, &plan.config, err));
    phase(observer, "sizes");
    LB_TRY(impl->sizes(self, &probe->sizes, err));
    LB_TRY(check_space(impl, &plan, &probe->sizes, available_bytes, err));
    phase(observer, "note");
    if (impl->note)
        impl->note(&plan.problem, &plan.config, probe->note, sizeof(probe->note));
    phase(observer, "describe");
    if (impl->describe) {
        const char *description = impl->describe(self);
        snprintf(probe->description, sizeof(probe->description), "%s",
                 description ? description : "");
    }
done:
    phase(observer, "destroy");
    if (self)
        impl->destroy(self);
    free(self);
    return st;
}

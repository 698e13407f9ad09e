/* What can be said of a case before it runs. */
#include "case_probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "memory.h"
#include "reference.h"
#include "registry.h"

double lb_case_bytes(const struct lb_problem *problem)
{
    struct lb_counts n;
    if (lb_problem_counts(problem, &n, NULL) != LB_OK)
        return (double)INFINITY;
    double tensors = (double)n.x + (double)n.y + 4 * (double)n.state, weights = 0;
    if (lb_has_backward(problem)) {
        tensors *= 2;
        weights = (double)n.weights;
    }
    /* Once in the implementation's memory, once as results on the host. */
    return (2 * tensors + weights) * (double)lb_dtype_size(problem->dtype) +
           lb_reference_bytes(problem);
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

enum lb_status lb_case_supported(const struct lb_impl *impl, const struct lb_case *c,
                                 double available_bytes, struct lb_error *why)
{
    struct lb_counts counts;
    struct lb_place place = {.threads = c->threads};
    enum lb_status st = lb_case_check(c, why);
    if (st == LB_OK)
        st = lb_pick_variant(impl->variants, c->variant, &place.variant, why);
    if (st != LB_OK)
        return LB_UNSUPPORTED;
    if (impl->memory == LB_DEVICE)
        return lb_fail(why, LB_ABSENT, "this build has no device memory");
    if (c->launch == LB_GRAPH)
        return lb_fail(why, LB_UNSUPPORTED, "launch graph: it runs on the host, without a stream");
    if (lb_has_backward(&c->problem) && !impl->backward)
        return lb_fail(why, LB_UNSUPPORTED, "pass %s: it has no backward",
                       lb_pass_name(c->problem.pass));
    st = lb_problem_counts(&c->problem, &counts, why);
    if (st != LB_OK)
        return st;
    st = impl->supports(&c->problem, &place, why);
    if (st != LB_OK)
        return st;
    return lb_check_memory(lb_case_bytes(&c->problem), available_bytes, "host", why);
}

enum lb_status lb_case_probe(const struct lb_impl *impl, const struct lb_case *c,
                             double available_bytes, struct lb_probe *probe, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_place place = {.threads = c->threads};
    void *self = NULL;
    *probe = (struct lb_probe){0};
    LB_TRY(lb_case_supported(impl, c, available_bytes, err));
    LB_TRY(lb_pick_variant(impl->variants, c->variant, &place.variant, err));
    self = calloc(1, impl->state_size);
    if (!self) {
        st = lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
        goto done;
    }
    LB_TRY(impl->create(self, &c->problem, &place, err));
    LB_TRY(impl->sizes(self, &probe->sizes, err));
    if (impl->chosen) {
        const char *chosen = impl->chosen(self);
        snprintf(probe->chosen, sizeof(probe->chosen), "%s", chosen ? chosen : "");
    }
done:
    if (self)
        impl->destroy(self);
    free(self);
    return st;
}

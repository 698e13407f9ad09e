/* An implementation with a known slowdown. */
#include "run/planted_slowdown.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

extern const struct lb_impl lb_impl_cpu_ref;

struct planted {
    double slowdown; /* fraction of a call's time that is added to it */
    void *inner;     /* cpu_ref's state; owned */
};

double lb_planted_percent;

static const char *const variants[] = {"auto",     "slower_1",  "slower_2", "slower_3",
                                       "slower_5", "slower_10", NULL};

static enum lb_status planted_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *why)
{
    if (problem->pass != LB_INFER)
        return lb_fail(why, LB_UNSUPPORTED, "pass %s: only infer is implemented",
                       lb_pass_name(problem->pass));
    return lb_impl_cpu_ref.supports(problem, config, why);
}

static enum lb_status planted_create(void *self, const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *err)
{
    struct planted *planted = self;
    const char *percent = config->variant ? strrchr(config->variant, '_') : NULL;
    planted->slowdown = (percent ? strtod(percent + 1, NULL) : lb_planted_percent) / 100;
    planted->inner = calloc(1, lb_impl_cpu_ref.state_size);
    if (!planted->inner)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of state failed",
                       lb_impl_cpu_ref.state_size);
    return lb_impl_cpu_ref.create(planted->inner, problem, config, err);
}

static enum lb_status planted_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    return lb_impl_cpu_ref.sizes(((struct planted *)self)->inner, sizes, err);
}

static enum lb_status planted_prepare(void *self, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    return lb_impl_cpu_ref.prepare(((struct planted *)self)->inner, buffers, weights, err);
}

static enum lb_status planted_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    struct planted *planted = self;
    double start = lb_now_ns();
    enum lb_status st = lb_impl_cpu_ref.forward(planted->inner, io, err);
    double end = lb_now_ns();
    end += planted->slowdown * (end - start);
    while (lb_now_ns() < end)
        ;
    return st;
}

static void planted_destroy(void *self)
{
    struct planted *planted = self;
    if (planted->inner)
        lb_impl_cpu_ref.destroy(planted->inner);
    free(planted->inner);
}

const struct lb_impl lb_planted_impl = {
    .abi = LB_IMPL_ABI,
    .struct_bytes = sizeof(struct lb_impl),
    .name = "planted",
    .summary = "cpu_ref with a known slowdown",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC | LB_REFERENCE,
    .state_size = sizeof(struct planted),
    .variants = variants,
    .supports = planted_supports,
    .create = planted_create,
    .sizes = planted_sizes,
    .prepare = planted_prepare,
    .forward = planted_forward,
    .destroy = planted_destroy,
};

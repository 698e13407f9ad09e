/* A plug-in with a planted slowdown: it is cpu_ref, slower by FAULT percent or by the percentage
 * in the environment variable LB_SLOW_PERCENT. When LB_SLOW_HIDDEN is set, only problems of that
 * hidden size are slower. All builds have the name "slow", like different builds of one
 * implementation. */
#include <stdlib.h>

#include "faulty.h"

const struct lb_impl *lb_planted_slowdown(void);
extern double lb_planted_percent;
static struct lb_impl impl;

static enum lb_status slow_create(void *self, const struct lb_problem *problem,
                                  const struct lb_exec_config *config, struct lb_error *err)
{
    const char *percent = getenv("LB_SLOW_PERCENT"), *hidden = getenv("LB_SLOW_HIDDEN");
    bool meant = !hidden || strtol(hidden, NULL, 10) == problem->hidden;
    lb_planted_percent = !meant ? 0 : percent ? strtod(percent, NULL) : FAULT;
    return lb_planted_slowdown()->create(self, problem, config, err);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    (void)abi;
    impl = *lb_planted_slowdown();
    impl.name = "slow";
    impl.summary = "cpu_ref with a planted slowdown";
    impl.variants = NULL;
    impl.create = slow_create;
    return &impl;
}

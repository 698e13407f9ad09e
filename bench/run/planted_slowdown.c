/* An implementation with a known slowdown. */
#include "run/planted_slowdown.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

extern const struct lb_impl lb_impl_cpu_ref;

double lb_planted_percent;

/* The fraction of the shortest call so far that is added to each call. A fraction of each call's
 * own time would multiply what other programs or new inputs add to that time. */
static double slowdown, shortest_ns;

static enum lb_status planted_create(void *self, const struct lb_problem *problem,
                                     const struct lb_exec_config *config, struct lb_error *err)
{
    bool slower = config->variant && strcmp(config->variant, "slower_3") == 0;
    slowdown = (slower ? 3 : lb_planted_percent) / 100;
    shortest_ns = (double)INFINITY;
    return lb_impl_cpu_ref.create(self, problem, config, err);
}

static enum lb_status planted_forward(void *self, const struct lb_forward_io *io,
                                      struct lb_error *err)
{
    double start = lb_now_ns();
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    double end = lb_now_ns();
    shortest_ns = fmin(shortest_ns, end - start);
    end += slowdown * shortest_ns;
    while (lb_now_ns() < end)
        ;
    return st;
}

const struct lb_impl *lb_planted_slowdown(void)
{
    static const char *const variants[] = {"auto", "slower_3", NULL};
    static struct lb_impl planted;
    planted = lb_impl_cpu_ref;
    planted.name = LB_PLANTED_NAME;
    planted.summary = "cpu_ref with a known slowdown";
    planted.variants = variants;
    planted.create = planted_create;
    planted.forward = planted_forward;
    return &planted;
}

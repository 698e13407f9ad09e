/* fused: which family and tile, by what a step is expected to take. */
#include <stdio.h>
#include <string.h>

#include "fused_impl.h"

/* A family is one file and one line here. Where two expect the same time, the first is taken. */
static const struct lb_fused_family *const families[] = {&lb_fused_cluster, &lb_fused_grid};

enum { FAMILIES = sizeof(families) / sizeof(*families) };

const char *const lb_fused_variants[] = {"auto", "cluster", "grid", NULL};

enum lb_status lb_fused_see(const struct lb_problem *problem, const struct lb_device_info *device,
                            struct lb_fused_view *view, struct lb_error *err)
{
    static struct lb_device_info h100;
    enum lb_status st = LB_OK;
    LB_TRY(lb_device_model("h100", &h100, err));
    *view = (struct lb_fused_view){.problem = problem, .device = device ? device : &h100};
    if (lb_machine_of(view->device, &view->machine, NULL) != LB_OK)
        LB_TRY(lb_machine_of(&h100, &view->machine, err));
done:
    return st;
}

/* The best plans of a pass by one family and by the others, and how many there were. */
struct contest {
    struct lb_fused_plan best, other; /* other.family NULL: only one family has plans */
    int fitting;
    struct lb_error refused; /* by the last family that had none */
    const char *refuser;
};

static void enter(struct contest *c, const struct lb_fused_plan *plan)
{
    bool first = !c->best.family;
    if (!first && plan->step_ns >= c->best.step_ns) {
        if (plan->family != c->best.family &&
            (!c->other.family || plan->step_ns < c->other.step_ns))
            c->other = *plan;
        return;
    }
    if (!first && c->best.family != plan->family)
        c->other = c->best;
    c->best = *plan;
}

/* Of all families, or of the variant's alone. */
static void hold_contest(const struct lb_fused_view *view, const char *variant, bool backward,
                         struct contest *c)
{
    *c = (struct contest){.fitting = 0};
    for (int f = 0; f < FAMILIES; f++) {
        struct lb_fused_plan plans[LB_FUSED_PLANS_MAX];
        if (strcmp(variant, "auto") != 0 && strcmp(variant, families[f]->name) != 0)
            continue;
        int count = families[f]->plan(view, backward, plans, &c->refused);
        if (count == 0)
            c->refuser = families[f]->name;
        for (int i = 0; i < count; i++) {
            plans[i].family = families[f];
            enter(c, &plans[i]);
        }
        c->fitting += count;
    }
}

static enum lb_status check_sizes(const struct lb_problem *p, struct lb_error *why)
{
    if (p->seq_len >= INT32_MAX || p->batch > INT32_MAX || p->hidden > INT32_MAX / 8)
        return lb_fail(why, LB_UNSUPPORTED,
                       "seq_len and batch must be below 2^31, hidden below 2^28");
    return LB_OK;
}

static void describe_others(const struct contest *c, struct lb_fused_choice *choice)
{
    if (c->other.family)
        snprintf(choice->others, sizeof(choice->others), "%s %.2f us", c->other.family->name,
                 c->other.step_ns / 1e3);
    else if (c->refuser)
        snprintf(choice->others, sizeof(choice->others), "not %s: %.*s", c->refuser, 120,
                 c->refused.text);
}

enum lb_status lb_fused_choose(const struct lb_problem *problem,
                               const struct lb_device_info *device, const char *variant,
                               struct lb_fused_choice *choice, struct lb_error *why)
{
    enum lb_status st = LB_OK;
    struct lb_fused_view view;
    struct contest c;
    *choice = (struct lb_fused_choice){.fitting = 0};
    LB_TRY(check_sizes(problem, why));
    LB_TRY(lb_fused_see(problem, device, &view, why));
    snprintf(choice->machine, sizeof(choice->machine), "%s", view.machine.name);
    hold_contest(&view, variant ? variant : "auto", false, &c);
    if (c.fitting > 0) {
        choice->forward = c.best;
        choice->fitting = c.fitting;
        describe_others(&c, choice);
    }
    if (c.fitting > 0 && lb_has_backward(problem)) {
        hold_contest(&view, variant ? variant : "auto", true, &c);
        choice->backward = c.best;
    }
    if (c.fitting == 0)
        return lb_fail(why, LB_UNSUPPORTED, "%s", c.refused.text);
done:
    return st;
}

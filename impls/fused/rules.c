/* Chooses the family and the tile of the fused implementation: those with the lowest predicted step
 * time. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "impls/fused/fused.h"

/* A family is one file and one line here. The first of equal predictions is chosen. */
static const struct lb_fused_family *const families[] = {&lb_fused_cluster, &lb_fused_grid,
                                                         &lb_fused_step};

enum { FAMILIES = sizeof(families) / sizeof(*families) };
_Static_assert((int)FAMILIES <= (int)LB_FUSED_FAMILIES_MAX,
               "the array of plans holds all families");

const char *const lb_fused_variants[] = {"auto", "cluster", "grid", "step", NULL};

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

/* The best plan of a pass, the best plan of another family, and how many plans there were. */
struct group {
    struct lb_fused_plan best, other; /* other.family NULL: only one family has plans */
    int fitting;
    struct lb_error refused; /* reason of the last family without plans */
    const char *refuser;
};

static void enter(struct group *c, const struct lb_fused_plan *plan)
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

static bool takes_part(const char *variant, const struct lb_fused_family *family)
{
    return strcmp(variant, "auto") == 0 || strcmp(variant, family->name) == 0;
}

/* Plans of one family. */
static int family_plans(const struct lb_fused_view *view, const struct lb_fused_family *family,
                        bool backward, struct lb_fused_plan *plans, struct lb_error *why)
{
    int count = family->plan(view, backward, plans, why);
    for (int i = 0; i < count; i++)
        plans[i].family = family;
    return count;
}

int lb_fused_plans(const struct lb_fused_view *view, const char *variant, bool backward,
                   struct lb_fused_plan *plans)
{
    int count = 0;
    for (int f = 0; f < FAMILIES; f++)
        if (takes_part(variant, families[f]))
            count += family_plans(view, families[f], backward, plans + count, NULL);
    return count;
}

/* Evaluates the plans of all families, or of the variant's one. */
static void evaluate_group(const struct lb_fused_view *view, const char *variant, bool backward,
                           struct group *c)
{
    *c = (struct group){.fitting = 0};
    for (int f = 0; f < FAMILIES; f++) {
        struct lb_fused_plan plans[LB_FUSED_PLANS_MAX];
        if (!takes_part(variant, families[f]))
            continue;
        int count = family_plans(view, families[f], backward, plans, &c->refused);
        if (count == 0)
            c->refuser = families[f]->name;
        for (int i = 0; i < count; i++)
            enter(c, &plans[i]);
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

static void describe_others(const struct group *c, struct lb_fused_choice *choice)
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
    struct group c;
    *choice = (struct lb_fused_choice){.fitting = 0};
    LB_TRY(check_sizes(problem, why));
    LB_TRY(lb_fused_see(problem, device, &view, why));
    snprintf(choice->machine, sizeof(choice->machine), "%s", view.machine.name);
    evaluate_group(&view, variant, false, &c);
    if (c.fitting > 0) {
        choice->forward = c.best;
        choice->fitting = c.fitting;
        describe_others(&c, choice);
    }
    if (c.fitting > 0 && lb_has_backward(problem)) {
        evaluate_group(&view, variant, true, &c);
        choice->backward = c.best;
    }
    if (c.fitting == 0)
        return lb_fail(why, LB_UNSUPPORTED, "%s", c.refused.text);
done:
    return st;
}

enum {
    CHUNKS_MAX = 16,  /* a layer waits for one chunk of the layer below, a sixteenth of its work */
    CHUNK_NS = 50000, /* ten times the cost of loading weights and starting kernels */
};

static bool side_by_side(const struct lb_problem *p, const struct lb_fused_plan *plan)
{
    return !plan->family ||
           (!plan->family->cooperative && p->layers <= plan->resident / plan->needed);
}

int64_t lb_fused_chunk(const struct lb_problem *p, const struct lb_fused_choice *choice)
{
    double chunks = floor((double)p->seq_len * choice->forward.step_ns / CHUNK_NS);
    if (p->layers < 2 || p->directions != 1 || chunks < 2 || !side_by_side(p, &choice->forward) ||
        !side_by_side(p, &choice->backward))
        return p->seq_len;
    int64_t count = (int64_t)fmin(chunks, CHUNKS_MAX);
    return (p->seq_len + count - 1) / count;
}

/* Chooses the family and the tile of the fused implementation: those with the lowest predicted time
 * of all layers. */
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

enum { PORTABLE_CLUSTER = 8 /* blocks in a cluster that every device with clusters forms */ };

const char *const lb_fused_variants[] = LB_FUSED_VARIANTS;

enum lb_status lb_fused_view_make(const struct lb_problem *problem,
                                  const struct lb_device_info *device, struct lb_fused_view *view,
                                  struct lb_error *err)
{
    static struct lb_device_info h100;
    LB_CHECK(lb_device_model("h100", &h100, err));
    *view = (struct lb_fused_view){.problem = problem, .device = device ? device : &h100};
    if (lb_machine_of(view->device, &view->machine, NULL) != LB_OK) {
        LB_CHECK(lb_machine_of(&h100, &view->machine, err));
        if (view->device->major > 10) /* only 9.0 and 10.x form clusters of more than 8 blocks */
            view->machine.cluster = PORTABLE_CLUSTER;
    }
    return LB_OK;
}

/* The maximum of SMs per GPC on sm_90. All blocks of a cluster run in one GPC. */
enum { GPC_SMS = 18 };

int lb_fused_resident_clusters(int sm_count, int blocks)
{
    return sm_count / GPC_SMS * (GPC_SMS / blocks) + sm_count % GPC_SMS / blocks;
}

int lb_fused_plans(const struct lb_fused_view *view, const char *variant, bool backward,
                   struct lb_fused_plan *plans, struct lb_fused_refusal *refusal)
{
    int count = 0;
    for (int f = 0; f < FAMILIES; f++) {
        struct lb_error why;
        if (strcmp(variant, "auto") != 0 && strcmp(variant, families[f]->name) != 0)
            continue;
        int fitting = families[f]->plan(view, backward, plans + count, &why);
        for (int i = 0; i < fitting; i++)
            plans[count++].family = families[f];
        if (fitting == 0 && refusal)
            *refusal = (struct lb_fused_refusal){.family = families[f]->name, .why = why};
    }
    return count;
}

enum {
    CHUNKS_MAX = 16,  /* a layer waits for one chunk of the layer below, a sixteenth of its work */
    CHUNK_NS = 50000, /* ten times START_NS */
    START_NS = 5000,  /* to start kernels and to load weights anew for a chunk */
};

bool lb_fused_layers_fit(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    return problem->layers <= plan->resident / plan->needed;
}

/* Whether the pass, where there is one, lets layers run in a wavefront. */
static bool side_by_side(const struct lb_problem *p, const struct lb_fused_plan *plan)
{
    return !plan->family || (!plan->family->cooperative && lb_fused_layers_fit(p, plan));
}

static int64_t wavefront_chunks(const struct lb_problem *p, const struct lb_fused_choice *choice)
{
    double chunks = floor((double)p->seq_len * choice->forward.step_ns / CHUNK_NS);
    if (!side_by_side(p, &choice->forward) || !side_by_side(p, &choice->backward))
        return 1;
    return (int64_t)fmin(chunks, CHUNKS_MAX);
}

/* The first of the fastest plans that are not of that family; NULL where there is none. at_once:
 * only those of which all layers run at once and need no launches per step, whose rate is that of
 * the host or of a graph for all layers together. */
static const struct lb_fused_plan *fastest(const struct lb_problem *p,
                                           const struct lb_fused_plan *plans, int count,
                                           const struct lb_fused_family *but, bool at_once)
{
    const struct lb_fused_plan *best = NULL;
    for (const struct lb_fused_plan *plan = plans; plan < plans + count; plan++)
        if (plan->family != but &&
            (!at_once || (plan->family != &lb_fused_step && side_by_side(p, plan))) &&
            (!best || plan->step_ns < best->step_ns))
            best = plan;
    return best;
}

/* Predicted time per step of all layers, of the passes that are timed. A layer of a wavefront waits
 * for one chunk of the layer below; without a wavefront it waits for all of them. */
static double all_layers_ns(const struct lb_problem *p, const struct lb_fused_choice *choice)
{
    double layers = (double)p->layers, ns = choice->forward.step_ns;
    if (lb_has_backward(p))
        ns += choice->backward.step_ns;
    double chunks = p->directions == 1 ? (double)wavefront_chunks(p, choice) : 1;
    return ns * (chunks < 2 ? layers : (chunks + layers - 1) / chunks);
}

double lb_fused_layers_ns(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    const struct lb_fused_choice alone = {.forward = *plan};
    if (plan->family == &lb_fused_step) /* all layers share the rate of launches */
        return (double)problem->layers * plan->step_ns;
    return all_layers_ns(problem, &alone);
}

/* Chooses the plans of both passes together, because layers run in a wavefront only where those of
 * both passes run at once: a plan that is slower and leaves SMs to other layers may be better. */
static void choose_passes(const struct lb_problem *p, const struct lb_fused_plan *forward,
                          int forward_count, const struct lb_fused_plan *backward,
                          int backward_count, struct lb_fused_choice *choice)
{
    for (int i = 0; i < 2; i++) {
        const bool at_once = i == 1;
        const struct lb_fused_plan *to = fastest(p, forward, forward_count, NULL, at_once);
        const struct lb_fused_plan *back = fastest(p, backward, backward_count, NULL, at_once);
        struct lb_fused_choice candidate = *choice;
        if (!to || (backward_count > 0 && !back))
            continue;
        candidate.forward = *to;
        if (back)
            candidate.backward = *back;
        if (!choice->forward.family || all_layers_ns(p, &candidate) < all_layers_ns(p, choice))
            *choice = candidate;
    }
}

enum lb_status lb_fused_choose(const struct lb_problem *problem,
                               const struct lb_device_info *device, const char *variant,
                               struct lb_fused_choice *choice, struct lb_error *why)
{
    struct lb_fused_view view;
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    struct lb_fused_plan backward[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    struct lb_fused_refusal refusal = {.family = NULL};
    int backward_count = 0;
    *choice = (struct lb_fused_choice){.fitting = 0};
    if (problem->seq_len >= INT32_MAX || problem->batch > INT32_MAX ||
        problem->hidden > INT32_MAX / 8)
        return lb_fail(why, LB_UNSUPPORTED,
                       "seq_len and batch must be below 2^31, hidden below 2^28");
    LB_CHECK(lb_fused_view_make(problem, device, &view, why));
    choice->fitting = lb_fused_plans(&view, variant, false, plans, &refusal);
    if (choice->fitting == 0)
        return lb_fail(why, LB_UNSUPPORTED, "%s", refusal.why.text);
    if (lb_trains(problem)) {
        struct lb_fused_refusal of_backward = {.family = NULL};
        backward_count = lb_fused_plans(&view, variant, true, backward, &of_backward);
        if (backward_count == 0)
            return lb_fail(why, LB_UNSUPPORTED, "%s", of_backward.why.text);
    }
    choose_passes(problem, plans, choice->fitting, backward, backward_count, choice);
    const struct lb_fused_plan *other =
        fastest(problem, plans, choice->fitting, choice->forward.family, false);
    if (other)
        snprintf(choice->others, sizeof(choice->others), "%s %.2f us", other->family->name,
                 other->step_ns / 1e3);
    else if (refusal.family)
        snprintf(choice->others, sizeof(choice->others), "not %s: %.*s", refusal.family, 120,
                 refusal.why.text);
    return LB_OK;
}

/* The share of the peak that cuBLAS reaches in GEMMs over many steps. */
static const double gemm_share = 0.6;

/* Returns the time in ns on all SMs of the GEMMs over all steps of a pass: the input GEMM; backward
 * dx, dw_ih and dw_hh. */
static double pass_gemms_ns(const struct lb_fused_view *v, bool backward)
{
    const struct lb_problem *p = v->problem;
    const struct lb_machine *m = &v->machine;
    bool tf32 = p->dtype == LB_F32 && p->math != LB_IEEE;
    double rate = (tf32 ? m->tf32_flops_clock : m->flops_clock[p->dtype]) * gemm_share;
    double depth = backward ? 2.0 * (double)p->input + (double)p->hidden : (double)p->input;
    double flops = 8.0 * (double)(p->seq_len * p->batch * p->directions * p->hidden) * depth;
    return flops / (rate * v->device->sm_count * m->clock_hz) * 1e9;
}

/* Whether the SMs that a pass leaves idle multiply its GEMMs during its steps. Step kernels come
 * and go, so that GEMMs would take SMs that the next step needs. */
static bool hides_gemms(const struct lb_fused_view *v, const struct lb_fused_plan *plan)
{
    if (!plan->family)
        return true;
    double idle = 1 - (double)plan->needed / plan->resident;
    return plan->family != &lb_fused_step &&
           pass_gemms_ns(v, plan->backward) < idle * (double)v->problem->seq_len * plan->step_ns;
}

static double all_gemms_ns(const struct lb_fused_view *v)
{
    return pass_gemms_ns(v, false) + (lb_has_backward(v->problem) ? pass_gemms_ns(v, true) : 0);
}

static double starts_ns(const struct lb_problem *p)
{
    return lb_has_backward(p) ? 2 * START_NS : START_NS;
}

double lb_fused_gemms_ns(const struct lb_fused_view *view, int64_t chunk)
{
    double chunks = ceil((double)view->problem->seq_len / (double)chunk);
    return all_gemms_ns(view) / chunks + (chunks - 1) * starts_ns(view->problem);
}

/* The last (forward: the first) of n chunks' GEMMs is not hidden, and each chunk more costs a
 * start: GEMMs / n + n starts is least at the root of their ratio. */
static int64_t beside_chunks(const struct lb_fused_view *v, const struct lb_fused_choice *choice)
{
    if (!hides_gemms(v, &choice->forward) ||
        (lb_has_backward(v->problem) && !hides_gemms(v, &choice->backward)))
        return 1;
    return (int64_t)fmin(sqrt(all_gemms_ns(v) / starts_ns(v->problem)), CHUNKS_MAX);
}

int64_t lb_fused_chunk(const struct lb_fused_view *view, const struct lb_fused_choice *choice)
{
    const struct lb_problem *p = view->problem;
    if (p->directions != 1)
        return p->seq_len;
    int64_t count = p->layers > 1 ? wavefront_chunks(p, choice) : beside_chunks(view, choice);
    return count < 2 ? p->seq_len : (p->seq_len + count - 1) / count;
}

/* Chooses plans of the fused implementation by measurement, and keeps results for later runs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/given_files.h"
#include "base/tuned_choices.h"
#include "device/timer.h"
#include "device/weight_packing.h"
#include "impls/fused/fused.h"

enum { SAMPLES = 5, STEPS = 64 /* maximum in the shorter of two timed runs */ };

static int64_t timed_steps(const struct lb_problem *p)
{
    return p->seq_len < STEPS ? p->seq_len : STEPS;
}

/* Writes the key, which names everything that the choice depends on. The variant determines which
 * plans are compared. T up to STEPS and replaying a graph are part of the key, because the cost of
 * a launch weighs more in few steps and where the host makes each launch. Longer T does not matter,
 * but for several layers, whose wavefront depends on it. */
static void make_key(const struct lb_fused_view *v, const char *variant, bool backward, char *key,
                     size_t size)
{
    const struct lb_problem *p = v->problem;
    char layers[64] = "";
    if (p->layers > 1)
        snprintf(layers, sizeof(layers), "_L%lld of T%lld", (long long)p->layers,
                 (long long)p->seq_len);
    snprintf(key, size, "fused %s, %s, %s, %d SMs, T%lld_B%lld_H%lld_D%lld%s/%s/%s/%s%s",
             backward       ? "backward"
             : lb_trains(p) ? "forward in training"
                            : "forward",
             variant, v->device->name, v->device->sm_count, (long long)timed_steps(p),
             (long long)p->batch, (long long)p->hidden, (long long)p->directions, layers,
             lb_dtype_name(p->dtype), lb_math_name(p->math), lb_act_name(p->act),
             v->graph ? "/graph" : "");
}

/* Reads "FAMILY TILE BYTES NS". The packed size tells whether the number still means that tile. */
static bool take_value(const struct lb_problem *p, const char *value,
                       const struct lb_fused_plan *plans, int count, struct lb_fused_plan *plan)
{
    char family[32];
    int tile;
    size_t bytes;
    double ns;
    if (sscanf(value, "%31s %d %zu %lf", family, &tile, &bytes, &ns) != 4 || !(ns > 0))
        return false;
    for (int i = 0; i < count; i++) {
        if (strcmp(plans[i].family->name, family) != 0 || plans[i].tile != tile ||
            lb_fused_weight_bytes(p, &plans[i]) != bytes)
            continue;
        *plan = plans[i];
        plan->step_ns = ns;
        plan->tuned = true;
        return true;
    }
    return false;
}

/* The arrays of one layer. All are zero, because their contents do not change the time. */
struct trial {
    struct lb_problem problem;
    struct lb_fused_plan plan;
    struct lb_fused_forward_args forward;
    struct lb_fused_backward_args backward;
};

/* Lays the arrays out and returns their size. With a NULL base it only adds up sizes. */
static size_t lay_out(struct trial *t, char *base)
{
    const struct lb_problem *p = &t->problem;
    struct lb_arena c = {.base = base};
    size_t size = lb_dtype_size(p->dtype), real = p->dtype == LB_F64 ? size : sizeof(float);
    size_t states = (size_t)(p->directions * p->batch * p->hidden);
    size_t cells = (size_t)p->seq_len * states;
    void *weights = lb_arena_take(&c, (size_t)p->directions * lb_fused_weight_bytes(p, &t->plan));
    void *gates = lb_arena_take(&c, 4 * cells * real), *kept = lb_arena_take(&c, cells * real);
    void *y = lb_arena_take(&c, cells * size), *dgates = lb_arena_take(&c, 4 * cells * size);
    void *bias = lb_arena_take(&c, 4 * (size_t)(p->directions * p->hidden) * real);
    void *carry = lb_arena_take(&c, 2 * states * real), *in = lb_arena_take(&c, states * size);
    void *out = lb_arena_take(&c, states * size), *also = lb_arena_take(&c, states * size);
    void *scratch = lb_arena_take(&c, lb_fused_scratch_bytes(p, &t->plan));
    struct lb_fused_fault *fault = lb_arena_take(&c, sizeof(*fault));
    bool trains = lb_trains(p);
    t->forward = (struct lb_fused_forward_args){
        .pre = gates,
        .weights = weights,
        .bias = bias,
        .h0 = in,
        .c0 = in,
        .y = y,
        .hn = out,
        .cn = also,
        .gates = trains ? gates : NULL,
        .cells = trains ? kept : NULL,
        LB_FUSED_COMMON_ARGS(p, carry, scratch, fault, 0, p->seq_len),
    };
    t->backward = (struct lb_fused_backward_args){
        .gates = gates,
        .cells = kept,
        .weights = weights,
        .c0 = in,
        .dy = y,
        .dhn = in,
        .dcn = in,
        .dgates = dgates,
        .dh0 = out,
        .dc0 = also,
        LB_FUSED_COMMON_ARGS(p, carry, scratch, fault, 0, p->seq_len),
    };
    return c.used;
}

/* lb_call */
static enum lb_status run_once(void *user, struct lb_error *err)
{
    struct trial *t = user;
    const struct lb_fused_family *family = t->plan.family;
    const struct lb_fused_forward_args *a = &t->forward;
    void *stream = lb_device()->stream();
    if (family->clear)
        LB_CHECK(family->clear(&t->plan.kernel, a->hidden, a->directions, a->scratch, stream, err));
    const void *args = t->plan.backward ? (const void *)&t->backward : a;
    return family->launch(&t->plan.kernel, args, stream, err);
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Runs of one length, launched or replayed as in the case. */
struct timed_length {
    int64_t steps;
    struct lb_timer timer;
    double ns[SAMPLES];
};

static void set_steps(struct trial *t, int64_t steps)
{
    t->forward.seq_len = t->forward.to = t->backward.seq_len = t->backward.to = (int)steps;
}

/* Returns the time of a step by the difference of two lengths, in which what a sequence costs once
 * falls out: launches, the memset before them, events. Where the longer run was not longer, all of
 * its time counts. */
static double step_by_difference(struct timed_length lengths[2])
{
    for (int k = 0; k < 2; k++)
        qsort(lengths[k].ns, SAMPLES, sizeof(*lengths[k].ns), by_size);
    double few = lengths[0].ns[SAMPLES / 2], many = lengths[1].ns[SAMPLES / 2];
    return many > few ? (many - few) / (double)(lengths[1].steps - lengths[0].steps)
                      : many / (double)lengths[1].steps;
}

/* Times n and 2 n steps in turn, so that both see the same clocks. */
static enum lb_status time_plan(struct trial *t, bool graph, double *step_ns, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_fused_fault fault;
    struct timed_length lengths[2] = {{.steps = t->problem.seq_len / 2},
                                      {.steps = t->problem.seq_len}};
    for (int k = 0; k < 2; k++) {
        set_steps(t, lengths[k].steps);
        LB_TRY(lb_timer_create(LB_DEVICE, false, &lengths[k].timer, err));
        LB_TRY(run_once(t, err)); /* is not counted */
        if (graph)
            LB_TRY(lb_timer_capture(&lengths[k].timer, run_once, t, err));
    }
    for (int i = 0; i < 2 * SAMPLES; i++) {
        struct timed_length *length = &lengths[i % 2];
        set_steps(t, length->steps);
        LB_TRY(lb_timer_measure(&length->timer, run_once, t, 1, &length->ns[i / 2], err));
    }
    LB_TRY(lb_device()->download(&fault, t->forward.fault, sizeof(fault), err));
    if (fault.raised)
        LB_TRY(lb_fail(err, LB_UNSUPPORTED, "a wait was given up"));
    *step_ns = step_by_difference(lengths);
done:
    for (int k = 0; k < 2; k++)
        lb_timer_destroy(&lengths[k].timer);
    return st;
}

/* Measures one plan of one layer. LB_UNSUPPORTED where the device cannot run it. */
static enum lb_status measure(const struct lb_fused_view *view, struct lb_fused_plan *plan,
                              struct lb_error *err)
{
    const struct lb_problem *problem = view->problem;
    struct trial t = {.problem = *problem, .plan = *plan};
    enum lb_status st = LB_OK;
    void *memory = NULL;
    t.problem.layers = 1;
    t.problem.ragged = false;
    t.problem.seq_len = 2 * timed_steps(problem);
    size_t bytes = lay_out(&t, NULL);
    LB_TRY(plan->family->ready(&t.plan, err));
    LB_TRY(lb_device()->allocate(bytes, &memory, err));
    LB_TRY(lb_device()->fill(memory, 0, bytes, err));
    lay_out(&t, memory);
    LB_TRY(time_plan(&t, view->graph, &plan->step_ns, err));
    plan->resident = t.plan.resident;
    plan->tuned = true;
done:
    lb_device()->release(memory);
    return st;
}

/* Measures all plans on one layer and keeps the one with which all layers are the fastest. A plan
 * that cannot be launched or needs too much memory is skipped, whatever the error, as long as the
 * device still works. */
static enum lb_status tune(const struct lb_fused_view *view, const char *key,
                           struct lb_fused_plan *plans, int count, struct lb_fused_plan *plan,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_fused_plan *best = NULL;
    double best_ns = INFINITY;
    char value[128];
    LB_CHECK(lb_device_warm_up(err));
    for (int i = 0; i < count; i++) {
        struct lb_fused_plan apart = plans[i]; /* with as many at once as have SMs of their own */
        st = measure(view, &plans[i], err);
        if (st != LB_OK && lb_device()->lost())
            return st;
        apart.step_ns = plans[i].step_ns;
        double ns = st == LB_OK ? lb_fused_layers_ns(view->problem, &apart) : INFINITY;
        if (ns < best_ns)
            best = &plans[i], best_ns = ns;
    }
    if (!best)
        return st;
    *plan = *best;
    snprintf(value, sizeof(value), "%s %d %zu %.1f", plan->family->name, plan->tile,
             lb_fused_weight_bytes(view->problem, plan), plan->step_ns);
    return lb_tuned_store(key, value, err);
}

enum lb_status lb_fused_tune(const struct lb_fused_view *view, const char *variant, bool backward,
                             struct lb_fused_plan *plan, struct lb_error *err)
{
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    char key[256], value[128];
    int count = lb_fused_plans(view, variant, backward, plans, NULL);
    make_key(view, variant, backward, key, sizeof(key));
    enum lb_status st = lb_tuned_find(key, value, sizeof(value), err);
    if (st == LB_OK && take_value(view->problem, value, plans, count, plan))
        return LB_OK;
    if ((st != LB_OK && st != LB_ABSENT) || !lb_given_files()->tune)
        return st == LB_OK ? LB_ABSENT : st;
    return tune(view, key, plans, count, plan, err);
}

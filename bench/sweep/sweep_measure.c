/* A step of a sweep: measures one case in a worker. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "sweep/sweep_steps.h"

enum {
    CANARY_NS = 500000000 /* sampling time of a canary, at most, but never more than a case's */
};

static void print_variant(const struct lb_case *c, char name[2 * LB_NAME_SIZE])
{
    snprintf(name, 2 * LB_NAME_SIZE, "%s%s%s", c->impl, c->variant[0] ? ":" : "", c->variant);
}

static void count_hang(struct lb_sweep_run *sweep, const struct lb_case *c)
{
    char name[2 * LB_NAME_SIZE];
    print_variant(c, name);
    if (!sweep->hangs)
        sweep->hangs = json_object();
    json_int_t before = json_integer_value(json_object_get(sweep->hangs, name));
    json_object_set_new(sweep->hangs, name, json_integer(before + 1));
}

bool lb_sweep_reached_hang_limit(const struct lb_sweep_run *sweep, const struct lb_case *c)
{
    int limit = sweep->session->options->hang_limit;
    char name[2 * LB_NAME_SIZE];
    print_variant(c, name);
    return limit > 0 && json_integer_value(json_object_get(sweep->hangs, name)) >= limit;
}

static bool out_of_time(const struct lb_sweep_run *sweep)
{
    return (lb_now_ns() - sweep->start_ns) / 1e9 > sweep->session->options->time_budget_s;
}

/* Whether the case is known not to run; row then has the verdict and its reason. */
static bool cannot_run(const struct lb_sweep_run *sweep, const struct lb_case *c, bool first,
                       struct lb_row *row)
{
    const struct lb_session *session = sweep->session;
    const struct lb_impl_entry *impl_entry = lb_registry_find(session->registry, c->impl);
    char name[2 * LB_NAME_SIZE];
    if (!impl_entry) {
        row->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row->reason, "this program has no %s", c->impl);
    } else if (impl_entry->absent) {
        row->verdict = LB_VERDICT_ABSENT;
        lb_row_print(&row->reason, "%s", impl_entry->absent);
    } else if (first && out_of_time(sweep)) {
        row->verdict = LB_VERDICT_SKIPPED;
        lb_row_print(&row->reason, "the time budget of %.3g s ran out",
                     session->options->time_budget_s);
    } else if (lb_sweep_reached_hang_limit(sweep, c)) {
        row->verdict = LB_VERDICT_SKIPPED;
        print_variant(c, name);
        lb_row_print(&row->reason,
                     "%s has hung %d times: its other cases are not run (--hang-limit)", name,
                     session->options->hang_limit);
    } else {
        return false;
    }
    return true;
}

/* Measures one block of the case. first: its very first one. */
static enum lb_status measure_block(struct lb_sweep_run *sweep, const struct lb_case *c, bool first,
                                    struct lb_row *block, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    const struct lb_job job = {
        .c = c,
        .seed = sweep->settings.seed,
        .sampler = sweep->settings.sampler,
        .kernels = sweep->settings.kernels && first,
        .loss_scale = sweep->settings.loss_scale,
        .dynamic_loss_scale = sweep->settings.dynamic_loss_scale,
    };
    *block = lb_row_make(c);
    if (cannot_run(sweep, c, first, block))
        return LB_OK;
    enum lb_status st =
        lb_pool_run(session->pool, lb_registry_find(session->registry, c->impl), &job, block, err);
    if (st == LB_OK && block->verdict == LB_VERDICT_TIMEOUT)
        count_hang(sweep, c);
    return st;
}

enum lb_status lb_sweep_measure(struct lb_sweep_run *sweep, const struct lb_case *c, int round,
                                struct lb_row *row, struct lb_error *err)
{
    const struct lb_settings *settings = &sweep->settings;
    bool fresh = settings->processes > 1;
    enum lb_status st = LB_OK;
    for (int i = 0; i < (fresh ? settings->repetitions : 1) && st == LB_OK; i++) {
        struct lb_row block = {0};
        bool first = round == 0 && i == 0;
        if (!first && (row->verdict != LB_VERDICT_OK || out_of_time(sweep) ||
                       lb_sweep_reached_hang_limit(sweep, c)))
            break;
        if (fresh && i == 0)
            lb_pool_renew(sweep->session->pool);
        st = measure_block(sweep, c, first, &block, err);
        if (st == LB_OK)
            st = lb_row_merge(row, &block, first, fresh && i == 0, err);
        lb_row_free(&block);
    }
    return st;
}

enum lb_status lb_sweep_measure_canary(struct lb_sweep_run *sweep, const struct lb_case *c,
                                       struct lb_row *row, struct lb_error *err)
{
    const struct lb_session *session = sweep->session;
    struct lb_job job = {
        .c = c, .seed = sweep->settings.seed, .sampler = lb_sampler_defaults(), .loss_scale = 1};
    job.sampler.max_ns = fmin(CANARY_NS, sweep->settings.sampler.max_ns);
    return lb_pool_run(session->pool, lb_registry_find(session->registry, c->impl), &job, row, err);
}

/* Pairs of sample blocks: two sides of a comparison that take turns. */
#include "run/interleaved_blocks.h"

#include "base/random.h"

struct lb_sampler_options lb_block_sampler(void)
{
    return (struct lb_sampler_options){.min_samples = 6, .max_samples = 25, .max_ns = 10e6};
}

struct lb_case lb_case_of_side(const struct lb_case *problem, const struct lb_side *side)
{
    struct lb_case c = *problem;
    if (!side->impl_entry)
        return c;
    snprintf(c.impl, sizeof(c.impl), "%s", side->impl_entry->name);
    snprintf(c.variant, sizeof(c.variant), "%s", side->variant);
    return c;
}

static const struct lb_impl_entry *entry_of(const struct lb_session *session,
                                            const struct lb_case *c, const struct lb_side *side)
{
    return side->impl_entry ? side->impl_entry : lb_registry_find(session->registry, c->impl);
}

static enum lb_status measure_block(const struct lb_session *session, const struct lb_case *c,
                                    const struct lb_side *side, struct lb_row *row,
                                    struct lb_error *err)
{
    struct lb_row block = {0};
    bool first = row->samples == 0, fresh = side->pool != NULL;
    const struct lb_job job = {
        .c = c,
        .seed = session->options->seed,
        .sampler = fresh ? lb_options_sampler(session->options) : lb_block_sampler(),
        .process = fresh ? NULL : "both sides",
        .loss_scale = fresh ? session->options->loss_scale : 0,
        .dynamic_loss_scale = fresh && session->options->dynamic_loss_scale,
    };
    if (fresh)
        lb_pool_renew(side->pool);
    enum lb_status st = lb_pool_run(fresh ? side->pool : session->pool, entry_of(session, c, side),
                                    &job, &block, err);
    if (st == LB_OK)
        lb_row_merge(row, &block, first, fresh);
    lb_row_free(&block);
    return st;
}

enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_case cases[2] = {lb_case_of_side(problem, &sides[0]),
                                     lb_case_of_side(problem, &sides[1])};
    for (int s = 0; s < 2; s++) {
        rows[s] = lb_row_make(&cases[s]);
        rows[s].verdict = LB_VERDICT_OK;
        const struct lb_impl_entry *impl_entry = entry_of(session, &cases[s], &sides[s]);
        if (impl_entry->absent) {
            rows[s].verdict = LB_VERDICT_ABSENT;
            lb_row_print(&rows[s].reason, "%s", impl_entry->absent);
        }
    }
    bool sound = true;
    for (int i = 0; i < pairs && sound; i++) {
        int first = (int)(lb_random_next(random) & 1);
        for (int j = 0; j < 2; j++) {
            int s = j == 0 ? first : 1 - first;
            if (lb_verdict_has_samples(rows[s].verdict))
                LB_TRY(measure_block(session, &cases[s], &sides[s], &rows[s], err));
            sound &= lb_verdict_has_samples(rows[s].verdict);
        }
    }
done:
    if (st != LB_OK)
        for (int s = 0; s < 2; s++)
            lb_row_free(&rows[s]);
    return st;
}

/* Shards of random plans: their union is the plan, no two share a problem, and they are balanced.
 */
#include "cli/plan.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

enum { MOST = 400 /* cases of a random plan */ };

static struct lb_plan empty_plan(void)
{
    struct lb_plan plan = {.cases = calloc(MOST, sizeof(*plan.cases))};
    assert_non_null(plan.cases);
    return plan;
}

static void add_case(struct lb_plan *plan, const char *impl, int64_t seq_len, int64_t batch,
                     int64_t hidden)
{
    struct lb_case *c = &plan->cases[plan->count++];
    *c = lb_case_defaults();
    snprintf(c->impl, sizeof(c->impl), "%s", impl);
    c->problem.seq_len = seq_len;
    c->problem.batch = batch;
    c->problem.hidden = c->problem.input = hidden;
}

static size_t find(const struct lb_plan *plan, const struct lb_case *c)
{
    for (size_t i = 0; i < plan->count; i++)
        if (lb_case_same(&plan->cases[i], c))
            return i;
    return plan->count;
}

/* Cases of few sizes, so that problems repeat, by implementations of which not every problem has
 * all; no case twice. */
static struct lb_plan random_plan(uint64_t *state)
{
    static const char *const impls[] = {"cpu_ref", "cpu_simd", "onednn", "fused"};
    struct lb_plan plan = empty_plan();
    size_t wanted = 1 + draws_bits(state) % (MOST - 1);
    for (size_t tries = 0; tries < wanted; tries++) {
        uint64_t bits = draws_bits(state);
        struct lb_case *c = &plan.cases[plan.count];
        add_case(&plan, impls[bits & 3], (int64_t)1 << (bits >> 2 & 7),
                 (int64_t)1 << (bits >> 5 & 3), (int64_t)16 << (bits >> 7 & 3));
        c->problem.pass = bits >> 9 & 1 ? LB_TRAIN : LB_INFER;
        c->threads = bits >> 10 & 1 ? 2 : 1;
        plan.count -= find(&plan, c) + 1 < plan.count; /* it repeats another one */
    }
    return plan;
}

static struct lb_plan shard_of(const struct lb_plan *plan, int index, int count)
{
    struct lb_plan part = empty_plan();
    const struct lb_sampler_options s = lb_sampler_defaults();
    char text[32];
    memcpy(part.cases, plan->cases, plan->count * sizeof(*part.cases));
    part.count = plan->count;
    snprintf(text, sizeof(text), "%d/%d", index, count);
    assert_int_equal(lb_shard_keep(text, &s, &part, NULL), LB_OK);
    return part;
}

/* Which shard each case of the plan is in; fails when it is in none or in two, or when the order of
 * the plan is lost. owner [plan->count] */
static void find_owners(const struct lb_plan *plan, int shards, int *owner)
{
    memset(owner, 0, plan->count * sizeof(*owner));
    for (int s = 1; s <= shards; s++) {
        struct lb_plan part = shard_of(plan, s, shards);
        size_t last = 0;
        for (size_t i = 0; i < part.count; i++) {
            size_t at = find(plan, &part.cases[i]);
            assert_true(at < plan->count);
            assert_int_equal(owner[at], 0);
            assert_true(i == 0 || at > last);
            owner[at] = s;
            last = at;
        }
        lb_plan_free(&part);
    }
    for (size_t i = 0; i < plan->count; i++)
        assert_int_not_equal(owner[i], 0);
}

TEST(shards_of_random_plans_are_the_plan_without_overlap)
{
    uint64_t draws = 20261122;
    int owner[MOST];
    for (int trial = 0; trial < 60; trial++) {
        struct lb_plan plan = random_plan(&draws);
        int shards = 1 + (int)(draws_bits(&draws) % 40);
        find_owners(&plan, shards, owner);
        for (size_t i = 0; i < plan.count; i++)
            for (size_t k = 0; k < i; k++)
                if (lb_case_same_problem(&plan.cases[i], &plan.cases[k]))
                    assert_int_equal(owner[i], owner[k]);
        lb_plan_free(&plan);
    }
}

/* The work of the plan's longest problem, by the estimate that shards are balanced by. */
static double longest_problem(const struct lb_plan *plan)
{
    double longest = 0;
    const struct lb_sampler_options s = lb_sampler_defaults();
    for (size_t i = 0; i < plan->count; i++) {
        double work = 0;
        for (size_t k = 0; k < plan->count; k++)
            if (lb_case_same_problem(&plan->cases[i], &plan->cases[k]))
                work += lb_predict_seconds(&plan->cases[k], 4e10 * plan->cases[k].threads, &s);
        longest = fmax(longest, work);
    }
    return longest;
}

/* No cut is better than the mean or than the longest problem, and longest-first is within 4/3 -
 * 1/(3n) of the best. Since the best is not known, the test holds the bound of any such list: mean
 * + (1 - 1/n) of the longest, and the one of 4/3 where the longest problem is at most a third of
 * the mean, for which it follows. */
TEST(shards_are_balanced_as_longest_first_guarantees)
{
    uint64_t draws = 7;
    for (int trial = 0; trial < 200; trial++) {
        struct lb_plan plan = random_plan(&draws);
        int shards = 1 + (int)(draws_bits(&draws) % 12);
        struct lb_plan part = shard_of(&plan, 1, shards);
        double mean = part.shard.plan_s / shards, longest = longest_problem(&plan);
        double slack = 1.01 + 0.001 * (double)plan.count; /* work is rounded up to whole ms */
        assert_true(part.shard.longest_s <= slack * (mean + longest * (1 - 1.0 / shards)));
        if (longest < mean / 3)
            assert_true(part.shard.longest_s <= slack * 4 / 3 * mean);
        assert_true(part.shard.own_s <= part.shard.longest_s);
        assert_int_equal(part.shard.plan_count, plan.count);
        lb_plan_free(&part);
        lb_plan_free(&plan);
    }
}

/* What is pinned here must not change: shards of one sweep may be run by builds of different days.
 */
TEST(a_known_plan_is_cut_as_ever)
{
    static const int expected[] = {1, 2, 3, 3, 3, 2};
    struct lb_plan plan = empty_plan();
    int owner[6];
    for (int i = 0; i < 6; i++)
        add_case(&plan, "cpu_ref", 1000 >> i, 64, 512);
    find_owners(&plan, 3, owner);
    assert_memory_equal(owner, expected, sizeof(expected));
    lb_plan_free(&plan);
}

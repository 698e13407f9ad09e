/* Canaries: a slow node is named, and none is where nodes differ only by chance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "report/canaries.h"
#include "tests/helpers/random_draws.h"

enum { NODES = 24, SHARDS = 3, MOST = NODES * SHARDS * 2 * LB_CANARY_COUNT };

static const char *const ids[LB_CANARY_COUNT] = {"cpu_simd/a", "cpu_simd/b", "cpu_simd/c"};

/* A sweep made up: each node runs so many shards, and each of these begins and ends with canaries.
 */
struct sweep {
    size_t nodes, shards, devices;
    double node_spread, spread; /* standard deviations: of nodes, and of the times of a node */
    size_t slow;                /* node with that factor; nodes: none */
    double factor;
};

/* About normal, by twelve uniform draws. */
static double normal(uint64_t *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++)
        sum += (double)draws_bits(state) * 0x1p-53;
    return sum;
}

static size_t make_up(const struct sweep *sweep, uint64_t *state, struct lb_canary_time *times,
                      size_t *devices)
{
    size_t count = 0;
    for (size_t n = 0; n < sweep->nodes; n++) {
        double speed = exp(sweep->node_spread * normal(state));
        devices[n] = n % sweep->devices;
        if (n == sweep->slow)
            speed *= sweep->factor;
        for (size_t i = 0; i < 2 * sweep->shards; i++)
            for (size_t k = 0; k < LB_CANARY_COUNT; k++)
                times[count++] =
                    (struct lb_canary_time){n, ids[k],
                                            1e5 * (double)(1 + k) * (double)(1 + 4 * devices[n]) *
                                                speed * exp(sweep->spread * normal(state))};
    }
    return count;
}

/* How many nodes are off; *slow: whether the slow one is. */
static size_t judge(const struct sweep *sweep, uint64_t *state, bool *slow, double *shift)
{
    struct lb_canary_time times[MOST];
    struct lb_canary_verdict verdicts[NODES];
    size_t devices[NODES], off = 0;
    size_t count = make_up(sweep, state, times, devices);
    struct lb_error err;
    assert_int_equal(lb_canaries_judge(times, count, devices, sweep->nodes, verdicts, &err), LB_OK);
    for (size_t n = 0; n < sweep->nodes; n++)
        off += verdicts[n].off;
    *slow = sweep->slow < sweep->nodes && verdicts[sweep->slow].off;
    *shift = sweep->slow < sweep->nodes ? verdicts[sweep->slow].shift : 0;
    return off;
}

static const struct {
    size_t nodes, shards, devices;
    double node_spread, spread;
} kinds[] = {
    {3, 1, 1, 0.01, 0.01},   {4, 2, 1, 0.005, 0.02}, {8, 3, 1, 0.01, 0.01},
    {24, 3, 2, 0.015, 0.01}, {24, 1, 3, 0.01, 0.03}, {6, 1, 1, 0.001, 0.1},
};

static void none_is_named_in_twenty_sweeps_of_each_kind_without_a_slow_node(void **state)
{
    uint64_t draws = 11;
    bool slow;
    double shift;
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        const struct sweep sweep = {kinds[k].nodes,
                                    kinds[k].shards,
                                    kinds[k].devices,
                                    kinds[k].node_spread,
                                    kinds[k].spread,
                                    NODES,
                                    1};
        for (int trial = 0; trial < 20; trial++)
            assert_int_equal(judge(&sweep, &draws, &slow, &shift), 0);
    }
}

static void a_slow_node_is_named_and_no_other(void **state)
{
    uint64_t draws = 5;
    bool slow;
    double shift;
    (void)state;
    for (size_t k = 0; k + 1 < sizeof(kinds) / sizeof(kinds[0]); k++) {
        int found = 0;
        for (int trial = 0; trial < 20; trial++) {
            struct sweep sweep = {kinds[k].nodes,
                                  kinds[k].shards,
                                  kinds[k].devices,
                                  kinds[k].node_spread,
                                  kinds[k].spread,
                                  draws_bits(&draws) % kinds[k].nodes,
                                  1.5};
            size_t off = judge(&sweep, &draws, &slow, &shift);
            assert_int_equal(off, slow);
            assert_true(!slow || fabs(shift - log(1.5)) < 0.1);
            found += slow;
        }
        assert_true(found >= 19);
    }
}

static void a_fast_node_is_named_too(void **state)
{
    const struct sweep sweep = {8, 2, 1, 0.01, 0.01, 3, 1 / 1.5};
    uint64_t draws = 5;
    bool fast;
    double shift;
    (void)state;
    assert_int_equal(judge(&sweep, &draws, &fast, &shift), 1);
    assert_true(fast && shift < 0);
}

/* Two nodes that differ do not tell which of them is off, nor does a device of its own. */
static void too_few_nodes_are_not_judged(void **state)
{
    const struct sweep two = {2, 3, 1, 0.01, 0.01, 0, 2}, alone = {4, 3, 2, 0.01, 0.01, 1, 2};
    uint64_t draws = 5;
    bool slow;
    double shift;
    (void)state;
    assert_int_equal(judge(&two, &draws, &slow, &shift), 0);
    assert_int_equal(judge(&alone, &draws, &slow, &shift), 0);
}

/* One canary alone may be disturbed on a node. */
static void a_node_that_is_off_in_one_canary_is_not_named(void **state)
{
    struct lb_canary_time times[MOST];
    struct lb_canary_verdict verdicts[NODES];
    const struct sweep sweep = {6, 2, 1, 0.01, 0.01, NODES, 1};
    size_t devices[NODES];
    uint64_t draws = 5;
    struct lb_error err;
    (void)state;
    size_t count = make_up(&sweep, &draws, times, devices);
    for (size_t i = 0; i < count; i++)
        if (times[i].node == 2 && times[i].id == ids[1])
            times[i].median_ns *= 3;
    assert_int_equal(lb_canaries_judge(times, count, devices, 6, verdicts, &err), LB_OK);
    for (size_t n = 0; n < 6; n++)
        assert_false(verdicts[n].off);
    for (size_t i = 0; i < count; i++)
        if (times[i].node == 2 && times[i].id == ids[2])
            times[i].median_ns *= 3;
    assert_int_equal(lb_canaries_judge(times, count, devices, 6, verdicts, &err), LB_OK);
    assert_true(verdicts[2].off);
}

static void without_canaries_nothing_is_said(void **state)
{
    const size_t devices[] = {0, 0, 0};
    struct lb_canary_verdict verdicts[3];
    struct lb_error err;
    (void)state;
    assert_int_equal(lb_canaries_judge(NULL, 0, devices, 3, verdicts, &err), LB_OK);
    for (size_t n = 0; n < 3; n++)
        assert_true(!verdicts[n].off && verdicts[n].nodes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_named_in_twenty_sweeps_of_each_kind_without_a_slow_node),
        cmocka_unit_test(a_slow_node_is_named_and_no_other),
        cmocka_unit_test(a_fast_node_is_named_too),
        cmocka_unit_test(too_few_nodes_are_not_judged),
        cmocka_unit_test(a_node_that_is_off_in_one_canary_is_not_named),
        cmocka_unit_test(without_canaries_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Canaries: a slow node is named, and none is where nodes differ only by chance. */
#include "report/canaries.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/test.h"

enum { NODES = 24, SHARDS = 3, MOST = NODES * SHARDS * 2 * LB_CANARY_COUNT };

static const char *const ids[LB_CANARY_COUNT] = {"cpu_simd/a", "cpu_simd/b", "cpu_simd/c"};

/* A sweep that is made up: each node runs so many shards, which begin and end with canaries. */
struct sweep {
    size_t nodes, shards, devices;
    double node_spread, spread; /* standard deviations: of nodes, and of the times of a node */
    double factor;              /* by which node 1 is slower */
    size_t canaries;            /* in how many of them it is */
    size_t lacking;             /* the last canaries, of which node 1 has no time */
};

/* Returns how many nodes are off; *verdict: that of node 1. */
static size_t judge(const struct sweep *sweep, uint64_t *state, struct lb_canary_verdict *verdict)
{
    struct lb_canary_time times[MOST];
    struct lb_canary_verdict verdicts[NODES];
    size_t devices[NODES], count = 0, off = 0;
    for (size_t n = 0; n < sweep->nodes; n++) {
        double speed = exp(sweep->node_spread * draws_normal(state));
        devices[n] = n % sweep->devices;
        for (size_t i = 0; i < 2 * sweep->shards; i++)
            for (size_t k = 0; k < LB_CANARY_COUNT - (n == 1 ? sweep->lacking : 0); k++) {
                double ns = 1e5 * (double)(1 + k) * (double)(1 + 4 * devices[n]) * speed *
                            exp(sweep->spread * draws_normal(state));
                ns *= n == 1 && k < sweep->canaries ? sweep->factor : 1;
                times[count++] = (struct lb_canary_time){n, ids[k], ns};
            }
    }
    lb_canaries_judge(times, count, devices, sweep->nodes, verdicts);
    for (size_t n = 0; n < sweep->nodes; n++)
        off += verdicts[n].off;
    *verdict = verdicts[1];
    return off;
}

TEST(a_slow_node_is_named_and_none_that_differs_by_chance)
{
    static const struct sweep kinds[] = {
        {3, 1, 1, 0.01, 0.01, 1.5, 3, 0},  {4, 2, 1, 0.005, 0.02, 1.5, 3, 0},
        {8, 3, 1, 0.01, 0.01, 1.5, 3, 0},  {24, 3, 2, 0.015, 0.01, 1.5, 3, 0},
        {24, 1, 3, 0.01, 0.03, 1.5, 3, 0}, {8, 2, 1, 0.01, 0.01, 1 / 1.5, 3, 0},
        {8, 2, 1, 0.01, 0.01, 1.5, 2, 0},  {8, 2, 1, 0.01, 0.01, 1.5, 2, 1},
    };
    enum { SWEEPS = 200 };
    uint64_t draws = 11;
    struct lb_canary_verdict verdict;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        size_t wrong = 0, found = 0;
        for (int i = 0; i < SWEEPS; i++) {
            struct sweep same = kinds[k];
            same.canaries = 0;
            wrong += judge(&same, &draws, &verdict);
            wrong += judge(&kinds[k], &draws, &verdict) - verdict.off;
            found += verdict.off;
            double shift = log(kinds[k].factor) * (double)kinds[k].canaries /
                           (double)(LB_CANARY_COUNT - kinds[k].lacking);
            assert_true(!verdict.off || ((verdict.balance > 0) == (shift > 0) &&
                                         fabs(verdict.shift - shift) < 0.1));
        }
        print_message("kind %zu: %zu of %d found, %zu wrong\n", k, found, SWEEPS, wrong);
        assert_true(wrong <= SWEEPS / 100 && found >= SWEEPS * 95 / 100);
    }
}

/* Two nodes that differ do not tell which of them is off, nor does a device with one node. One
 * canary alone may be disturbed on a node. */
TEST(what_tells_too_little_names_no_node)
{
    static const struct sweep kinds[] = {{2, 3, 1, 0.01, 0.01, 2, 3, 0},
                                         {4, 3, 2, 0.01, 0.01, 2, 3, 0},
                                         {6, 2, 1, 0.01, 0.01, 3, 1, 0},
                                         {3, 0, 1, 0.01, 0.01, 2, 3, 0}};
    static const size_t judged[] = {2, 2, 6, 0};
    uint64_t draws = 5;
    struct lb_canary_verdict verdict;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        assert_int_equal(judge(&kinds[k], &draws, &verdict), 0);
        assert_int_equal(verdict.nodes, judged[k]);
    }
}

/* Which calls are checked, which inputs they read, and when inputs change places. */
#include "case/call_checks.h"
#include "tests/helpers/test.h"

enum { SAMPLES = 20000 };

/* How many of so many samples are checked and how many swaps there are, when a sample, a check and
 * a swap take so many ns. */
struct counts {
    size_t checked, swaps, first_swap;
};

static struct counts sample(struct lb_call_checks *checks, size_t samples, double sample_ns,
                            double check_ns, double swap_ns)
{
    struct counts counts = {.first_swap = SIZE_MAX};
    for (size_t i = 0; i < samples; i++) {
        if (lb_call_checks_swap_due(checks)) {
            if (counts.swaps++ == 0)
                counts.first_swap = i;
            checks->swap_ns = swap_ns;
        }
        bool due = lb_call_checks_due(checks);
        counts.checked += due;
        checks->sample_ns = sample_ns;
        if (due)
            lb_call_checks_note_check(checks, check_ns);
    }
    return counts;
}

TEST(the_first_samples_are_checked_and_all_where_that_is_cheap)
{
    static const struct {
        double max_ns;
        size_t samples;
        double sample_ns, check_ns, swap_ns;
        size_t least, most;
    } cases[] = {{10e9, 20, 1, 1e5, 1, 20, 20},
                 {10e9, 20, 1, 1e7, 1, 3, 4},
                 {10e6, 20, 1, 0.3e6, 1, 4, 5},
                 {10e9, 1000, 1e6, 1e4, 1e9, 1000, 1000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_call_checks checks;
        lb_call_checks_open(&checks, cases[i].max_ns);
        struct counts counts = sample(&checks, cases[i].samples, cases[i].sample_ns,
                                      cases[i].check_ns, cases[i].swap_ns);
        assert_in_range(counts.checked, cases[i].least, cases[i].most);
        checks.check_next = true;
        assert_true(lb_call_checks_due(&checks));
    }
}

TEST(checks_take_a_twentieth_of_the_time_and_swaps_a_hundredth)
{
    struct lb_call_checks checks;
    lb_call_checks_open(&checks, 10e9);
    struct counts counts = sample(&checks, SAMPLES, 1e4, 1e4, 2e4);
    /* Binomial, of p = 0.05 and 0.005: six standard deviations are 185 and 60. */
    assert_in_range(counts.checked, 1000 - 185, 1020 + 185);
    assert_in_range(counts.swaps, 100 - 60, 100 + 60);
    assert_int_equal(counts.checked, checks.checked);
}

/* What an implementation could know beforehand: nothing, if each run draws anew. */
TEST(every_case_is_drawn_anew_and_evenly)
{
    enum { CASES = 64 };
    uint64_t seeds[CASES];
    size_t first[16] = {0}, different = 0, ones = 0;
    for (size_t i = 0; i < CASES; i++) {
        struct lb_call_checks checks;
        lb_call_checks_open(&checks, 10e9);
        seeds[i] = checks.seed;
        assert_true(checks.seed < (uint64_t)1 << 48); /* exact as a number of the record */
        for (size_t k = 0; k < i; k++)
            assert_true(seeds[k] != seeds[i]);
        for (int order = 0; order < 64; order++)
            ones += lb_call_checks_order(&checks) & 1;
        size_t swap = sample(&checks, 20, 1, 1, 1e9).first_swap;
        assert_in_range(swap, 0, 15);
        first[swap]++;
    }
    for (size_t i = 0; i < 16; i++)
        different += first[i] > 0;
    assert_true(different > 8);
    assert_in_range(ones, CASES * 32 - 200, CASES * 32 + 200); /* six standard deviations */
}

/* No call of a batch reads what the call before it read, whose results are already there. */
TEST(calls_of_a_batch_take_turns)
{
    struct lb_call_checks checks;
    lb_call_checks_open(&checks, 10e9);
    for (int batch = 0; batch < 100; batch++) {
        uint64_t order = lb_call_checks_order(&checks);
        assert_true((order ^ order >> 1) << 1 == UINT64_MAX << 1);
    }
}

/* The clock of a stream: when calls are due, and what makes them late. Time is made up. */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "measure/sampler.h"
#include "tests/helpers/test.h"

static double passed_ns = 1e9; /* the time of the made-up clock */

/* Reading the clock takes 50 ns, and a sleep lasts 60 us longer than was asked for. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    (void)id;
    passed_ns += 50;
    *now = (struct timespec){.tv_sec = (time_t)(passed_ns / 1e9),
                             .tv_nsec = (long)fmod(passed_ns, 1e9)};
    return 0;
}

int nanosleep(const struct timespec *asked, struct timespec *left)
{
    (void)left;
    passed_ns += 1e9 * (double)asked->tv_sec + (double)asked->tv_nsec + 6e4;
    return 0;
}

/* Makes a call of that time after the harness has worked; returns its latency. */
static double call(struct lb_stream_clock *clock, double harness_ns, double call_ns)
{
    passed_ns += harness_ns;
    double late = lb_stream_clock_wait(clock, 1000);
    passed_ns += call_ns;
    lb_stream_clock_note(clock, late, call_ns);
    return late + call_ns;
}

static void assert_about(double found, double expected)
{
    if (fabs(found - expected) > 1)
        fail_msg("%.0f ns, expected %.0f ns", found, expected);
}

TEST(calls_begin_when_they_are_due)
{
    struct lb_stream_clock clock = {0};
    double first = 0;
    for (int i = 0; i < 100; i++) {
        assert_about(call(&clock, 1000, 2e5), 2e5);
        double begun = passed_ns - 2e5;
        first = i == 0 ? begun : first;
        assert_true(fabs(begun - first - 1e6 * i) < 1000);
    }
}

/* Without this, a stall of 3.5 ms at 1,000 calls per second would be one slow call; it makes three
 * more of them late. */
TEST(a_call_that_waited_counts_from_when_it_was_due)
{
    struct lb_stream_clock clock = {0};
    const double expected[] = {2e5, 3.5e6, 2.7e6, 1.9e6, 1.1e6, 3e5, 2e5, 2e5};
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_about(call(&clock, 1000, i == 1 ? 3.5e6 : 2e5), expected[i]);
}

TEST(work_of_the_harness_makes_no_call_late)
{
    struct lb_stream_clock clock = {0};
    for (int i = 0; i < 20; i++)
        assert_about(call(&clock, i % 3 == 0 ? 5e6 : 1000, 2e5), 2e5);
    /* nor does it hide that calls are too slow for the rate */
    for (int i = 0; i < 20; i++)
        assert_about(call(&clock, 5e6, 1.5e6), 1.5e6 + 5e5 * i);
}

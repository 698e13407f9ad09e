/* Calls on inputs that were in no call before: where calls are long, the first of them is one of
 * the samples. */
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "case/context.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

#define CASE "cpu_ref/T3_B2_I3_H4/f32/infer"

enum { X_BYTES = 3 * 2 * 3 * sizeof(float), CALLS = 8192 };

/* What the calls of forward read, in their order: the number of their x, by its first appearance.
 * The first two are those of the timed sets. */
static struct {
    uint64_t known[CALLS];
    int known_count, read[CALLS], calls;
    double call_ns; /* a call takes at least that long */
    bool wrong;     /* the results on others than the first two are */
} seen;

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const double start = lb_now_ns();
    const uint64_t hash = lb_hash_bytes(0, io->x, X_BYTES);
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    int x = 0;
    while (x < seen.known_count && seen.known[x] != hash)
        x++;
    if (x == seen.known_count)
        seen.known[seen.known_count++] = hash;
    if (seen.wrong && x >= LB_TIMED_SETS)
        *(float *)io->y += 1;
    if (seen.calls < CALLS)
        seen.read[seen.calls++] = x;
    while (lb_now_ns() - start < seen.call_ns)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return st;
}

static struct lb_row run(double call_ns, double max_ns)
{
    struct lb_impl impl = lb_impl_cpu_ref;
    struct lb_run_options options = {.seed = 1, .sampler = lb_sampler_defaults()};
    struct lb_row row;
    impl.forward = forward;
    options.sampler.max_samples = 40;
    options.sampler.max_ns = max_ns;
    seen.call_ns = call_ns;
    seen.calls = seen.known_count = 0;
    trial_case_run(&impl, CASE, &options, &row);
    return row;
}

/* The first call that did not read one of the timed sets. */
static int first_new(void)
{
    int i = 0;
    while (i < seen.calls && seen.read[i] < LB_TIMED_SETS)
        i++;
    assert_true(i < seen.calls);
    return i;
}

static int begin(void **state)
{
    memset(&seen, 0, sizeof(seen));
    return 0;
}

static void expect_ok(struct lb_row *row)
{
    assert_string_equal(row->reason, "");
    assert_int_equal(row->verdict, LB_VERDICT_OK);
    lb_row_free(row);
}

TEST_WITH(a_long_call_on_new_inputs_is_among_the_first_samples, begin, NULL)
{
    struct lb_row row = run(LB_LONG_CALL_NS, 3e8);
    assert_true(row.samples >= 6);
    /* Verified calls, those that warm up, and up to three samples come before it. */
    int at = first_new();
    assert_in_range(at, 2, 10);
    assert_true(seen.read[at + 1] < LB_TIMED_SETS);
    expect_ok(&row);
}

TEST_WITH(a_short_one_follows_the_samples, begin, NULL)
{
    struct lb_row row = run(0, 3e8);
    int at = first_new();
    assert_true(at >= (int)row.samples);
    assert_true(seen.read[at + 1] >= LB_TIMED_SETS); /* the large x */
    expect_ok(&row);
}

TEST_WITH(both_are_compared_with_the_oracle, begin, NULL)
{
    seen.wrong = true;
    for (int is_long = 0; is_long < 2; is_long++) {
        struct lb_row row = run(is_long ? LB_LONG_CALL_NS : 0, 3e8);
        assert_int_equal(row.verdict, LB_VERDICT_WRONG);
        assert_non_null(strstr(row.reason, "with inputs that were in no call before"));
        lb_row_free(&row);
    }
}

/* The steps after the samples look at what a call on a timed set wrote. */
TEST_WITH(all_samples_may_be_verified_calls, begin, NULL)
{
    struct lb_row row = run(1e6, 1);
    assert_int_equal(row.samples, 1);
    expect_ok(&row);
}

TEST_WITH(it_may_be_the_last_sample, begin, NULL)
{
    for (int i = 0; i < 12; i++) {
        struct lb_row row = run(LB_LONG_CALL_NS, 1e7);
        expect_ok(&row);
    }
}

/* cpu_simd on several threads: the same bits as on one, and pinned threads that come and go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread_pool.h"
#include "model/registry.h"
#include "tests/helpers/conformance_trial.h"

enum { MEETINGS = 2000, MEMBERS = 4 };

struct relay {
    struct lb_pinned_threads *team;
    int at[MEMBERS], missed;
};

/* Each thread looks at the one before it, between two meetings: all are at the same count. */
static void run_relay(void *arg, size_t thread)
{
    struct relay *relay = arg;
    for (int i = 0; i < MEETINGS; i++) {
        relay->at[thread] = i;
        lb_pinned_threads_barrier(relay->team);
        if (relay->at[thread == 0 ? 1 : 0] != i)
            relay->missed++;
        lb_pinned_threads_barrier(relay->team);
    }
}

static int cpus(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count < MEMBERS ? (int)count : MEMBERS;
}

static void threads_meet(void **state)
{
    struct lb_error err;
    (void)state;
    if (cpus() < 2)
        skip();
    for (int round = 0; round < 3; round++)
        for (int threads = 2; threads <= cpus(); threads++) {
            struct relay relay = {.missed = 0};
            assert_int_equal(lb_pinned_threads_open(threads, &relay.team, &err), LB_OK);
            lb_pinned_threads_run(relay.team, run_relay, &relay);
            lb_pinned_threads_run(relay.team, run_relay, &relay);
            assert_int_equal(relay.missed, 0);
            lb_pinned_threads_close(relay.team);
        }
}

static void more_threads_than_cpus_are_refused(void **state)
{
    struct lb_pinned_threads *team;
    struct lb_error err = {""};
    (void)state;
    assert_int_equal(lb_pinned_threads_open(256, &team, &err), LB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "threads 256"));
    assert_null(team);
}

/* Runs a case, checks its verdict, and returns the hash of its results. */
static uint64_t hash_of(const char *text)
{
    extern const struct lb_impl lb_impl_cpu_simd;
    struct lb_run_options options = {.seed = 1, .sampler = lb_sampler_defaults()};
    struct lb_row row;
    options.sampler.max_ns = 1e6;
    trial_case_run(&lb_impl_cpu_simd, text, &options, &row);
    if (row.verdict != LB_VERDICT_OK)
        fail_msg("%s: %s", text, row.reason);
    uint64_t hash = row.hash;
    lb_row_free(&row);
    return hash;
}

static void results_do_not_depend_on_threads_where_rows_stay_whole(void **state)
{
    static const char *const problems[] = {
        "T9_B13_I37_H100_L2_D2/f32/infer", "T9_B13_I37_H100_L2_D2/f32/infer/ragged",
        "T5_B7_I33_H130_D2/f64/infer",     "T7_B31_I20_H200/f32/forward/ragged",
        "T6_B8_I1200_H80_L2/f32/infer",
    };
    char one[128], two[128];
    (void)state;
    if (cpus() < 2)
        skip();
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        snprintf(one, sizeof(one), "cpu_simd/%s", problems[i]);
        snprintf(two, sizeof(two), "cpu_simd/%s/th2", problems[i]);
        assert_int_equal(hash_of(one), hash_of(two));
    }
}

static void training_is_right_on_two_threads(void **state)
{
    (void)state;
    if (cpus() < 2)
        skip();
    hash_of("cpu_simd/T9_B13_I37_H100_L2_D2/f32/train/th2");
    hash_of("cpu_simd/T9_B13_I37_H100_L2_D2/f32/train/ragged/th2");
    hash_of("cpu_simd/T5_B7_I33_H130_D2/f64/backward/ragged/th2");
    hash_of("cpu_simd/T5_B40_I3_H17_L3/f32/train/th2"); /* runs on one thread: too little work */
}

/* Inputs so large that they are packed for the weight gradients, in more than one block of rows;
 * and so many gates that backward sums them in blocks. */
static void training_is_right_beyond_the_caches(void **state)
{
    (void)state;
    hash_of("cpu_simd/T40_B14_I420_H40_D2/f32/train");
    hash_of("cpu_simd/T3_B7_I9_H500/f32/train/ragged");
    if (cpus() < 2)
        return;
    hash_of("cpu_simd/T40_B14_I420_H40_D2/f32/train/th2");
    hash_of("cpu_simd/T3_B7_I9_H500/f32/train/ragged/th2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_meet),
        cmocka_unit_test(more_threads_than_cpus_are_refused),
        cmocka_unit_test(results_do_not_depend_on_threads_where_rows_stay_whole),
        cmocka_unit_test(training_is_right_on_two_threads),
        cmocka_unit_test(training_is_right_beyond_the_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* How kernel_trace uses CUPTI, with a stub of the library that reports made-up launches. */
#include "cupti_stub.h"
#include "tests/helpers/test.h"
#include "trace/kernel_trace.h"

static enum lb_status count_call(void *user, struct lb_error *err)
{
    int *calls = user;
    (void)err;
    ++*calls;
    return LB_OK;
}

static enum lb_status failing_call(void *user, struct lb_error *err)
{
    (void)user;
    return lb_fail(err, LB_FAILED, "the planted failure");
}

TEST(records_become_kernels)
{
    int calls = 0;
    struct lb_kernels k;
    cupti_stub_use(STUB_SOUND);
    for (int again = 1; again <= 2; again++) { /* the second trace has no records of the first */
        assert_int_equal(lb_kernel_trace(count_call, &calls, false, &k, NULL), LB_OK);
        assert_int_equal(calls, again);
        assert_int_equal(k.count, 2);
        assert_true(k.launches == 3 && k.span_ns == 501 && k.gap_ns == 51);
        assert_string_equal(k.items[0].name, "step_forward");
        assert_int_equal(k.items[0].count, 2);
        assert_true(k.items[0].total_ns == 300 && k.items[0].longest_ns == 200);
        assert_int_equal(k.items[0].grid[0], 9);
        assert_int_equal(k.items[0].block[0], 128);
        assert_int_equal(k.items[0].cluster[0], 2);
        assert_int_equal(k.items[0].registers, 96);
        assert_int_equal(k.items[0].shared_bytes, 66560);
        assert_int_equal(k.items[1].tensor_cores, LB_TENSOR_YES);
        assert_int_equal(cupti_stub_attached(), 0);
        lb_kernels_free(&k);
    }
}

/* Detaching an older CUPTI from a process that replayed graphs crashes it, so that it is kept away
 * from graphs. */
TEST(what_gives_no_kernels_is_reported)
{
    static const struct {
        enum cupti_stub_mode mode;
        bool graph;
        int calls;
        const char *says;
    } cases[] = {
        {STUB_TAKEN, false, 0, "another profiler is attached"},
        {STUB_NO_KERNEL, false, 1, "no kernel"},
        {STUB_DROPS, false, 1, "dropped 2 records and gave 0 kernels without times"},
        {STUB_UNTIMED, false, 1, "dropped 0 records and gave 1 kernels without times"},
        {STUB_DROPS, false, 1, "dropped 2 records and gave 0"}, /* counted anew */
        {STUB_OLD, true, 0, "graphs are traced from CUPTI of CUDA 12.6 on"},
    };
    struct lb_kernels k = {0};
    int calls = 0;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_error err = {""};
        calls = 0;
        cupti_stub_use(cases[i].mode);
        assert_int_equal(lb_kernel_trace(count_call, &calls, cases[i].graph, &k, &err), LB_ABSENT);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s", err.text);
        assert_int_equal(calls, cases[i].calls);
        assert_int_equal(cupti_stub_attached(), 0);
    }
    cupti_stub_use(STUB_SOUND);
    assert_int_equal(lb_kernel_trace(count_call, &calls, true, &k, NULL), LB_OK);
    lb_kernels_free(&k);
}

TEST(a_failing_call_leaves_nothing_attached)
{
    struct lb_kernels k = {0};
    struct lb_error err = {""};
    cupti_stub_use(STUB_SOUND);
    assert_int_equal(lb_kernel_trace(failing_call, NULL, false, &k, &err), LB_FAILED);
    assert_string_equal(err.text, "the planted failure");
    assert_int_equal(cupti_stub_attached(), 0);
}

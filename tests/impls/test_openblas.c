/* Tests openblas on several threads, and the state in which it leaves the library for the next
 * case. */
#include <unistd.h>

#include <cblas.h>

#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_openblas;

/* Runs a case; the caller frees the row. */
static struct lb_row run(const char *text)
{
    struct lb_run_options options = {.seed = 1, .sampler = lb_sampler_defaults()};
    struct lb_row row;
    options.sampler.max_ns = 1e6;
    trial_case_run(&lb_impl_openblas, text, &options, &row);
    return row;
}

static void is_right(const char *text)
{
    struct lb_row row = run(text);
    if (row.verdict != LB_VERDICT_OK)
        fail_msg("%s: %s", text, row.reason);
    lb_row_free(&row);
}

static int cpus(void)
{
    return (int)sysconf(_SC_NPROCESSORS_ONLN);
}

/* One thread comes first: that case is pinned to one CPU, and the library might conclude that the
 * machine has only that one. */
TEST(two_threads_are_right_after_one)
{
    if (cpus() < 2)
        skip();
    is_right("openblas/T7_B5_I37_H100_L2_D2/f32/train");
    is_right("openblas/T7_B5_I37_H100_L2_D2/f32/train/th2");
    is_right("openblas/T7_B5_I37_H100_L2_D2/f64/train/ragged/th2");
    is_right("openblas/T9_B1_I300_H300_D2/f32/train/th2");
    is_right("openblas/T40_B20_I64_H64_L3/f32/infer/ragged/th2");
}

TEST(more_threads_than_cpus_are_refused)
{
    struct lb_row row = run("openblas/T2_B1_H4/f32/infer/th2000");
    assert_int_equal(row.verdict, LB_VERDICT_UNSUPPORTED);
    assert_non_null(strstr(row.reason, "threads 2000: this process may use "));
    lb_row_free(&row);
}

TEST(sides_beyond_an_int_are_refused)
{
    struct lb_exec_config config = {.threads = 1};
    struct lb_problem problem = {.seq_len = 65536,
                                 .batch = 32768,
                                 .input = 1,
                                 .hidden = 1,
                                 .layers = 1,
                                 .directions = 1,
                                 .dtype = LB_F32};
    struct lb_error why;
    assert_int_equal(lb_impl_openblas.supports(&problem, &config, &why), LB_UNSUPPORTED);
    assert_string_equal(why.text, "a matrix side of 2147483648: OpenBLAS takes at most 2147483647");
    problem.seq_len--;
    assert_int_equal(lb_impl_openblas.supports(&problem, &config, &why), LB_OK);
    problem.hidden = INT32_MAX / 4 + 1; /* four gates of which are too many */
    assert_int_equal(lb_impl_openblas.supports(&problem, &config, &why), LB_UNSUPPORTED);
}

TEST(one_thread_is_left)
{
    if (cpus() < 2)
        skip();
    is_right("openblas/T5_B40_I200_H200/f32/train/th2");
    assert_int_equal(openblas_get_num_threads(), 1);
}

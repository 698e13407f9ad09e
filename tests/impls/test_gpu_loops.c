/* The GPU implementations that are made of GEMMs and pointwise kernels, run on the host: their own
 * source on a fake device, with GEMMs as plain loops and kernels as loops over threads. */
#include "base/random.h"
#include "tests/fake_gpu/gpu_case.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cuda_step, lb_impl_cuda_naive;
static const struct lb_impl *const impls[] = {&lb_impl_cuda_step, &lb_impl_cuda_naive};
static const char *const dtypes[] = {"f64", "f32", "f16", "bf16"};
static const char *const passes[] = {"infer", "forward", "backward", "train"};
enum { IMPL_COUNT = sizeof(impls) / sizeof(impls[0]) };

/* The case of a problem: "cuda_step/T4_B2_H4/f32/train". Static storage. */
static const char *case_of(const struct lb_impl *impl, const char *problem)
{
    static char text[LB_CASE_ID_SIZE];
    snprintf(text, sizeof(text), "%s/%s", impl->name, problem);
    return text;
}

/* The case is right in this order of the streams. */
static void expect_ok_in_order(const struct lb_impl *impl, const char *problem, int order)
{
    struct lb_row row;
    fake_queue_order((enum fake_order)(order % FAKE_ORDER_COUNT));
    gpu_case_run_ok(impl, case_of(impl, problem), &row);
    assert_true(row.peak_bytes > 0);
    lb_row_free(&row);
}

/* The case is right in each order of the streams that their waits allow. */
static void expect_ok(const struct lb_impl *impl, const char *problem)
{
    for (int order = 0; order < FAKE_ORDER_COUNT; order++)
        expect_ok_in_order(impl, problem, order);
}

TEST(a_loop_without_one_of_its_waits_is_found)
{
    static const struct gpu_case_waits waits[] = {
        {"cuda_step/T19_B2_I4_H3_L3/f64/train", FAKE_WAIT, FAKE_FORWARD, 14},
        {"cuda_step/T19_B2_I4_H3_L3/f64/train", FAKE_WAIT, FAKE_BACKWARD, 14},
        {"cuda_step/T4_B2_I4_H3_L3_D2/f64/train", FAKE_WAIT, FAKE_FORWARD, 4},
        /* A sixth wait ends the lowest layer, below which no layer needs its gradient. */
        {"cuda_step/T4_B2_I4_H3_L3_D2/f64/train", FAKE_WAIT, FAKE_BACKWARD, 5},
        {"cuda_step/T19_B2_I4_H3_L3/f64/forward", FAKE_JOIN, FAKE_FORWARD, 1},
        {"cuda_step/T19_B2_I4_H3_L3/f64/train", FAKE_JOIN, FAKE_BACKWARD, 1},
        /* A stream that was not forked from the captured one is not part of the graph. */
        {"cuda_step/T4_B2_H4_D2/f64/train/graph", FAKE_FORK, FAKE_FORWARD, 1},
        {"cuda_step/T19_B2_H4_L2/f64/backward/graph", FAKE_FORK, FAKE_BACKWARD, 1},
    };
    gpu_case_expect_waits_needed(&lb_impl_cuda_step, waits, sizeof(waits) / sizeof(waits[0]));
}

/* Each pass of a shape runs in every order of the streams, because it takes the next one with each
 * dtype. The streams do not depend on the dtype. */
TEST(every_shape_agrees_with_the_oracle)
{
    static const char *const problems[][2] = {
        {"T1_B1_I1_H1", ""},
        {"T7_B3_I5_H6", ""},
        {"T9_B5_I4_H8", "/ragged"},
        {"T5_B4_I3_H7_D2", ""},
        {"T6_B5_I3_H5_D2", "/ragged"},
        {"T11_B3_I4_H5_L3", ""},
        {"T19_B4_I6_H5_L4", "/ragged"},
        {"T6_B3_I4_H5_L3_D2", "/ragged"},
    };
    for (size_t i = 0; i < IMPL_COUNT; i++) {
        for (size_t p = 0; p < sizeof(problems) / sizeof(problems[0]); p++) {
            for (int k = 0; k < 16; k++) {
                char text[LB_CASE_ID_SIZE];
                snprintf(text, sizeof(text), "%s/%s/%s%s", problems[p][0], dtypes[k / 4],
                         passes[k % 4], problems[p][1]);
                expect_ok_in_order(impls[i], text, k / 4);
            }
        }
    }
}

/* Sizes from 1 to 12, any dtype, pass and kind, and the orders of the streams in turn. */
TEST(random_problems_agree_with_the_oracle)
{
    enum { PROBLEMS = 150 };
    for (uint64_t seed = 0; seed < PROBLEMS; seed++) {
        char text[LB_CASE_ID_SIZE];
        uint64_t n[10];
        for (uint64_t i = 0; i < 10; i++)
            n[i] = lb_random_below(seed, 1, i, 12);
        snprintf(text, sizeof(text), "T%d_B%d_I%d_H%d_L%d_D%d/%s/%s%s%s", (int)n[0] + 1,
                 (int)n[1] + 1, (int)n[2] + 1, (int)n[3] + 1, (int)n[4] % 4 + 1, (int)n[5] % 2 + 1,
                 dtypes[n[6] % 4], passes[n[7] % 4], n[8] % 2 ? "/ragged" : "",
                 n[9] % 3 ? "" : "/act-relu");
        for (size_t i = 0; i < IMPL_COUNT; i++)
            expect_ok_in_order(impls[i], text, (int)seed);
    }
}

TEST(relu_gates_and_math_modes_agree_too)
{
    for (size_t i = 0; i < IMPL_COUNT; i++) {
        expect_ok(impls[i], "T8_B3_I5_H6_L2/f32/train/act-relu");
        expect_ok(impls[i], "T8_B3_I5_H6_D2/f16/train/ragged/act-relu");
        expect_ok(impls[i], "T8_B3_I5_H6/f32/train/tf32");
        expect_ok(impls[i], "T8_B3_I5_H6/f32/train/half");
    }
}

/* Every cell and dtype, with and without ragged rows, in the loop that has them. The other two
 * passes are parts of these; they are tried in one dtype. */
TEST(every_cell_agrees_with_the_oracle)
{
    static const char *const problems[][2] = {
        {"T7_B3_I5_H6_P2", ""},
        {"T5_B4_I3_H7_P6_L2_D2", ""},
        {"T7_B3_I5_H6", "/cell-peephole"},
        {"T5_B4_I3_H7_L2_D2", "/cell-peephole"},
        {"T7_B3_I5_H6", "/cell-recurrent-dropout"},
        {"T5_B4_I3_H7_L2_D2", "/cell-recurrent-dropout"},
        {"T7_B3_I5_H6_L2", "/cell-residual"},
        {"T5_B4_I3_H7_L3_D2", "/cell-residual"},
        {"T7_B3_I5_H9", "/cell-layernorm"},
        {"T5_B4_I3_H17_L2_D2", "/cell-layernorm"},
    };
    for (size_t p = 0; p < sizeof(problems) / sizeof(problems[0]); p++)
        for (int k = 0; k < 32; k++) {
            char text[LB_CASE_ID_SIZE];
            const int pass = k / 2 % 4;
            if ((pass == 1 || pass == 2) && k / 8 > 0)
                continue;
            snprintf(text, sizeof(text), "%s/%s/%s%s%s", problems[p][0], dtypes[k / 8],
                     passes[pass], k % 2 ? "/ragged" : "", problems[p][1]);
            expect_ok_in_order(&lb_impl_cuda_naive, text, k);
        }
    expect_ok(&lb_impl_cuda_naive, "T8_B3_I5_H6_P3/f32/train/tf32");
    expect_ok(&lb_impl_cuda_naive, "T4_B2_H4_P2/f32/train/graph");
    expect_ok(&lb_impl_cuda_naive, "T4_B2_H8/f32/train/cell-layernorm/graph");
}

TEST(graphs_cold_caches_and_batches_are_timed)
{
    for (size_t i = 0; i < IMPL_COUNT; i++) {
        expect_ok(impls[i], "T4_B2_H4/f32/train/graph");
        assert_int_equal(fake_device_counts()->captures, 2); /* one per input set */
        assert_true(fake_device_counts()->replays >= 4);     /* two to warm up, two samples */
        expect_ok(impls[i], "T4_B2_H4_L2/f16/backward/graph/cold");
        assert_true(fake_device_counts()->fills > fake_device_counts()->replays);
        expect_ok(impls[i], "T4_B2_H4/f32/infer/batched");
        assert_int_equal(fake_device_counts()->captures, 0);
    }
}

/* Scaled gradients are the same, or their overflow is reported. */
TEST(scales_and_missing_cells_have_their_verdict)
{
    static const struct {
        const char *text;
        double loss_scale;
        enum lb_verdict verdict;
        const char *says;
    } cases[] = {
        {"cuda_step/T6_B3_I4_H5/f32/train", 1024, LB_VERDICT_OK, ""},
        {"cuda_step/T6_B3_I4_H5/f16/train", 1048576, LB_VERDICT_WRONG,
         "gradients overflow at loss scale 1.04858e+06"},
        {"cuda_step/T6_B3_I4_H5_P2/f32/train", 1, LB_VERDICT_UNSUPPORTED,
         "cell projection: cuda_step needs the standard cell"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        gpu_case_run(&lb_impl_cuda_step, cases[i].text, cases[i].loss_scale, false, &row);
        bool said = row.verdict == LB_VERDICT_WRONG ? strstr(row.reason, cases[i].says) != NULL
                                                    : strcmp(row.reason, cases[i].says) == 0;
        if (row.verdict != cases[i].verdict || !said)
            fail_msg("%s: %s: %s", cases[i].text, lb_verdict_name(row.verdict), row.reason);
        lb_row_free(&row);
    }
}

/* The scale falls until the gradients of both input sets fit, and the check for overflow is timed
 * on the device, where it finds none. */
TEST(dynamic_loss_scale_settles_on_a_device)
{
    struct lb_row row;
    gpu_case_run(&lb_impl_cuda_step, "cuda_step/T6_B3_I4_H5/f16/train", 1048576, true, &row);
    if (row.verdict != LB_VERDICT_OK)
        fail_msg("%s", row.reason);
    assert_true(row.loss_scale >= 1 && row.loss_scale < 1048576 && row.overflow_share > 0);
    assert_true(row.overflow_check_ns > 0 && row.gradient_err_norm > 0);
    assert_null(strstr(row.warning, "check for overflow"));
    lb_row_free(&row);
}

TEST_GROUP(NULL, trial_close_cache)

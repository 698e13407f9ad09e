/* Tests the rules of what cuDNN supports, by variant and problem and against the library where
 * it answers without a device. */
#include <cudnn.h>

#include "impls/cudnn/rnn.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* The reason of each variant (standard, persist_static, persist_dynamic, small_h); NULL: it
 * supports the problem. */
static const struct {
    const char *problem;
    const char *reasons[4];
} limits[] = {
    {"T25_B16_H128/f16/infer", {NULL, NULL, NULL, NULL}},
    {"T25_B16_H128/bf16/train", {NULL, NULL, NULL, NULL}},
    {"T25_B16_I128_H1100/f16/infer", {NULL, NULL, NULL, "hidden 1100 is above 192"}},
    {"T25_B16_H192_L4_D2/f32/train", {NULL, NULL, NULL, NULL}},
    {"T25_B16_H128/f64/infer", {NULL, "dtype f64", NULL, "dtype f64"}},
    {"T25_B16_H128/f16/infer/ragged", {NULL, "ragged", "ragged", "ragged"}},
    {"T25_B16_H128/f32/infer/act-relu", {"act relu", "act relu", "act relu", "act relu"}},
    {"T25_B16_H128_P64/f16/train", {NULL, "cell projection", "cell projection", "cell projection"}},
    {"T25_B16_H128_P64_L2_D2/f64/infer/ragged",
     {NULL, "cell projection", "cell projection", "cell projection"}},
    {"T65535_B1_H8/f32/infer", {NULL, NULL, NULL, NULL}},
    {"T65536_B1_H8/f32/infer", {"seq_len", "seq_len", "seq_len", "seq_len"}},
    {"T1_B262144_I8_H8192/f16/infer", {"a size, or", "a size, or", "a size, or", "a size, or"}},
};

TEST(each_variant_names_its_limit)
{
    struct lb_device_info device = trial_device("h100");
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct lb_problem p = trial_problem(limits[i].problem);
        bool any = false;
        for (int v = CUDNN_STANDARD; v <= CUDNN_SMALL_H; v++) {
            struct lb_error why = {""};
            const char *reason = limits[i].reasons[v - CUDNN_STANDARD];
            enum lb_status st = lb_cudnn_rules_check((enum lb_cudnn_variant)v, &p, &device, &why);
            assert_int_equal(st, reason ? LB_UNSUPPORTED : LB_OK);
            if (reason && strncmp(why.text, reason, strlen(reason)) != 0)
                fail_msg("%s: '%s' does not begin with '%s'", limits[i].problem, why.text, reason);
            any = any || st == LB_OK;
        }
        /* auto supports what any variant supports */
        assert_int_equal(lb_cudnn_rules_check(CUDNN_AUTO, &p, &device, NULL) == LB_OK, any);
    }
}

TEST(the_usual_choice_is_pytorchs)
{
    static const struct {
        const char *problem;
        int capability;
        enum lb_cudnn_variant variant;
        const char *why;
    } choices[] = {
        {"T1024_B16_H768/f16/infer", 90, CUDNN_PERSIST_STATIC, "f16, one layer"},
        {"T25_B16_H192/bf16/infer", 90, CUDNN_SMALL_H, "hidden 192 is at most 192"},
        {"T25_B16_H192/f32/train", 90, CUDNN_STANDARD, "dtype f32"},
        {"T25_B16_H128/f32/train", 90, CUDNN_SMALL_H, "hidden 128 is at most 128"},
        {"T25_B16_H512/bf16/infer", 90, CUDNN_STANDARD, "dtype bf16 is not f16"},
        {"T25_B16_H512_L4/f16/infer", 90, CUDNN_STANDARD, "layers 4 is not 1"},
        {"T25_B16_H512_D2/f16/infer", 90, CUDNN_STANDARD, "directions 2 is not 1"},
        {"T25_B16_I128_H1100/f16/infer", 90, CUDNN_STANDARD, "hidden 1100 is above 1024"},
        {"T25_B16_I128_H320/f16/infer", 90, CUDNN_STANDARD, "hidden 320 is not a multiple of 128"},
        {"T25_B16_I100_H256/f16/infer", 90, CUDNN_STANDARD, "input 100 is not a multiple of 128"},
        {"T25_B12_H256/f16/infer", 90, CUDNN_STANDARD, "batch 12 is not a multiple of 8"},
        {"T25_B136_H256/f16/infer", 90, CUDNN_STANDARD, "batch 136 is above 128"},
        {"T25_B16_H128/f16/infer/ragged", 90, CUDNN_STANDARD, "rows of different lengths"},
        {"T25_B16_H128_P64/f16/infer", 90, CUDNN_STANDARD, "only that algorithm has projections"},
        {"T25_B16_H128_P64/f16/infer/ragged", 90, CUDNN_STANDARD, "only that algorithm"},
        {"T100_B64_H512/f16/infer", 86, CUDNN_STANDARD, "compute capability 8.6"},
        {"T9_B24_H512/f16/infer", 80, CUDNN_PERSIST_STATIC, "f16, one layer"},
    };
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        struct lb_problem p = trial_problem(choices[i].problem);
        struct lb_device_info device = {.major = choices[i].capability / 10,
                                        .minor = choices[i].capability % 10,
                                        .sm_count = 108};
        struct lb_error why = {""};
        if (lb_cudnn_rules_usual(&p, &device, &why) != choices[i].variant ||
            strncmp(why.text, choices[i].why, strlen(choices[i].why)) != 0)
            fail_msg("%s on %d: '%s', not '%s'", choices[i].problem, choices[i].capability,
                     why.text, choices[i].why);
    }
    struct lb_problem p = trial_problem("T1024_B16_H768/f16/infer");
    const struct lb_device_info small = {.major = 9, .sm_count = 56};
    assert_int_equal(lb_cudnn_rules_usual(&p, &small, NULL), CUDNN_STANDARD);
}

/* The library refuses some problems as soon as they are described, which needs no device. It
 * must refuse there exactly what the rules refuse. */
TEST(descriptors_agree_with_the_rules)
{
    static const cudnnDataType_t types[LB_DTYPE_COUNT] = {[LB_F64] = CUDNN_DATA_DOUBLE,
                                                          [LB_F32] = CUDNN_DATA_FLOAT,
                                                          [LB_F16] = CUDNN_DATA_HALF,
                                                          [LB_BF16] = CUDNN_DATA_BFLOAT16};
    static const cudnnRNNAlgo_t algorithms[] = {
        CUDNN_RNN_ALGO_STANDARD, CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_RNN_ALGO_PERSIST_DYNAMIC,
        CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H};
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        for (int a = 0; a < 8; a++) {
            cudnnRNNDescriptor_t descriptor;
            struct lb_problem p =
                trial_problem(a < 4 ? "T25_B16_H128/f16/infer" : "T25_B16_H128_P64/f16/infer");
            p.dtype = (enum lb_dtype)d;
            assert_int_equal(cudnnCreateRNNDescriptor(&descriptor), CUDNN_STATUS_SUCCESS);
            cudnnStatus_t status = cudnnSetRNNDescriptor_v8(
                descriptor, algorithms[a % 4], CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, types[d],
                d == LB_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                d < LB_F16 ? CUDNN_FMA_MATH : CUDNN_TENSOR_OP_MATH, 128, 128,
                (int32_t)lb_h_size(&p), 1, NULL, CUDNN_RNN_PADDED_IO_ENABLED);
            enum lb_status rules = lb_cudnn_rules_check(
                (enum lb_cudnn_variant)(CUDNN_STANDARD + a % 4), &p, NULL, NULL);
            if ((status == CUDNN_STATUS_SUCCESS) != (rules == LB_OK))
                fail_msg("%s, algorithm %d, P %d: the library says %d, the rules %d",
                         lb_dtype_name(p.dtype), a % 4, (int)p.projection, (int)status, (int)rules);
            cudnnDestroyRNNDescriptor(descriptor);
        }
    }
}

/* Each status of the library becomes a verdict and a message with the call, the status's name
 * and the library's explanation. A probe that fails must not count as "unsupported", or an
 * algorithm would be missing from a comparison unnoticed. */
TEST(the_librarys_answers_become_verdicts)
{
    static const struct {
        cudnnStatus_t status;
        enum lb_status verdict, probed;
        const char *says;
    } answers[] = {
        {CUDNN_STATUS_NOT_SUPPORTED, LB_UNSUPPORTED, LB_UNSUPPORTED,
         "asking: CUDNN_STATUS_NOT_SUPPORTED"},
        {CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, LB_OOM, LB_OOM, "ALLOCATION_FAILED"},
        {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED, LB_OOM, LB_OOM, "ALLOCATION_FAILED"},
        {CUDNN_STATUS_EXECUTION_FAILED, LB_FAILED, LB_FAILED, "CUDNN_STATUS_EXECUTION_FAILED"},
        {CUDNN_STATUS_INTERNAL_ERROR, LB_FAILED, LB_FAILED, "CUDNN_STATUS_INTERNAL_ERROR"},
        {CUDNN_STATUS_BAD_PARAM, LB_FAILED, LB_UNSUPPORTED, "CUDNN_STATUS_BAD_PARAM"},
    };
    cudnnRNNDescriptor_t descriptor;
    struct lb_cudnn_shapes shapes;
    struct lb_problem p = trial_problem("T3_B2_H4/f32/infer");
    struct lb_error err;
    assert_int_equal(lb_cudnn_check(CUDNN_STATUS_SUCCESS, "asking", &err), LB_OK);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        assert_int_equal(lb_cudnn_probed(answers[i].status, "asking", &err), answers[i].probed);
        assert_int_equal(lb_cudnn_check(answers[i].status, "asking", &err), answers[i].verdict);
        assert_non_null(strstr(err.text, answers[i].says));
    }
    /* The message for an unsupported algorithm has the library's own words after an attempt to
     * open the library, whether or not there is a device. */
    (void)lb_cudnn_shapes_create(&p, NULL, &shapes, &err);
    lb_cudnn_shapes_destroy(&shapes);
    assert_int_equal(cudnnCreateRNNDescriptor(&descriptor), CUDNN_STATUS_SUCCESS);
    cudnnStatus_t status = cudnnSetRNNDescriptor_v8(
        descriptor, CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
        CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE,
        CUDNN_FMA_MATH, 128, 128, 128, 1, NULL, CUDNN_RNN_PADDED_IO_ENABLED);
    assert_int_not_equal(lb_cudnn_check(status, "describing", &err), LB_OK);
    const char *words = strstr(err.text, "): ");
    assert_non_null(words);
    assert_true(strlen(words) > 8);
    cudnnDestroyRNNDescriptor(descriptor);
}

/* The library itself is asked for the words of its answers. */
static int load(void **state)
{
    struct lb_error err = {""};
    (void)state;
    if (lb_shared_library_load(&lb_cudnn_library, &err) != LB_OK)
        fail_msg("%s", err.text);
    return 0;
}

TEST_GROUP(load, NULL)

/* Kernels: what names say, what launches add up to, and when they contradict the case. All records
 * are made up; no device is needed. */
#define _GNU_SOURCE /* strcasestr */
#include <inttypes.h>

#include "record/gpu_kernels.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* Names that profilers have shown or that this project's object files have, one or more for each
 * rule, in the order of the rules. */
static const struct {
    const char *name;
    enum lb_tensor_cores tensor_cores;
} named[] = {
    {"cutlass_80_simt_sgemm_256x128_8x4_nn_align1", LB_TENSOR_NO},
    {"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4",
     LB_TENSOR_NO},
    {"cutlass_80_tensorop_s1688gemm_128x256_16x3_nn_align4", LB_TENSOR_YES},
    {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<OpClassTensorOp>>(int)",
     LB_TENSOR_YES},
    {"sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize64x64x64_stage4", LB_TENSOR_YES},
    {"nvjet_hsh_128x64_64x8_2x1_v_bz_TNT", LB_TENSOR_YES},
    {"volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_tn", LB_TENSOR_YES},
    {"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", LB_TENSOR_YES},
    {"ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn", LB_TENSOR_YES},
    {"dgrad_hmma_kernel", LB_TENSOR_YES},
    {"void RNN_blockPersist_fp_LSTM_HMMA<__half, 512>(int)", LB_TENSOR_YES},
    {"lstm_dmma_kernel", LB_TENSOR_YES},
    {"lstm_wgmma_kernel", LB_TENSOR_YES},
    {"lstm_tcgen05_kernel", LB_TENSOR_YES},
    {"gemm_wmma_kernel", LB_TENSOR_YES},
    {"ampere_sgemm_128x64_tn", LB_TENSOR_NO},
    {"void gemv2T_kernel_val<int, int, float, float, float>(int)", LB_TENSOR_NO},
    {"void gemmSN_TN_kernel<float, 128, 16, 2, 4>(int)", LB_TENSOR_NO},
    {"void splitKreduce_kernel<32, 16, int, float>(int)", LB_TENSOR_NO},
    {"void RNN_blockPersist_fp_LSTM<float, float, float, 128>(int)", LB_TENSOR_NO},
    {"void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)2>(int)", LB_TENSOR_NO},
    {"void LSTM_elementWise_fp<float, float, float>(int)", LB_TENSOR_NO},
    {"void at::native::vectorized_elementwise_kernel<4>(int)", LB_TENSOR_NO},
    {"pointwise_kernel", LB_TENSOR_NO},
    {"_ZN10lb_cluster28fused_cluster_forward_kernelI6__halfNS_4tileILi8ELi8ELi2ELi16ELi16EEELb0EEEv"
     "21lb_fused_forward_args",
     LB_TENSOR_YES},
    {"_ZN7lb_step25fused_step_forward_kernelINS_14tensor_productI6__halfEENS_4tileILi1ELi16ELi8ELi1"
     "EEEEEv21lb_fused_forward_argsib",
     LB_TENSOR_YES},
    {"_ZN7lb_step26fused_step_backward_kernelINS_13plain_productIfEENS_4tileILi2ELi32ELi4ELi1EEEEEv"
     "22lb_fused_backward_argsib",
     LB_TENSOR_NO},
    {"_ZN7lb_grid25fused_grid_forward_kernelINS_8f16_mathENS_4tileILi8ELi8ELi4ELi16ELi16EEEEEv"
     "21lb_fused_forward_args",
     LB_TENSOR_YES},
    {"_ZN7lb_grid25fused_grid_forward_kernelINS_9bf16_mathENS_4tileILi16ELi8ELi4ELi32ELi8EEEEEv"
     "21lb_fused_forward_args",
     LB_TENSOR_YES},
    {"_ZN7lb_grid26fused_grid_backward_kernelINS_9tf32_mathENS_4tileILi8ELi8ELi8ELi22ELi8EEEEEv"
     "22lb_fused_backward_args",
     LB_TENSOR_YES},
    {"_ZN7lb_grid25fused_grid_forward_kernelINS_8f32_mathENS_4tileILi8ELi8ELi8ELi22ELi8EEEEEv"
     "21lb_fused_forward_args",
     LB_TENSOR_NO},
    {"_ZN7lb_cell19cell_forward_kernelIfEEv15lb_cell_forward", LB_TENSOR_NO},
    {"_ZN7lb_cell16broadcast_kernelIL17lb_elementwise_op1ELb1EfEEvPT1_PKS2_S5_ll", LB_TENSOR_NO},
    {"_ZN16lb_fused_weights11pack_kernelIjEEvPT_PKS1_16lb_weight_layout", LB_TENSOR_NO},
    {"transpose_kernel", LB_TENSOR_NO},
    {"reduce_kernel", LB_TENSOR_NO},
    {"somebody_s_kernel", LB_TENSOR_UNKNOWN},
    {"PERSIS", LB_TENSOR_UNKNOWN},
    {"PERSIST", LB_TENSOR_UNKNOWN},
};

/* The kernel of a single launch under that name; the caller frees what it is in. */
static const struct lb_kernel *kernel_named(const char *name, struct lb_kernels *k)
{
    const struct lb_launch_record launch = {.name = (char *)(uintptr_t)name};
    lb_kernels_collect(&launch, 1, k);
    return k->items;
}

TEST(names_tell_the_use_of_tensor_cores)
{
    for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
        struct lb_kernels k;
        const struct lb_kernel *kernel = kernel_named(named[i].name, &k);
        if (kernel->tensor_cores != named[i].tensor_cores)
            fail_msg("%s: %s", named[i].name, lb_tensor_cores_name(kernel->tensor_cores));
        assert_int_equal(kernel->persistent, strcasestr(named[i].name, "persist") ||
                                                 strstr(named[i].name, "lb_cluster") ||
                                                 strstr(named[i].name, "lb_grid"));
        lb_kernels_free(&k);
    }
}

TEST(names_are_shortened_to_what_tells_them_apart)
{
    static const struct {
        const char *full, *shorter;
    } names[] = {
        {"lb_cell::cell_forward_kernel", "lb_cell::cell_forward_kernel"},
        {"_Z12split_kernelPfi", "split_kernel"},
        {"_ZN5cudnn3rnn4cellIfEEvPT_i", "cudnn::rnn::cell<float>"},
        {"_ZN12_GLOBAL__N_14stepEPKf", "step"},
        {"_Z_is_no_mangled_name", "_Z_is_no_mangled_name"},
        {"void RNN_blockPersist_fp_LSTM<float, float, float, 128>(int, float*)",
         "RNN_blockPersist_fp_LSTM<float, float, float, 128>"},
        {"void elemWiseRNNcell<__half, __half, __half, (cudnnRNNMode_t)2, "
         "(cudnnRNNBiasMode_t)2>(int, int)",
         "elemWiseRNNcell<...>"},
        {"void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(Params)",
         "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4"},
        {"void cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688_tf32, 1>(Params)",
         "cutlass_tensorop_s1688_tf32"},
        {"void thisKernel<int>(int)", "thisKernel<int>"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct lb_kernels k;
        assert_string_equal(kernel_named(names[i].full, &k)->name, names[i].shorter);
        lb_kernels_free(&k);
    }
}

static struct lb_launch_record launch(char *name, double start_ns, double end_ns, int64_t grid)
{
    return (struct lb_launch_record){.name = name,
                                     .start_ns = start_ns,
                                     .end_ns = end_ns,
                                     .grid = {grid, 1, 1},
                                     .block = {64, 4, 1},
                                     .registers = 40,
                                     .shared_bytes = 1024};
}

TEST(launches_add_up_by_kernel)
{
    struct lb_kernels k;
    const struct lb_launch_record launches[] = {launch("lb_cell::cell_forward_kernel", 350, 400, 3),
                                                launch("ampere_sgemm_128x64_tn", 0, 100, 1),
                                                launch("lb_cell::cell_forward_kernel", 110, 150, 2),
                                                launch("ampere_sgemm_128x64_tn", 160, 300, 7)};
    lb_kernels_collect(launches, 4, &k);
    assert_int_equal(k.count, 2);
    assert_true(k.launches == 4 && k.span_ns == 400);
    assert_true(k.gap_ns == 10 + 10 + 50 && k.longest_gap_ns == 50);
    assert_string_equal(k.items[0].name, "ampere_sgemm_128x64_tn");
    assert_int_equal(k.items[0].count, 2);
    assert_true(k.items[0].total_ns == 240 && k.items[0].longest_ns == 140);
    assert_int_equal(k.items[0].grid[0], 7); /* of the longest */
    assert_int_equal(k.items[0].cluster[0], 1);
    assert_int_equal(k.items[1].grid[0], 3);
    assert_true(k.items[1].total_ns == 90);
    assert_int_equal(lb_kernels_tensor_cores(&k), LB_TENSOR_NO);
    lb_kernels_free(&k);
    assert_true(isnan(k.launches) && !k.items);
}

/* Kernels of several layers can overlap: a gap is a time in which none of them runs. */
TEST(overlapping_kernels_leave_no_gap)
{
    struct lb_kernels k;
    const struct lb_launch_record launches[] = {launch("a", 0, 100, 1), launch("b", 50, 60, 1),
                                                launch("c", 100, 120, 1), launch("d", 125, 130, 1)};
    lb_kernels_collect(launches, 4, &k);
    assert_true(k.gap_ns == 5 && k.longest_gap_ns == 5 && k.span_ns == 130);
    lb_kernels_free(&k);
}

/* Makes the given number of launches of each of up to two kernels, 10 ns each. */
static struct lb_kernels made_of(char *first, int first_count, char *second, int second_count)
{
    struct lb_launch_record launches[512];
    struct lb_kernels k;
    for (int i = 0; i < first_count + second_count; i++)
        launches[i] = launch(i < first_count ? first : second, 20 * i, 20 * i + 10, 1);
    lb_kernels_collect(launches, (size_t)(first_count + second_count), &k);
    return k;
}

TEST(a_sentence_says_what_ran)
{
    static const struct {
        char *first, *second;
        int first_count, second_count;
        const char *sentence;
    } runs[] = {
        {"RNN_blockPersist_fp_LSTM_HMMA", "", 1, 0, "ran 1 persistent kernel, tensor cores: yes"},
        {"RNN_blockPersist_fp_LSTM", "", 2, 0, "ran 2 persistent kernels, tensor cores: no"},
        {"RNN_blockPersist_fp_LSTM", "nvjet_x", 1, 1,
         "ran 2 kernels, 1 persistent, tensor cores: yes"},
        {"secret", "sgemm", 1, 2, "ran 3 kernels, 0 persistent, tensor cores: unknown"},
    };
    char text[160];
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct lb_kernels k =
            made_of(runs[i].first, runs[i].first_count, runs[i].second, runs[i].second_count);
        lb_kernels_sentence(&k, text, sizeof(text));
        assert_string_equal(text, runs[i].sentence);
        lb_kernels_free(&k);
    }
    struct lb_kernels nothing = {0};
    lb_kernels_free(&nothing);
    lb_kernels_sentence(&nothing, text, sizeof(text));
    assert_string_equal(text, "");
}

TEST(kernels_that_contradict_the_case_are_told)
{
    static const struct {
        const char *c;
        char *first, *second;
        int first_count, second_count;
        const char *says; /* a part of the warning; NULL: none */
    } runs[] = {
        {"cudnn:persist_static/T16_B8_H128/f16/infer", "lb_cell::cell_forward", "nvjet_x", 16, 17,
         "variant persist_static, but a call launched 33 kernels for 16 steps"},
        {"cudnn:persist_static/T16_B8_H128/f16/infer", "RNN_blockPersist_fp_LSTM_HMMA", "nvjet_x",
         1, 1, NULL},
        {"cudnn:persist_dynamic/T16_B8_H128/f16/infer", "jit_nvjet_of_no_known_name", "", 1, 0,
         NULL},
        {"cudnn:standard/T16_B8_H128/f16/infer", "RNN_blockPersist_fp_LSTM_HMMA", "", 1, 0,
         "variant standard"},
        {"cudnn:standard/T16_B8_H128/f16/infer", "lb_cell::cell_forward", "nvjet_x", 16, 16, NULL},
        {"cudnn/T16_B8_H128/f32/infer", "ampere_s1688gemm", "lb_cell::cell_forward", 1, 1,
         "f32 under ieee math, but ampere_s1688gemm"},
        {"cudnn/T16_B8_H128/f32/infer/tf32", "ampere_s1688gemm", "lb_cell::cell_forward", 1, 1,
         NULL},
        {"cudnn/T16_B8_H128/f32/infer/tf32", "ampere_sgemm", "lb_cell::cell_forward", 1, 1,
         "tf32, but no kernel"},
        {"cudnn/T16_B8_H128/f32/infer/half", "ampere_sgemm", "lb_cell::cell_forward", 1, 1,
         "half, but no kernel"},
        {"cudnn/T16_B8_H128/bf16/infer", "gemv2T", "elemWiseRNNcell", 16, 16,
         "bf16, but no kernel"},
        {"cudnn/T16_B8_H128/bf16/infer", "secret", "elemWiseRNNcell", 16, 16, NULL},
        {"cudnn/T16_B8_H128/f64/infer", "d884gemm", "elemWiseRNNcell", 1, 1, NULL},
        {"cudnn/T16_B8_H128/f32/infer", "ampere_sgemm", "elemWiseRNNcell", 1, 1, NULL},
        {"cudnn/T16_B8_H128/f16/infer", "", "", 0, 0, NULL},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct lb_case c = trial_case(runs[i].c);
        char text[256];
        struct lb_kernels k =
            made_of(runs[i].first, runs[i].first_count, runs[i].second, runs[i].second_count);
        bool told = lb_kernels_contradict(&c, &k, text, sizeof(text));
        if (told != (runs[i].says != NULL) || !strstr(text, runs[i].says ? runs[i].says : ""))
            fail_msg("%s with %s: '%s'", runs[i].c, runs[i].first, text);
        lb_kernels_free(&k);
    }
}

TEST(kernels_read_back)
{
    struct lb_kernels copy = {0}, k = made_of("RNN_blockPersist_fp_LSTM_HMMA", 3, "secret", 2);
    json_t *array = lb_kernels_to_json(&k);
    assert_int_equal(lb_kernels_from_json(array, &copy, NULL), LB_OK);
    assert_int_equal(copy.count, 2);
    assert_memory_equal(copy.items, k.items, 2 * sizeof(*k.items));
    lb_kernels_free(&copy);

    static const struct {
        const char *key, *value;
    } breaks[] = {{"name", "7"},         {"grid", "[1, 2]"},           {"block", "3"},
                  {"registers", "null"}, {"cluster", "[1, 1, \"1\"]"}, {"total_ns", "\"long\""}};
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        struct lb_error err = {""};
        json_t *broken = json_deep_copy(array);
        json_object_set_new(json_array_get(broken, 1), breaks[i].key,
                            json_loads(breaks[i].value, JSON_DECODE_ANY, NULL));
        assert_int_equal(lb_kernels_from_json(broken, &copy, &err), LB_INVALID);
        assert_non_null(strstr(err.text, "kernels[1]: "));
        lb_kernels_free(&copy);
        json_decref(broken);
    }
    json_decref(array);
    lb_kernels_free(&k);
}

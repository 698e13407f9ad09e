/* What can be told from a GPU kernel's name. */
#include "record/kernel_names.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The C++ runtime's demangler (Itanium C++ ABI). It is callable from C but has no C header. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

enum { LONG_NAME = 64 /* of longer names the template arguments are left out */ };

/* A rule that says "no" stands before a rule for "yes" that would match the same names. */
const struct lb_kernel_rule lb_kernel_rules[] = {
    {"_simt", LB_TENSOR_NO, "CUTLASS and XMMA: GEMMs on the ordinary cores"},
    {"_ffma", LB_TENSOR_NO, "XMMA: fused multiply-adds of f32"},
    {"tensorop", LB_TENSOR_YES, "CUTLASS, as in cutlass_80_tensorop_s16816gemm_f16"},
    {"TensorOp", LB_TENSOR_YES, "CUTLASS: arch::OpClassTensorOp among template arguments"},
    {"xmma_", LB_TENSOR_YES, "XMMA in cuBLAS and cuDNN, as in sm80_xmma_gemm_f16f16"},
    {"nvjet", LB_TENSOR_YES, "cuBLAS on Hopper and later"},
    {"884", LB_TENSOR_YES, "the shape m8n8k4, as in volta_s884gemm and d884gemm"},
    {"1688", LB_TENSOR_YES, "the shape m16n8k8, as in turing_fp16_s1688gemm"},
    {"16816", LB_TENSOR_YES, "the shape m16n8k16, as in ampere_fp16_s16816gemm"},
    {"hmma", LB_TENSOR_YES, "the instruction for f16, bf16 and TF32"},
    {"HMMA", LB_TENSOR_YES, "cuDNN, as in RNN_blockPersist_fp_LSTM_HMMA"},
    {"dmma", LB_TENSOR_YES, "the instruction for f64"},
    {"gmma", LB_TENSOR_YES, "wgmma: whole warp groups, Hopper"},
    {"tcgen05", LB_TENSOR_YES, "Blackwell's instructions"},
    {"wmma", LB_TENSOR_YES, "CUDA's C++ interface to them"},
    {"_mma", LB_TENSOR_YES, "this project's kernels that use mma.sync"},
    {"sgemm", LB_TENSOR_NO, "cuBLAS, as in ampere_sgemm_128x64_tn"},
    {"gemv", LB_TENSOR_NO, "cuBLAS: matrix times vector"},
    {"gemmSN", LB_TENSOR_NO, "cuBLAS: GEMMs with a small dimension, as in gemmSN_TN_kernel"},
    {"splitKreduce", LB_TENSOR_NO, "cuBLAS: sums of partial products"},
    {"RNN_blockPersist", LB_TENSOR_NO, "cuDNN's persistent kernels without HMMA in their name"},
    {"elemWiseRNNcell", LB_TENSOR_NO, "cuDNN: the pointwise part of a cell"},
    {"LSTM_elementWise", LB_TENSOR_NO, "cuDNN: the pointwise part of a cell"},
    {"elementwise", LB_TENSOR_NO, "pointwise work"},
    {"pointwise", LB_TENSOR_NO, "pointwise work"},
    {"cell_forward", LB_TENSOR_NO, "this project's cell, after its GEMMs"},
    {"cell_backward", LB_TENSOR_NO, "this project's cell, after its GEMMs"},
    {"transpose", LB_TENSOR_NO, "moves data"},
    {"reduce", LB_TENSOR_NO, "sums"},
    {NULL, LB_TENSOR_UNKNOWN, NULL},
};

const char *lb_tensor_cores_name(enum lb_tensor_cores value)
{
    static const char *const names[] = {"unknown", "no", "yes"};
    return names[value];
}

enum lb_tensor_cores lb_kernel_tensor_cores(const char *name)
{
    const struct lb_kernel_rule *rule = lb_kernel_rules;
    while (rule->part && !strstr(name, rule->part))
        rule++;
    return rule->tensor_cores;
}

bool lb_kernel_is_persistent(const char *name)
{
    static const char part[] = "persist";
    for (; *name; name++) {
        size_t n = 0;
        while (part[n] && tolower((unsigned char)name[n]) == part[n])
            n++;
        if (!part[n])
            return true;
    }
    return false;
}

/* Removes every occurrence of part from text. */
static void remove_all(char *text, const char *part)
{
    size_t length = strlen(part);
    for (char *at = strstr(text, part); at; at = strstr(at, part))
        memmove(at, at + length, strlen(at + length) + 1);
}

/* The first occurrence of the character outside angle brackets; NULL when there is none. */
static char *find_outside(char *text, char character)
{
    int depth = 0;
    for (; *text; text++) {
        if (depth == 0 && *text == character)
            return text;
        depth += (*text == '<') - (*text == '>' && depth > 0);
    }
    return NULL;
}

/* True when text[0..length) ends in the name, as a whole word. */
static bool ends_in(const char *text, size_t length, const char *name)
{
    size_t n = strlen(name);
    return length >= n && strncmp(text + length - n, name, n) == 0 &&
           (length == n || text[length - n - 1] == ':');
}

/* Replaces "cutlass::Kernel2<inner>" and similar wrappers by the inner name, in place. */
static void unwrap(char *text)
{
    static const char *const wrappers[] = {"Kernel", "Kernel2", "device_kernel"};
    char *open = strchr(text, '<');
    for (size_t i = 0; open && i < sizeof(wrappers) / sizeof(wrappers[0]); i++) {
        if (!ends_in(text, (size_t)(open - text), wrappers[i]))
            continue;
        memmove(text, open + 1, strlen(open + 1) + 1);
        char *comma = find_outside(text, ','), *close = strrchr(text, '>');
        if (comma)
            *comma = '\0';
        else if (close)
            *close = '\0';
        return;
    }
}

void lb_kernel_short_name(const char *name, char shorter[LB_KERNEL_NAME_SIZE])
{
    char *plain = strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
    if (!plain)
        plain = strdup(name);
    if (!plain) {
        snprintf(shorter, LB_KERNEL_NAME_SIZE, "%s", name);
        lb_clean_text(shorter);
        return;
    }
    remove_all(plain, "(anonymous namespace)::");
    remove_all(plain, "<unnamed>::");
    char *text = strncmp(plain, "void ", 5) == 0 ? plain + 5 : plain;
    char *parameters = find_outside(text, '(');
    if (parameters)
        *parameters = '\0';
    unwrap(text);
    char *arguments = strlen(text) > LONG_NAME ? strchr(text, '<') : NULL;
    if (arguments)
        *arguments = '\0';
    snprintf(shorter, LB_KERNEL_NAME_SIZE, "%.*s%s", LB_KERNEL_NAME_SIZE - 6, text,
             arguments ? "<...>" : "");
    lb_clean_text(shorter); /* a character may be cut */
    free(plain);
}

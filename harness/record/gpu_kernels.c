/* The GPU kernels that one call of a case ran, and what their names tell. */
#define _GNU_SOURCE /* strcasestr */
#include "record/gpu_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

/* The C++ runtime's demangler (Itanium C++ ABI). It is callable from C but has no C header. */
extern char *__cxa_demangle(const char *name, char *buffer, size_t *length, int *status);

enum { LONG_NAME = 64 /* of longer names the template arguments are left out */ };

/* Whether kernels whose name contains the part use tensor cores. The first rule that matches a name
 * decides; without one it is unknown. A rule that says "no" stands before a rule for "yes" that
 * would match the same names. */
static const struct {
    const char *part;
    enum lb_tensor_cores tensor_cores;
} rules[] = {
    {"_simt", LB_TENSOR_NO},     /* CUTLASS and XMMA: GEMMs on the ordinary cores */
    {"_ffma", LB_TENSOR_NO},     /* XMMA: fused multiply-adds of f32 */
    {"tensorop", LB_TENSOR_YES}, /* CUTLASS, as in cutlass_80_tensorop_s16816gemm_f16 */
    {"TensorOp", LB_TENSOR_YES}, /* CUTLASS: arch::OpClassTensorOp among template arguments */
    {"xmma_", LB_TENSOR_YES},    /* XMMA in cuBLAS and cuDNN, as in sm80_xmma_gemm_f16f16 */
    {"nvjet", LB_TENSOR_YES},    /* cuBLAS on Hopper and later */
    {"884", LB_TENSOR_YES},      /* the shape m8n8k4, as in volta_s884gemm and d884gemm */
    {"1688", LB_TENSOR_YES},     /* the shape m16n8k8, as in turing_fp16_s1688gemm */
    {"16816", LB_TENSOR_YES},    /* the shape m16n8k16, as in ampere_fp16_s16816gemm */
    {"hmma", LB_TENSOR_YES},     /* the instruction for f16, bf16 and TF32 */
    {"HMMA", LB_TENSOR_YES},     /* cuDNN, as in RNN_blockPersist_fp_LSTM_HMMA */
    {"dmma", LB_TENSOR_YES},     /* the instruction for f64 */
    {"gmma", LB_TENSOR_YES},     /* wgmma: whole warp groups, Hopper */
    {"tcgen05", LB_TENSOR_YES},  /* Blackwell's instructions */
    {"wmma", LB_TENSOR_YES},     /* CUDA's C++ interface to them */
    {"sgemm", LB_TENSOR_NO},     /* cuBLAS, as in ampere_sgemm_128x64_tn */
    {"gemv", LB_TENSOR_NO},      /* cuBLAS: matrix times vector */
    {"gemmSN", LB_TENSOR_NO},    /* cuBLAS: GEMMs with a small dimension, as in gemmSN_TN_kernel */
    {"splitKreduce", LB_TENSOR_NO},     /* cuBLAS: sums of partial products */
    {"RNN_blockPersist", LB_TENSOR_NO}, /* cuDNN's persistent kernels without HMMA in their name */
    {"elemWiseRNNcell", LB_TENSOR_NO},  /* cuDNN: the pointwise part of a cell */
    {"LSTM_elementWise", LB_TENSOR_NO}, /* cuDNN: the pointwise part of a cell */
    {"elementwise", LB_TENSOR_NO},      /* pointwise work */
    {"pointwise", LB_TENSOR_NO},        /* pointwise work */
    /* This project's, by namespace, template argument, or name. */
    {"lb_cell", LB_TENSOR_NO},          /* what runs beside GEMMs */
    {"lb_fused_weights", LB_TENSOR_NO}, /* moves and converts weights */
    {"fused_cluster_", LB_TENSOR_YES},  /* multiplies f16 and bf16 only */
    {"tensor_product", LB_TENSOR_YES},  /* of fused_step_... */
    {"plain_product", LB_TENSOR_NO},    /* of fused_step_... */
    {"f16_math", LB_TENSOR_YES},        /* of fused_grid_...; bf16_math too */
    {"tf32_math", LB_TENSOR_YES},       /* of fused_grid_... */
    {"f32_math", LB_TENSOR_NO},         /* of fused_grid_..., after tf32_math, which contains it */
    {"transpose", LB_TENSOR_NO},        /* moves data */
    {"reduce", LB_TENSOR_NO},           /* sums */
};

const char *lb_tensor_cores_name(enum lb_tensor_cores value)
{
    static const char *const names[] = {"unknown", "no", "yes"};
    return names[value];
}

/* Applies the rules to a full name, mangled or not. */
static enum lb_tensor_cores tensor_cores_of(const char *name)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (strstr(name, rules[i].part))
            return rules[i].tensor_cores;
    return LB_TENSOR_UNKNOWN;
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
    char *open = strchr(text, '<');
    size_t length = open ? (size_t)(open - text) : 0;
    if (!ends_in(text, length, "Kernel") && !ends_in(text, length, "Kernel2") &&
        !ends_in(text, length, "device_kernel"))
        return;
    memmove(text, open + 1, strlen(open + 1) + 1);
    char *comma = find_outside(text, ','), *end = comma ? comma : strrchr(text, '>');
    if (end)
        *end = '\0';
}

static void shorten(const char *name, char shorter[LB_KERNEL_NAME_SIZE])
{
    char *demangled = strncmp(name, "_Z", 2) == 0 ? __cxa_demangle(name, NULL, NULL, NULL) : NULL;
    char plain[4096];
    snprintf(plain, sizeof(plain), "%s", demangled ? demangled : name);
    free(demangled);
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
}

static int by_start(const void *a, const void *b)
{
    const struct lb_launch_record *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_name_then_start(const void *a, const void *b)
{
    const struct lb_launch_record *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : by_start(a, b);
}

static int by_total(const void *a, const void *b)
{
    const struct lb_kernel *x = a, *y = b;
    int order = (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
    return order ? order : strcmp(x->name, y->name);
}

/* Adds a launch to its kernel. */
static void add_launch(struct lb_kernel *kernel, const struct lb_launch_record *launch)
{
    double ns = launch->end_ns - launch->start_ns;
    kernel->count++;
    kernel->total_ns += ns;
    if (kernel->count > 1 && ns <= kernel->longest_ns)
        return;
    kernel->longest_ns = ns;
    memcpy(kernel->grid, launch->grid, sizeof(kernel->grid));
    memcpy(kernel->block, launch->block, sizeof(kernel->block));
    for (int i = 0; i < 3; i++)
        kernel->cluster[i] = launch->cluster[i] > 0 ? launch->cluster[i] : 1;
    kernel->registers = launch->registers;
    kernel->shared_bytes = launch->shared_bytes;
}

/* Computes span and gaps from launches in the order of their starts; kernels of several streams may
 * overlap. */
static void measure_gaps(const struct lb_launch_record *launches, size_t count,
                         struct lb_kernels *out)
{
    double end = launches[0].end_ns;
    out->gap_ns = out->longest_gap_ns = 0;
    for (size_t i = 1; i < count; i++) {
        double gap = launches[i].start_ns - end;
        if (gap > 0)
            out->gap_ns += gap;
        out->longest_gap_ns = fmax(out->longest_gap_ns, gap);
        end = fmax(end, launches[i].end_ns);
    }
    out->span_ns = end - launches[0].start_ns;
}

void lb_kernels_collect(const struct lb_launch_record *launches, size_t count,
                        struct lb_kernels *out)
{
    struct lb_launch_record *sorted = lb_needed(calloc(count + 1, sizeof(*sorted)));
    struct lb_kernel *items = lb_needed(calloc(count + 1, sizeof(*items)));
    *out = (struct lb_kernels){.items = items, .launches = (double)count};
    if (count > 0)
        memcpy(sorted, launches, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_name_then_start);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i].name, sorted[i - 1].name) != 0) {
            struct lb_kernel *kernel = &items[out->count++];
            shorten(sorted[i].name, kernel->name);
            kernel->tensor_cores = tensor_cores_of(sorted[i].name);
            kernel->persistent = strcasestr(sorted[i].name, "persist") ||
                                 strstr(sorted[i].name, "fused_cluster_") ||
                                 strstr(sorted[i].name, "fused_grid_");
        }
        add_launch(&items[out->count - 1], &sorted[i]);
    }
    qsort(items, out->count, sizeof(*items), by_total);
    qsort(sorted, count, sizeof(*sorted), by_start);
    if (count > 0)
        measure_gaps(sorted, count, out);
    free(sorted);
}

void lb_kernels_free(struct lb_kernels *kernels)
{
    free(kernels->items);
    *kernels =
        (struct lb_kernels){.launches = NAN, .span_ns = NAN, .gap_ns = NAN, .longest_gap_ns = NAN};
}

/* The first kernel with that value; NULL: there is none. */
static const struct lb_kernel *first_with(const struct lb_kernels *kernels,
                                          enum lb_tensor_cores value)
{
    for (size_t i = 0; i < kernels->count; i++)
        if (kernels->items[i].tensor_cores == value)
            return &kernels->items[i];
    return NULL;
}

enum lb_tensor_cores lb_kernels_tensor_cores(const struct lb_kernels *kernels)
{
    if (first_with(kernels, LB_TENSOR_YES))
        return LB_TENSOR_YES;
    bool unknown = kernels->count == 0 || first_with(kernels, LB_TENSOR_UNKNOWN);
    return unknown ? LB_TENSOR_UNKNOWN : LB_TENSOR_NO;
}

static json_int_t persistent_launches(const struct lb_kernels *kernels)
{
    json_int_t launches = 0;
    for (size_t i = 0; i < kernels->count; i++)
        launches += kernels->items[i].persistent ? kernels->items[i].count : 0;
    return launches;
}

void lb_kernels_sentence(const struct lb_kernels *kernels, char *text, size_t size)
{
    json_int_t persistent = persistent_launches(kernels);
    double launches = kernels->launches;
    bool all = (double)persistent == launches;
    text[0] = '\0';
    if (!kernels->items || !isfinite(launches))
        return;
    snprintf(text, size, "ran %.0f %skernel%s", launches, all ? "persistent " : "",
             launches == 1 ? "" : "s");
    if (!all)
        lb_append(text, size, ", %lld persistent", persistent);
    lb_append(text, size, ", tensor cores: %s",
              lb_tensor_cores_name(lb_kernels_tensor_cores(kernels)));
}

bool lb_kernels_contradict(const struct lb_case *c, const struct lb_kernels *kernels, char *text,
                           size_t size)
{
    const struct lb_problem *p = &c->problem;
    enum lb_tensor_cores cores = lb_kernels_tensor_cores(kernels);
    json_int_t persistent = persistent_launches(kernels);
    bool half = p->dtype == LB_F16 || p->dtype == LB_BF16;
    bool exact = p->dtype == LB_F32 && p->math == LB_IEEE;
    text[0] = '\0';
    if (kernels->count == 0)
        return false;
    if (strstr(c->variant, "persist") && persistent == 0 && kernels->launches >= (double)p->seq_len)
        snprintf(text, size,
                 "variant %s, but a call launched %.0f kernels for %" PRId64
                 " steps, none of them persistent",
                 c->variant, kernels->launches, p->seq_len);
    else if (strcmp(c->variant, "standard") == 0 && persistent > 0)
        snprintf(text, size, "variant standard, but a call launched %lld persistent kernels",
                 persistent);
    else if (exact && cores == LB_TENSOR_YES)
        snprintf(text, size, "f32 under ieee math, but %s uses tensor cores",
                 first_with(kernels, LB_TENSOR_YES)->name);
    else if ((half || p->math != LB_IEEE) && cores == LB_TENSOR_NO)
        snprintf(text, size, "%s, but no kernel uses tensor cores",
                 half ? lb_dtype_name(p->dtype) : lb_math_name(p->math));
    return text[0] != '\0';
}

/* JSON */

json_t *lb_kernels_to_json(const struct lb_kernels *kernels)
{
    json_t *array = kernels->items ? json_array() : json_null();
    for (size_t i = 0; kernels->items && i < kernels->count; i++) {
        const struct lb_kernel *k = &kernels->items[i];
        json_t *object =
            json_pack("{s:s, s:s, s:b, s:f, s:f, s:I, s:[III], s:[III], s:[III], s:I, s:I}", "name",
                      k->name, "tensor_cores", lb_tensor_cores_name(k->tensor_cores), "persistent",
                      k->persistent, "total_ns", k->total_ns, "longest_ns", k->longest_ns, "count",
                      k->count, "grid", k->grid[0], k->grid[1], k->grid[2], "block", k->block[0],
                      k->block[1], k->block[2], "cluster", k->cluster[0], k->cluster[1],
                      k->cluster[2], "registers", k->registers, "shared_bytes", k->shared_bytes);
        json_array_append_new(array, object);
    }
    return array;
}

/* Reads kernel number `index` of the array. */
static enum lb_status read_kernel(json_t *object, size_t index, struct lb_kernel *k,
                                  struct lb_error *err)
{
    json_error_t why;
    const char *name, *cores;
    int persistent;
    if (json_unpack_ex(object, &why, 0,
                       "{s:s, s:s, s:b, s:F, s:F, s:I, s:[III!], s:[III!], s:[III!], s:I, s:I}",
                       "name", &name, "tensor_cores", &cores, "persistent", &persistent, "total_ns",
                       &k->total_ns, "longest_ns", &k->longest_ns, "count", &k->count, "grid",
                       &k->grid[0], &k->grid[1], &k->grid[2], "block", &k->block[0], &k->block[1],
                       &k->block[2], "cluster", &k->cluster[0], &k->cluster[1], &k->cluster[2],
                       "registers", &k->registers, "shared_bytes", &k->shared_bytes) != 0)
        return lb_fail(err, LB_INVALID, "kernels[%zu]: %.200s", index, why.text);
    snprintf(k->name, sizeof(k->name), "%s", name);
    lb_clean_text(k->name); /* a character may be cut */
    k->tensor_cores = strcmp(cores, "yes") == 0  ? LB_TENSOR_YES
                      : strcmp(cores, "no") == 0 ? LB_TENSOR_NO
                                                 : LB_TENSOR_UNKNOWN;
    k->persistent = persistent != 0;
    return LB_OK;
}

enum lb_status lb_kernels_from_json(const json_t *array, struct lb_kernels *kernels,
                                    struct lb_error *err)
{
    if (!array || json_is_null(array))
        return LB_OK;
    if (!json_is_array(array))
        return lb_fail(err, LB_INVALID, "kernels: it must be null or an array");
    size_t count = json_array_size(array);
    kernels->items = lb_needed(calloc(count + 1, sizeof(*kernels->items)));
    kernels->count = count;
    for (size_t i = 0; i < count; i++)
        LB_CHECK(read_kernel(json_array_get(array, i), i, &kernels->items[i], err));
    return LB_OK;
}

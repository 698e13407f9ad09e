/* cuBLAS on the fake device. It has the functions that streams_cuda.c calls, with the checks
 * that the library's manual describes. GEMMs are enqueued, and computed on the host with sums in
 * double. */
#include <cublas_v2.h>
#include <stdio.h>
#include <string.h>

#include "api/dtype.h"
#include "device/streams.h"
#include "fake_libraries.h"
#include "queue.h"

enum { WORKSPACE_ALIGNMENT = 256, SCRIBBLE = 256, HANDLES_MAX = 64 };

struct cublasContext {
    bool used;
    void *stream;
    char *workspace; /* NULL: the library's own */
    size_t workspace_bytes;
};

static struct cublasContext handles[HANDLES_MAX];

static struct {
    enum fake_cublas_mistake mistake;
    bool has_run;
} library;

void fake_cublas_reset(enum fake_cublas_mistake mistake)
{
    library.mistake = mistake;
    library.has_run = false;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    static char text[32];
    snprintf(text, sizeof(text), "cuBLAS status %d", (int)status);
    return text;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value)
{
    *value = type == MAJOR_VERSION   ? CUBLAS_VER_MAJOR
             : type == MINOR_VERSION ? CUBLAS_VER_MINOR
                                     : CUBLAS_VER_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    int i = 0;
    while (i < HANDLES_MAX && handles[i].used)
        i++;
    *handle = NULL;
    if (i == HANDLES_MAX)
        return CUBLAS_STATUS_ALLOC_FAILED;
    *handle = &handles[i];
    handles[i].used = true;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    handle->used = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    (void)handle, (void)mode;
    return CUBLAS_STATUS_SUCCESS;
}

/* As in cuBLAS, setting the stream makes the workspace the library's own again. */
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    *handle = (struct cublasContext){.used = true, .stream = stream};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    if ((size_t)workspace % WORKSPACE_ALIGNMENT != 0 ||
        (workspace && !fake_device_holds(workspace, bytes)))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (library.mistake == FAKE_CUBLAS_NO_WORKSPACE)
        return CUBLAS_STATUS_SUCCESS;
    bytes -= library.mistake == FAKE_CUBLAS_SMALL_WORKSPACE;
    handle->workspace = workspace;
    handle->workspace_bytes = bytes;
    return CUBLAS_STATUS_SUCCESS;
}

/* The size that the manual recommends for this device. */
static size_t recommended_workspace(void)
{
    int major = fake_device_info()->major;
    return (size_t)(major == 9 || major == 10 ? 32 : major == 12 ? 12 : 4) << 20;
}

/* ---- GEMMs ------------------------------------------------------------------------------ */

struct gemm {
    struct lb_gemm gemm; /* row-major, so that the library's a is its b */
    char *workspace;
    size_t workspace_bytes;
};

static bool dtype_of(cudaDataType type, enum lb_dtype *dtype)
{
    static const cudaDataType types[LB_DTYPE_COUNT] = {[LB_F64] = CUDA_R_64F,
                                                       [LB_F32] = CUDA_R_32F,
                                                       [LB_F16] = CUDA_R_16F,
                                                       [LB_BF16] = CUDA_R_16BF};
    for (int i = 0; i < LB_DTYPE_COUNT; i++)
        if (types[i] == type) {
            *dtype = (enum lb_dtype)i;
            return true;
        }
    return false;
}

/* The manual's table of cublasGemmEx: compute type, type of a and b, and type of c. */
static bool is_supported(cublasComputeType_t compute, enum lb_dtype in, enum lb_dtype out)
{
    switch ((int)compute) {
    case CUBLAS_COMPUTE_64F: return in == LB_F64 && out == LB_F64;
    case CUBLAS_COMPUTE_32F:
        return (in == LB_F32 && out == LB_F32) ||
               ((in == LB_F16 || in == LB_BF16) && (out == in || out == LB_F32));
    case CUBLAS_COMPUTE_32F_FAST_TF32:
    case CUBLAS_COMPUTE_32F_FAST_16F: return in == LB_F32 && out == LB_F32;
    default: return false;
    }
}

/* Whether all rows lie in one block of the device's memory and their elements are aligned. */
static bool reachable(const void *data, enum lb_dtype dtype, int64_t rows, int64_t columns,
                      int64_t ld)
{
    size_t size = lb_dtype_size(dtype), last = (size_t)((rows - 1) * ld + columns);
    return (size_t)data % size == 0 && fake_device_holds(data, last * size);
}

/* fake_work. A wrong address has its effect here and not in the call that enqueues the GEMM. */
static enum lb_status run_gemm(const void *arguments, struct lb_error *err)
{
    const struct gemm *call = arguments;
    const struct lb_gemm *g = &call->gemm;
    if (fake_device_strikes(FAKE_LIBRARY_FAULT) ||
        !reachable(g->a, g->in, g->transpose_a ? g->k : g->m, g->transpose_a ? g->m : g->k,
                   g->lda) ||
        !reachable(g->b, g->in, g->transpose_b ? g->n : g->k, g->transpose_b ? g->k : g->n,
                   g->ldb) ||
        !reachable(g->c, g->out, g->m, g->n, g->ldc))
        return fake_device_lose(err);
    if (!library.has_run && fake_device_strikes(FAKE_SLOW_FIRST))
        fake_clock_add(FAKE_SLOW_NS); /* the library loads its kernels */
    library.has_run = true;
    if (fake_device_hollow())
        return LB_OK;
    memset(call->workspace, 0xff, SCRIBBLE); /* no caller may keep anything there */
    memset(call->workspace + call->workspace_bytes - SCRIBBLE, 0xff, SCRIBBLE);
    return fake_gemm(g, err);
}

/* Checks the arguments as the manual requires. */
static cublasStatus_t check_gemm(const struct lb_gemm *g, cublasComputeType_t compute)
{
    if (g->m < 1 || g->n < 1 || g->k < 1 || g->lda < (g->transpose_a ? g->m : g->k) ||
        g->ldb < (g->transpose_b ? g->k : g->n) || g->ldc < g->n)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_supported(compute, g->in, g->out))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return g->in == LB_BF16 && fake_device_info()->major < 8 ? CUBLAS_STATUS_ARCH_MISMATCH
                                                             : CUBLAS_STATUS_SUCCESS;
}

/* alpha and beta have the type of the sums; the project multiplies by 1 and adds all or nothing. */
static double factor(cublasComputeType_t compute, const void *value)
{
    return compute == CUBLAS_COMPUTE_64F ? *(const double *)value : (double)*(const float *)value;
}

cublasStatus_t cublasGemmEx_64(cublasHandle_t handle, cublasOperation_t transpose_a,
                               cublasOperation_t transpose_b, int64_t m, int64_t n, int64_t k,
                               const void *alpha, const void *a, cudaDataType a_type, int64_t lda,
                               const void *b, cudaDataType b_type, int64_t ldb, const void *beta,
                               void *c, cudaDataType c_type, int64_t ldc,
                               cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    double add = factor(compute, beta);
    lda -= library.mistake == FAKE_CUBLAS_SHORT_ROWS;
    struct gemm call = {.gemm = {.transpose_a = transpose_b == CUBLAS_OP_T,
                                 .transpose_b = transpose_a == CUBLAS_OP_T,
                                 .accumulate = add == 1,
                                 .m = n,
                                 .n = m,
                                 .k = k,
                                 .a = b,
                                 .lda = ldb,
                                 .b = a,
                                 .ldb = lda,
                                 .c = c,
                                 .ldc = ldc}};
    (void)algorithm;
    if (a_type != b_type || !dtype_of(a_type, &call.gemm.in) || !dtype_of(c_type, &call.gemm.out) ||
        factor(compute, alpha) != 1 || (add != 0 && add != 1))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    cublasStatus_t status = check_gemm(&call.gemm, compute);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (handle->workspace_bytes < recommended_workspace())
        return CUBLAS_STATUS_ALLOC_FAILED; /* cuBLAS would allocate its own, or might be slow */
    call.workspace = handle->workspace;
    call.workspace_bytes = handle->workspace_bytes;
    return fake_enqueue(handle->stream, run_gemm, &call, sizeof(call), NULL) == LB_OK
               ? CUBLAS_STATUS_SUCCESS
               : CUBLAS_STATUS_EXECUTION_FAILED;
}

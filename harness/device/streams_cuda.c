/* The CUDA streams of one case, with cuBLAS. */
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "base/memory.h"
#include "device/cublas.h"
#include "device/device.h"
#include "device/streams.h"

struct lb_streams {
    int count;
    cudaStream_t handles[LB_STREAMS_MAX]; /* [0] is the caller's */
    cudaEvent_t marks[LB_STREAMS_MAX];    /* the last point that another stream waited for */
};

/* Kept until the thread ends, because creating one takes long and allocates. */
static _Thread_local cublasHandle_t handles[LB_STREAMS_MAX];

/* lb_at_thread_end */
static void destroy_handle(void *handle)
{
    (void)lb_cublas.cublasDestroy_v2(handle);
}

static enum lb_status check_blas(cublasStatus_t status, const char *what, struct lb_error *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return LB_OK;
    enum lb_status st = status == CUBLAS_STATUS_ALLOC_FAILED    ? LB_OOM
                        : status == CUBLAS_STATUS_NOT_SUPPORTED ? LB_UNSUPPORTED
                                                                : LB_FAILED;
    return lb_fail(err, st, "%s: cuBLAS: %s (%d)", what, lb_cublas.cublasGetStatusString(status),
                   (int)status);
}

/* cuBLAS says "not initialized" where it found no memory for a handle, so that what is free decides
 * which of the two it was. */
static enum lb_status create_handle(cublasHandle_t *handle, struct lb_error *err)
{
    static const size_t handle_bytes = (size_t)64 << 20; /* with its kernels and workspace */
    size_t free_bytes = 0, all_bytes = 0;
    *handle = NULL;
    if (lb_shared_library_load(&lb_cublas_library, err) != LB_OK)
        return LB_ABSENT;
    cublasStatus_t status = lb_cublas.cublasCreate_v2(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        *handle = NULL;
    bool vague = status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_INTERNAL_ERROR;
    if (!vague || cudaMemGetInfo(&free_bytes, &all_bytes) != cudaSuccess ||
        free_bytes > handle_bytes)
        return check_blas(status, "opening cuBLAS", err);
    return lb_fail(err, LB_OOM, "opening cuBLAS: %s (%d), with %.1f MiB of device memory free",
                   lb_cublas.cublasGetStatusString(status), (int)status,
                   (double)free_bytes / (1 << 20));
}

/* Creates a stream's handle if needed and binds it to the stream, which drops its workspace, and to
 * that part of scratch. The handle's mode is set each time, so that a failure to set it never
 * leaves a handle without. */
static enum lb_status bind_handle(struct lb_streams *streams, int stream_index, char *scratch,
                                  struct lb_error *err)
{
    /* GEMMs of f16 and bf16 sum in f32; operands of f32 GEMMs are not rounded to TF32. */
    const cublasMath_t mode =
        CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
    const size_t bytes = lb_stream_scratch_bytes();
    cublasHandle_t *handle = &handles[stream_index];
    if (!*handle) {
        LB_CHECK(create_handle(handle, err));
        LB_CHECK(lb_at_thread_end(destroy_handle, *handle, err));
    }
    LB_CHECK(check_blas(lb_cublas.cublasSetMathMode(*handle, mode), "setting cuBLAS up", err));
    LB_CHECK(check_blas(lb_cublas.cublasSetStream_v2(*handle, streams->handles[stream_index]),
                        "setting cuBLAS up", err));
    scratch += (size_t)stream_index * bytes;
    return check_blas(lb_cublas.cublasSetWorkspace_v2(*handle, scratch, bytes),
                      "giving cuBLAS its workspace", err);
}

enum lb_status lb_streams_create(int count, void *stream, void *scratch, struct lb_streams **out,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_streams *streams = lb_needed(calloc(1, sizeof(*streams)));
    streams->handles[0] = stream;
    for (int i = 0; i < count && i < LB_STREAMS_MAX; i++) {
        if (i > 0)
            LB_TRY(lb_cuda_check(
                cudaStreamCreateWithFlags(&streams->handles[i], cudaStreamNonBlocking),
                "creating a stream", err));
        streams->count = i + 1;
        LB_TRY(lb_cuda_check(cudaEventCreateWithFlags(&streams->marks[i], cudaEventDisableTiming),
                             "creating an event", err));
        LB_TRY(bind_handle(streams, i, scratch, err));
    }
done:
    if (st == LB_OK)
        *out = streams;
    else
        lb_streams_destroy(streams);
    return st;
}

void lb_streams_destroy(struct lb_streams *streams)
{
    if (!streams)
        return;
    for (int i = streams->count - 1; i >= 0; i--) {
        if (streams->marks[i])
            (void)cudaEventDestroy(streams->marks[i]);
        /* The handle outlives the stream and the memory lent to it. */
        if (handles[i])
            (void)lb_cublas.cublasSetStream_v2(handles[i], NULL);
        if (i > 0)
            (void)cudaStreamDestroy(streams->handles[i]);
    }
    free(streams);
}

size_t lb_stream_scratch_bytes(void)
{
    return (size_t)32 << 20;
}

void *lb_stream_handle(const struct lb_streams *streams, int stream_index)
{
    return streams->handles[stream_index];
}

enum lb_status lb_stream_wait(struct lb_streams *streams, int waiter, int awaited,
                              struct lb_error *err)
{
    if (waiter == awaited)
        return LB_OK;
    LB_CHECK(lb_cuda_check(cudaEventRecord(streams->marks[awaited], streams->handles[awaited]),
                           "recording an event", err));
    return lb_cuda_check(cudaStreamWaitEvent(streams->handles[waiter], streams->marks[awaited], 0),
                         "waiting for an event", err);
}

enum lb_status lb_streams_fork(struct lb_streams *streams, struct lb_error *err)
{
    for (int i = 1; i < streams->count; i++)
        LB_CHECK(lb_stream_wait(streams, i, 0, err));
    return LB_OK;
}

enum lb_status lb_streams_join(struct lb_streams *streams, struct lb_error *err)
{
    for (int i = 1; i < streams->count; i++)
        LB_CHECK(lb_stream_wait(streams, 0, i, err));
    return LB_OK;
}

enum lb_status lb_stream_copy(struct lb_streams *streams, int stream_index, void *to,
                              const void *from, size_t bytes, struct lb_error *err)
{
    return bytes == 0 ? LB_OK
                      : lb_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                                      streams->handles[stream_index]),
                                      "copying device memory", err);
}

static cublasComputeType_t compute_type(enum lb_dtype in, enum lb_math math)
{
    static const cublasComputeType_t f32[LB_MATH_COUNT] = {
        [LB_IEEE] = CUBLAS_COMPUTE_32F,
        [LB_TF32] = CUBLAS_COMPUTE_32F_FAST_TF32,
        [LB_HALF] = CUBLAS_COMPUTE_32F_FAST_16F,
    };
    if (in == LB_F64)
        return CUBLAS_COMPUTE_64F;
    return in == LB_F32 ? f32[math] : CUBLAS_COMPUTE_32F;
}

enum lb_status lb_stream_gemm(struct lb_streams *streams, int stream_index, const struct lb_gemm *g,
                              struct lb_error *err)
{
    static const cudaDataType_t types[LB_DTYPE_COUNT] = {[LB_F64] = CUDA_R_64F,
                                                         [LB_F32] = CUDA_R_32F,
                                                         [LB_F16] = CUDA_R_16F,
                                                         [LB_BF16] = CUDA_R_16BF};
    const double one64 = 1, beta64 = g->accumulate ? 1 : 0;
    const float one32 = 1, beta32 = g->accumulate ? 1 : 0;
    bool is_f64 = g->in == LB_F64;
    (void)streams;
    if (g->m == 0 || g->n == 0 || g->k == 0)
        return LB_OK;
    /* cuBLAS is column-major: it computes c' = b' a', which is the row-major c = a b. */
    return check_blas(lb_cublas.cublasGemmEx_64(
                          handles[stream_index], g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                          g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, g->n, g->m, g->k,
                          is_f64 ? (const void *)&one64 : &one32, g->b, types[g->in], g->ldb, g->a,
                          types[g->in], g->lda, is_f64 ? (const void *)&beta64 : &beta32, g->c,
                          types[g->out], g->ldc, compute_type(g->in, g->math), CUBLAS_GEMM_DEFAULT),
                      "a GEMM", err);
}

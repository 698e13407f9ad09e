/* Lanes on CUDA streams and cuBLAS. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

#include "device.h"
#include "lanes.h"

struct lb_lanes {
    int count;
    cudaStream_t streams[LB_LANES_MAX]; /* [0] is the caller's */
    cudaEvent_t marks[LB_LANES_MAX];    /* the last point that somebody waited for */
};

/* Kept for the process: making one takes long, and allocates. */
static cublasHandle_t handles[LB_LANES_MAX];

static enum lb_status check_blas(cublasStatus_t status, const char *what, struct lb_error *err)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return LB_OK;
    enum lb_status st = status == CUBLAS_STATUS_ALLOC_FAILED    ? LB_OOM
                        : status == CUBLAS_STATUS_NOT_SUPPORTED ? LB_UNSUPPORTED
                                                                : LB_FAILED;
    return lb_fail(err, st, "%s: cuBLAS: %s (%d)", what, cublasGetStatusString(status),
                   (int)status);
}

/* The handle of a lane, bound to its stream. Binding takes back the workspace. */
static enum lb_status bind_handle(struct lb_lanes *lanes, int lane, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (!handles[lane]) {
        LB_TRY(check_blas(cublasCreate(&handles[lane]), "opening cuBLAS", err));
        /* Sums of f16 and bf16 products stay in f32; f32 products are not rounded to TF32. */
        LB_TRY(check_blas(
            cublasSetMathMode(handles[lane], CUBLAS_DEFAULT_MATH |
                                                 CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
            "setting cuBLAS up", err));
    }
    LB_TRY(
        check_blas(cublasSetStream(handles[lane], lanes->streams[lane]), "setting cuBLAS up", err));
done:
    return st;
}

enum lb_status lb_lanes_create(int count, void *stream, struct lb_lanes **out, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_lanes *lanes = calloc(1, sizeof(*lanes));
    if (!lanes)
        return lb_fail(err, LB_OOM, "out of memory");
    lanes->streams[0] = stream;
    for (int i = 0; i < count && i < LB_LANES_MAX; i++) {
        if (i > 0)
            LB_TRY(
                lb_cuda_check(cudaStreamCreateWithFlags(&lanes->streams[i], cudaStreamNonBlocking),
                              "creating a stream", err));
        lanes->count = i + 1;
        LB_TRY(lb_cuda_check(cudaEventCreateWithFlags(&lanes->marks[i], cudaEventDisableTiming),
                             "creating an event", err));
        LB_TRY(bind_handle(lanes, i, err));
    }
done:
    if (st == LB_OK)
        *out = lanes;
    else
        lb_lanes_destroy(lanes);
    return st;
}

void lb_lanes_destroy(struct lb_lanes *lanes)
{
    if (!lanes)
        return;
    for (int i = lanes->count - 1; i >= 0; i--) {
        if (lanes->marks[i])
            (void)cudaEventDestroy(lanes->marks[i]);
        /* The handle outlives the stream and the memory lent to it. */
        if (handles[i])
            (void)cublasSetStream(handles[i], NULL);
        if (i > 0)
            (void)cudaStreamDestroy(lanes->streams[i]);
    }
    free(lanes);
}

size_t lb_lane_scratch(void)
{
    return (size_t)32 << 20;
}

int lb_lanes_count(const struct lb_lanes *lanes)
{
    return lanes->count;
}

void *lb_lane_stream(const struct lb_lanes *lanes, int lane)
{
    return lanes->streams[lane];
}

enum lb_status lb_lanes_workspace(struct lb_lanes *lanes, void *memory, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < lanes->count; i++)
        LB_TRY(check_blas(cublasSetWorkspace(handles[i],
                                             (char *)memory + (size_t)i * lb_lane_scratch(),
                                             lb_lane_scratch()),
                          "giving cuBLAS its workspace", err));
done:
    return st;
}

enum lb_status lb_lane_wait(struct lb_lanes *lanes, int waiter, int awaited, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (waiter == awaited)
        return LB_OK;
    LB_TRY(lb_cuda_check(cudaEventRecord(lanes->marks[awaited], lanes->streams[awaited]),
                         "recording an event", err));
    LB_TRY(lb_cuda_check(cudaStreamWaitEvent(lanes->streams[waiter], lanes->marks[awaited], 0),
                         "waiting for an event", err));
done:
    return st;
}

enum lb_status lb_lanes_fork(struct lb_lanes *lanes, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 1; i < lanes->count; i++)
        LB_TRY(lb_lane_wait(lanes, i, 0, err));
done:
    return st;
}

enum lb_status lb_lanes_join(struct lb_lanes *lanes, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 1; i < lanes->count; i++)
        LB_TRY(lb_lane_wait(lanes, 0, i, err));
done:
    return st;
}

enum lb_status lb_lane_zero(struct lb_lanes *lanes, int lane, void *to, size_t bytes,
                            struct lb_error *err)
{
    return bytes == 0 ? LB_OK
                      : lb_cuda_check(cudaMemsetAsync(to, 0, bytes, lanes->streams[lane]),
                                      "zeroing device memory", err);
}

enum lb_status lb_lane_copy(struct lb_lanes *lanes, int lane, void *to, const void *from,
                            size_t bytes, struct lb_error *err)
{
    return bytes == 0 ? LB_OK
                      : lb_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice,
                                                      lanes->streams[lane]),
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

enum lb_status lb_lane_gemm(struct lb_lanes *lanes, int lane, const struct lb_gemm *g,
                            struct lb_error *err)
{
    static const cudaDataType_t types[LB_DTYPE_COUNT] = {[LB_F64] = CUDA_R_64F,
                                                         [LB_F32] = CUDA_R_32F,
                                                         [LB_F16] = CUDA_R_16F,
                                                         [LB_BF16] = CUDA_R_16BF};
    const double one64 = 1, beta64 = g->accumulate ? 1 : 0;
    const float one32 = 1, beta32 = g->accumulate ? 1 : 0;
    bool wide = g->in == LB_F64;
    (void)lanes;
    if (g->m == 0 || g->n == 0 || g->k == 0)
        return LB_OK;
    /* Row-major c = a b is, to a library that thinks in columns, c' = b' a'. */
    return check_blas(cublasGemmEx_64(handles[lane], g->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                      g->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, g->n, g->m, g->k,
                                      wide ? (const void *)&one64 : &one32, g->b, types[g->in],
                                      g->ldb, g->a, types[g->in], g->lda,
                                      wide ? (const void *)&beta64 : &beta32, g->c, types[g->out],
                                      g->ldc, compute_type(g->in, g->math), CUBLAS_GEMM_DEFAULT),
                      "a matrix product", err);
}

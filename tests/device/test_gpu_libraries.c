/* What the fakes of a GPU's libraries refuse: each call is right, and with one thing changed it is
 * refused, as the library's manual says. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include "machine/machine.h"
#include "device/streams.h"
#include "tests/fake_gpu/fake_libraries.h"
#include "tests/fake_gpu/launch_limits.h"
#include "tests/helpers/scratch_folder.h"

static cudaStream_t stream;

static int install(void **state)
{
    (void)state;
    fake_device_install(FAKE_NONE);
    fake_cudart_reset();
    fake_cublas_reset(false);
    fake_cudnn_reset(FAKE_CUDNN_SOUND);
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? 0 : -1;
}

static int install_in_scratch(void **state)
{
    return scratch_setup(state) == 0 ? install(state) : -1;
}

static void *memory_of(size_t bytes)
{
    void *memory;
    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

/* ---- The device ------------------------------------------------------------------------------ */

/* NVML and nvidia-smi find a device by this name; a part of a GPU has one of its own kind. */
static void a_device_is_named_as_nvml_names_it(void **state)
{
    static const char *const names[][2] = {{"NVIDIA H100 80GB HBM3", "GPU-"},
                                           {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "MIG-"}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct lb_device_info info = *fake_device_info();
        snprintf(info.name, sizeof(info.name), "%s", names[i][0]);
        fake_device_be(&info);
        assert_int_equal(lb_device_cuda.open(0, &info, NULL), LB_OK);
        assert_memory_equal(info.uuid, names[i][1], 4);
        assert_string_equal(info.uuid + 4, "01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}

/* NVIDIA's libraries obey one of these before the math mode that a case names, and would make every
 * launch wait by the other. */
static void the_environment_does_not_change_what_a_case_measures(void **state)
{
    struct lb_device_info info = *fake_device_info();
    (void)state;
    assert_int_equal(setenv("NVIDIA_TF32_OVERRIDE", "0", 1), 0);
    assert_int_equal(setenv("CUDA_LAUNCH_BLOCKING", "1", 1), 0);
    assert_int_equal(lb_device_cuda.open(0, &info, NULL), LB_OK);
    assert_null(getenv("NVIDIA_TF32_OVERRIDE"));
    assert_null(getenv("CUDA_LAUNCH_BLOCKING"));
}

/* Where the memory for readings is missing, nothing may be launched that writes to it. */
static void clocks_are_read_only_into_memory(void **state)
{
    struct lb_device_info info = *fake_device_info();
    struct lb_error err = {""};
    double mhz = 0;
    (void)state;
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess); /* the device's own is the first */
    assert_int_equal(lb_device_cuda.open(0, &info, NULL), LB_OK);
    fake_device_break(FAKE_OOM_LATE);
    assert_int_equal(lb_device_cuda.clock_begin(NULL), LB_OOM);
    assert_int_equal(lb_device_cuda.clock_end(&mhz, &err), LB_FAILED);
    assert_string_equal(err.text, "the clocks were not read before");
    assert_true(isnan(mhz));
    assert_int_equal(fake_cudart_counts()->launches, 0);
    fake_device_break(FAKE_NONE);
    assert_int_equal(lb_device_cuda.clock_begin(NULL), LB_OK);
    assert_int_equal(lb_device_cuda.clock_end(&mhz, NULL), LB_OK);
    assert_int_equal(fake_cudart_counts()->launches, 2);
    assert_false(lb_device_cuda.lost());
}

/* ---- Launches ------------------------------------------------------------------------------ */

static void launches_have_limits(void **state)
{
    static const struct {
        const char *device;
        struct fake_launch launch;
        enum fake_refusal expected;
    } cases[] = {
        {"h100", {.grid = {1, 1, 1}, .block = {1024, 1, 1}}, FAKE_ACCEPTED},
        {"h100", {.grid = {1, 1, 1}, .block = {1025, 1, 1}}, FAKE_INVALID_CONFIGURATION},
        {"h100", {.grid = {1, 1, 1}, .block = {32, 32, 2}}, FAKE_INVALID_CONFIGURATION},
        {"h100", {.grid = {1, 1, 1}, .block = {0, 1, 1}}, FAKE_INVALID_CONFIGURATION},
        {"h100", {.grid = {INT32_MAX, 65535, 1}, .block = {1, 1, 1}}, FAKE_ACCEPTED},
        {"h100", {.grid = {1, 65536, 1}, .block = {1, 1, 1}}, FAKE_INVALID_CONFIGURATION},
        {"h100", {.grid = {0, 1, 1}, .block = {1, 1, 1}}, FAKE_INVALID_CONFIGURATION},
        {"h100", {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 48 << 10}, FAKE_ACCEPTED},
        {"h100",
         {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = (48 << 10) + 1},
         FAKE_INVALID_VALUE},
        {"h100",
         {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 227 << 10, .shared_allowed = 227 << 10},
         FAKE_ACCEPTED},
        {"a100",
         {.grid = {1, 1, 1}, .block = {1, 1, 1}, .shared = 227 << 10, .shared_allowed = 227 << 10},
         FAKE_INVALID_VALUE},
        {"h100", {.grid = {16, 1, 1}, .block = {1, 1, 1}, .cluster = 8}, FAKE_ACCEPTED},
        {"h100",
         {.grid = {12, 1, 1}, .block = {1, 1, 1}, .cluster = 8},
         FAKE_INVALID_CONFIGURATION},
        {"h100",
         {.grid = {16, 1, 1}, .block = {1, 1, 1}, .cluster = 16},
         FAKE_INVALID_CLUSTER_SIZE},
        {"h100",
         {.grid = {16, 1, 1}, .block = {1, 1, 1}, .cluster = 16, .wide_clusters = true},
         FAKE_ACCEPTED},
        {"a100", {.grid = {2, 1, 1}, .block = {1, 1, 1}, .cluster = 2}, FAKE_INVALID_CLUSTER_SIZE},
        {"h100", {.grid = {264, 1, 1}, .block = {1024, 1, 1}, .cooperative = true}, FAKE_ACCEPTED},
        {"h100",
         {.grid = {265, 1, 1}, .block = {1024, 1, 1}, .cooperative = true},
         FAKE_COOPERATIVE_TOO_LARGE},
        {"h100",
         {.grid = {133, 1, 1},
          .block = {32, 1, 1},
          .cooperative = true,
          .shared = 200 << 10,
          .shared_allowed = 227 << 10},
         FAKE_COOPERATIVE_TOO_LARGE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_device_info device;
        assert_int_equal(lb_device_model(cases[i].device, &device, NULL), LB_OK);
        enum fake_refusal refusal = fake_launch_check(&device, &cases[i].launch);
        if (refusal != cases[i].expected)
            fail_msg("launch %zu: %d, not %d", i, (int)refusal, (int)cases[i].expected);
    }
}

/* ---- Captures ------------------------------------------------------------------------------ */

static const char host_bytes[64] = "text";

static cudaError_t allocate(char *memory)
{
    void *more;
    (void)memory;
    return cudaMalloc(&more, 16);
}

static cudaError_t upload(char *memory)
{
    return cudaMemcpyAsync(memory, host_bytes, 64, cudaMemcpyHostToDevice, stream);
}

static cudaError_t synchronize(char *memory)
{
    (void)memory;
    return cudaStreamSynchronize(stream);
}

static cudaError_t clear(char *memory)
{
    return cudaMemsetAsync(memory, 0, 64, stream);
}

static cudaError_t copy_on_the_device(char *memory)
{
    return cudaMemcpyAsync(memory, memory + 64, 64, cudaMemcpyDeviceToDevice, stream);
}

static cudaEvent_t from_before; /* recorded outside the capture */

static cudaError_t wait_for_before(char *memory)
{
    (void)memory;
    return cudaStreamWaitEvent(stream, from_before, 0);
}

static cudaError_t wait_for_the_host(char *memory)
{
    (void)memory;
    return cudaEventSynchronize(from_before);
}

static void captures_take_what_is_enqueued_alone(void **state)
{
    static const struct {
        cudaError_t (*call)(char *memory);
        cudaError_t expected;
    } cases[] = {
        {clear, cudaSuccess},
        {copy_on_the_device, cudaSuccess},
        {allocate, cudaErrorStreamCaptureUnsupported},
        {upload, cudaErrorStreamCaptureUnsupported},
        {synchronize, cudaErrorStreamCaptureUnsupported},
        {wait_for_the_host, cudaErrorStreamCaptureUnsupported},
        {wait_for_before, cudaErrorStreamCaptureIsolation},
    };
    char *memory = memory_of(128);
    (void)state;
    assert_int_equal(cudaEventCreate(&from_before), cudaSuccess);
    assert_int_equal(cudaEventRecord(from_before, stream), cudaSuccess);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cudaGraph_t graph;
        bool taken = cases[i].expected == cudaSuccess;
        assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
        assert_int_equal(cases[i].call(memory), cases[i].expected);
        assert_int_equal(cudaStreamEndCapture(stream, &graph),
                         taken ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
        assert_int_equal(graph != NULL, taken);
        if (graph)
            assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
        (void)cudaGetLastError();
    }
    assert_int_equal(cudaStreamBeginCapture(NULL, cudaStreamCaptureModeRelaxed),
                     cudaErrorStreamCaptureUnsupported); /* the legacy stream */
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

static void a_stream_that_does_not_come_back_spoils_the_capture(void **state)
{
    char *memory = memory_of(64);
    cudaStream_t other;
    cudaEvent_t event;
    cudaGraph_t graph;
    (void)state;
    assert_int_equal(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    for (int joins = 0; joins < 2; joins++) {
        assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
        assert_int_equal(cudaEventRecord(event, stream), cudaSuccess);
        assert_int_equal(cudaStreamWaitEvent(other, event, 0), cudaSuccess);
        assert_int_equal(cudaMemsetAsync(memory, 0, 64, other), cudaSuccess);
        assert_int_equal(cudaEventRecord(event, other), cudaSuccess);
        if (joins)
            assert_int_equal(cudaStreamWaitEvent(stream, event, 0), cudaSuccess);
        assert_int_equal(cudaStreamEndCapture(stream, &graph),
                         joins ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    }
    /* What was recorded in a capture is no event outside. */
    assert_int_equal(cudaStreamWaitEvent(stream, event, 0), cudaErrorCapturedEvent);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

/* ---- cuBLAS -------------------------------------------------------------------------------- */

/* A product of 3 x 5 and 5 x 4, column-major, with one thing that may be wrong. */
struct product {
    cublasOperation_t transpose_a, transpose_b;
    int64_t lda, ldb, ldc;
    cudaDataType in, out;
    cublasComputeType_t compute;
    bool null_alpha;
};

static cublasStatus_t multiply(cublasHandle_t handle, const struct product *p, char *memory)
{
    const double one[2] = {1, 0}; /* of either type, 8 bytes are enough */
    return cublasGemmEx_64(handle, p->transpose_a, p->transpose_b, 3, 4, 5,
                           p->null_alpha ? NULL : one, memory, p->in, p->lda, memory + 512, p->in,
                           p->ldb, one + 1, memory + 1024, p->out, p->ldc, p->compute,
                           CUBLAS_GEMM_DEFAULT);
}

static void products_have_their_arguments_checked(void **state)
{
    const struct product right = {CUBLAS_OP_N, CUBLAS_OP_N,        3,    5, 3, CUDA_R_32F,
                                  CUDA_R_32F,  CUBLAS_COMPUTE_32F, false};
    enum { CASES = 14 };
    struct product cases[CASES];
    cublasStatus_t expected[CASES] = {CUBLAS_STATUS_SUCCESS};
    cublasHandle_t handle;
    char *memory = memory_of(2048);
    (void)state;
    for (int i = 0; i < CASES; i++)
        cases[i] = right;
    cases[1].lda = 2, expected[1] = CUBLAS_STATUS_INVALID_VALUE;
    cases[2].ldb = 4, expected[2] = CUBLAS_STATUS_INVALID_VALUE;
    cases[3].ldc = 2, expected[3] = CUBLAS_STATUS_INVALID_VALUE;
    cases[4].transpose_a = CUBLAS_OP_T, cases[4].lda = 4, expected[4] = CUBLAS_STATUS_INVALID_VALUE;
    cases[5].transpose_a = CUBLAS_OP_T, cases[5].lda = 5, expected[5] = CUBLAS_STATUS_SUCCESS;
    cases[6].transpose_b = CUBLAS_OP_T, cases[6].ldb = 3, expected[6] = CUBLAS_STATUS_INVALID_VALUE;
    cases[7].transpose_b = CUBLAS_OP_T, cases[7].ldb = 4, expected[7] = CUBLAS_STATUS_SUCCESS;
    cases[8].null_alpha = true, expected[8] = CUBLAS_STATUS_INVALID_VALUE;
    cases[9].compute = CUBLAS_COMPUTE_64F, expected[9] = CUBLAS_STATUS_NOT_SUPPORTED;
    cases[10].out = CUDA_R_16F, expected[10] = CUBLAS_STATUS_NOT_SUPPORTED;
    cases[11].in = CUDA_R_16F, expected[11] = CUBLAS_STATUS_SUCCESS;
    cases[12].in = cases[12].out = CUDA_R_16BF, cases[12].compute = CUBLAS_COMPUTE_32F_FAST_TF32,
    expected[12] = CUBLAS_STATUS_NOT_SUPPORTED;
    cases[13].transpose_a = CUBLAS_OP_CONJG, expected[13] = CUBLAS_STATUS_INVALID_VALUE;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    for (int i = 0; i < CASES; i++)
        if (multiply(handle, &cases[i], memory) != expected[i])
            fail_msg("product %d is not answered by %d", i, (int)expected[i]);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(multiply(NULL, &right, memory), CUBLAS_STATUS_NOT_INITIALIZED);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

static void a_workspace_is_aligned_and_large_and_lasts_until_the_stream_changes(void **state)
{
    const struct product right = {CUBLAS_OP_N, CUBLAS_OP_N,        3,    5, 3, CUDA_R_32F,
                                  CUDA_R_32F,  CUBLAS_COMPUTE_32F, false};
    cublasHandle_t handle;
    enum { RECOMMENDED = 32 << 20 }; /* on the fake device, whose compute capability is 9.0 */
    char *memory = memory_of(2048), *workspace = memory_of(RECOMMENDED);
    (void)state;
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace(handle, workspace + 128, 1024),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublasSetWorkspace(handle, workspace, RECOMMENDED + 1),
                     CUBLAS_STATUS_INVALID_VALUE);
    assert_int_equal(cublasSetWorkspace(handle, workspace, (16 << 10) - 1), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(handle, &right, memory), CUBLAS_STATUS_ALLOC_FAILED);
    assert_int_equal(cublasSetWorkspace(handle, workspace, RECOMMENDED - 1), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(handle, &right, memory), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(fake_cublas_counts()->with_small_workspace, 1);
    assert_int_equal(cublasSetWorkspace(handle, workspace, RECOMMENDED), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(handle, &right, memory), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(fake_cublas_counts()->with_small_workspace, 1);
    assert_int_equal(fake_cublas_counts()->without_workspace, 0);
    assert_int_equal(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(multiply(handle, &right, memory), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(fake_cublas_counts()->without_workspace, 1);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    assert_int_equal(cudaFree(workspace), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

static void a_library_without_memory_gives_no_handle(void **state)
{
    struct lb_streams *streams;
    struct lb_error err = {""};
    (void)state;
    fake_cublas_reset(true);
    assert_int_equal(lb_streams_create(1, stream, &streams, &err), LB_OOM);
    assert_non_null(strstr(err.text, "opening cuBLAS"));
}

/* A wrong address is not seen in the call: whoever waits learns of it, and everybody after that. */
/* ---- Several devices ----------------------------------------------------------------------- */

/* What a thread of its own sees: its device, and whether it may work there. */
static void *look_from_a_thread(void *user)
{
    int *seen = user;
    void *memory;
    (void)cudaGetDevice(&seen[0]);
    seen[1] = cudaMalloc(&memory, 16);
    (void)cudaGetLastError();
    return NULL;
}

static void a_process_works_on_the_device_that_it_opened_alone(void **state)
{
    struct lb_device_info info;
    struct lb_error err = {""};
    struct cudaDeviceProp properties;
    cudaEvent_t event;
    int count, device, seen[2];
    pthread_t thread;
    (void)state;
    scratch_setenv("LB_FAKE_DEVICES", "4");
    fake_cudart_reset(); /* install has used device 0 */
    assert_int_equal(cudaGetDeviceCount(&count), cudaSuccess);
    assert_int_equal(count, 4);
    assert_int_equal(cudaSetDevice(4), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetDeviceProperties(&properties, 4), cudaErrorInvalidDevice);
    assert_int_equal(lb_device_cuda.open(4, &info, &err), LB_ABSENT);
    assert_string_equal(err.text, "no CUDA device 4: there are 4, counted from 0");
    assert_int_equal(lb_device_cuda.open(2, &info, &err), LB_OK);
    assert_int_equal(info.ordinal, 2);
    assert_int_equal(info.visible, 4);
    assert_string_equal(info.pci, "0000:03:00.0");
    assert_int_equal(strncmp(info.uuid, "GPU-03112131-", 13), 0);
    assert_int_equal(cudaGetDevice(&device), cudaSuccess);
    assert_int_equal(device, 2);

    void *memory = memory_of(16);
    assert_int_equal(cudaEventCreate(&event), cudaSuccess);
    assert_int_equal(cudaSetDevice(1), cudaSuccess);
    assert_int_equal(cudaMemsetAsync(memory, 0, 16, lb_device_cuda.stream()),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaEventRecord(event, lb_device_cuda.stream()),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaStreamSynchronize(lb_device_cuda.stream()),
                     cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaFree(memory), cudaErrorInvalidResourceHandle);
    assert_int_equal(pthread_create(&thread, NULL, look_from_a_thread, seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen[0], 0);
    assert_int_equal(seen[1], cudaErrorInvalidResourceHandle);
    assert_int_equal(cudaSetDevice(2), cudaSuccess);
    assert_int_equal(cudaMemsetAsync(memory, 0, 16, lb_device_cuda.stream()), cudaSuccess);
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

static void a_wrong_address_shows_in_the_next_wait(void **state)
{
    const struct product right = {CUBLAS_OP_N, CUBLAS_OP_N,        3,    5, 3, CUDA_R_32F,
                                  CUDA_R_32F,  CUBLAS_COMPUTE_32F, false};
    static const size_t wrong[] = {2 /* not aligned */, 1024 /* past the end of memory */};
    (void)state;
    for (int i = 0; i < 2; i++) {
        cublasHandle_t handle;
        void *more;
        (void)install(NULL);
        char *memory = memory_of(1084);
        assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(multiply(handle, &right, memory + wrong[i]), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
        assert_int_equal(cudaMalloc(&more, 16), cudaErrorIllegalAddress);
        assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
        assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress); /* it stays */
        (void)cudaFree(memory);
    }
}

/* ---- cuDNN --------------------------------------------------------------------------------- */

/* An RNN of 2 layers, both directions, 3 to 4 elements, for 5 steps of 2 rows. */
struct rnn {
    cudnnHandle_t handle;
    cudnnRNNDescriptor_t rnn;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t state;
    size_t weights, workspace, reserve;
    char *memory;
};

enum { PART = 1 << 16 }; /* bytes of memory for each tensor */

static const int both[] = {5, 5}, ragged[] = {5, 3};

static cudnnStatus_t describe_x(struct rnn *r, int steps, int width, const int *lengths)
{
    return cudnnSetRNNDataDescriptor(r->x, CUDNN_DATA_FLOAT,
                                     CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, steps, 2, width,
                                     lengths, NULL);
}

static cudnnStatus_t describe_rnn(struct rnn *r, cudnnRNNAlgo_t algorithm, cudnnDataType_t type,
                                  cudnnMathType_t math, int hidden, uint32_t flags)
{
    return cudnnSetRNNDescriptor_v8(r->rnn, algorithm, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
                                    CUDNN_BIDIRECTIONAL, CUDNN_LINEAR_INPUT, type,
                                    type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT, math, 3,
                                    hidden, hidden, 2, NULL, flags);
}

static cudnnStatus_t ask_sizes(struct rnn *r)
{
    return cudnnGetRNNTempSpaceSizes(r->handle, r->rnn, CUDNN_FWD_MODE_TRAINING, r->x,
                                     &r->workspace, &r->reserve);
}

static void open_rnn(struct rnn *r)
{
    const int dims[] = {4, 2, 4}, strides[] = {8, 4, 1};
    assert_int_equal(cudnnCreate(&r->handle), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnSetStream(r->handle, stream), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnCreateRNNDescriptor(&r->rnn), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnCreateRNNDataDescriptor(&r->x), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnCreateRNNDataDescriptor(&r->y), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnCreateTensorDescriptor(&r->state), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnSetTensorNdDescriptor(r->state, CUDNN_DATA_FLOAT, 3, dims, strides),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(describe_x(r, 5, 3, both), CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnSetRNNDataDescriptor(r->y, CUDNN_DATA_FLOAT,
                                               CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, 5, 2, 8,
                                               both, NULL),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(describe_rnn(r, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, 4,
                                  CUDNN_RNN_PADDED_IO_ENABLED),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(cudnnGetRNNWeightSpaceSize(r->handle, r->rnn, &r->weights),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(r), CUDNN_STATUS_SUCCESS);
    r->memory = memory_of(8 * PART);
}

static void close_rnn(struct rnn *r)
{
    assert_int_equal(cudaFree(r->memory), cudaSuccess);
    cudnnDestroyTensorDescriptor(r->state);
    cudnnDestroyRNNDataDescriptor(r->y);
    cudnnDestroyRNNDataDescriptor(r->x);
    cudnnDestroyRNNDescriptor(r->rnn);
}

static cudnnStatus_t forward(const struct rnn *r, size_t weights, size_t workspace, size_t reserve)
{
    char *m = r->memory;
    return cudnnRNNForward(r->handle, r->rnn, CUDNN_FWD_MODE_TRAINING, NULL, r->x, m, r->y,
                           m + PART, r->state, m + 2 * PART, m + 3 * PART, r->state, m + 2 * PART,
                           m + 4 * PART, weights, m + 5 * PART, workspace, m + 6 * PART, reserve,
                           m + 7 * PART);
}

static cudnnStatus_t weight_gradients(const struct rnn *r, cudnnWgradMode_t mode)
{
    char *m = r->memory;
    return cudnnRNNBackwardWeights_v8(r->handle, r->rnn, mode, NULL, r->x, m, r->state,
                                      m + 2 * PART, r->y, m + PART, r->weights, m + 5 * PART,
                                      r->workspace, m + 6 * PART, r->reserve, m + 7 * PART);
}

static void calls_of_cudnn_have_their_arguments_checked(void **state)
{
    struct rnn r;
    const uint32_t padded = CUDNN_RNN_PADDED_IO_ENABLED;
    (void)state;
    open_rnn(&r);
    assert_int_equal(forward(&r, r.weights, r.workspace, r.reserve), CUDNN_STATUS_SUCCESS);
    assert_int_equal(forward(&r, r.weights - 1, r.workspace, r.reserve), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(forward(&r, r.weights, r.workspace - 1, r.reserve), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(forward(&r, r.weights, r.workspace, r.reserve - 1), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(weight_gradients(&r, CUDNN_WGRAD_MODE_ADD), CUDNN_STATUS_SUCCESS);
    assert_int_equal(weight_gradients(&r, CUDNN_WGRAD_MODE_SET), CUDNN_STATUS_NOT_SUPPORTED);

    assert_int_equal(describe_x(&r, 5, 3, (const int[]){5, 6}), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(describe_x(&r, 65536, 3, both), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(describe_x(&r, 5, 7, both), CUDNN_STATUS_SUCCESS); /* not what the RNN has */
    assert_int_equal(forward(&r, r.weights, r.workspace, r.reserve), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(describe_x(&r, 5, 3, ragged), CUDNN_STATUS_SUCCESS); /* and y is not */
    assert_int_equal(forward(&r, r.weights, r.workspace, r.reserve), CUDNN_STATUS_BAD_PARAM);
    assert_non_null(strstr(fake_cudnn_said(), "x and y"));
    assert_int_equal(describe_x(&r, 5, 3, both), CUDNN_STATUS_SUCCESS);

    const int flat[] = {1, 2, 16}, strides[] = {32, 16, 1};
    assert_int_equal(cudnnSetTensorNdDescriptor(r.state, CUDNN_DATA_FLOAT, 3, flat, strides),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(forward(&r, r.weights, r.workspace, r.reserve), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH, 4,
                                  CUDNN_RNN_PADDED_IO_DISABLED),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_STANDARD, CUDNN_DATA_DOUBLE,
                                  CUDNN_TENSOR_OP_MATH, 4, padded),
                     CUDNN_STATUS_BAD_PARAM);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
    close_rnn(&r);
}

static void algorithms_of_cudnn_have_their_limits(void **state)
{
    struct rnn r;
    const uint32_t padded = CUDNN_RNN_PADDED_IO_ENABLED;
    (void)state;
    open_rnn(&r);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_DATA_DOUBLE,
                                  CUDNN_FMA_MATH, 4, padded),
                     CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H, CUDNN_DATA_FLOAT,
                                  CUDNN_FMA_MATH, 193, padded),
                     CUDNN_STATUS_NOT_SUPPORTED);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_PERSIST_STATIC, CUDNN_DATA_FLOAT,
                                  CUDNN_FMA_MATH, 4, padded),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_SUCCESS);
    assert_int_equal(describe_x(&r, 5, 3, ragged), CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_NOT_SUPPORTED);

    assert_int_equal(describe_x(&r, 5, 3, both), CUDNN_STATUS_SUCCESS);
    assert_int_equal(describe_rnn(&r, CUDNN_RNN_ALGO_PERSIST_DYNAMIC, CUDNN_DATA_FLOAT,
                                  CUDNN_FMA_MATH, 4, padded),
                     CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_BAD_PARAM); /* it is not built */
    assert_int_equal(cudnnBuildRNNDynamic(r.handle, r.rnn, 3), CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_BAD_PARAM); /* for another batch */
    assert_int_equal(cudnnBuildRNNDynamic(r.handle, r.rnn, 2), CUDNN_STATUS_SUCCESS);
    assert_int_equal(ask_sizes(&r), CUDNN_STATUS_SUCCESS);
    close_rnn(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_device_is_named_as_nvml_names_it, install),
        cmocka_unit_test_setup(the_environment_does_not_change_what_a_case_measures, install),
        cmocka_unit_test_setup(clocks_are_read_only_into_memory, install),
        cmocka_unit_test_setup(launches_have_limits, install),
        cmocka_unit_test_setup(captures_take_what_is_enqueued_alone, install),
        cmocka_unit_test_setup(a_stream_that_does_not_come_back_spoils_the_capture, install),
        cmocka_unit_test_setup(products_have_their_arguments_checked, install),
        cmocka_unit_test_setup(a_workspace_is_aligned_and_large_and_lasts_until_the_stream_changes,
                               install),
        cmocka_unit_test_setup(a_library_without_memory_gives_no_handle, install),
        cmocka_unit_test_setup(calls_of_cudnn_have_their_arguments_checked, install),
        cmocka_unit_test_setup(algorithms_of_cudnn_have_their_limits, install),
        cmocka_unit_test_setup_teardown(a_process_works_on_the_device_that_it_opened_alone,
                                        install_in_scratch, scratch_teardown),
        cmocka_unit_test(a_wrong_address_shows_in_the_next_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

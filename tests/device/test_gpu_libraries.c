/* What the fakes of a GPU's libraries refuse: each call is right, and with one thing changed it is
 * refused, as the library's manual says. */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "device/streams.h"
#include "tests/fake_gpu/fake_libraries.h"
#include "tests/fake_gpu/launch_limits.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

static cudaStream_t stream;

static int install(void **state)
{
    (void)state;
    fake_device_install(FAKE_NONE);
    fake_cudart_reset();
    fake_cublas_reset(FAKE_CUBLAS_NONE);
    return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess ? 0 : -1;
}

static void *memory_of(size_t bytes)
{
    void *memory;
    assert_int_equal(cudaMalloc(&memory, bytes), cudaSuccess);
    return memory;
}

/* ---- The device ------------------------------------------------------------------------------ */

/* NVML and nvidia-smi find a device by this name; a part of a GPU has one of its own kind. */
TEST_WITH(a_device_is_named_as_nvml_names_it, install, NULL)
{
    static const char *const names[][2] = {{"NVIDIA H100 80GB HBM3", "GPU-"},
                                           {"NVIDIA H100 80GB HBM3 MIG 1g.10gb", "MIG-"}};
    for (int i = 0; i < 2; i++) {
        struct lb_device_info info = *fake_device_info();
        snprintf(info.name, sizeof(info.name), "%s", names[i][0]);
        fake_device_be(&info);
        assert_int_equal(lb_device_cuda.open(0, &info, NULL), LB_OK);
        assert_memory_equal(info.uuid, names[i][1], 4);
        assert_string_equal(info.uuid + 4, "01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}

TEST_WITH(a_program_without_code_for_the_device_says_how_to_build_it, install, NULL)
{
    struct lb_device_info info = {.ordinal = 0}, t4 = trial_device("t4");
    struct lb_error err = {""};
    fake_cudart_set_versions(0, -1);
    assert_int_equal(lb_device_cuda.open(0, &info, &err), LB_ABSENT);
    assert_string_equal(
        err.text, "no CUDA device: this program has no code for Fake GPU (9.0): build it with "
                  "-D LB_CUDA_ARCHITECTURES=90 (CUDA error 209, 209)");
    fake_device_be(&t4); /* whose cases implementations refuse by its name */
    assert_int_equal(lb_device_cuda.open(0, &info, &err), LB_OK);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* NVIDIA's libraries obey these before the math mode that a case names; by one, every launch would
 * wait, by another streams for each other. */
TEST_WITH(the_environment_does_not_change_what_a_case_measures, install, NULL)
{
    struct lb_device_info info = *fake_device_info();
    static const char *const names[] = {"NVIDIA_TF32_OVERRIDE",
                                        "CUDA_LAUNCH_BLOCKING",
                                        "CUDA_DEVICE_MAX_CONNECTIONS",
                                        "CUBLAS_EMULATION_STRATEGY",
                                        "CUBLAS_EMULATE_SINGLE_PRECISION",
                                        "CUBLAS_EMULATE_DOUBLE_PRECISION"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    for (size_t i = 0; i < NAMES; i++)
        assert_int_equal(setenv(names[i], "1", 1), 0);
    assert_int_equal(lb_device_cuda.open(0, &info, NULL), LB_OK);
    for (size_t i = 0; i < NAMES; i++)
        assert_null(getenv(names[i]));
}

/* Where the memory for readings is missing, nothing may be launched that writes to it. */
TEST_WITH(clocks_are_read_only_into_memory, install, NULL)
{
    struct lb_device_info info = *fake_device_info();
    struct lb_error err = {""};
    double mhz = 0;
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

TEST_WITH(launches_have_limits, install, NULL)
{
    enum { FORTY_EIGHT = 48 << 10, ALL = 227 << 10 }; /* bytes per block */
    static const struct {
        const char *device;
        unsigned grid[2], block[3];
        size_t shared, allowed;
        unsigned cluster;
        bool wide, cooperative;
        cudaError_t expected;
    } cases[] = {
        {"h100", {1, 1}, {1024, 1, 1}, 0, 0, 0, 0, 0, cudaSuccess},
        {"h100", {1, 1}, {1025, 1, 1}, 0, 0, 0, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {1, 1}, {32, 32, 2}, 0, 0, 0, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {1, 1}, {0, 1, 1}, 0, 0, 0, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {INT32_MAX, 65535}, {1, 1, 1}, 0, 0, 0, 0, 0, cudaSuccess},
        {"h100", {1, 65536}, {1, 1, 1}, 0, 0, 0, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {0, 1}, {1, 1, 1}, 0, 0, 0, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {1, 1}, {1, 1, 1}, FORTY_EIGHT, 0, 0, 0, 0, cudaSuccess},
        {"h100", {1, 1}, {1, 1, 1}, FORTY_EIGHT + 1, 0, 0, 0, 0, cudaErrorInvalidValue},
        {"h100", {1, 1}, {1, 1, 1}, ALL, ALL, 0, 0, 0, cudaSuccess},
        {"a100", {1, 1}, {1, 1, 1}, ALL, ALL, 0, 0, 0, cudaErrorInvalidValue},
        {"h100", {16, 1}, {1, 1, 1}, 0, 0, 8, 0, 0, cudaSuccess},
        {"h100", {12, 1}, {1, 1, 1}, 0, 0, 8, 0, 0, cudaErrorInvalidConfiguration},
        {"h100", {16, 1}, {1, 1, 1}, 0, 0, 16, 0, 0, cudaErrorInvalidClusterSize},
        {"h100", {16, 1}, {1, 1, 1}, 0, 0, 16, 1, 0, cudaSuccess},
        {"a100", {2, 1}, {1, 1, 1}, 0, 0, 2, 0, 0, cudaErrorInvalidClusterSize},
        {"h100", {264, 1}, {1024, 1, 1}, 0, 0, 0, 0, 1, cudaSuccess},
        {"h100", {265, 1}, {1024, 1, 1}, 0, 0, 0, 0, 1, cudaErrorCooperativeLaunchTooLarge},
        {"h100", {133, 1}, {1, 1, 1}, ALL, ALL, 0, 0, 1, cudaErrorCooperativeLaunchTooLarge},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_device_info device = trial_device(cases[i].device);
        struct fake_launch launch = {.grid = {cases[i].grid[0], cases[i].grid[1], 1},
                                     .cluster = cases[i].cluster,
                                     .cooperative = cases[i].cooperative,
                                     .shared = cases[i].shared,
                                     .shared_allowed = cases[i].allowed,
                                     .wide_clusters = cases[i].wide};
        memcpy(launch.block, cases[i].block, sizeof(launch.block));
        cudaError_t refusal = (cudaError_t)fake_launch_check(&device, &launch);
        if (refusal != cases[i].expected)
            fail_msg("launch %zu: %d, not %d", i, (int)refusal, (int)cases[i].expected);
    }
}

/* ---- Captures ------------------------------------------------------------------------------ */

enum captured { CLEAR, COPY, ALLOCATE, UPLOAD, SYNCHRONIZE, WAIT_ON_THE_HOST, WAIT_FOR_BEFORE };

/* before: an event that was recorded outside the capture. */
static cudaError_t call(enum captured which, char *memory, cudaEvent_t before)
{
    void *more;
    switch (which) {
    case CLEAR: return cudaMemsetAsync(memory, 0, 64, stream);
    case COPY: return cudaMemcpyAsync(memory, memory + 64, 64, cudaMemcpyDeviceToDevice, stream);
    case ALLOCATE: return cudaMalloc(&more, 16);
    case UPLOAD: return cudaMemcpyAsync(memory, "text", 4, cudaMemcpyHostToDevice, stream);
    case SYNCHRONIZE: return cudaStreamSynchronize(stream);
    case WAIT_ON_THE_HOST: return cudaEventSynchronize(before);
    default: return cudaStreamWaitEvent(stream, before, 0);
    }
}

TEST_WITH(captures_take_what_is_enqueued_alone, install, NULL)
{
    char *memory = memory_of(128);
    cudaEvent_t before;
    assert_int_equal(cudaEventCreate(&before), cudaSuccess);
    assert_int_equal(cudaEventRecord(before, stream), cudaSuccess);
    for (int i = CLEAR; i <= WAIT_FOR_BEFORE; i++) {
        cudaGraph_t graph;
        bool taken = i == CLEAR || i == COPY;
        assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
        assert_int_equal(call((enum captured)i, memory, before),
                         taken                  ? cudaSuccess
                         : i == WAIT_FOR_BEFORE ? cudaErrorStreamCaptureIsolation
                                                : cudaErrorStreamCaptureUnsupported);
        assert_int_equal(cudaStreamEndCapture(stream, &graph),
                         taken ? cudaSuccess : cudaErrorStreamCaptureInvalidated);
        assert_int_equal(graph != NULL, taken);
        if (graph)
            assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
        (void)cudaGetLastError();
    }
    assert_int_equal(cudaFree(memory), cudaSuccess);
}

TEST_WITH(a_stream_that_does_not_come_back_spoils_the_capture, install, NULL)
{
    char *memory = memory_of(64);
    cudaStream_t other;
    cudaEvent_t event;
    cudaGraph_t graph;
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
    int transpose_a, transpose_b;
    int64_t lda, ldb, ldc;
    int in, out, compute;
};

enum { N = CUBLAS_OP_N, T = CUBLAS_OP_T };
enum { F32 = CUDA_R_32F, F16 = CUDA_R_16F, BF16 = CUDA_R_16BF };
enum { IEEE = CUBLAS_COMPUTE_32F, TF32 = CUBLAS_COMPUTE_32F_FAST_TF32 };

static cublasStatus_t multiply(cublasHandle_t handle, const struct product *p, char *memory)
{
    const float one = 1, none = 0;
    cudaDataType in = (cudaDataType)p->in;
    return cublasGemmEx_64(handle, (cublasOperation_t)p->transpose_a,
                           (cublasOperation_t)p->transpose_b, 3, 4, 5, &one, memory, in, p->lda,
                           memory + 512, in, p->ldb, &none, memory + 1024, (cudaDataType)p->out,
                           p->ldc, (cublasComputeType_t)p->compute, CUBLAS_GEMM_DEFAULT);
}

static cublasHandle_t handle_of_stream(void)
{
    cublasHandle_t handle;
    const size_t bytes = lb_stream_scratch_bytes();
    assert_int_equal(cublasCreate(&handle), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetStream(handle, stream), CUBLAS_STATUS_SUCCESS);
    assert_int_equal(cublasSetWorkspace(handle, memory_of(bytes), bytes), CUBLAS_STATUS_SUCCESS);
    return handle;
}

TEST_WITH(products_have_their_arguments_checked, install, NULL)
{
    static const struct {
        struct product product;
        cublasStatus_t expected;
    } cases[] = {
        {{N, N, 2, 5, 3, F32, F32, IEEE}, CUBLAS_STATUS_INVALID_VALUE},
        {{N, N, 3, 4, 3, F32, F32, IEEE}, CUBLAS_STATUS_INVALID_VALUE},
        {{N, N, 3, 5, 2, F32, F32, IEEE}, CUBLAS_STATUS_INVALID_VALUE},
        {{T, T, 5, 4, 3, F16, F32, IEEE}, CUBLAS_STATUS_SUCCESS},
        {{T, N, 4, 5, 3, F32, F32, IEEE}, CUBLAS_STATUS_INVALID_VALUE},
        {{N, N, 3, 5, 3, F32, F16, IEEE}, CUBLAS_STATUS_NOT_SUPPORTED},
        {{N, N, 3, 5, 3, BF16, BF16, TF32}, CUBLAS_STATUS_NOT_SUPPORTED},
    };
    cublasHandle_t handle = handle_of_stream();
    char *memory = memory_of(2048);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (multiply(handle, &cases[i].product, memory) != cases[i].expected)
            fail_msg("product %zu is not answered by %d", i, (int)cases[i].expected);
    assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
}

/* A wrong address is not seen in the call: whoever waits learns of it, and everybody after that. */
TEST(a_wrong_address_shows_in_the_next_wait)
{
    static const size_t wrong[] = {2 /* not aligned */, 1024 /* past the end of memory */};
    static const struct product right = {N, N, 3, 5, 3, F32, F32, IEEE};
    for (int i = 0; i < 2; i++) {
        void *more;
        (void)install(NULL);
        cublasHandle_t handle = handle_of_stream();
        char *memory = memory_of(1084);
        assert_int_equal(multiply(handle, &right, memory + wrong[i]), CUBLAS_STATUS_SUCCESS);
        assert_int_equal(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
        assert_int_equal(cudaMalloc(&more, 16), cudaErrorIllegalAddress);
        assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
        assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress); /* it stays */
        (void)cudaFree(memory);
    }
}

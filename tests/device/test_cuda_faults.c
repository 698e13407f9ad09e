/* The device layer notices a fault of the device whichever of its files made the call. This file
 * replaces the runtime's functions by its own (the linker's --wrap), so no device is needed. */
#include <sys/wait.h>
#include <unistd.h>

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/streams.h"
#include "measure/gpu_latency.h"
#include "tests/helpers/test.h"

static cudaError_t result; /* of the calls below */

__typeof__(cudaMalloc) __wrap_cudaMalloc;
__typeof__(cudaEventCreateWithFlags) __wrap_cudaEventCreateWithFlags;

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    (void)bytes;
    *memory = NULL;
    return result;
}

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = NULL;
    return result;
}

/* What the driver says of itself and of its one device. */
static struct driver {
    cudaError_t count, set;
    int version, compute_mode;
} driver;

__typeof__(cudaGetDeviceCount) __wrap_cudaGetDeviceCount;
__typeof__(cudaSetDevice) __wrap_cudaSetDevice;
__typeof__(cudaDriverGetVersion) __wrap_cudaDriverGetVersion;
__typeof__(cudaDeviceGetAttribute) __wrap_cudaDeviceGetAttribute;

cudaError_t __wrap_cudaGetDeviceCount(int *count)
{
    *count = driver.count == cudaSuccess;
    return driver.count;
}

cudaError_t __wrap_cudaSetDevice(int ordinal)
{
    (void)ordinal;
    return driver.set;
}

cudaError_t __wrap_cudaDriverGetVersion(int *version)
{
    *version = driver.version;
    return cudaSuccess;
}

cudaError_t __wrap_cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    (void)ordinal;
    *value = attribute == cudaDevAttrComputeMode ? driver.compute_mode : 0;
    return cudaSuccess;
}

static cublasStatus_t opened; /* of cublasCreate, with so much memory free: */
static size_t free_memory;

__typeof__(cublasCreate_v2) __wrap_cublasCreate_v2;
__typeof__(cudaMemGetInfo) __wrap_cudaMemGetInfo;

cublasStatus_t __wrap_cublasCreate_v2(cublasHandle_t *handle)
{
    *handle = NULL;
    return opened;
}

cudaError_t __wrap_cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = free_memory;
    *all_bytes = (size_t)80 << 30;
    return cudaSuccess;
}

static enum lb_status allocate(struct lb_error *err)
{
    void *memory;
    return lb_device_cuda.allocate(1, &memory, err);
}

static enum lb_status measure_latencies(struct lb_error *err)
{
    struct lb_ceilings ceilings = {.cores = 1};
    return lb_latency_measure(&ceilings, err);
}

static enum lb_status create_streams(struct lb_error *err)
{
    struct lb_streams *streams;
    return lb_streams_create(1, NULL, NULL, &streams, err);
}

/* Returns 0 when status, message and whether the device is lost are as expected. */
static int try_call(enum lb_status (*call)(struct lb_error *), cudaError_t error,
                    enum lb_status status, bool lost)
{
    struct lb_error err = {""};
    result = error;
    if (lb_device_cuda.lost() || call(&err) != status)
        return 1;
    char says[200];
    snprintf(says, sizeof(says), "%s (%s, %d)", cudaGetErrorString(error), cudaGetErrorName(error),
             (int)error);
    return strstr(err.text, says) && lb_device_cuda.lost() == lost ? 0 : 2;
}

/* Each call is made in a process of its own, because a lost device stays lost. */
TEST(a_fault_is_noticed_in_every_file_of_the_layer)
{
    enum lb_status (*const calls[])(struct lb_error *) = {allocate, measure_latencies,
                                                          create_streams};
    static const struct {
        cudaError_t error;
        enum lb_status status;
        bool lost;
    } known[] = {{cudaErrorIllegalAddress, LB_FAILED, true},
                 {cudaErrorMemoryAllocation, LB_OOM, false},
                 {cudaErrorInvalidValue, LB_FAILED, false}};
    for (size_t i = 0; i < 9; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(
                try_call(calls[i / 3], known[i % 3].error, known[i % 3].status, known[i % 3].lost));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

TEST(cublas_without_memory_is_out_of_memory)
{
    static const struct {
        cublasStatus_t status;
        size_t free_memory;
        enum lb_status expected;
    } cases[] = {
        {CUBLAS_STATUS_ALLOC_FAILED, (size_t)1 << 30, LB_OOM},
        {CUBLAS_STATUS_NOT_INITIALIZED, (size_t)3 << 20, LB_OOM},
        {CUBLAS_STATUS_NOT_INITIALIZED, (size_t)1 << 30, LB_FAILED},
        {CUBLAS_STATUS_ARCH_MISMATCH, (size_t)3 << 20, LB_FAILED},
    };
    result = cudaSuccess;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_error err = {""};
        opened = cases[i].status;
        free_memory = cases[i].free_memory;
        assert_int_equal(create_streams(&err), cases[i].expected);
        assert_non_null(strstr(err.text, "opening cuBLAS"));
    }
}

TEST(a_driver_that_gives_no_device_is_told_with_its_reason)
{
    static const struct {
        struct driver driver;
        const char *says[2];
    } cases[] = {
        {{cudaErrorInsufficientDriver, cudaSuccess, 0, 0}, {"there is no NVIDIA driver", ""}},
        {{cudaErrorInsufficientDriver, cudaSuccess, 11040, 0},
         {"runs CUDA up to 11.4", "this program was built with 1"}},
        {{cudaSuccess, cudaErrorDevicesUnavailable, 13000, cudaComputeModeExclusiveProcess},
         {"compute mode is exclusive-process", "nvidia-smi -c DEFAULT"}},
        {{cudaSuccess, cudaErrorDevicesUnavailable, 13000, cudaComputeModeProhibited},
         {"compute mode is prohibited", ""}},
        {{cudaErrorNoDevice, cudaSuccess, 13000, 0}, {"CUDA_VISIBLE_DEVICES", ""}},
    };
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_device_info info;
        struct lb_error err = {""};
        driver = cases[i].driver;
        assert_int_equal(lb_device_cuda.open(0, &info, &err), LB_ABSENT);
        if (!strstr(err.text, cases[i].says[0]) || !strstr(err.text, cases[i].says[1]))
            fail_msg("%s", err.text);
    }
}

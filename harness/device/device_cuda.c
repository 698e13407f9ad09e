/* The device layer on the CUDA runtime. */
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "device/device.h"
#include "device/device_kernels.h"
#include "device/nvml.h"
#include "stats/order_stats.h"

/* What each thread that uses the device has for itself. */
static _Thread_local struct own {
    cudaStream_t stream;
    cudaEvent_t from, to;            /* before and after the timed work */
    uint64_t *sum;                   /* on the device, for hashes; NULL before the first */
    float *fixed;                    /* on the device, for the reference; NULL before the first */
    struct lb_clock_reading *clocks; /* [2, LB_CLOCK_SLOTS] on the device; NULL before the first */
    volatile unsigned *flags;        /* of lb_device_hold, on the host; NULL: no hold yet */
    unsigned ticket;                 /* of the last hold */
} own;

static int chosen, sm_count;       /* of the open device */
static _Atomic(cudaError_t) fault; /* the first that made the device unusable; cudaSuccess: none */

/* Errors after which every later call fails with the same error until the process ends. */
static bool is_sticky(cudaError_t error)
{
    switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorAssert:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
#if CUDART_VERSION >= 12080 /* the first version that has these two */
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
#endif
    case cudaErrorECCUncorrectable:
    case cudaErrorUnknown: return true;
    default: return false;
    }
}

/* Clears the runtime's last error, which a later call would otherwise report as its own. */
enum lb_status lb_cuda_check(int code, const char *what, struct lb_error *err)
{
    cudaError_t error = (cudaError_t)code;
    if (error == cudaSuccess)
        return LB_OK;
    (void)cudaGetLastError();
    if (is_sticky(error) && fault == cudaSuccess)
        fault = error;
    return lb_fail(err, error == cudaErrorMemoryAllocation ? LB_OOM : LB_FAILED, "%s: %s (%s, %d)",
                   what, cudaGetErrorString(error), cudaGetErrorName(error), (int)error);
}

/* Says that the driver is missing, or which versions do not go together. */
static void describe_driver(char *words, size_t size)
{
    int driver = 0, runtime = 0;
    (void)cudaDriverGetVersion(&driver); /* 0 without a driver */
    (void)cudaRuntimeGetVersion(&runtime);
    const char *release = lb_nvml_driver();
    if (driver == 0)
        snprintf(words, size, "there is no NVIDIA driver");
    else
        snprintf(words, size,
                 "the NVIDIA driver%s%s runs CUDA up to %d.%d, this program was built with %d.%d: "
                 "install a newer driver, or build with an older CUDA",
                 release[0] ? " " : "", release, driver / 1000, driver % 1000 / 10, runtime / 1000,
                 runtime % 1000 / 10);
}

/* Says why the driver does not let this process use the device. */
static void describe_unavailable(int ordinal, char *words, size_t size)
{
    int mode = cudaComputeModeDefault;
    if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, ordinal) != cudaSuccess)
        mode = cudaComputeModeDefault;
    if (mode == cudaComputeModeExclusiveProcess)
        snprintf(words, size,
                 "its compute mode is exclusive-process, and another process uses it (each plug-in "
                 "and each trace has one of its own): end that, or set nvidia-smi -c DEFAULT");
    else if (mode == cudaComputeModeProhibited)
        snprintf(words, size, "its compute mode is prohibited: set nvidia-smi -c DEFAULT");
    else
        snprintf(words, size, "it is busy or not usable");
}

/* The runtime's own messages mislead in some of these cases. */
static enum lb_status absent(cudaError_t error, const struct lb_device_info *info,
                             struct lb_error *err)
{
    char words[320];
    if (error == cudaErrorInsufficientDriver)
        describe_driver(words, sizeof(words));
    else if (error == cudaErrorDevicesUnavailable)
        describe_unavailable(info->ordinal, words, sizeof(words));
    else if (error == cudaErrorStubLibrary)
        snprintf(words, sizeof(words), "no NVIDIA driver, only the library's stub");
    else if (error == cudaErrorNoDevice)
        snprintf(words, sizeof(words), "the NVIDIA driver sees none%s",
                 getenv("CUDA_VISIBLE_DEVICES") ? " that CUDA_VISIBLE_DEVICES names" : "");
    else if (error == cudaErrorNoKernelImageForDevice || error == cudaErrorInvalidDeviceFunction ||
             error == cudaErrorUnsupportedPtxVersion)
        snprintf(words, sizeof(words),
                 "this program has no code for %s (%d.%d): build it with -D "
                 "LB_CUDA_ARCHITECTURES=%d%d",
                 info->name, info->major, info->minor, info->major, info->minor);
    else
        snprintf(words, sizeof(words), "%s", cudaGetErrorString(error));
    (void)cudaGetLastError(); /* of the calls above too */
    return lb_fail(err, LB_ABSENT, "no CUDA device: %s (%s, %d)", words, cudaGetErrorName(error),
                   (int)error);
}

/* The name that NVML and nvidia-smi know it by. A part of a GPU has one of its own kind, and is
 * told from a whole one by its name, such as "NVIDIA H100 80GB HBM3 MIG 1g.10gb". */
static void format_uuid(const char *name, const cudaUUID_t *uuid, char text[48])
{
    size_t used = (size_t)snprintf(text, 48, strstr(name, " MIG ") ? "MIG-" : "GPU-");
    for (int i = 0; i < 16; i++)
        used += (size_t)snprintf(text + used, 48 - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned char)uuid->bytes[i]);
}

static enum lb_status describe(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    struct cudaDeviceProp properties;
    memset(&properties, 0, sizeof(properties));
    LB_CHECK(
        lb_cuda_check(cudaGetDeviceProperties(&properties, ordinal), "reading the device", err));
    snprintf(info->name, sizeof(info->name), "%.63s", properties.name);
    format_uuid(properties.name, &properties.uuid, info->uuid);
    snprintf(info->pci, sizeof(info->pci), "%04x:%02x:%02x.0", (unsigned)properties.pciDomainID,
             (unsigned)properties.pciBusID, (unsigned)properties.pciDeviceID);
    info->ordinal = ordinal;
    info->major = properties.major;
    info->minor = properties.minor;
    info->sm_count = properties.multiProcessorCount;
    info->memory_bytes = (double)properties.totalGlobalMem;
    info->l2_bytes = (double)properties.l2CacheSize;
    info->shared_bytes = (double)properties.sharedMemPerBlockOptin;
    LB_CHECK(
        lb_cuda_check(cudaDriverGetVersion(&info->driver), "reading the driver's version", err));
    return lb_cuda_check(cudaRuntimeGetVersion(&info->runtime), "reading the runtime's version",
                         err);
}

/* lb_at_thread_end */
static void leave(void *user)
{
    struct own *o = user;
    (void)cudaFree(o->sum);
    (void)cudaFree(o->fixed);
    (void)cudaFree(o->clocks);
    (void)cudaFreeHost((void *)(uintptr_t)o->flags);
    if (o->from)
        (void)cudaEventDestroy(o->from);
    if (o->to)
        (void)cudaEventDestroy(o->to);
    if (o->stream)
        (void)cudaStreamDestroy(o->stream);
}

static enum lb_status cuda_enter(struct lb_error *err)
{
    /* Nothing is left of a device that was open before but the host's memory. */
    own = (struct own){.flags = own.flags, .ticket = own.ticket};
    LB_CHECK(lb_at_thread_end(leave, &own, err));
    LB_CHECK(lb_cuda_check(cudaSetDevice(chosen), "choosing the device", err));
    LB_CHECK(lb_cuda_check(cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking),
                           "creating a stream", err));
    LB_CHECK(lb_cuda_check(cudaEventCreate(&own.from), "creating an event", err));
    return lb_cuda_check(cudaEventCreate(&own.to), "creating an event", err);
}

static enum lb_status cuda_open(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int count = 0; /* left untouched when there is no driver */
    /* They would change what a case measures; no library has read them yet. The first is stronger
     * than a program's math mode: with 0, tf32 would be f32. The second makes every launch wait
     * until its kernel ends. The third may be 1 in containers for training; streams then share a
     * queue. With the others cuBLAS computes f32 and f64 from narrower products. */
    static const char *const variables[] = {"NVIDIA_TF32_OVERRIDE",
                                            "CUDA_LAUNCH_BLOCKING",
                                            "CUDA_DEVICE_MAX_CONNECTIONS",
                                            "CUBLAS_EMULATION_STRATEGY",
                                            "CUBLAS_EMULATE_SINGLE_PRECISION",
                                            "CUBLAS_EMULATE_DOUBLE_PRECISION"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
        (void)unsetenv(variables[i]);
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count == 0)
        error = cudaErrorNoDevice;
    if (error != cudaSuccess)
        return absent(error, info, err);
    if (ordinal < 0 || ordinal >= count)
        return lb_fail(err, LB_ABSENT, "no CUDA device %d: there are %d, counted from 0", ordinal,
                       count);
    /* This creates the context, which takes most of a second. */
    error = cudaSetDevice(ordinal);
    if (error == cudaSuccess)
        error = cudaFree(NULL);
    if (error != cudaSuccess)
        return absent(error, info, err);
    LB_TRY(describe(ordinal, info, err));
    error = (cudaError_t)lb_device_find_code();
    if (error != cudaSuccess && info->major >= 8) /* implementations refuse earlier ones */
        return absent(error, info, err);
    (void)cudaGetLastError();
    info->visible = count;
    sm_count = info->sm_count;
    chosen = ordinal;
    LB_TRY(cuda_enter(err));
done:
    return st == LB_OK ? LB_OK : LB_ABSENT;
}

static void *cuda_stream(void)
{
    return own.stream;
}

static enum lb_status cuda_allocate(size_t bytes, void **out, struct lb_error *err)
{
    char size[32], what[80];
    lb_format_bytes((double)bytes, size);
    snprintf(what, sizeof(what), "allocating %s of device memory", size);
    *out = NULL;
    return lb_cuda_check(cudaMalloc(out, bytes), what, err);
}

static void cuda_release(void *memory)
{
    lb_cuda_check(cudaFree(memory), "releasing device memory", NULL);
}

static double cuda_available(void)
{
    size_t left = 0, all = 0;
    lb_cuda_check(cudaMemGetInfo(&left, &all), "reading the free memory", NULL);
    return (double)left;
}

static enum lb_status cuda_synchronize(struct lb_error *err)
{
    return lb_cuda_check(cudaStreamSynchronize(own.stream), "waiting for the device", err);
}

static enum lb_status copy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                           struct lb_error *err)
{
    LB_CHECK(lb_cuda_check(cudaMemcpyAsync(to, from, bytes, kind, own.stream), "copying", err));
    return cuda_synchronize(err);
}

static enum lb_status cuda_upload(void *to, const void *host, size_t bytes, struct lb_error *err)
{
    return copy(to, host, bytes, cudaMemcpyHostToDevice, err);
}

static enum lb_status cuda_download(void *host, const void *from, size_t bytes,
                                    struct lb_error *err)
{
    return copy(host, from, bytes, cudaMemcpyDeviceToHost, err);
}

static enum lb_status cuda_fill(void *to, int byte, size_t bytes, struct lb_error *err)
{
    return lb_cuda_check(cudaMemsetAsync(to, byte, bytes, own.stream), "filling device memory",
                         err);
}

static enum lb_status cuda_hash(const void *memory, size_t bytes, uint64_t *hash,
                                struct lb_error *err)
{
    uint64_t sum;
    if (!own.sum)
        LB_CHECK(cuda_allocate(sizeof(*own.sum), (void **)&own.sum, err));
    LB_CHECK(cuda_fill(own.sum, 0, sizeof(*own.sum), err));
    LB_CHECK(lb_device_hash_add(memory, bytes, own.sum, own.stream, err));
    LB_CHECK(cuda_download(&sum, own.sum, sizeof(sum), err));
    *hash += sum;
    return LB_OK;
}

static enum lb_status cuda_overflow(const void *memory, size_t count, uint64_t *found,
                                    struct lb_error *err)
{
    if (!own.sum)
        LB_CHECK(cuda_allocate(sizeof(*own.sum), (void **)&own.sum, err));
    LB_CHECK(cuda_fill(own.sum, 0, sizeof(*own.sum), err));
    LB_CHECK(lb_device_overflow_add(memory, count, own.sum, own.stream, err));
    return cuda_download(found, own.sum, sizeof(*found), err);
}

static enum lb_status cuda_start(struct lb_error *err)
{
    return lb_cuda_check(cudaEventRecord(own.from, own.stream), "recording an event", err);
}

static enum lb_status cuda_hold(struct lb_error *err)
{
    void *flags = NULL;
    if (!own.flags) { /* the device reads it over the bus, at the same address */
        LB_CHECK(lb_cuda_check(cudaHostAlloc(&flags, 2 * sizeof(unsigned), cudaHostAllocMapped),
                               "allocating host memory that the device sees", err));
        own.flags = memset(flags, 0, 2 * sizeof(unsigned));
    }
    own.ticket++;
    return lb_device_hold(own.flags, own.ticket, own.stream, err);
}

static bool cuda_held(void)
{
    return own.flags && own.flags[1] != own.ticket;
}

static enum lb_status cuda_clock_begin(struct lb_error *err)
{
    const size_t bytes = 2 * LB_CLOCK_SLOTS * sizeof(*own.clocks);
    if (!own.clocks)
        LB_CHECK(cuda_allocate(bytes, (void **)&own.clocks, err));
    LB_CHECK(cuda_fill(own.clocks, 0, bytes, err));
    return lb_device_read_clocks(own.clocks, sm_count, own.stream, err);
}

static enum lb_status cuda_clock_end(double *mhz, struct lb_error *err)
{
    struct lb_clock_reading readings[2 * LB_CLOCK_SLOTS];
    *mhz = (double)NAN;
    if (!own.clocks) /* clock_begin found no memory: the kernel would write to address 0 */
        return lb_fail(err, LB_FAILED, "the clocks were not read before");
    LB_CHECK(lb_device_read_clocks(own.clocks + LB_CLOCK_SLOTS, sm_count, own.stream, err));
    LB_CHECK(cuda_download(readings, own.clocks, sizeof(readings), err));
    *mhz = lb_mean_clock_mhz(readings, readings + LB_CLOCK_SLOTS, LB_CLOCK_SLOTS);
    return LB_OK;
}

static enum lb_status cuda_stop(double *ns, struct lb_error *err)
{
    float ms = 0;
    cudaError_t recorded = cudaEventRecord(own.to, own.stream);
    if (own.flags)
        own.flags[0] = own.ticket;
    LB_CHECK(lb_cuda_check(recorded, "recording an event", err));
    LB_CHECK(lb_cuda_check(cudaEventSynchronize(own.to), "waiting for the device", err));
    LB_CHECK(lb_cuda_check(cudaEventElapsedTime(&ms, own.from, own.to), "reading the time", err));
    *ns = (double)ms * 1e6;
    return LB_OK;
}

/* The first launch is not timed, because it loads the kernel. */
static enum lb_status cuda_reference(double *ns, struct lb_error *err)
{
    enum { TIMES = 5 };
    double all[TIMES];
    if (!own.fixed)
        LB_CHECK(cuda_allocate(lb_device_fixed_bytes(sm_count), (void **)&own.fixed, err));
    LB_CHECK(lb_device_fixed_work(own.fixed, sm_count, own.stream, err));
    for (int i = 0; i < TIMES; i++) {
        LB_CHECK(cuda_start(err));
        LB_CHECK(lb_device_fixed_work(own.fixed, sm_count, own.stream, err));
        LB_CHECK(cuda_stop(&all[i], err));
    }
    lb_sort(all, TIMES);
    *ns = lb_median(all, TIMES);
    return LB_OK;
}

static enum lb_status cuda_capture_begin(struct lb_error *err)
{
    /* Relaxed, because libraries may query the device and load modules while they enqueue. Work
     * that they enqueue on another stream would be missing from the replay; the check of the
     * results of the last timed call finds that. */
    return lb_cuda_check(cudaStreamBeginCapture(own.stream, cudaStreamCaptureModeRelaxed),
                         "beginning a graph capture", err);
}

static enum lb_status cuda_capture_end(void **graph, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    cudaGraph_t captured = NULL;
    cudaGraphExec_t ready = NULL;
    *graph = NULL;
    LB_TRY(lb_cuda_check(cudaStreamEndCapture(own.stream, &captured), "capturing a graph", err));
    /* Without the flag, the priorities of the streams that were captured have no effect. */
    LB_TRY(lb_cuda_check(
        cudaGraphInstantiate(&ready, captured, cudaGraphInstantiateFlagUseNodePriority),
        "instantiating a graph", err));
    LB_TRY(lb_cuda_check(cudaGraphUpload(ready, own.stream), "uploading a graph", err));
    LB_TRY(cuda_synchronize(err));
    *graph = ready;
    ready = NULL;
done:
    if (ready)
        (void)cudaGraphExecDestroy(ready);
    if (captured)
        (void)cudaGraphDestroy(captured);
    return st;
}

static enum lb_status cuda_replay(void *graph, struct lb_error *err)
{
    return lb_cuda_check(cudaGraphLaunch(graph, own.stream), "launching a graph", err);
}

static void cuda_graph_release(void *graph)
{
    if (graph)
        lb_cuda_check(cudaGraphExecDestroy(graph), "releasing a graph", NULL);
}

static bool cuda_lost(void)
{
    return fault != cudaSuccess;
}

const struct lb_device_api lb_device_cuda = {
    .open = cuda_open,
    .enter = cuda_enter,
    .stream = cuda_stream,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .available = cuda_available,
    .upload = cuda_upload,
    .download = cuda_download,
    .fill = cuda_fill,
    .hash = cuda_hash,
    .overflow = cuda_overflow,
    .synchronize = cuda_synchronize,
    .start = cuda_start,
    .stop = cuda_stop,
    .reference = cuda_reference,
    .hold = cuda_hold,
    .held = cuda_held,
    .clock_begin = cuda_clock_begin,
    .clock_end = cuda_clock_end,
    .capture_begin = cuda_capture_begin,
    .capture_end = cuda_capture_end,
    .replay = cuda_replay,
    .graph_release = cuda_graph_release,
    .lost = cuda_lost,
};

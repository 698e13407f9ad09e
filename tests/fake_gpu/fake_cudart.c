/* The CUDA runtime on the fake device. It has the functions that the project calls and refuses what
 * their manual refuses. A program that is linked with this file runs its own host code as
 * it will on a real device, including device_cuda.c and the launchers of cuda/. Kernels that
 * nvcc compiled are launched and do nothing, because they have no machine code for the host. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/streams.h"
#include "fake_device.h"
#include "fake_libraries.h"
#include "launch_limits.h"
#include "queue.h"

/* SYSTEM_BYTES: of shared memory, which each block has besides its own (CUDA programming guide). */
enum { SYSTEM_BYTES = 1024 };
enum { FUNCTIONS_MAX = 4096, EVENTS_MAX = 64 };

struct function {
    const void *host; /* the address that launches name */
    size_t shared_allowed;
    bool wide_clusters, carved;
    /* The launch whose occupancy was asked last; threads 0: none. */
    unsigned threads_asked;
    size_t shared_asked;
};

struct CUevent_st {
    struct fake_point point;
    double ns;
    bool used, recorded, captured, timed;
};

struct CUgraph_st {
    void *queue; /* NULL after the graph was instantiated */
};

static struct function functions[FUNCTIONS_MAX];
static int function_count;

/* What the launch with <<< >>> that is being made has pushed and will pop. */
static struct configuration {
    struct dim3 grid, block;
    size_t shared;
    void *stream;
} pushed;

static struct {
    cudaError_t last;
    bool streams[LB_STREAMS_MAX];
    struct CUevent_st events[EVENTS_MAX];
    bool spoiled; /* a call that a capture does not allow has invalidated it */
    int driver;   /* 0: CUDART_VERSION */
    int code;     /* 0: for the device */
    struct fake_cudart_counts counts;
} runtime;

void fake_cudart_reset(void)
{
    memset(&runtime, 0, sizeof(runtime));
    for (int i = 0; i < function_count; i++) {
        functions[i].shared_allowed = 0;
        functions[i].wide_clusters = functions[i].carved = false;
        functions[i].threads_asked = 0;
    }
}

void fake_cudart_set_versions(int driver, int code)
{
    runtime.driver = driver;
    runtime.code = code;
}

static int driver_version(void)
{
    return runtime.driver ? runtime.driver : CUDART_VERSION;
}

const struct fake_cudart_counts *fake_cudart_counts(void)
{
    return &runtime.counts;
}

/* ---- Errors -------------------------------------------------------------------------------- */

static cudaError_t answer(cudaError_t error)
{
    if (fake_device.lost())
        error = cudaErrorIllegalAddress;
    if (error != cudaSuccess)
        runtime.last = error;
    return error;
}

/* Converts the fake device's status to an error of the runtime. */
static cudaError_t answer_status(enum lb_status st)
{
    if (st == LB_OK)
        return answer(cudaSuccess);
    return answer(st == LB_OOM ? cudaErrorMemoryAllocation : cudaErrorInvalidValue);
}

/* Called by functions that a capture does not allow: they invalidate it. */
static bool spoils_capture(void)
{
    runtime.spoiled = runtime.spoiled || fake_device_capturing();
    return fake_device_capturing();
}

const char *cudaGetErrorName(cudaError_t error)
{
    static char text[32];
    snprintf(text, sizeof(text), "CUDA error %d", (int)error);
    return text;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return cudaGetErrorName(error);
}

/* The error of a lost device is never cleared. */
cudaError_t cudaGetLastError(void)
{
    cudaError_t last = runtime.last;
    runtime.last = fake_device.lost() ? cudaErrorIllegalAddress : cudaSuccess;
    return last;
}

/* ---- The device ---------------------------------------------------------------------------- */

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 1;
    return answer(cudaSuccess);
}

cudaError_t cudaSetDevice(int ordinal)
{
    return answer(ordinal == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaGetDevice(int *ordinal)
{
    *ordinal = 0;
    return answer(cudaSuccess);
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = driver_version();
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int ordinal)
{
    const struct lb_device_info *info = fake_device_info();
    memset(properties, 0, sizeof(*properties));
    memcpy(properties->name, info->name, sizeof(info->name));
    for (int i = 0; i < 16; i++)
        properties->uuid.bytes[i] = (char)(16 * i + 1);
    properties->major = info->major;
    properties->minor = info->minor;
    properties->multiProcessorCount = info->sm_count;
    properties->totalGlobalMem = (size_t)info->memory_bytes;
    properties->l2CacheSize = (int)info->l2_bytes;
    properties->sharedMemPerBlockOptin = (size_t)info->shared_bytes;
    return answer(ordinal == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int ordinal)
{
    const struct lb_device_info *info = fake_device_info();
    *value = 0;
    switch ((int)attribute) {
    case cudaDevAttrCooperativeLaunch: *value = 1; break;
    case cudaDevAttrMultiProcessorCount: *value = info->sm_count; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = (int)info->shared_bytes; break;
    default: return answer(cudaErrorInvalidValue);
    }
    return answer(ordinal == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}

/* ---- Memory -------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return spoils_capture() ? answer(cudaErrorStreamCaptureUnsupported)
                            : answer_status(fake_device.allocate(bytes, memory, NULL));
}

cudaError_t cudaFree(void *memory)
{
    if (spoils_capture())
        return answer(cudaErrorStreamCaptureUnsupported);
    fake_device.release(memory);
    return answer(cudaSuccess);
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    *free_bytes = *all_bytes = (size_t)fake_device.available(); /* nothing reads the latter */
    return answer(cudaSuccess);
}

/* Pinned memory of the host. Kernels that nvcc compiled do nothing here, so its device address
 * is never used. */
cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    if (spoils_capture())
        return answer(cudaErrorStreamCaptureUnsupported);
    if (flags != cudaHostAllocMapped)
        return answer(cudaErrorInvalidValue); /* the project uses no other flags */
    *memory = malloc(bytes);
    return answer(*memory ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *memory)
{
    free(memory);
    return answer(cudaSuccess);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (kind == cudaMemcpyDeviceToDevice)
        return answer_status(fake_enqueue_copy(stream, to, from, bytes, NULL));
    if (spoils_capture()) /* copies to and from memory that is not pinned */
        return answer(cudaErrorStreamCaptureUnsupported);
    if (fake_queue_index(stream) != 0)
        return answer(cudaErrorInvalidResourceHandle); /* the project copies on one stream only */
    return answer_status(kind == cudaMemcpyHostToDevice
                             ? fake_device.upload(to, from, bytes, NULL)
                             : fake_device.download(to, from, bytes, NULL));
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    return answer_status(fake_enqueue_fill(stream, to, byte, bytes, NULL));
}

/* ---- Streams and events -------------------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    for (int i = 0; i < LB_STREAMS_MAX; i++) {
        if (runtime.streams[i])
            continue;
        runtime.streams[i] = true;
        *stream = fake_queue_handle(i);
        return answer(cudaSuccess);
    }
    return answer(cudaErrorMemoryAllocation);
}

/* What every device since compute capability 7.0 has been seen to say. */
enum { LEAST_PRIORITY = 0, GREATEST_PRIORITY = -5 };

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = LEAST_PRIORITY;
    *greatest = GREATEST_PRIORITY;
    return answer(cudaSuccess);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    runtime.streams[fake_queue_index(stream)] = false;
    return answer(cudaSuccess);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    (void)stream;
    return spoils_capture() ? answer(cudaErrorStreamCaptureUnsupported)
                            : answer_status(fake_device.synchronize(NULL));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    for (int i = 0; i < EVENTS_MAX; i++) {
        if (runtime.events[i].used)
            continue;
        *event = &runtime.events[i];
        **event = (struct CUevent_st){.used = true, .timed = !(flags & cudaEventDisableTiming)};
        return answer(cudaSuccess);
    }
    return answer(cudaErrorMemoryAllocation);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    event->used = false;
    return answer(cudaSuccess);
}

/* fake_work: the event records the time of the device's clock. */
static enum lb_status run_stamp(const void *arguments, struct lb_error *err)
{
    struct CUevent_st *event;
    (void)err;
    memcpy(&event, arguments, sizeof(event));
    fake_clock_add(-FAKE_WORK_NS);
    event->ns = fake_clock_ns();
    return LB_OK;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    enum lb_status st = LB_OK;
    if (event->timed)
        st = fake_enqueue(stream, run_stamp, &event, sizeof(event), NULL);
    event->point = fake_queue_point(fake_queue_index(stream));
    event->recorded = true;
    event->captured = fake_device_capturing();
    return answer_status(st);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)flags;
    if (!event->recorded)
        return answer(cudaSuccess);
    if (event->captured != fake_device_capturing()) {
        (void)spoils_capture();
        return answer(event->captured ? cudaErrorCapturedEvent : cudaErrorStreamCaptureIsolation);
    }
    return answer_status(fake_enqueue_wait_for(fake_queue_index(stream), &event->point, NULL));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (spoils_capture())
        return answer(cudaErrorStreamCaptureUnsupported);
    return event->captured ? answer(cudaErrorCapturedEvent)
                           : answer_status(fake_device.synchronize(NULL));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        return answer(cudaErrorInvalidResourceHandle);
    *ms = (float)((to->ns - from->ns + FAKE_EVENTS_NS) / 1e6);
    return answer(cudaSuccess);
}

/* ---- Graphs -------------------------------------------------------------------------------- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    (void)mode;
    runtime.spoiled = false;
    if (!stream) /* the legacy stream can't be captured */
        return answer(cudaErrorStreamCaptureUnsupported);
    return answer_status(fake_device.capture_begin(NULL));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    void *queue = NULL;
    (void)stream;
    *graph = NULL;
    enum lb_status st = fake_device.capture_end(&queue, NULL);
    if (st != LB_OK)
        return answer(cudaErrorStreamCaptureUnjoined);
    if (!runtime.spoiled)
        *graph = calloc(1, sizeof(**graph));
    if (!*graph) {
        fake_device.graph_release(queue);
        return answer(cudaErrorStreamCaptureInvalidated);
    }
    (*graph)->queue = queue;
    return answer(cudaSuccess);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ready, cudaGraph_t graph,
                                 unsigned long long flags)
{
    bool by_priority =
        flags == cudaGraphInstantiateFlagUseNodePriority; /* else the harness forgot it */
    *ready = by_priority ? graph->queue : NULL;
    graph->queue = by_priority ? NULL : graph->queue;
    return answer(*ready ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t ready, cudaStream_t stream)
{
    (void)stream;
    return answer(ready ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream)
{
    (void)stream;
    return answer_status(fake_device.replay(ready, NULL));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (graph->queue)
        fake_device.graph_release(graph->queue);
    free(graph);
    return answer(cudaSuccess);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready)
{
    fake_device.graph_release(ready);
    return answer(cudaSuccess);
}

/* ---- Kernels ------------------------------------------------------------------------------- */

static struct function *find(const void *host)
{
    for (int i = 0; i < function_count; i++)
        if (functions[i].host == host)
            return &functions[i];
    return NULL;
}

cudaError_t cudaFuncSetAttribute(const void *host, enum cudaFuncAttribute attribute, int value)
{
    struct function *f = find(host);
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
        f->wide_clusters = value != 0;
    else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout)
        f->carved = value == cudaSharedmemCarveoutMaxShared;
    else if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize ||
             value > (int)fake_device_info()->shared_bytes)
        return answer(cudaErrorInvalidValue);
    else
        f->shared_allowed = (size_t)value;
    return answer(cudaSuccess);
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *host)
{
    const struct lb_device_info *info = fake_device_info();
    memset(attributes, 0, sizeof(*attributes));
    attributes->ptxVersion = runtime.code ? runtime.code : 10 * info->major + info->minor;
    if (runtime.code < 0)
        return answer(cudaErrorNoKernelImageForDevice);
    return answer(find(host) ? cudaSuccess : cudaErrorInvalidDeviceFunction);
}

static struct fake_launch launch_of(const struct function *f, const cudaLaunchConfig_t *config)
{
    struct fake_launch launch = {
        .grid = {config->gridDim.x, config->gridDim.y, config->gridDim.z},
        .block = {config->blockDim.x, config->blockDim.y, config->blockDim.z},
        .shared = config->dynamicSmemBytes,
        .shared_allowed = f->shared_allowed,
        .wide_clusters = f->wide_clusters};
    for (unsigned i = 0; i < config->numAttrs; i++) {
        if (config->attrs[i].id == cudaLaunchAttributeClusterDimension)
            launch.cluster = config->attrs[i].val.clusterDim.x;
        else if (config->attrs[i].id == cudaLaunchAttributeCooperative)
            launch.cooperative = config->attrs[i].val.cooperative != 0;
        else if (config->attrs[i].id == cudaLaunchAttributePriority)
            launch.priority = config->attrs[i].val.priority;
        else if (config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization)
            launch.follows = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
    }
    return launch;
}

/* fake_work */
static enum lb_status run_kernel(const void *arguments, struct lb_error *err)
{
    (void)arguments;
    return fake_launch_begin(err);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *host,
                                void **arguments)
{
    const struct function *f = find(host);
    (void)arguments;
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    if (!config->stream && spoils_capture())
        return answer(cudaErrorStreamCaptureImplicit);
    struct fake_launch launch = launch_of(f, config);
    int refusal = fake_launch_check(fake_device_info(), &launch);
    if (refusal != cudaSuccess)
        return answer((cudaError_t)refusal);
    if (launch.priority > LEAST_PRIORITY || launch.priority < GREATEST_PRIORITY)
        return answer(cudaErrorInvalidValue);
    unsigned stream = 1u << fake_queue_index(config->stream);
    runtime.counts.urgent += launch.priority == GREATEST_PRIORITY;
    runtime.counts.cluster_streams |= launch.cluster > 0 ? stream : 0;
    runtime.counts.cooperative_streams |= launch.cooperative ? stream : 0;
    if (launch.follows && fake_device_capturing() && driver_version() < 12030)
        return answer(cudaErrorStreamCaptureUnsupported);
    runtime.counts.launches++;
    runtime.counts.following += launch.follows;
    runtime.counts.clusters += launch.cluster > 0;
    runtime.counts.cooperative += launch.cooperative;
    runtime.counts.carved += f->carved;
    runtime.counts.sharing +=
        launch.cluster > 0 && 2 * (double)(launch.shared + SYSTEM_BYTES) <=
                                  fake_device_info()->shared_bytes + SYSTEM_BYTES;
    runtime.counts.beyond_48k += launch.shared > 48 << 10;
    runtime.counts.other_than_asked +=
        f->threads_asked > 0 &&
        (f->threads_asked != launch.block[0] || f->shared_asked != launch.shared);
    return answer_status(fake_enqueue(config->stream, run_kernel, "", 1, NULL));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *host,
                                                                   int threads, size_t shared,
                                                                   unsigned flags)
{
    const struct lb_device_info *info = fake_device_info();
    struct function *f = find(host);
    const struct fake_launch launch = {
        .grid = {1, 1, 1}, .block = {(unsigned)threads, 1, 1}, .shared = shared};
    (void)flags;
    *blocks = fake_launch_resident(info, &launch) / info->sm_count;
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    f->threads_asked = (unsigned)threads, f->shared_asked = shared;
    return answer(cudaSuccess);
}

cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *host,
                                           const cudaLaunchConfig_t *config)
{
    struct function *f = find(host);
    *clusters = 0;
    if (!f)
        return answer(cudaErrorInvalidDeviceFunction);
    struct fake_launch launch = launch_of(f, config);
    f->threads_asked = launch.block[0], f->shared_asked = launch.shared;
    int refusal = fake_launch_check(fake_device_info(), &launch);
    if (refusal != cudaSuccess)
        return answer((cudaError_t)refusal);
    *clusters = fake_launch_resident(fake_device_info(), &launch) / (int)launch.cluster;
    return answer(cudaSuccess);
}

/* ---- Functions that nvcc's code calls ------------------------------------------------------ */

/* No header declares them. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

void **__cudaRegisterFatBinary(void *binary)
{
    static void *handle;
    (void)binary;
    return &handle;
}

void __cudaRegisterFatBinaryEnd(void **handle)
{
    (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
    (void)handle;
}

void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                            int thread_limit, uint3 *thread, uint3 *block, struct dim3 *block_size,
                            struct dim3 *grid_size, int *warp_size)
{
    (void)handle, (void)device, (void)name, (void)thread_limit, (void)thread, (void)block,
        (void)block_size;
    (void)grid_size, (void)warp_size;
    if (function_count == FUNCTIONS_MAX)
        abort();
    functions[function_count++] = (struct function){.host = host};
}

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared,
                                     void *stream)
{
    pushed = (struct configuration){grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared,
                                       void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    memcpy(stream, &pushed.stream, sizeof(pushed.stream));
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host)
{
    *kernel = (cudaKernel_t)host;
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *host, struct dim3 grid, struct dim3 block,
                             void **arguments, size_t shared, cudaStream_t stream)
{
    const cudaLaunchConfig_t config = {
        .gridDim = grid, .blockDim = block, .dynamicSmemBytes = shared, .stream = stream};
    return cudaLaunchKernelExC(&config, host, arguments);
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, struct dim3 grid, struct dim3 block,
                               void **arguments, size_t shared, cudaStream_t stream)
{
    return cudaLaunchKernel((const void *)kernel, grid, block, arguments, shared, stream);
}

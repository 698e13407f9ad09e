/* Records which GPU kernels a call runs, by CUPTI. The library is loaded at run time, because a
 * program linked to it would not start where it is missing. */
#include "trace/kernel_trace.h"

#include <cupti.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum {
    BUFFER_BYTES = 1 << 20,
    /* CUPTI_API_VERSION of CUDA 12.6. In older ones, detaching CUPTI from a process that replayed
     * CUDA graphs may crash it; PyTorch's profiler therefore never detaches it there. */
    GRAPHS_SINCE = 24
};

/* The newest layout that CUDA 12 and 13 share; later ones only add to its end. */
typedef CUpti_ActivityKernel9 kernel_record;

/* CUPTI's functions, by their names without "cupti". */
static struct {
    void *library;
    CUptiResult (*GetVersion)(uint32_t *version);
    CUptiResult (*GetResultString)(CUptiResult result, const char **text);
    CUptiResult (*ActivityRegisterCallbacks)(CUpti_BuffersCallbackRequestFunc request,
                                             CUpti_BuffersCallbackCompleteFunc complete);
    CUptiResult (*ActivityEnable)(CUpti_ActivityKind kind);
    CUptiResult (*ActivityDisable)(CUpti_ActivityKind kind);
    CUptiResult (*ActivityFlushAll)(uint32_t flag);
    CUptiResult (*ActivityGetNextRecord)(uint8_t *buffer, size_t bytes, CUpti_Activity **record);
    CUptiResult (*Finalize)(void);
} cupti;

static const struct {
    const char *name;
    void *slot;
} functions[] = {
    {"cuptiGetVersion", &cupti.GetVersion},
    {"cuptiGetResultString", &cupti.GetResultString},
    {"cuptiActivityRegisterCallbacks", &cupti.ActivityRegisterCallbacks},
    {"cuptiActivityEnable", &cupti.ActivityEnable},
    {"cuptiActivityDisable", &cupti.ActivityDisable},
    {"cuptiActivityFlushAll", &cupti.ActivityFlushAll},
    {"cuptiActivityGetNextRecord", &cupti.ActivityGetNextRecord},
    {"cuptiFinalize", &cupti.Finalize},
};

/* What the callbacks have gathered; CUPTI calls them on its own threads. */
static struct {
    pthread_mutex_t lock;
    struct lb_launch_record *launches;
    size_t count;
    uint64_t origin_ns; /* start of the first record; times are relative to it, because a double
                           cannot hold CUPTI's clock to the nanosecond */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum lb_status load_library(bool graph, struct lb_error *err)
{
    char soname[32];
    uint32_t version = 0;
    snprintf(soname, sizeof(soname), "libcupti.so.%d", CUDA_VERSION / 1000);
    const char *const names[] = {soname, LB_CUPTI_LIBRARY};
    for (size_t i = 0; !cupti.library && i < sizeof(names) / sizeof(names[0]); i++)
        cupti.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!cupti.library)
        return lb_fail(err, LB_ABSENT, "CUPTI could not be loaded: %s", dlerror());
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = dlsym(cupti.library, functions[i].name);
        if (!symbol)
            return lb_fail(err, LB_ABSENT, "this CUPTI has no %s", functions[i].name);
        memcpy(functions[i].slot, &symbol, sizeof(symbol));
    }
    CUptiResult known = cupti.GetVersion(&version);
    if (known == CUPTI_SUCCESS && graph && version < GRAPHS_SINCE)
        return lb_fail(err, LB_ABSENT,
                       "graphs are traced from CUPTI of CUDA 12.6 on (version %d), because older "
                       "ones may crash on them; this is version %u",
                       GRAPHS_SINCE, version);
    if (known != CUPTI_SUCCESS || version < CUPTI_API_VERSION)
        return lb_fail(err, LB_ABSENT,
                       "CUPTI %u is older than %u, for which this program was built", version,
                       (unsigned)CUPTI_API_VERSION);
    return LB_OK;
}

static enum lb_status check(CUptiResult result, const char *what, struct lb_error *err)
{
    const char *text = NULL;
    if (result == CUPTI_SUCCESS)
        return LB_OK;
    cupti.GetResultString(result, &text);
    bool taken = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    return lb_fail(err, taken ? LB_ABSENT : LB_FAILED, "CUPTI: %s: %s%s", what,
                   text ? text : "no reason was given",
                   taken ? "; another profiler is attached" : "");
}

static void CUPTIAPI request_buffer(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
    *buffer = malloc(BUFFER_BYTES); /* malloc aligns for every type; CUPTI asks for 8 bytes */
    *bytes = *buffer ? BUFFER_BYTES : 0;
    *max_records = 0; /* 0: as many as fit */
}

static void add_launch(const kernel_record *kernel)
{
    char *name = lb_needed(strdup(kernel->name ? kernel->name : "(no name)"));
    seen.launches = lb_room(seen.launches, seen.count, sizeof(*seen.launches));
    if (seen.count == 0)
        seen.origin_ns = kernel->start;
    seen.launches[seen.count++] = (struct lb_launch_record){
        .name = name,
        .start_ns = (double)(int64_t)(kernel->start - seen.origin_ns),
        .end_ns = (double)(int64_t)(kernel->end - seen.origin_ns),
        .grid = {kernel->gridX, kernel->gridY, kernel->gridZ},
        .block = {kernel->blockX, kernel->blockY, kernel->blockZ},
        .cluster = {kernel->clusterX, kernel->clusterY, kernel->clusterZ},
        .registers = kernel->registersPerThread,
        .shared_bytes = (json_int_t)kernel->staticSharedMemory + kernel->dynamicSharedMemory,
    };
}

static void CUPTIAPI complete_buffer(CUcontext context, uint32_t stream, uint8_t *buffer,
                                     size_t size, size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    pthread_mutex_lock(&seen.lock);
    while (valid > 0 && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            add_launch((const kernel_record *)(const void *)record);
    pthread_mutex_unlock(&seen.lock);
    free(buffer);
}

static void forget(void)
{
    for (size_t i = 0; i < seen.count; i++)
        free(seen.launches[i].name);
    free(seen.launches);
    seen.launches = NULL;
    seen.count = 0;
}

enum lb_status lb_kernel_trace(lb_traced_call *call, void *user, bool graph, struct lb_kernels *out,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool attached = false;
    LB_TRY(load_library(graph, err));
    LB_TRY(check(cupti.ActivityRegisterCallbacks(request_buffer, complete_buffer),
                 "registering callbacks", err));
    attached = true;
    LB_TRY(check(cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "recording kernels",
                 err));
    LB_TRY(call(user, err));
    LB_TRY(
        check(cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED), "collecting records", err));
    if (seen.count == 0)
        LB_TRY(lb_fail(err, LB_ABSENT, "CUPTI recorded no kernel of the call"));
    lb_kernels_collect(seen.launches, seen.count, out);
done:
    if (attached) {
        cupti.ActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        cupti.ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        cupti.Finalize();
    }
    forget();
    return st;
}

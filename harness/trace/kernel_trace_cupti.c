/* Records which GPU kernels a call runs, by CUPTI. The library is loaded at run time, because a
 * program linked to it would not start where it is missing. */
#include "trace/kernel_trace.h"

#include <cupti.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "host/shared_library.h"

enum {
    BUFFER_BYTES = 1 << 20,
    /* CUPTI_API_VERSION of CUDA 12.6. In older ones, detaching CUPTI from a process that replayed
     * CUDA graphs may crash it; PyTorch's profiler therefore never detaches it there. */
    GRAPHS_SINCE = 24
};

/* The newest layout that CUDA 12 and 13 share; later ones only add to its end. */
typedef CUpti_ActivityKernel9 kernel_record;

#define FUNCTIONS(X)                     \
    X(cuptiActivityDisable)              \
    X(cuptiActivityEnable)               \
    X(cuptiActivityFlushAll)             \
    X(cuptiActivityGetNextRecord)        \
    X(cuptiActivityGetNumDroppedRecords) \
    X(cuptiActivityRegisterCallbacks)    \
    X(cuptiFinalize)                     \
    X(cuptiGetResultString)              \
    X(cuptiGetVersion)

static struct {
    FUNCTIONS(LB_FUNCTION_POINTER)
} cupti;

static struct lb_shared_library library = {
    .name = "CUPTI", .built = LB_NUMBER_TEXT(CUPTI_API_VERSION), LB_FUNCTIONS_OF(FUNCTIONS, cupti)};

/* What the callbacks have gathered; CUPTI calls them on its own threads. */
static struct {
    pthread_mutex_t lock;
    struct lb_launch_record *launches;
    size_t count, untimed; /* untimed: records without times, which are not among the launches */
    uint64_t origin_ns;    /* start of the first record; times are relative to it, because a double
                              cannot hold CUPTI's clock to the nanosecond */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static enum lb_status load_library(bool graph, struct lb_error *err)
{
    char soname[32];
    uint32_t version = 0;
    enum lb_status st = LB_ABSENT;
    snprintf(soname, sizeof(soname), "libcupti.so.%d", CUDA_VERSION / 1000);
    const char *const names[] = {soname, LB_CUPTI_LIBRARY};
    for (size_t i = 0; st != LB_OK && i < sizeof(names) / sizeof(names[0]); i++) {
        library.file = names[i];
        st = lb_shared_library_load(&library, err);
    }
    library.file = NULL;
    if (st != LB_OK)
        return st;
    CUptiResult known = cupti.cuptiGetVersion(&version);
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
    cupti.cuptiGetResultString(result, &text);
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
    if (kernel->start == 0 && kernel->end == 0) { /* what could not be collected */
        seen.untimed++;
        return;
    }
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
    while (valid > 0 && cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
            add_launch((const kernel_record *)(const void *)record);
    pthread_mutex_unlock(&seen.lock);
    free(buffer);
}

enum lb_status lb_kernel_trace(lb_traced_call *call, void *user, bool graph, struct lb_kernels *out,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool attached = false;
    size_t dropped = 0;
    LB_TRY(load_library(graph, err));
    LB_TRY(check(cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer),
                 "registering callbacks", err));
    attached = true;
    LB_TRY(check(cupti.cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL),
                 "recording kernels", err));
    LB_TRY(call(user, err));
    LB_TRY(check(cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED),
                 "collecting records", err));
    LB_TRY(check(cupti.cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped),
                 "counting dropped records", err));
    if (dropped > 0 || seen.untimed > 0)
        LB_TRY(lb_fail(err, LB_ABSENT,
                       "CUPTI dropped %zu records and gave %zu kernels without times, so that the "
                       "kernels of the call are not known",
                       dropped, seen.untimed));
    if (seen.count == 0)
        LB_TRY(lb_fail(err, LB_ABSENT, "CUPTI recorded no kernel of the call"));
    lb_kernels_collect(seen.launches, seen.count, out);
done:
    if (attached) {
        cupti.cuptiActivityDisable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
        cupti.cuptiFinalize();
    }
    for (size_t i = 0; i < seen.count; i++)
        free(seen.launches[i].name);
    free(seen.launches);
    seen.launches = NULL;
    seen.count = seen.untimed = 0;
    return st;
}

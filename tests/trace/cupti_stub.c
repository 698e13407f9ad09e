/* A stub of CUPTI that reports made-up launches. */
#include "cupti_stub.h"

#include <cupti.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static enum cupti_stub_mode mode;
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static int attached, pending; /* the first flush after enabling delivers the records */

void cupti_stub_use(enum cupti_stub_mode new_mode)
{
    mode = new_mode;
}

__attribute__((constructor)) static void take_mode_of_environment(void)
{
    static const struct {
        const char *name;
        enum cupti_stub_mode mode;
    } modes[] = {{"old", STUB_OLD}, {"hang", STUB_HANG}, {"crash", STUB_CRASH}};
    const char *name = getenv("LB_CUPTI_STUB");
    for (size_t i = 0; name && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(modes[i].name, name) == 0)
            mode = modes[i].mode;
}

int cupti_stub_attached(void)
{
    return attached;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    *version = mode == STUB_OLD ? 23 : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : "CUPTI_ERROR_OF_THE_STUB";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc on_request,
                                           CUpti_BuffersCallbackCompleteFunc on_complete)
{
    request = on_request;
    complete = on_complete;
    attached++;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    pending = kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    return mode == STUB_TAKEN ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED : CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    (void)kind;
    while (mode == STUB_HANG)
        pause();
    pending = 0;
    return CUPTI_SUCCESS;
}

static CUpti_ActivityKernel9 kernel(const char *name, uint64_t start, uint64_t end, int32_t grid)
{
    CUpti_ActivityKernel9 record;
    memset(&record, 0, sizeof(record));
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name;
    record.start = start;
    record.end = end;
    record.gridX = grid;
    record.gridY = record.gridZ = 1;
    record.blockX = 128;
    record.blockY = record.blockZ = 1;
    record.clusterX = 2;
    record.clusterY = record.clusterZ = 1;
    record.registersPerThread = 96;
    record.staticSharedMemory = 1024;
    record.dynamicSharedMemory = 65536;
    return record;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer;
    size_t bytes, most;
    const uint64_t origin = UINT64_C(1800000000000000000); /* more ns than a double holds exactly */
    CUpti_ActivityKernel9 records[4];
    (void)flag;
    if (!pending || mode == STUB_NO_KERNEL)
        return CUPTI_SUCCESS;
    pending = 0;
    records[0] = kernel("_Z12step_forwardPKf", origin + 200, origin + 300, 7);
    records[1] = kernel("not a kernel", 1, 2, 1);
    records[1].kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    records[2] = kernel("nvjet_hsh_64x8", origin, origin + 150, 3);
    records[3] = mode == STUB_UNTIMED
                     ? kernel("_Z12step_forwardPKf", 0, 0, 9)
                     : kernel("_Z12step_forwardPKf", origin + 301, origin + 501, 9);
    request(&buffer, &bytes, &most);
    memcpy(buffer, records, sizeof(records));
    complete(NULL, 0, buffer, bytes, sizeof(records));
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context, (void)stream;
    *dropped = mode == STUB_DROPS && !pending ? 2 : 0; /* they are known after the flush */
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t bytes, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + sizeof(CUpti_ActivityKernel9) : buffer;
    if (next >= buffer + bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiFinalize(void)
{
    if (mode == STUB_CRASH)
        abort();
    attached--;
    return CUPTI_SUCCESS;
}

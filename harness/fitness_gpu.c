/* Whether GPUs are free to measure on, by NVML: loaded at run time, with prototypes of our own,
 * since no header of it comes with the toolkit. */
#include <dlfcn.h>
#include <stddef.h>

#include "fitness.h"

/* What is used of libnvidia-ml.so.1; each returns 0 for success. Source: NVML API reference. */
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*count)(unsigned *count);
    int (*handle)(unsigned index, void **device);
    int (*processes)(void *device, unsigned *count, void *infos);
    int (*reasons)(void *device, unsigned long long *reasons);
};

enum { INSUFFICIENT_SIZE = 7 }; /* NVML_ERROR_INSUFFICIENT_SIZE: there are more processes than 0 */

/* nvmlClocksThrottleReason: software power cap, hardware slowdown, software and hardware thermal
 * slowdown, hardware power brake. */
#define HELD_BACK (0x4ULL | 0x8ULL | 0x20ULL | 0x40ULL | 0x80ULL)

/* ISO C has no conversion from an object's to a function's address; POSIX has its bits agree. */
static int find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    *(void **)function = symbol;
    return symbol != NULL;
}

static void look_at_device(const struct nvml *nvml, unsigned index, struct lb_fitness *fitness)
{
    void *device = NULL;
    unsigned count = 0;
    unsigned long long reasons = 0;
    if (nvml->handle(index, &device) != 0)
        return;
    if (nvml->processes(device, &count, NULL) == INSUFFICIENT_SIZE)
        fitness->gpu_tenants += (int)count;
    if (nvml->reasons(device, &reasons) == 0 && (reasons & HELD_BACK))
        fitness->gpus_throttled++;
}

void lb_fitness_look_gpu(struct lb_fitness *fitness)
{
    struct nvml nvml;
    unsigned count = 0;
    fitness->gpus = -1;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return;
    if (find(library, "nvmlInit_v2", &nvml.init) && find(library, "nvmlShutdown", &nvml.shutdown) &&
        find(library, "nvmlDeviceGetCount_v2", &nvml.count) &&
        find(library, "nvmlDeviceGetHandleByIndex_v2", &nvml.handle) &&
        find(library, "nvmlDeviceGetComputeRunningProcesses_v3", &nvml.processes) &&
        find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", &nvml.reasons) &&
        nvml.init() == 0) {
        if (nvml.count(&count) == 0)
            fitness->gpus = (int)count;
        for (unsigned i = 0; i < count; i++)
            look_at_device(&nvml, i, fitness);
        nvml.shutdown();
    }
    dlclose(library);
}

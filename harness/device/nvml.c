/* NVML, loaded at run time. Prototypes follow the NVML API reference. */
#include "device/nvml.h"

#include <dlfcn.h>
#include <math.h>
#include <string.h>

#include "base/text.h"

typedef void *nvml_device;

enum {
    CLOCK_SM = 1,
    CLOCK_MEMORY = 2,
    SENSOR_GPU = 0,
    SUCCESS = 0,
    INSUFFICIENT_SIZE = 7 /* without a buffer: the list of processes is not empty */
};

/* A figure of a device: a clock or a sensor of that kind. */
typedef int read_figure(nvml_device device, int kind, unsigned *value);

static struct {
    bool tried;
    void *library;
    int (*init)(void);
    int (*driver)(char *version, unsigned length);
    int (*by_uuid)(const char *uuid, nvml_device *device);
    int (*count)(unsigned *count);
    int (*by_index)(unsigned index, nvml_device *device);
    int (*processes)(nvml_device device, unsigned *count, void *infos);
    read_figure *clock, *max_clock, *temperature;
    int (*throttle)(nvml_device device, unsigned long long *reasons);
    int (*parent)(nvml_device mig, nvml_device *device);
} nvml;

/* Loads the library at the first call. False when it is missing; a function that a driver lacks
 * only leaves its figure unknown. */
static bool load(void)
{
    static const struct {
        const char *name;
        void **function;
    } symbols[] = {
        {"nvmlSystemGetDriverVersion", (void **)&nvml.driver},
        {"nvmlDeviceGetHandleByUUID", (void **)&nvml.by_uuid},
        {"nvmlDeviceGetCount_v2", (void **)&nvml.count},
        {"nvmlDeviceGetHandleByIndex_v2", (void **)&nvml.by_index},
        {"nvmlDeviceGetClockInfo", (void **)&nvml.clock},
        {"nvmlDeviceGetMaxClockInfo", (void **)&nvml.max_clock},
        {"nvmlDeviceGetTemperature", (void **)&nvml.temperature},
        {"nvmlDeviceGetComputeRunningProcesses_v3", (void **)&nvml.processes},
        {"nvmlDeviceGetDeviceHandleFromMigDeviceHandle", (void **)&nvml.parent},
        /* The same function under its name since CUDA 12.2 and under its earlier name. */
        {"nvmlDeviceGetCurrentClocksEventReasons", (void **)&nvml.throttle},
        {"nvmlDeviceGetCurrentClocksThrottleReasons", (void **)&nvml.throttle},
    };
    if (nvml.tried)
        return nvml.library != NULL;
    nvml.tried = true;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&nvml.init = dlsym(library, "nvmlInit_v2");
    if (!nvml.init || nvml.init() != SUCCESS)
        return false;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++)
        if (!*symbols[i].function)
            *symbols[i].function = dlsym(library, symbols[i].name);
    nvml.library = library;
    return true;
}

static double figure(read_figure *read, nvml_device device, int kind)
{
    unsigned value;
    return read && read(device, kind, &value) == SUCCESS ? (double)value : NAN;
}

static unsigned long long throttle_of(nvml_device device)
{
    unsigned long long reasons = 0;
    return nvml.throttle && nvml.throttle(device, &reasons) == SUCCESS ? reasons : 0;
}

/* Clocks and power belong to a whole GPU, so for a part of one ("MIG-") it finds the GPU that
 * contains the part. */
static bool find_device(const char *uuid, nvml_device *device)
{
    if (!nvml.by_uuid || nvml.by_uuid(uuid, device) != SUCCESS)
        return false;
    return strncmp(uuid, "MIG-", 4) != 0 ||
           (nvml.parent && nvml.parent(*device, device) == SUCCESS);
}

bool lb_nvml_read(const char *uuid, struct lb_gpu_state *state)
{
    nvml_device device = NULL;
    *state = (struct lb_gpu_state){NAN, NAN, NAN, NAN, 0};
    if (!load() || !find_device(uuid, &device))
        return false;
    *state = (struct lb_gpu_state){.sm_mhz = figure(nvml.clock, device, CLOCK_SM),
                                   .memory_mhz = figure(nvml.clock, device, CLOCK_MEMORY),
                                   .sm_max_mhz = figure(nvml.max_clock, device, CLOCK_SM),
                                   .temperature_c = figure(nvml.temperature, device, SENSOR_GPU),
                                   .throttle = throttle_of(device)};
    return true;
}

int lb_nvml_count(void)
{
    unsigned count = 0;
    return load() && nvml.count && nvml.count(&count) == SUCCESS ? (int)count : -1;
}

void lb_nvml_use(int index, int *tenants, unsigned long long *throttle)
{
    nvml_device device = NULL;
    unsigned count = 0;
    bool found = load() && nvml.by_index && nvml.by_index((unsigned)index, &device) == SUCCESS;
    bool used =
        found && nvml.processes && nvml.processes(device, &count, NULL) == INSUFFICIENT_SIZE;
    *tenants = used ? (int)count : 0;
    *throttle = found ? throttle_of(device) : 0;
}

const char *lb_nvml_driver(void)
{
    static char version[96];
    if (!version[0] && load() && nvml.driver && nvml.driver(version, sizeof(version)) != SUCCESS)
        version[0] = '\0';
    return version;
}

void lb_throttle_text(unsigned long long throttle, char *text, size_t size)
{
    static const struct {
        unsigned long long bit;
        const char *words;
    } reasons[] = {
        {0x1, "idle"},
        {0x2, "clocks set by the user"},
        {0x4, "power cap"},
        {0x8, "hardware slowdown"},
        {0x10, "sync boost"},
        {0x20, "hot (software)"},
        {0x40, "hot"},
        {0x80, "power brake"},
        {0x100, "display clocks"},
    };
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (throttle & reasons[i].bit)
            lb_append(text, size, "%s%s", text[0] ? ", " : "", reasons[i].words);
}

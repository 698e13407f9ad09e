/* A stub of NVML with two GPUs: the first is busy and hot, the second is idle and cannot report its
 * temperature; "MIG-part" is a part of the second. The stub has NVML's soname, so that loading NVML
 * finds it. With LB_STUB_NEW it has the new name of a function in place of the old one. */
#include <stdio.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

typedef int *device;
static int numbers[3] = {0, 1, 2 /* the part of a GPU */};
int (*stub_sm_mhz)(void); /* the SM clock of the first GPU, if it is set */

int nvmlInit_v2(void);
int nvmlSystemGetDriverVersion(char *version, unsigned length);
int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByUUID(const char *uuid, device *out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out);
int nvmlDeviceGetClockInfo(device d, int type, unsigned *mhz);
int nvmlDeviceGetMaxClockInfo(device d, int type, unsigned *mhz);
int nvmlDeviceGetTemperature(device d, int sensor, unsigned *celsius);
int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksEventReasons(device d, unsigned long long *reasons);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device part, device *out);
int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *count, void *infos);

int nvmlInit_v2(void)
{
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    snprintf(version, length, "580.1");
    return SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, device *out)
{
    static const char *const uuids[] = {"GPU-0", "GPU-1", "MIG-part"};
    for (int i = 0; i < 3; i++) {
        *out = &numbers[i];
        if (strcmp(uuid, uuids[i]) == 0)
            return SUCCESS;
    }
    return NOT_FOUND;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device part, device *out)
{
    *out = &numbers[1];
    return *part == 2 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *out)
{
    *out = &numbers[index % 2];
    return index < 2 ? SUCCESS : NOT_FOUND;
}

int nvmlDeviceGetClockInfo(device d, int type, unsigned *mhz)
{
    *mhz = (*d == 0 ? 1000u : 300u) + (unsigned)type;
    if (*d == 0 && type == 1 && stub_sm_mhz)
        *mhz = (unsigned)stub_sm_mhz();
    return *d < 2 ? SUCCESS : NOT_SUPPORTED; /* a part of a GPU has no clocks of its own */
}

int nvmlDeviceGetMaxClockInfo(device d, int type, unsigned *mhz)
{
    (void)d, (void)type;
    *mhz = 1980;
    return SUCCESS;
}

int nvmlDeviceGetTemperature(device d, int sensor, unsigned *celsius)
{
    (void)sensor;
    *celsius = 85;
    return *d == 0 ? SUCCESS : NOT_SUPPORTED;
}

#ifdef LB_STUB_NEW
#define nvmlDeviceGetCurrentClocksThrottleReasons nvmlDeviceGetCurrentClocksEventReasons
#endif

int nvmlDeviceGetCurrentClocksThrottleReasons(device d, unsigned long long *reasons)
{
    *reasons = *d == 0 ? 0x44 : 0x1;
    return SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(device d, unsigned *count, void *infos)
{
    *count = *d == 0 ? 3 : 0;
    return *count > 0 && !infos ? INSUFFICIENT_SIZE : SUCCESS;
}

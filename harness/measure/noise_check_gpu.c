/* Whether GPUs are free to measure on, by NVML. */
#include "device/nvml.h"
#include "measure/noise_check.h"

/* Of NVML's throttle reasons: software power cap, hardware slowdown, software and hardware thermal
 * slowdown, hardware power brake. */
#define HELD_BACK (0x4ULL | 0x8ULL | 0x20ULL | 0x40ULL | 0x80ULL)

void lb_noise_check_gpu(struct lb_noise_check *noise)
{
    noise->gpus = lb_nvml_count();
    for (int i = 0; i < noise->gpus; i++) {
        struct lb_gpu_use use;
        if (!lb_nvml_use(i, &use))
            continue;
        noise->gpu_tenants += use.tenants;
        noise->gpus_throttled += (use.throttle & HELD_BACK) != 0;
    }
}

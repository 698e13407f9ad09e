/* Whether GPUs are free to measure on, by NVML. */
#include "fitness.h"
#include "nvml.h"

/* Of NVML's throttle reasons: software power cap, hardware slowdown, software and hardware thermal
 * slowdown, hardware power brake. */
#define HELD_BACK (0x4ULL | 0x8ULL | 0x20ULL | 0x40ULL | 0x80ULL)

void lb_fitness_look_gpu(struct lb_fitness *fitness)
{
    fitness->gpus = lb_nvml_count();
    for (int i = 0; i < fitness->gpus; i++) {
        struct lb_gpu_use use;
        if (!lb_nvml_use(i, &use))
            continue;
        fitness->gpu_tenants += use.tenants;
        fitness->gpus_throttled += (use.throttle & HELD_BACK) != 0;
    }
}

/* Clocks, temperature, throttling and users of NVIDIA GPUs, through NVML, which comes with the
 * driver and is loaded at run time; without it nothing is known. */
#ifndef LB_NVML_H
#define LB_NVML_H

#include <stdbool.h>
#include <stddef.h>

struct lb_gpu_state {
    double sm_mhz, memory_mhz; /* now; NaN where unknown, as all below */
    double sm_max_mhz;
    double temperature_c;
    unsigned long long throttle; /* why clocks are lowered, as bits of NVML; 0: no reason known */
};

/* Reads the state of the device with that uuid ("GPU-...", or "MIG-..." for a part of a GPU, whose
 * state is that of the whole GPU). False, and everything unknown, without NVML or such a device. */
bool lb_nvml_read(const char *uuid, struct lb_gpu_state *state);

/* The number of GPUs; -1 without NVML. */
int lb_nvml_count(void);

/* Of GPU number index, counted from 0: how many processes compute on it, and what throttles it, as
 * above; 0 where NVML does not say. */
void lb_nvml_use(int index, int *tenants, unsigned long long *throttle);

/* The driver's version, such as "580.65.06"; "" without NVML. */
const char *lb_nvml_driver(void);

/* Writes what lowers the clocks, such as "power cap, hot", idling and the user's own settings
 * included; "" when nothing does. */
void lb_throttle_text(unsigned long long throttle, char *text, size_t size);

#endif

/* Clocks, temperature, throttling and tenants of NVIDIA GPUs, through NVML, which comes with the
 * driver and is loaded at run time: no header of it is needed, and where it is missing nothing is
 * known.
 */
#ifndef LB_NVML_H
#define LB_NVML_H

#include <stdbool.h>
#include <stddef.h>

struct lb_gpu_state {
    double sm_mhz, memory_mhz; /* now; NaN where unknown, as all below */
    double sm_max_mhz;
    double temperature_c;
    double power_w;
    unsigned long long throttle; /* reasons why clocks are lowered, as NVML's bits; 0: none known */
};

/* Looks at the device with that uuid ("GPU-..."). False, and everything unknown, without NVML. */
bool lb_nvml_read(const char *uuid, struct lb_gpu_state *state);

/* One of the GPUs of this machine. */
struct lb_gpu_use {
    int tenants;                 /* processes that compute on it; 0 where NVML does not say */
    unsigned long long throttle; /* as above */
};

/* How many GPUs there are; -1 without NVML. */
int lb_nvml_count(void);

/* Looks at the index-th, counted from 0. False, and nothing known, where there is none. */
bool lb_nvml_use(int index, struct lb_gpu_use *use);

/* The driver's version, such as "580.65.06"; "" without NVML. */
const char *lb_nvml_driver(void);

/* What slows the device down, in words: "power cap, hot"; "" when nothing does. Idling and clocks
 * that were set on purpose are named too, since they also explain a time. */
void lb_throttle_text(unsigned long long throttle, char *text, size_t size);

#endif

/* Checks this machine for what makes measurements noisy: clock, load, governor, throttling, other
 * users of the GPUs. */
#ifndef LB_NOISE_CHECK_H
#define LB_NOISE_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Unknown numbers are NaN. */
struct lb_noise_check {
    double resolution_ns; /* smallest step of the clock that was seen */
    double overhead_ns;   /* median time of reading the clock */
    double stolen;        /* share of a busy loop's time that others took, in gaps over 20 us */
    double longest_gap_us;
    double load;              /* runnable tasks, one minute average */
    int cpus;                 /* number of CPUs that this process may use */
    double steal;             /* share of time that the hypervisor kept, since boot */
    double cgroup_throttled;  /* share of periods in which the control group ran out of its quota */
    double thermal_throttles; /* of the first CPU, since boot */
    char governor[32];        /* of the first CPU; "" where the system has none */
    bool turbo;               /* clocks above the nominal one are allowed, as far as is known */
    int gpus;                 /* -1: NVML is missing */
    int gpu_tenants;          /* processes that compute on these GPUs */
    int gpus_throttled;       /* GPUs whose clocks are lowered by power or heat */
};

/* Fills *noise. Takes about busy_s seconds, most of them in a busy loop. */
void lb_noise_check_run(double busy_s, struct lb_noise_check *noise);

/* Prints what was found, one line each, under the heading "machine". */
void lb_noise_check_print(const struct lb_noise_check *noise, FILE *out);

/* Prints one line of advice, "  - ...", for each source of noise that was found, and returns how
 * many there are. */
size_t lb_noise_check_advise(const struct lb_noise_check *noise, FILE *out);

#endif

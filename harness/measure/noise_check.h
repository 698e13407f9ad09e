/* Whether this machine is fit to measure on: clock, load, governor, throttling, other tenants. */
#ifndef LB_NOISE_CHECK_H
#define LB_NOISE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

/* Unknown numbers are NaN. */
struct lb_noise_check {
    double resolution_ns; /* smallest step of the clock seen */
    double overhead_ns;   /* median cost of reading it */
    double stolen;        /* share of a busy loop's time that went elsewhere, in gaps over 20 us */
    double longest_gap_us;
    double load;              /* runnable tasks, one minute average */
    int cpus;                 /* that may be used */
    double steal;             /* share of time that the hypervisor kept, since boot */
    double cgroup_throttled;  /* share of periods in which the control group ran out of its quota */
    double thermal_throttles; /* of the first CPU, since boot */
    char governor[32];        /* of the first CPU; "" where the system has none */
    bool turbo;               /* frequencies above the nominal are allowed, as far as is known */
    int gpus;                 /* -1: NVML is not there */
    int gpu_tenants;          /* processes that compute on them */
    int gpus_throttled;       /* held back by power or heat */
};

/* Looks, for about busy_s seconds of which most are a busy loop. */
void lb_noise_check_run(double busy_s, struct lb_noise_check *noise);

/* Writes one sentence of advice on trouble number index, of those that there are; false when there
 * are no more. Plain words: what it is, what it does to times, what to do. */
bool lb_noise_check_advice(const struct lb_noise_check *noise, size_t index, char *text,
                           size_t size);

/* The GPU part, by NVML, which is loaded when it is there. */
void lb_noise_check_gpu(struct lb_noise_check *noise);

#endif

/* How much of the CPUs other programs use while this process measures, and how fast they are. */
#ifndef LB_CPU_LOAD_H
#define LB_CPU_LOAD_H

/* A share above this makes a row noisy. */
#define LB_BUSY_SHARE 0.05

/* Counters of the CPUs that the calling thread may use, at one moment. Unknown numbers are NaN. */
struct lb_cpu_load {
    double at_ns;
    double busy_ns;      /* of all programs on these CPUs, and what a hypervisor kept */
    double own_ns;       /* CPU time of this process and of its children */
    double delay_ns;     /* for which the calling thread waited for a CPU */
    double throttled_ns; /* for which the control group was not let run */
    int cpus, threads;   /* of the CPUs, how many there are; threads of this process */
};

void lb_cpu_load_read(struct lb_cpu_load *load);

/* The share of the CPUs' time between two readings that others used, or that the control group was
 * throttled for: 0.5 when another program ran on one of two CPUs. The thread's CPUs must be the
 * same at both. It is a lower bound: the kernel counts in ticks of 10 ms, so in a short time two
 * ticks per CPU may be the process's own. */
double lb_cpu_load_others(const struct lb_cpu_load *before, const struct lb_cpu_load *after);

/* The time in ns of a fixed amount of work for one CPU, which tells how fast the machine is at the
 * moment: the median of three, which take about 2 ms together. It is measured before and after each
 * case, so that runs can be compared although the machine's clock or its other users changed in
 * between. The work must never change: records of all versions hold its times. */
double lb_reference_loop(void);

#endif

/* The host's clock. */
#include "base/clock.h"

#include <stdatomic.h>
#include <time.h>

double lb_now_ns(void)
{
    /* A double can count each nanosecond of 104 days. Machines are up for longer than that, so time
     * is counted from the first call of the process. */
    static _Atomic time_t first_second; /* plus 1; 0 before the first call */
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t second = now.tv_sec + 1, first = atomic_load(&first_second);
    if (first == 0 && atomic_compare_exchange_strong(&first_second, &first, second))
        first = second;
    return (double)(second - first) * 1e9 + (double)now.tv_nsec;
}

static double cpu_clock(clockid_t clock)
{
    struct timespec used;
    clock_gettime(clock, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

double lb_process_cpu_ns(void)
{
    return cpu_clock(CLOCK_PROCESS_CPUTIME_ID);
}

double lb_thread_cpu_ns(void)
{
    return cpu_clock(CLOCK_THREAD_CPUTIME_ID);
}

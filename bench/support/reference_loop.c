/* A fixed amount of work for one CPU. CMake compiles this file with the same flags in every build.
 */
#include "base/clock.h"
#include "stats/order_stats.h"
#include "support/cpu_load.h"

enum { COUNT = 32768 /* of floats: 256 KiB in all */, ROUNDS = 50, PARTS = 10, TIMES = 3 };

static float sums[COUNT], terms[COUNT];

/* Multiplies and adds over memory that the L2 cache holds. start_ns receives the time
 * until the first round begins, and part_ns [PARTS] those of every ROUNDS / PARTS rounds. */
static void work(double *start_ns, double *part_ns)
{
    double before = lb_now_ns(), after;
    for (int i = 0; i < COUNT; i++)
        terms[i] = (float)(i & 15);
    after = lb_now_ns();
    *start_ns = after - before;
    for (int part = 0; part < PARTS; part++) {
        before = after;
        for (int round = 0; round < ROUNDS / PARTS; round++)
            for (int i = 0; i < COUNT; i++)
                sums[i] = sums[i] * 0.5F + terms[i];
        after = lb_now_ns();
        part_ns[part] = after - before;
    }
}

double lb_reference_loop(void)
{
    double starts[TIMES], parts[TIMES * PARTS];
    work(starts, parts); /* brings the memory into the cache */
    for (int i = 0; i < TIMES; i++)
        work(&starts[i], parts + i * PARTS);
    lb_sort(starts, TIMES);
    lb_sort(parts, TIMES * PARTS);
    return lb_median(starts, TIMES) + PARTS * lb_median(parts, TIMES * PARTS);
}

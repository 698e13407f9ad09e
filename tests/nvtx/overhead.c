/* Measures the time that NVTX takes per range while no tool is attached, for cases with eight
 * phases like those of case/run.c. It fails above the limit in ns that its argument gives. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "trace/nvtx.h"

enum { ROUNDS = 11, CASES = 200000, RANGES = 1 + LB_NVTX_NONE };

static double ns_per_range(const struct lb_case *c)
{
    double start = lb_now_ns();
    for (int i = 0; i < CASES; i++) {
        struct lb_nvtx nvtx;
        lb_nvtx_begin(&nvtx, c);
        for (int phase = 0; phase < LB_NVTX_NONE; phase++)
            lb_nvtx_phase(&nvtx, (enum lb_nvtx_phase)phase);
        lb_nvtx_end(&nvtx);
    }
    return (lb_now_ns() - start) / CASES / RANGES;
}

int main(int argc, char **argv)
{
    struct lb_case c;
    double best = (double)INFINITY, bound = argc > 1 ? atof(argv[1]) : (double)INFINITY;
    if (getenv("NVTX_INJECTION64_PATH") ||
        lb_case_parse("cpu_ref/T3_B2_H4/f32/infer", &c, NULL, NULL, NULL) != LB_OK)
        return 77;
    for (int i = 0; i < ROUNDS; i++)
        best = fmin(best, ns_per_range(&c));
    printf("%.2f ns per range without a tool (best of %d rounds of %d ranges)\n", best, ROUNDS,
           CASES * RANGES);
    return best <= bound ? 0 : 1;
}

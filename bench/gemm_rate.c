/* gemm-rate: the f32 GEMM rate that the libraries reach on this machine, to compare large LSTMs on
 * the CPU with. Usage: gemm-rate [THREADS [SIDE]]. It prints the best and the median rate of square
 * GEMMs of each library, on the CPUs that bench-lstm uses too. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef LB_HAVE_ONEDNN
#include <dnnl.h>
#endif

#include "base/clock.h"
#include "device/memory.h"
#include "host/cpu_affinity.h"

enum { REPETITIONS = 15 };

struct gemm {
    int side;
    float *a, *b, *c; /* [side, side] */
};

static void by_openblas(const struct gemm *p)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, p->side, p->side, p->side, 1, p->a,
                p->side, p->b, p->side, 0, p->c, p->side);
}

#ifdef LB_HAVE_ONEDNN
static void by_onednn(const struct gemm *p)
{
    dnnl_sgemm('N', 'N', p->side, p->side, p->side, 1, p->a, p->side, p->b, p->side, 0, p->c,
               p->side);
}
#endif

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*multiply)(const struct gemm *), const struct gemm *p)
{
    double ns[REPETITIONS], flops = 2.0 * p->side * p->side * p->side;
    multiply(p);
    for (int i = 0; i < REPETITIONS; i++) {
        double start = lb_now_ns();
        multiply(p);
        ns[i] = lb_now_ns() - start;
    }
    qsort(ns, REPETITIONS, sizeof(ns[0]), ascending);
    printf("%-10s best %7.1f GF/s, median %7.1f\n", name, flops / ns[0],
           flops / ns[REPETITIONS / 2]);
}

int main(int count, char **arguments)
{
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    struct gemm p = {.side = count > 2 ? atoi(arguments[2]) : 1536};
    float **const matrices[] = {&p.a, &p.b, &p.c};
    char cpus[64];
    if (threads < 1 || p.side < 1) {
        fprintf(stderr, "usage: gemm-rate [THREADS [SIDE]]\n");
        return 2;
    }
    lb_pin(threads, cpus, sizeof(cpus));
    openblas_set_num_threads(threads);
    size_t elements = (size_t)p.side * (size_t)p.side;
    for (int i = 0; i < 3; i++) {
        void *memory;
        if (lb_host_space.allocate(elements * sizeof(float), &memory, NULL) != LB_OK)
            return 1;
        *matrices[i] = memory;
        for (size_t j = 0; j < elements; j++)
            (*matrices[i])[j] = (float)(j % 17) * 0.01f;
    }
    printf("f32 GEMMs of side %d, %d threads, on %s\n", p.side, threads, cpus);
    measure("OpenBLAS", by_openblas, &p);
#ifdef LB_HAVE_ONEDNN
    measure("oneDNN", by_onednn, &p); /* OMP_NUM_THREADS sets its threads; default: all CPUs */
#endif
    for (int i = 0; i < 3; i++)
        lb_host_space.release(*matrices[i]);
    return 0;
}

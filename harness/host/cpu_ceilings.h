/* What the CPUs of a machine can do at best: their vector units, the rates that were measured
 * (measure/cpu_ceilings_measure.h), and the least time of an LSTM that follows from them. */
#ifndef LB_CPU_CEILINGS_H
#define LB_CPU_CEILINGS_H

#include <jansson.h>
#include <stdbool.h>

#include "api/problem.h"

/* Units that multiply matrices, in the order of speed. */
enum lb_cpu_unit {
    LB_CPU_PLAIN, /* what every CPU of this architecture has */
    LB_CPU_AVX2,  /* with FMA and F16C */
    LB_CPU_AVX512,
    LB_CPU_AVX512BF16,
    LB_CPU_AMX,
    LB_CPU_UNIT_COUNT
};

const char *lb_cpu_unit_name(enum lb_cpu_unit unit); /* "plain", "avx2", ... */

/* Whether this CPU has the unit, and, for AVX512-BF16 and AMX, whether the unit takes the dtype.
 * AMX needs Linux's permission, which this asks for on behalf of the process. */
bool lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype);

/* The fastest unit that takes the dtype with sums in f32, or in f64 for f64. */
enum lb_cpu_unit lb_cpu_best_unit(enum lb_dtype dtype);

enum lb_cpu_level { LB_CPU_L1, LB_CPU_L2, LB_CPU_L3, LB_CPU_MEMORY, LB_CPU_LEVEL_COUNT };

const char *lb_cpu_level_name(enum lb_cpu_level level); /* "L1", ..., "memory" */

enum { LB_CPU_MAX_COUNTS = 10 };

/* NaN wherever nothing was measured. */
struct lb_cpu_ceilings {
    char cpu[96]; /* lb_cpu_key */
    double
        cache_bytes[LB_CPU_LEVEL_COUNT]; /* L1 and L2 of a core, L3 of the machine; memory: NaN */
    enum lb_cpu_unit units[LB_DTYPE_COUNT]; /* whose rate flops_s has */
    size_t count;                           /* of the numbers of threads below */
    struct lb_cpu_rates {
        int threads;
        double flops_s[LB_DTYPE_COUNT]; /* multiply-adds in registers, of all threads together */
        double read_bytes_s[LB_CPU_LEVEL_COUNT]; /* of all threads together */
        double barrier_ns;                       /* between these threads; 0 for one */
    } rates[LB_CPU_MAX_COUNTS];                  /* with rising numbers of threads, from 1 on */
};

/* The name of this machine's CPUs, made of letters, digits and dashes: "AMD-EPYC-9654-2-cpus". */
void lb_cpu_key(char key[96]);

/* The sizes of this machine's caches in bytes, each of one cache; NaN where the system does not
 * say. */
void lb_cpu_cache_bytes(double bytes[LB_CPU_LEVEL_COUNT]);

/* To a new JSON object, in which unknown figures are null; and back. */
json_t *lb_cpu_ceilings_to_json(const struct lb_cpu_ceilings *ceilings);
void lb_cpu_ceilings_from_json(const json_t *object, struct lb_cpu_ceilings *ceilings);

/* Kept beside those of GPUs (device/ceilings.h), in one file per kind of machine. save: LB_IO,
 * LB_OOM. load: false when this machine has no file. */
enum lb_status lb_cpu_ceilings_save(const struct lb_cpu_ceilings *ceilings, struct lb_error *err);
bool lb_cpu_ceilings_load(struct lb_cpu_ceilings *ceilings);

/* The rates with `threads` threads. Where that number was not measured, they are an upper limit:
 * the least of the next higher number's rates and of those of one thread times `threads`. */
struct lb_cpu_rates lb_cpu_rates_of(const struct lb_cpu_ceilings *ceilings, int threads);

/* The lower bound of one call on a CPU, in ns.
 *
 *   total = max(all GEMMs, chain, memory)
 *   chain = passes * T * (L*D / groups of threads) * step
 *   step  = max(recurrent GEMM, reading the weights that the caches don't hold) + barrier
 *
 * It assumes that everything overlaps that can, and the best way to divide work: threads in groups,
 * of which each works on layers and directions of its own; in a group the hidden units, with a
 * barrier per step, or the rows of the batch, without one. It ignores the cell, latencies, and
 * conflicts, so it is optimistic: it is a lower bound. */
struct lb_cpu_lower_bound {
    double all_gemms_ns; /* all GEMMs at the peak of the unit */
    double memory_ns;    /* what the caches cannot hold of all tensors, once */
    double chain_ns;     /* the steps that follow each other */
    double step_ns;      /* one of them, with these terms: */
    double gemm_ns, weights_ns, barrier_ns;
    enum lb_cpu_level
        residency; /* the level that holds the recurrent weights of a group's thread */
    double total_ns;
};

/* cold: caches are empty at the start of a call. row_steps: the sum of ragged rows' lengths; 0
 * stands for rows as short as they can be. Figures are NaN where ceilings has none for the dtype.
 */
void lb_cpu_lower_bound_of(const struct lb_cpu_ceilings *ceilings, const struct lb_problem *problem,
                           int threads, bool cold, int64_t row_steps,
                           struct lb_cpu_lower_bound *bound);

#endif

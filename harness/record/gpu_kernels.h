/* The GPU kernels that one call of a case ran: what they were, how long, with what gaps. */
#ifndef LB_GPU_KERNELS_H
#define LB_GPU_KERNELS_H

#include <jansson.h>

#include "model/case.h"
#include "record/kernel_names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One launch, as a tracer saw it; times in ns of any one clock. */
struct lb_launch_record {
    char *name; /* mangled or not; owned by whoever made the record */
    double start_ns, end_ns;
    int64_t grid[3], block[3], cluster[3]; /* cluster 1, 1, 1 (or zeroes) without clusters */
    int64_t registers;                     /* a thread's */
    int64_t shared_bytes;                  /* a block's, static and dynamic */
};

/* All launches of one kernel. Grid to shared memory are those of its longest launch. */
struct lb_kernel {
    char name[LB_KERNEL_NAME_SIZE]; /* short */
    enum lb_tensor_cores tensor_cores;
    bool persistent;
    int64_t count;
    double total_ns, longest_ns;
    int64_t grid[3], block[3], cluster[3];
    int64_t registers, shared_bytes;
};

/* Numbers are NaN while nothing was traced. */
struct lb_kernels {
    struct lb_kernel *items; /* [count] the most time first; owned */
    size_t count;
    double launches;       /* of all kernels together */
    double span_ns;        /* from the first start to the last end */
    double gap_ns;         /* of the span, the time in which no kernel ran */
    double longest_gap_ns; /* the longest such time in one piece */
};

/* Sums up launches, which may come in any order. LB_OOM. */
enum lb_status lb_kernels_collect(const struct lb_launch_record *launches, size_t count,
                                  struct lb_kernels *out, struct lb_error *err);
void lb_kernels_free(struct lb_kernels *kernels); /* accepts a zeroed one */

/* Yes when one kernel says yes, no when all say no, else unknown. */
enum lb_tensor_cores lb_kernels_tensor_cores(const struct lb_kernels *kernels);

/* "ran 1 persistent kernel, tensor cores: yes"; "" when nothing was traced. */
void lb_kernels_sentence(const struct lb_kernels *kernels, char *text, size_t size);

/* Whether what ran contradicts what the case is called; text says how:
 * a variant "persist..." that launched a kernel a step or more, none of them persistent; a variant
 * "standard" with a persistent one; f32 under ieee math on tensor cores; half precision, tf32 or
 * half math without them. */
bool lb_kernels_contradict(const struct lb_case *c, const struct lb_kernels *kernels, char *text,
                           size_t size);

/* The list as JSON: an array of objects with the fields above; null when nothing was traced. From:
 * LB_INVALID names the field. */
json_t *lb_kernels_to_json(const struct lb_kernels *kernels); /* NULL when memory runs out */
enum lb_status lb_kernels_from_json(const json_t *array, struct lb_kernels *kernels,
                                    struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

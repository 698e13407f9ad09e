/* The GPU kernels that one call of a case ran: their names, times, and the gaps between them. */
#ifndef LB_GPU_KERNELS_H
#define LB_GPU_KERNELS_H

#include <jansson.h>

#include "model/case.h"

#define LB_KERNEL_NAME_SIZE 128 /* bytes of a short name and its terminator */

enum lb_tensor_cores { LB_TENSOR_UNKNOWN, LB_TENSOR_NO, LB_TENSOR_YES };

const char *lb_tensor_cores_name(enum lb_tensor_cores value); /* "unknown", "no", "yes" */

/* One launch, as a tracer recorded it; times are in ns, all of the same clock. */
struct lb_launch_record {
    char *name; /* mangled or not; owned by the creator of the record */
    double start_ns, end_ns;
    json_int_t grid[3], block[3], cluster[3]; /* cluster is 1, 1, 1 or 0, 0, 0 without one */
    json_int_t registers;                     /* per thread */
    json_int_t shared_bytes;                  /* per block, static and dynamic */
};

/* All launches of one kernel. The name is demangled, without return type, parameters and unnamed
 * namespaces; of a wrapper such as cutlass::Kernel2<inner> it is the inner name, and template
 * arguments of a long name become <...>. What the kernel is follows from its whole name. */
struct lb_kernel {
    char name[LB_KERNEL_NAME_SIZE];
    enum lb_tensor_cores tensor_cores;
    bool persistent; /* it stays on the device for all steps of a sequence */
    json_int_t count;
    double total_ns, longest_ns;
    json_int_t grid[3], block[3], cluster[3]; /* of its longest launch, as all below */
    json_int_t registers, shared_bytes;
};

/* The numbers are NaN when nothing was traced. */
struct lb_kernels {
    struct lb_kernel *items; /* [count] in descending order of total time; owned */
    size_t count;
    double launches;       /* of all kernels together */
    double span_ns;        /* from the first start to the last end */
    double gap_ns;         /* the part of the span in which no kernel ran */
    double longest_gap_ns; /* the longest gap */
};

/* Groups launches [count], in any order, by kernel. The caller frees *out. */
void lb_kernels_collect(const struct lb_launch_record *launches, size_t count,
                        struct lb_kernels *out);
void lb_kernels_free(struct lb_kernels *kernels); /* accepts zeroed kernels */

/* Whether tensor cores were used: yes if a kernel uses them, no if none does, else unknown. */
enum lb_tensor_cores lb_kernels_tensor_cores(const struct lb_kernels *kernels);

/* Writes "ran 1 persistent kernel, tensor cores: yes" or the like; "" when nothing was traced. */
void lb_kernels_sentence(const struct lb_kernels *kernels, char *text, size_t size);

/* Whether the kernels contradict the case's text; text [size] then says how:
 *   - a variant "persist..." launched at least one kernel per step, and none of them is persistent;
 *   - a variant "standard" launched a persistent kernel;
 *   - f32 with ieee math used tensor cores;
 *   - f16, bf16, tf32 or half did not use them. */
bool lb_kernels_contradict(const struct lb_case *c, const struct lb_kernels *kernels, char *text,
                           size_t size);

/* The kernels as a new JSON array of objects; null when nothing was traced. */
json_t *lb_kernels_to_json(const struct lb_kernels *kernels);

/* Reads such an array. LB_INVALID: err names the kernel that is wrong. The caller frees kernels,
 * after a failure too. */
enum lb_status lb_kernels_from_json(const json_t *array, struct lb_kernels *kernels,
                                    struct lb_error *err);

#endif

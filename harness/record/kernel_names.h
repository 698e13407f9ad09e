/* What can be told from a GPU kernel's name: a short form, whether it uses tensor cores, whether it
 * is persistent. */
#ifndef LB_KERNEL_NAMES_H
#define LB_KERNEL_NAMES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LB_KERNEL_NAME_SIZE 128 /* bytes of a short name and its terminator */

enum lb_tensor_cores { LB_TENSOR_UNKNOWN, LB_TENSOR_NO, LB_TENSOR_YES };

const char *lb_tensor_cores_name(enum lb_tensor_cores value); /* "unknown", "no", "yes" */

/* One rule: whether kernels whose name contains the part use tensor cores. The first rule that
 * matches a name decides; without one it is unknown. The last rule has a NULL part. */
struct lb_kernel_rule {
    const char *part;
    enum lb_tensor_cores tensor_cores;
    const char *because; /* where such names come from */
};

extern const struct lb_kernel_rule lb_kernel_rules[];

/* Applies those rules to a full name, mangled or not. */
enum lb_tensor_cores lb_kernel_tensor_cores(const char *name);

/* Whether the kernel stays on the device for all steps of a sequence: cuDNN's RNN_blockPersist_*
 * and every other name that contains "persist", in any case. */
bool lb_kernel_is_persistent(const char *name);

/* Writes a short, readable form of a name: demangled, without return type, parameters and unnamed
 * namespaces. Of a wrapper such as cutlass::Kernel2<inner> it is the inner name, and template
 * arguments of a long name become <...>. */
void lb_kernel_short_name(const char *name, char shorter[LB_KERNEL_NAME_SIZE]);

#ifdef __cplusplus
}
#endif
#endif

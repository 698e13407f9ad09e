/* What a GPU kernel's name says: a short form, tensor cores or not, persistent or not. */
#ifndef LB_KERNEL_NAMES_H
#define LB_KERNEL_NAMES_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LB_KERNEL_NAME_SIZE 128 /* of a short name, with its terminator */

enum lb_tensor_cores { LB_TENSOR_UNKNOWN, LB_TENSOR_NO, LB_TENSOR_YES };

const char *lb_tensor_cores_name(enum lb_tensor_cores value); /* "unknown", "no", "yes" */

/* One rule: a name that holds the part uses tensor cores, or does not. The first that fits decides;
 * a name that none fits is unknown. The last has a NULL part. */
struct lb_kernel_rule {
    const char *part;
    enum lb_tensor_cores tensor_cores;
    const char *because; /* where such names come from */
};

extern const struct lb_kernel_rule lb_kernel_rules[];

/* By those rules, from a full name, mangled or not. */
enum lb_tensor_cores lb_kernel_tensor_cores(const char *name);

/* True when the name is that of a kernel which stays on the device for all steps of a sequence:
 * cuDNN's RNN_blockPersist_*, and every other name with "persist" in it. */
bool lb_kernel_is_persistent(const char *name);

/* A name for people: demangled, without return type, parameters and unnamed namespaces; of wrappers
 * such as cutlass::Kernel2<inner> the inner name; long template arguments as <...>. */
void lb_kernel_short_name(const char *name, char shorter[LB_KERNEL_NAME_SIZE]);

#ifdef __cplusplus
}
#endif
#endif

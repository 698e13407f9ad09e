/* What can be said of a case before it runs: whether it can, what it needs, what would run. */
#ifndef LB_CASE_PROBE_H
#define LB_CASE_PROBE_H

#include "api/impl.h"
#include "model/case.h"

/* Whether the harness and impl together can run c on a host with so many bytes left, and, where
 * impl needs one, on the device that is known (device.h), without calling more of impl than
 * supports. LB_UNSUPPORTED or LB_ABSENT with the reason, LB_OOM with "needs X, has Y". */
enum lb_status lb_case_supported(const struct lb_impl *impl, const struct lb_case *c,
                                 double available_bytes, struct lb_error *why);

/* Bytes of a problem's tensors in the implementation's memory, and of the results and the oracle on
 * the host; infinite when uncountable. What the implementation asks for by itself comes on top. */
double lb_case_tensor_bytes(const struct lb_problem *problem);
double lb_case_host_bytes(const struct lb_problem *problem);

/* Both together. */
double lb_case_bytes(const struct lb_problem *problem);

/* LB_OOM "needs X, has Y of SPACE memory" when needed is more than available. */
enum lb_status lb_check_memory(double needed, double available, const char *space,
                               struct lb_error *err);

/* Where a case runs: this process's device and stream for an implementation that needs one. The
 * variant is still to be picked. */
struct lb_exec_config lb_case_exec_config(const struct lb_impl *impl, const struct lb_case *c);

/* What an opened implementation says of a case. */
struct lb_probe {
    struct lb_sizes sizes;
    char description[512]; /* what would run; "" when it does not say */
};

/* supports, create, sizes, chosen, destroy: all that comes before memory is taken. */
enum lb_status lb_case_probe(const struct lb_impl *impl, const struct lb_case *c,
                             double available_bytes, struct lb_probe *probe, struct lb_error *err);

#endif

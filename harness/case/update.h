/* The tensors of lb_impl.update: canonical weights and weight gradients in the implementation's
 * memory. */
#ifndef LB_CASE_UPDATE_H
#define LB_CASE_UPDATE_H

#include "api/impl.h"
#include "device/host_memory.h"

struct lb_case_update {
    const struct lb_problem *problem;
    const struct lb_space *space;
    size_t bytes;              /* of each of the next two */
    void *weights, *gradients; /* all tensors, as device/weight_packing.h places them */
    void **tables;             /* the tables of io */
    struct lb_update_io io;
    uint64_t drawn; /* the space's hash of the right weights */
};

/* Bytes that lb_case_update_open allocates in the space. */
double lb_case_update_bytes(const struct lb_problem *problem);

/* Allocates the tensors and uploads the weights. problem must stay valid until close. LB_OOM, or
 * what the space returned. */
enum lb_status lb_case_update_open(const struct lb_problem *problem, const struct lb_space *space,
                                   const struct lb_weights *weights, struct lb_case_update *update,
                                   struct lb_error *err);
void lb_case_update_close(struct lb_case_update *update); /* accepts a zeroed one */

/* Uploads the weights and fills the gradients with NaN, so that what update leaves unwritten is
 * found. */
enum lb_status lb_case_update_renew(const struct lb_case_update *update,
                                    const struct lb_weights *weights, struct lb_error *err);

#endif

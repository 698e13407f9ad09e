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

/* Fills a few places of the weights and of the gradients with NaN. random: lb_random_next. */
enum lb_status lb_case_update_poison_some(const struct lb_case_update *update, uint64_t *random,
                                          struct lb_error *err);

/* Fills the weights with NaN, after an update. An implementation that reads them in a later call,
 * where the time of an update does not include that, then computes NaN. */
enum lb_status lb_case_update_poison_weights(const struct lb_case_update *update,
                                             struct lb_error *err);

/* Copies the gradients that update wrote to the host. */
enum lb_status lb_case_update_download(const struct lb_case_update *update,
                                       const struct lb_gradients *gradients, struct lb_error *err);

/* Sets *intact to whether the weights are still those of open: update may only read them. */
enum lb_status lb_case_update_intact(const struct lb_case_update *update, bool *intact,
                                     struct lb_error *err);

/* Calls prepare with NaN for all weights, then update with the right ones. What update does not
 * convert, or converts to the wrong place, makes the results of all later calls wrong. */
enum lb_status lb_case_update_prepare(const struct lb_impl *impl, void *self,
                                      const struct lb_buffers *buffers,
                                      const struct lb_case_update *update, struct lb_error *err);

#endif

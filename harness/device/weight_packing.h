/* Canonical weights in one buffer: what implementations that keep the canonical layout share. */
#ifndef LB_WEIGHT_PACKING_H
#define LB_WEIGHT_PACKING_H

#include "api/impl.h"
#include "base/arena.h"
#include "device/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The four tensors of an entry (l*D + d), in the order in which they lie. */
enum lb_weight {
    LB_W_IH, /* [4H, I_l] */
    LB_W_HH, /* [4H, H] */
    LB_B_IH, /* [4H] */
    LB_B_HH, /* [4H] */
    LB_WEIGHT_COUNT
};

/* Elements of one tensor. */
size_t lb_weight_elements(const struct lb_problem *problem, size_t entry, enum lb_weight which);

/* Where it starts in a buffer of all entries, in bytes, with elements of dtype; a multiple of 256.
 * The end of the last is lb_packed_bytes. */
size_t lb_packed_offset(const struct lb_problem *problem, enum lb_dtype dtype, size_t entry,
                        enum lb_weight which);
size_t lb_packed_bytes(const struct lb_problem *problem, enum lb_dtype dtype);

/* Canonical weights on the host into such a buffer in a memory space, in the problem's dtype. */
enum lb_status lb_packed_upload(const struct lb_problem *problem, const struct lb_space *space,
                                void *buffer, const struct lb_weights *weights,
                                struct lb_error *err);

/* Such a buffer of stored elements into canonical gradients, rounded once where the problem's dtype
 * is narrower. */
enum lb_status lb_packed_download(const struct lb_problem *problem, const struct lb_space *space,
                                  enum lb_dtype stored, const void *buffer,
                                  const struct lb_gradients *gradients, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Canonical weights in one buffer, for implementations that keep the canonical layout. */
#ifndef LB_WEIGHT_PACKING_H
#define LB_WEIGHT_PACKING_H

#include "api/impl.h"
#include "base/arena.h"
#include "device/host_memory.h"
#include "model/tensor_files.h"

/* Number of elements of one tensor of layer_dir l*D + d; the buffer has them in the order of the
 * enumeration. */
size_t lb_weight_elements(const struct lb_problem *problem, size_t layer_dir, enum lb_weight which);

/* Where that tensor starts in a buffer of all layers and directions, in bytes, with elements of
 * dtype: a multiple of 256. lb_packed_bytes is the size of the buffer. */
size_t lb_packed_offset(const struct lb_problem *problem, enum lb_dtype dtype, size_t layer_dir,
                        enum lb_weight which);
size_t lb_packed_bytes(const struct lb_problem *problem, enum lb_dtype dtype);

/* Writes where the tensors of such a buffer are to a table [LB_WEIGHT_COUNT][L*D]. */
void lb_packed_table(const struct lb_problem *problem, enum lb_dtype dtype, void *buffer,
                     void **table);

/* The weights, or weight gradients, whose tensors a table [LB_WEIGHT_COUNT][layer_dirs] names. */
struct lb_weights lb_weights_of(void *const *table, size_t layer_dirs);
struct lb_gradients lb_gradients_of(void *const *table, size_t layer_dirs);

/* Copies canonical weights from the host into such a buffer, in the problem's dtype. */
enum lb_status lb_packed_upload(const struct lb_problem *problem, const struct lb_space *space,
                                void *buffer, const struct lb_weights *weights,
                                struct lb_error *err);

/* Copies such a buffer, whose elements have the dtype `stored`, to canonical gradients on the host
 * in the problem's dtype. Where that is narrower, each element is rounded once. LB_OOM, or what
 * download returned. */
enum lb_status lb_packed_download(const struct lb_problem *problem, const struct lb_space *space,
                                  enum lb_dtype stored, const void *buffer,
                                  const struct lb_gradients *gradients, struct lb_error *err);
#endif

/* Launchers of the kernels that pack weights and unpack weight gradients. A launcher only enqueues
 * on the stream (cudaStream_t). LB_FAILED with CUDA's message. */
#ifndef LB_FUSED_WEIGHTS_H
#define LB_FUSED_WEIGHTS_H

#include "api/dtype.h"
#include "api/status.h"
#include "cuda/fused/common/weight_layout.h"

#ifdef __cplusplus
extern "C" {
#endif

/* packed [elements] = matrix [4, H, columns], both of dtype, as lb_weight_pack on the host. */
enum lb_status lb_fused_pack(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                             const void *matrix, void *packed, void *stream, struct lb_error *err);

/* packed [4H] = b_ih + b_hh [4H] of dtype; the sum is f64 for f64, else f32. */
enum lb_status lb_fused_pack_biases(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                                    const void *b_ih, const void *b_hh, void *packed, void *stream,
                                    struct lb_error *err);

/* matrix [4, H, columns] of dtype = packed [elements] of dtype, or of f32 where `sums` is set and
 * dtype is f16 or bf16; rounded once. `also` gets the same, and may be NULL. */
enum lb_status lb_fused_unpack(enum lb_dtype dtype, bool sums,
                               const struct lb_weight_layout *layout, const void *packed,
                               void *matrix, void *also, void *stream, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

/* Launchers of the kernels that pack weights and unpack weight gradients. */
#include "cuda/fused/common/weights.cuh"

#include "cuda/common/pointwise_launch.cuh"

using namespace lb_fused_weights;

template <class Bits>
static enum lb_status pack(const struct lb_weight_layout *layout, const void *matrix, void *packed,
                           void *stream, struct lb_error *err)
{
    return lb_cell::launch("pack_kernel", pack_kernel<Bits>, static_cast<int64_t>(layout->elements),
                           stream, err, packed, matrix, *layout);
}

enum lb_status lb_fused_pack(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                             const void *matrix, void *packed, void *stream, struct lb_error *err)
{
    switch (dtype) {
    case LB_F64: return pack<uint64_t>(layout, matrix, packed, stream, err);
    case LB_F32: return pack<uint32_t>(layout, matrix, packed, stream, err);
    default: return pack<uint16_t>(layout, matrix, packed, stream, err);
    }
}

enum lb_status lb_fused_pack_biases(enum lb_dtype dtype, const struct lb_weight_layout *layout,
                                    const void *b_ih, const void *b_hh, void *packed, void *stream,
                                    struct lb_error *err)
{
    return lb_cell::with_type(dtype, [&](auto type) {
        return lb_cell::launch("pack_biases_kernel", pack_biases_kernel<decltype(type)>,
                               static_cast<int64_t>(layout->elements), stream, err, packed, b_ih,
                               b_hh, *layout);
    });
}

enum lb_status lb_fused_unpack(enum lb_dtype dtype, bool sums,
                               const struct lb_weight_layout *layout, const void *packed,
                               void *matrix, void *also, void *stream, struct lb_error *err)
{
    return lb_cell::with_type(dtype, [&](auto type) {
        using T = decltype(type);
        auto unpack = [&](auto kernel) {
            return lb_cell::launch("unpack_kernel", kernel, static_cast<int64_t>(layout->elements),
                                   stream, err, matrix, also, packed, *layout);
        };
        return sums ? unpack(unpack_kernel<lb_cell::inside_t<T>, T>) : unpack(unpack_kernel<T, T>);
    });
}

/* Launchers of the element-wise kernels. */
#include "cuda/common/elementwise.cuh"

#include "cuda/common/pointwise_launch.cuh"

using namespace lb_cell;

template <class R> using elementwise_function = void (*)(R *, const R *, const R *, int64_t);

/* In the order of enum lb_elementwise_op. */
template <class R>
static const elementwise_function<R> functions[LB_OP_COUNT] = {
    elementwise_kernel<LB_OP_ADD, R>,        elementwise_kernel<LB_OP_MULTIPLY, R>,
    elementwise_kernel<LB_OP_SIGMOID, R>,    elementwise_kernel<LB_OP_TANH, R>,
    elementwise_kernel<LB_OP_RELU, R>,       elementwise_kernel<LB_OP_SIGMOID_SLOPE, R>,
    elementwise_kernel<LB_OP_TANH_SLOPE, R>, elementwise_kernel<LB_OP_RELU_SLOPE, R>,
    elementwise_kernel<LB_OP_SUBTRACT, R>,   elementwise_kernel<LB_OP_INVERSE_ROOT, R>,
};

/* body(R()) for the two types of arithmetic. */
template <class Body> static enum lb_status with_real(enum lb_dtype real, const Body &body)
{
    return real == LB_F64 ? body(double()) : body(float());
}

enum lb_status lb_elementwise(enum lb_dtype real, enum lb_elementwise_op op, void *to,
                              const void *a, const void *b, int64_t count, void *stream,
                              struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        using R = decltype(type);
        return launch("elementwise_kernel", functions<R>[op], count, stream, err,
                      static_cast<R *>(to), static_cast<const R *>(a), static_cast<const R *>(b),
                      count);
    });
}

enum lb_status lb_elementwise_add_bias(enum lb_dtype real, void *to, const void *from,
                                       const void *bias, int64_t rows, int64_t columns,
                                       void *stream, struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        using R = decltype(type);
        return launch("add_bias_kernel", add_bias_kernel<R>, rows * columns, stream, err,
                      static_cast<R *>(to), static_cast<const R *>(from),
                      static_cast<const R *>(bias), columns, rows * columns);
    });
}

enum lb_status lb_elementwise_broadcast(enum lb_dtype real, enum lb_elementwise_op op, bool per_row,
                                        void *to, const void *from, const void *vector,
                                        int64_t rows, int64_t columns, void *stream,
                                        struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        using R = decltype(type);
        auto kernel = op == LB_OP_SUBTRACT ? broadcast_kernel<LB_OP_SUBTRACT, R>
                                           : broadcast_kernel<LB_OP_MULTIPLY, R>;
        return launch("broadcast_kernel", kernel, rows * columns, stream, err, static_cast<R *>(to),
                      static_cast<const R *>(from), static_cast<const R *>(vector), per_row,
                      columns, rows * columns);
    });
}

enum lb_status lb_elementwise_add_row_sums(enum lb_dtype real, void *to, const void *from,
                                           int64_t rows, int64_t columns, void *stream,
                                           struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        using R = decltype(type);
        return launch("add_row_sums_kernel", add_row_sums_kernel<R>, columns, stream, err,
                      static_cast<R *>(to), static_cast<const R *>(from), rows, columns);
    });
}

enum lb_status lb_elementwise_select_rows(enum lb_dtype dtype,
                                          const struct lb_elementwise_select *select, void *stream,
                                          struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        return launch("select_rows_kernel", select_rows_kernel<decltype(type)>,
                      select->rows * select->columns, stream, err, *select);
    });
}

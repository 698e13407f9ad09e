/* Launchers of the pointwise kernels. */
#include "cuda/common/cell.cuh"

#include "cuda/common/pointwise_launch.cuh"

using namespace lb_cell;

enum lb_status lb_cell_forward_step(enum lb_dtype dtype, const struct lb_cell_forward *cell,
                                    void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        return launch("cell_forward_kernel", cell_forward_kernel<decltype(type)>,
                      cell->batch * cell->hidden, stream, err, *cell);
    });
}

enum lb_status lb_cell_backward_step(enum lb_dtype dtype, const struct lb_cell_backward *cell,
                                     void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        return launch("cell_backward_kernel", cell_backward_kernel<decltype(type)>,
                      cell->batch * cell->hidden, stream, err, *cell);
    });
}

enum lb_status lb_cell_convert_to_sums(enum lb_dtype dtype, void *to, const void *from,
                                       int64_t count, void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        return launch("convert_kernel", convert_kernel<inside_t<T>, T>, count, stream, err, to,
                      from, count);
    });
}

enum lb_status lb_cell_convert_to_storage(enum lb_dtype dtype, void *to, const void *from,
                                          int64_t count, void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        return launch("convert_kernel", convert_kernel<T, inside_t<T>>, count, stream, err, to,
                      from, count);
    });
}

enum lb_status lb_cell_add(enum lb_dtype dtype, void *to, const void *a, const void *b,
                           int64_t count, void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        return launch("add_kernel", add_kernel<decltype(type)>, count, stream, err, to, a, b,
                      count);
    });
}

enum lb_status lb_cell_column_sums(enum lb_dtype dtype, void *to, void *also, const void *from,
                                   int64_t rows, int64_t columns, void *scratch, void *stream,
                                   struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        LB_CHECK(launch("part_sums_kernel", part_sums_kernel<T>, LB_CELL_PARTS * columns, stream,
                        err, scratch, from, rows, columns));
        return launch("total_kernel", total_kernel<T>, columns, stream, err, to, also, scratch,
                      columns);
    });
}

enum lb_status lb_cell_zero_tails(enum lb_dtype dtype, void *data, const int32_t *lengths,
                                  int64_t seq_len, int64_t batch, int64_t width, void *stream,
                                  struct lb_error *err)
{
    int64_t count = seq_len * batch * width;
    return with_type(dtype, [&](auto type) {
        return launch("zero_tails_kernel", zero_tails_kernel<decltype(type)>, count, stream, err,
                      data, lengths, batch, width, count);
    });
}

/* ---- Element-wise operations ----------------------------------------------------------------- */

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
        return launch("elementwise_kernel", functions<R>[op], count, stream, err, to, a, b, count);
    });
}

enum lb_status lb_elementwise_broadcast(enum lb_dtype real, enum lb_elementwise_op op, bool per_row,
                                        void *to, const void *from, const void *vector,
                                        int64_t rows, int64_t columns, void *stream,
                                        struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        using R = decltype(type);
        auto kernel = op == LB_OP_ADD        ? broadcast_kernel<LB_OP_ADD, false, R>
                      : op == LB_OP_SUBTRACT ? broadcast_kernel<LB_OP_SUBTRACT, true, R>
                      : per_row              ? broadcast_kernel<LB_OP_MULTIPLY, true, R>
                                             : broadcast_kernel<LB_OP_MULTIPLY, false, R>;
        return launch("broadcast_kernel", kernel, rows * columns, stream, err, to, from, vector,
                      columns, rows * columns);
    });
}

enum lb_status lb_elementwise_add_row_sums(enum lb_dtype real, void *to, const void *from,
                                           int64_t rows, int64_t columns, void *stream,
                                           struct lb_error *err)
{
    return with_real(real, [&](auto type) {
        return launch("add_row_sums_kernel", add_row_sums_kernel<decltype(type)>, columns, stream,
                      err, to, from, rows, columns);
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

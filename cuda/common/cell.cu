/* Launchers of the LSTM cell's pointwise kernels. */
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
        return launch("convert_to_sums_kernel", convert_to_sums_kernel<T>, count, stream, err,
                      static_cast<inside_t<T> *>(to), static_cast<const T *>(from), count);
    });
}

enum lb_status lb_cell_convert_to_storage(enum lb_dtype dtype, void *to, const void *from,
                                          int64_t count, void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        return launch("convert_to_storage_kernel", convert_to_storage_kernel<T>, count, stream, err,
                      static_cast<T *>(to), static_cast<const inside_t<T> *>(from), count);
    });
}

enum lb_status lb_cell_add(enum lb_dtype dtype, void *to, const void *a, const void *b,
                           int64_t count, void *stream, struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        return launch("add_kernel", add_kernel<T>, count, stream, err,
                      static_cast<inside_t<T> *>(to), static_cast<const T *>(a),
                      static_cast<const T *>(b), count);
    });
}

enum lb_status lb_cell_column_sums(enum lb_dtype dtype, void *to, void *also, const void *from,
                                   int64_t rows, int64_t columns, void *scratch, void *stream,
                                   struct lb_error *err)
{
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        inside_t<T> *parts = static_cast<inside_t<T> *>(scratch);
        enum lb_status st = launch("part_sums_kernel", part_sums_kernel<T>, LB_CELL_PARTS * columns,
                                   stream, err, parts, static_cast<const T *>(from), rows, columns);
        if (st != LB_OK)
            return st;
        return launch("total_kernel", total_kernel<T>, columns, stream, err, static_cast<T *>(to),
                      static_cast<T *>(also), static_cast<const inside_t<T> *>(parts), columns);
    });
}

enum lb_status lb_cell_zero_tails(enum lb_dtype dtype, void *data, const int32_t *lengths,
                                  int64_t seq_len, int64_t batch, int64_t width, void *stream,
                                  struct lb_error *err)
{
    int64_t count = seq_len * batch * width;
    return with_type(dtype, [&](auto type) {
        using T = decltype(type);
        return launch("zero_tails_kernel", zero_tails_kernel<T>, count, stream, err,
                      static_cast<T *>(data), lengths, batch, width, count);
    });
}

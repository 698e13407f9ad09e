/* Converts weights and gradients between the canonical layout, [4H, columns] with gate after gate,
 * and the layouts of the fused kernels (cuda/fused/common/weight_layout.h). By unit means [H, 4,
 * columns]. R is the type lb_fused_real. */
#include <stdlib.h>
#include <string.h>

#include "cuda/fused/common/weights.h"
#include "device/device.h"
#include "impls/fused/fused.h"

/* Writes b_ih + b_hh by unit into `to` [H, 4] R. b_ih and b_hh are [4H] in the storage type. */
static void add_biases(const struct lb_problem *p, const void *b_ih, const void *b_hh, void *to)
{
    const struct lb_weight_layout layout = lb_weight_layout_by_unit(p->hidden, 1);
    enum lb_dtype real = lb_fused_real(p);
    size_t size = lb_dtype_size(p->dtype);
    for (uint64_t i = 0; i < layout.elements; i++) {
        size_t at = (size_t)lb_weight_source(&layout, i) * size;
        double a, b;
        lb_load(p->dtype, (const char *)b_ih + at, &a, 1);
        lb_load(p->dtype, (const char *)b_hh + at, &b, 1);
        a += b;
        lb_store(real, (char *)to + i * lb_dtype_size(real), &a, 1);
    }
}

/* Packs a canonical matrix on the host and uploads it to `to`, in device memory. */
static enum lb_status upload_matrix(const struct lb_problem *p,
                                    const struct lb_weight_layout *layout, const void *matrix,
                                    void *to, struct lb_error *err)
{
    size_t size = lb_dtype_size(p->dtype), bytes = layout->elements * size;
    void *packed = malloc(bytes);
    if (!packed)
        return lb_fail(err, LB_OOM, "out of memory");
    lb_weight_pack(layout, size, matrix, packed);
    enum lb_status st = lb_device_space.upload(to, packed, bytes, err);
    free(packed);
    return st;
}

size_t lb_fused_weight_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    return plan->family->layout(problem, plan).elements * lb_dtype_size(problem->dtype);
}

/* The packed weights of one direction of a layer, in device memory, and their layouts. */
struct packed {
    struct lb_weight_layout input, forward, backward;
    char *w_ih, *bias, *w_hh, *w_hh_t; /* w_hh_t: NULL without backward */
};

static struct packed packed_of(const struct lb_fused *self, int64_t layer, int64_t direction)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_plan *forward = &self->choice.forward, *backward = &self->choice.backward;
    size_t d = (size_t)direction, rows = 4 * (size_t)p->hidden;
    struct packed to = {
        .input = lb_weight_layout_by_unit(p->hidden, l->input),
        .forward = forward->family->layout(p, forward),
        .w_ih = (char *)l->w_ih + d * rows * (size_t)l->input * lb_dtype_size(p->dtype),
        .bias = (char *)l->bias + d * rows * lb_dtype_size(lb_fused_real(p)),
        .w_hh = (char *)l->w_hh + d * lb_fused_weight_bytes(p, forward),
    };
    if (l->w_hh_t) {
        to.backward = backward->family->layout(p, backward);
        to.w_hh_t = (char *)l->w_hh_t + d * lb_fused_weight_bytes(p, backward);
    }
    return to;
}

enum lb_status lb_fused_upload(const struct lb_fused *self, int64_t layer,
                               const struct lb_weights *weights, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    size_t bias = 4 * (size_t)p->hidden * lb_dtype_size(lb_fused_real(p));
    void *sum = malloc(bias);
    if (!sum)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int64_t d = 0; d < p->directions; d++) {
        int64_t layer_dir = layer * p->directions + d;
        const struct packed to = packed_of(self, layer, d);
        LB_TRY(upload_matrix(p, &to.input, weights->w_ih[layer_dir], to.w_ih, err));
        add_biases(p, weights->b_ih[layer_dir], weights->b_hh[layer_dir], sum);
        LB_TRY(lb_device_space.upload(to.bias, sum, bias, err));
        LB_TRY(upload_matrix(p, &to.forward, weights->w_hh[layer_dir], to.w_hh, err));
        if (to.w_hh_t)
            LB_TRY(upload_matrix(p, &to.backward, weights->w_hh[layer_dir], to.w_hh_t, err));
    }
done:
    free(sum);
    return st;
}

/* Downloads a matrix [H, 4, width] R, which begins at element `first` of `from`, and converts it
 * to the canonical layout [4H, width] and the storage type. */
static enum lb_status download_matrix(const struct lb_fused *self, const void *from, int64_t first,
                                      int64_t width, void *to, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    enum lb_dtype real = lb_fused_real(p);
    size_t count = (size_t)(4 * p->hidden * width), bytes = count * lb_dtype_size(real);
    void *values = malloc(bytes);
    double *doubles = malloc(count * sizeof(*doubles));
    void *stored = malloc(count * lb_dtype_size(p->dtype));
    if (!values || !doubles || !stored) {
        st = lb_fail(err, LB_OOM, "out of memory");
        goto done;
    }
    LB_TRY(lb_device_space.download(
        values, (const char *)from + (size_t)first * lb_dtype_size(real), bytes, err));
    lb_load(real, values, doubles, count);
    lb_store(p->dtype, stored, doubles, count);
    const struct lb_weight_layout layout = lb_weight_layout_by_unit(p->hidden, width);
    lb_weight_unpack(&layout, lb_dtype_size(p->dtype), stored, to);
done:
    free(stored);
    free(doubles);
    free(values);
    return st;
}

/* Downloads a bias gradient [H, 4] in the storage type and writes it in the canonical layout to
 * both biases, which have the same gradient. */
static enum lb_status download_bias(const struct lb_fused *self, const void *from, void *b_ih,
                                    void *b_hh, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    size_t bytes = (size_t)(4 * p->hidden) * lb_dtype_size(p->dtype);
    void *values = malloc(bytes);
    if (!values)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(lb_device_space.download(values, from, bytes, err));
    const struct lb_weight_layout layout = lb_weight_layout_by_unit(p->hidden, 1);
    lb_weight_unpack(&layout, lb_dtype_size(p->dtype), values, b_ih);
    memcpy(b_hh, b_ih, bytes);
done:
    free(values);
    return st;
}

enum lb_status lb_fused_download(const struct lb_fused *self, int64_t layer,
                                 const struct lb_gradients *gradients, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t rows = 4 * p->hidden;
    for (int64_t d = 0; d < p->directions; d++) {
        int64_t layer_dir = layer * p->directions + d;
        const char *db = (const char *)l->db + (size_t)(d * rows) * lb_dtype_size(p->dtype);
        LB_CHECK(download_matrix(self, l->dw_ih, d * rows * l->input, l->input,
                                 gradients->dw_ih[layer_dir], err));
        LB_CHECK(download_matrix(self, l->dw_hh, d * rows * p->hidden, p->hidden,
                                 gradients->dw_hh[layer_dir], err));
        LB_CHECK(
            download_bias(self, db, gradients->db_ih[layer_dir], gradients->db_hh[layer_dir], err));
    }
    return LB_OK;
}

/* Enqueues the packing of one direction's weights. */
static enum lb_status pack_direction(const struct lb_fused *self, int64_t layer, int64_t direction,
                                     const struct lb_weights *weights, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct packed to = packed_of(self, layer, direction);
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    int64_t layer_dir = layer * p->directions + direction;
    const void *w_hh = weights->w_hh[layer_dir];
    void *stream = self->stream;
    LB_CHECK(lb_fused_pack(p->dtype, &to.input, weights->w_ih[layer_dir], to.w_ih, stream, err));
    LB_CHECK(lb_fused_pack_biases(p->dtype, &biases, weights->b_ih[layer_dir],
                                  weights->b_hh[layer_dir], to.bias, stream, err));
    LB_CHECK(lb_fused_pack(p->dtype, &to.forward, w_hh, to.w_hh, stream, err));
    if (to.w_hh_t)
        LB_CHECK(lb_fused_pack(p->dtype, &to.backward, w_hh, to.w_hh_t, stream, err));
    return LB_OK;
}

/* Enqueues the unpacking of one direction's gradients. */
static enum lb_status unpack_direction(const struct lb_fused *self, int64_t layer,
                                       int64_t direction, const struct lb_gradients *gradients,
                                       struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    int64_t layer_dir = layer * p->directions + direction, rows = 4 * p->hidden;
    size_t real = lb_dtype_size(lb_fused_real(p)), size = lb_dtype_size(p->dtype);
    const struct lb_weight_layout input = lb_weight_layout_by_unit(p->hidden, l->input);
    const struct lb_weight_layout recurrent = lb_weight_layout_by_unit(p->hidden, p->hidden);
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    const char *dw_ih = (char *)l->dw_ih + (size_t)(direction * rows * l->input) * real;
    const char *dw_hh = (char *)l->dw_hh + (size_t)(direction * rows * p->hidden) * real;
    const char *db = (char *)l->db + (size_t)(direction * rows) * size;
    LB_CHECK(lb_fused_unpack(p->dtype, true, &input, dw_ih, gradients->dw_ih[layer_dir], NULL,
                             self->stream, err));
    LB_CHECK(lb_fused_unpack(p->dtype, true, &recurrent, dw_hh, gradients->dw_hh[layer_dir], NULL,
                             self->stream, err));
    return lb_fused_unpack(p->dtype, false, &biases, db, gradients->db_ih[layer_dir],
                           gradients->db_hh[layer_dir], self->stream, err);
}

enum lb_status lb_fused_update(void *state, const struct lb_update_io *io, struct lb_error *err)
{
    const struct lb_fused *self = state;
    for (int64_t i = 0; i < self->problem->layers; i++) {
        for (int64_t d = 0; d < self->problem->directions; d++) {
            LB_CHECK(unpack_direction(self, i, d, &io->gradients, err));
            LB_CHECK(pack_direction(self, i, d, &io->weights, err));
        }
    }
    return LB_OK;
}

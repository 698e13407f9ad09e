/* fused: weights and gradients between the canonical layout and that of the kernels. */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "fused_impl.h"

/* Rows of `width` elements: canonical row q H + u to or from row 4 u + q. */
static void interleave(const struct lb_problem *p, int64_t width, const void *from, void *to,
                       bool back)
{
    size_t bytes = (size_t)width * lb_dtype_size(p->dtype);
    for (int64_t u = 0; u < p->hidden; u++) {
        for (int64_t q = 0; q < 4; q++) {
            size_t canonical = (size_t)(q * p->hidden + u), ours = (size_t)(4 * u + q);
            memcpy((char *)to + (back ? canonical : ours) * bytes,
                   (const char *)from + (back ? ours : canonical) * bytes, bytes);
        }
    }
}

/* b_ih + b_hh, interleaved, in f32. */
static void add_biases(const struct lb_problem *p, const void *b_ih, const void *b_hh, float *to)
{
    size_t size = lb_dtype_size(p->dtype);
    for (int64_t u = 0; u < p->hidden; u++) {
        for (int64_t q = 0; q < 4; q++) {
            size_t at = (size_t)(q * p->hidden + u) * size;
            double a, b;
            lb_load(p->dtype, (const char *)b_ih + at, &a, 1);
            lb_load(p->dtype, (const char *)b_hh + at, &b, 1);
            to[4 * u + q] = (float)(a + b);
        }
    }
}

enum lb_status lb_fused_upload(const struct lb_fused *self, int64_t layer,
                               const struct lb_weights *weights, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    const struct lb_fused_tile *forward = &self->choice.forward.tile;
    const struct lb_fused_tile *backward = &self->choice.backward.tile;
    enum lb_status st = LB_OK;
    size_t rows = (size_t)(4 * p->hidden);
    size_t w_ih = rows * (size_t)l->input * lb_dtype_size(p->dtype);
    size_t packed = lb_fused_weight_bytes(forward), packed_t = lb_fused_weight_bytes(backward);
    size_t largest = packed > packed_t ? packed : packed_t;
    void *scratch = malloc(w_ih > largest ? w_ih : largest);
    float *bias = malloc(rows * sizeof(*bias));
    int hidden = (int)p->hidden;
    if (!scratch || !bias) {
        st = lb_fail(err, LB_OOM, "out of memory");
        goto done;
    }
    for (int64_t d = 0; d < p->directions; d++) {
        int64_t entry = layer * p->directions + d;
        size_t nth = (size_t)d;
        interleave(p, l->input, weights->w_ih[entry], scratch, false);
        LB_TRY(lb_device_space.upload((char *)l->w_ih + nth * w_ih, scratch, w_ih, err));
        lb_fused_pack_forward(forward, hidden, weights->w_hh[entry], scratch);
        LB_TRY(lb_device_space.upload((char *)l->w_hh + nth * packed, scratch, packed, err));
        add_biases(p, weights->b_ih[entry], weights->b_hh[entry], bias);
        LB_TRY(
            lb_device_space.upload((float *)l->bias + nth * rows, bias, rows * sizeof(*bias), err));
        if (!l->w_hh_t)
            continue;
        lb_fused_pack_backward(backward, hidden, weights->w_hh[entry], scratch);
        LB_TRY(lb_device_space.upload((char *)l->w_hh_t + nth * packed_t, scratch, packed_t, err));
    }
done:
    free(bias);
    free(scratch);
    return st;
}

/* f32 [4H, width] on the device, interleaved, to canonical storage on the host. */
static enum lb_status download_matrix(const struct lb_fused *self, const float *from, int64_t width,
                                      void *to, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    size_t count = (size_t)(4 * p->hidden * width);
    float *values = malloc(count * sizeof(*values));
    double *wide = malloc(count * sizeof(*wide));
    void *stored = malloc(count * lb_dtype_size(p->dtype));
    if (!values || !wide || !stored) {
        st = lb_fail(err, LB_OOM, "out of memory");
        goto done;
    }
    LB_TRY(lb_device_space.download(values, from, count * sizeof(*values), err));
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i];
    lb_store(p->dtype, stored, wide, count);
    interleave(p, width, stored, to, true);
done:
    free(stored);
    free(wide);
    free(values);
    return st;
}

/* T [4H] on the device, interleaved, to both biases. */
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
    interleave(p, 1, values, b_ih, true);
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
    enum lb_status st = LB_OK;
    int64_t rows = 4 * p->hidden;
    for (int64_t d = 0; d < p->directions; d++) {
        int64_t entry = layer * p->directions + d;
        const char *db = (const char *)l->db + (size_t)(d * rows) * lb_dtype_size(p->dtype);
        LB_TRY(download_matrix(self, (const float *)l->dw_ih + d * rows * l->input, l->input,
                               gradients->dw_ih[entry], err));
        LB_TRY(download_matrix(self, (const float *)l->dw_hh + d * rows * p->hidden, p->hidden,
                               gradients->dw_hh[entry], err));
        LB_TRY(download_bias(self, db, gradients->db_ih[entry], gradients->db_hh[entry], err));
    }
done:
    return st;
}

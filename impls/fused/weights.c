/* Converts weights and gradients between the canonical layout and the layout of the fused kernels.
 */
#include <stdlib.h>
#include <string.h>

#include "device/device.h"
#include "impls/fused/fused.h"

/* Copies rows of `width` elements: canonical row q H + u becomes row 4 u + q, or the reverse. */
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

/* Writes b_ih + b_hh, interleaved, in R. */
static void add_biases(const struct lb_problem *p, const void *b_ih, const void *b_hh, void *to)
{
    enum lb_dtype real = lb_fused_real(p);
    size_t size = lb_dtype_size(p->dtype);
    for (int64_t u = 0; u < p->hidden; u++) {
        for (int64_t q = 0; q < 4; q++) {
            size_t at = (size_t)(q * p->hidden + u) * size;
            double a, b;
            lb_load(p->dtype, (const char *)b_ih + at, &a, 1);
            lb_load(p->dtype, (const char *)b_hh + at, &b, 1);
            a += b;
            lb_store(real, (char *)to + (size_t)(4 * u + q) * lb_dtype_size(real), &a, 1);
        }
    }
}

enum lb_status lb_fused_upload_packed(const struct lb_problem *problem,
                                      const struct lb_fused_plan *plan, int64_t direction,
                                      const void *w_hh, void *to, struct lb_error *err)
{
    size_t bytes = plan->family->weight_bytes(problem, plan);
    void *packed = malloc(bytes);
    if (!packed)
        return lb_fail(err, LB_OOM, "out of memory");
    plan->family->pack(problem, plan, w_hh, packed);
    enum lb_status st =
        lb_device_space.upload((char *)to + (size_t)direction * bytes, packed, bytes, err);
    free(packed);
    return st;
}

enum lb_status lb_fused_upload(const struct lb_fused *self, int64_t layer,
                               const struct lb_weights *weights, struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_fused_layer *l = &self->layers[layer];
    enum lb_status st = LB_OK;
    size_t rows = (size_t)(4 * p->hidden), bias = rows * lb_dtype_size(lb_fused_real(p));
    size_t w_ih = rows * (size_t)l->input * lb_dtype_size(p->dtype);
    size_t room = w_ih > bias ? w_ih : bias;
    void *scratch = malloc(room > 0 ? room : 1);
    if (!scratch)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int64_t d = 0; d < p->directions; d++) {
        int64_t layer_dir = layer * p->directions + d;
        size_t nth = (size_t)d;
        interleave(p, l->input, weights->w_ih[layer_dir], scratch, false);
        LB_TRY(lb_device_space.upload((char *)l->w_ih + nth * w_ih, scratch, w_ih, err));
        add_biases(p, weights->b_ih[layer_dir], weights->b_hh[layer_dir], scratch);
        LB_TRY(lb_device_space.upload((char *)l->bias + nth * bias, scratch, bias, err));
        LB_TRY(lb_fused_upload_packed(p, &self->choice.forward, d, weights->w_hh[layer_dir],
                                      l->w_hh, err));
        if (l->w_hh_t)
            LB_TRY(lb_fused_upload_packed(p, &self->choice.backward, d, weights->w_hh[layer_dir],
                                          l->w_hh_t, err));
    }
done:
    free(scratch);
    return st;
}

/* Downloads an interleaved matrix [4H, width] R, which begins at element `first`, and converts it
 * to the canonical layout and the storage type. */
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
    interleave(p, width, stored, to, true);
done:
    free(stored);
    free(doubles);
    free(values);
    return st;
}

/* Downloads an interleaved bias gradient [4H] T to both biases in the canonical layout. */
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
        int64_t layer_dir = layer * p->directions + d;
        const char *db = (const char *)l->db + (size_t)(d * rows) * lb_dtype_size(p->dtype);
        LB_TRY(download_matrix(self, l->dw_ih, d * rows * l->input, l->input,
                               gradients->dw_ih[layer_dir], err));
        LB_TRY(download_matrix(self, l->dw_hh, d * rows * p->hidden, p->hidden,
                               gradients->dw_hh[layer_dir], err));
        LB_TRY(
            download_bias(self, db, gradients->db_ih[layer_dir], gradients->db_hh[layer_dir], err));
    }
done:
    return st;
}

/* Converts weights and gradients between the canonical layout, [4H, columns] with gate after gate,
 * and the layouts of the fused kernels (cuda/fused/common/weight_layout.h). By unit means [H, 4,
 * columns]. R is the type lb_fused_real. */
#include <stdlib.h>

#include "base/memory.h"
#include "cuda/fused/common/weights.h"
#include "device/device.h"
#include "device/weight_packing.h"
#include "impls/fused/fused.h"

size_t lb_fused_weight_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan)
{
    return plan->family->layout(problem, plan).elements * lb_dtype_size(problem->dtype);
}

/* Enqueues the packing of one direction's w_hh in the order of a plan; to: of all directions. */
static enum lb_status pack_recurrent(const struct lb_fused *self, const struct lb_fused_plan *plan,
                                     const void *w_hh, size_t direction, void *to,
                                     struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_weight_layout layout = plan->family->layout(p, plan);
    return lb_fused_pack(p->dtype, &layout, w_hh,
                         (char *)to + direction * lb_fused_weight_bytes(p, plan), self->stream,
                         err);
}

/* Enqueues the packing of all weights. */
static enum lb_status pack(const struct lb_fused *self, const struct lb_weights *weights,
                           struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    size_t size = lb_dtype_size(p->dtype), real = lb_dtype_size(lb_fused_real(p));
    for (size_t e = 0; e < lb_layer_dir_count(p); e++) {
        const struct lb_fused_layer *l = &self->layers[e / (size_t)p->directions];
        const struct lb_weight_layout input = lb_weight_layout_by_unit(p->hidden, l->input);
        size_t d = e % (size_t)p->directions, row = d * 4 * (size_t)p->hidden;
        LB_CHECK(lb_fused_pack(p->dtype, &input, weights->w_ih[e],
                               (char *)l->w_ih + row * (size_t)l->input * size, self->stream, err));
        LB_CHECK(lb_fused_pack_biases(p->dtype, &biases, weights->b_ih[e], weights->b_hh[e],
                                      (char *)l->bias + row * real, self->stream, err));
        LB_CHECK(pack_recurrent(self, &self->choice.forward, weights->w_hh[e], d, l->w_hh, err));
        if (l->w_hh_t)
            LB_CHECK(
                pack_recurrent(self, &self->choice.backward, weights->w_hh[e], d, l->w_hh_t, err));
    }
    return LB_OK;
}

/* Enqueues the unpacking of all gradients of the last backward. */
static enum lb_status unpack(const struct lb_fused *self, const struct lb_gradients *gradients,
                             struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    const struct lb_weight_layout recurrent = lb_weight_layout_by_unit(p->hidden, p->hidden);
    const struct lb_weight_layout biases = lb_weight_layout_by_unit(p->hidden, 1);
    size_t size = lb_dtype_size(p->dtype), real = lb_dtype_size(lb_fused_real(p));
    for (size_t e = 0; e < lb_layer_dir_count(p); e++) {
        const struct lb_fused_layer *l = &self->layers[e / (size_t)p->directions];
        const struct lb_weight_layout input = lb_weight_layout_by_unit(p->hidden, l->input);
        size_t row = e % (size_t)p->directions * 4 * (size_t)p->hidden;
        const char *dw_ih = (char *)l->dw_ih + row * (size_t)l->input * real;
        const char *dw_hh = (char *)l->dw_hh + row * (size_t)p->hidden * real;
        const char *db = (char *)l->db + row * size;
        LB_CHECK(lb_fused_unpack(p->dtype, true, &input, dw_ih, gradients->dw_ih[e], NULL,
                                 self->stream, err));
        LB_CHECK(lb_fused_unpack(p->dtype, true, &recurrent, dw_hh, gradients->dw_hh[e], NULL,
                                 self->stream, err));
        LB_CHECK(lb_fused_unpack(p->dtype, false, &biases, db, gradients->db_ih[e],
                                 gradients->db_hh[e], self->stream, err));
    }
    return LB_OK;
}

enum lb_status lb_fused_update(void *state, const struct lb_update_io *io, struct lb_error *err)
{
    LB_CHECK(unpack(state, &io->gradients, err));
    return pack(state, &io->weights, err);
}

/* A buffer of canonical tensors on the device, and the table of its tensors. */
struct staging {
    void *buffer, **table;
};

static enum lb_status open_staging(const struct lb_problem *p, struct staging *staging,
                                   struct lb_error *err)
{
    *staging = (struct staging){0};
    LB_CHECK(lb_device_space.allocate(lb_packed_bytes(p, p->dtype), &staging->buffer, err));
    staging->table =
        lb_needed(malloc(LB_WEIGHT_COUNT * lb_layer_dir_count(p) * sizeof(*staging->table)));
    lb_packed_table(p, p->dtype, staging->buffer, staging->table);
    return LB_OK;
}

static void close_staging(struct staging *staging)
{
    free(staging->table);
    lb_device_space.release(staging->buffer);
}

enum lb_status lb_fused_upload(const struct lb_fused *self, const struct lb_weights *weights,
                               struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    struct staging staging;
    LB_TRY(open_staging(p, &staging, err));
    LB_TRY(lb_packed_upload(p, &lb_device_space, staging.buffer, weights, err));
    const struct lb_weights on_device = lb_weights_of(staging.table, lb_layer_dir_count(p));
    LB_TRY(pack(self, &on_device, err));
    LB_TRY(lb_device()->synchronize(err));
done:
    close_staging(&staging);
    return st;
}

enum lb_status lb_fused_download(const struct lb_fused *self, const struct lb_gradients *gradients,
                                 struct lb_error *err)
{
    const struct lb_problem *p = self->problem;
    enum lb_status st = LB_OK;
    struct staging staging;
    LB_TRY(open_staging(p, &staging, err));
    const struct lb_gradients on_device = lb_gradients_of(staging.table, lb_layer_dir_count(p));
    LB_TRY(unpack(self, &on_device, err));
    LB_TRY(lb_packed_download(p, &lb_device_space, p->dtype, staging.buffer, gradients, err));
done:
    close_staging(&staging);
    return st;
}

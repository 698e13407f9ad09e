/* What the GPU implementations have in common. */
#include "impls/common/gpu_network.h"

#include "cuda/common/cell.h"
#include "device/device.h"

enum lb_status lb_gpu_network_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *config, struct lb_error *why)
{
    (void)problem, (void)config;
    return lb_device_needs(lb_device_known(NULL), 8, "", why);
}

struct lb_gpu_network lb_gpu_network_make(const struct lb_problem *problem,
                                          const struct lb_exec_config *config, int stream_count,
                                          lb_gpu_carve *carve)
{
    return (struct lb_gpu_network){
        .problem = problem,
        .stream = config->stream,
        .stream_count = stream_count,
        .carve = carve,
        .real = problem->dtype == LB_F64 ? LB_F64 : LB_F32,
        .gradients_dtype = problem->dtype,
        .canonical = true,
    };
}

void lb_gpu_network_destroy(struct lb_gpu_network *net)
{
    lb_streams_destroy(net->streams);
}

enum lb_status lb_gpu_network_sizes(void *state, struct lb_sizes *sizes, struct lb_error *err)
{
    const struct lb_gpu_network *net = state;
    struct lb_gpu_parts parts = {{0}, {0}, {0}, {0}};
    (void)err;
    net->carve(state, &parts);
    *sizes = (struct lb_sizes){
        .weights = parts.weights.used,
        .gradients = parts.gradients.used,
        .reserve = parts.reserve.used,
        .workspace = parts.workspace.used,
    };
    return LB_OK;
}

void *lb_gpu_network_carve(struct lb_gpu_network *net, struct lb_gpu_parts *parts)
{
    const struct lb_problem *p = net->problem;
    if (net->canonical)
        net->weights = lb_arena_take(&parts->weights, lb_packed_bytes(p, p->dtype));
    if (p->ragged)
        net->lengths = lb_arena_take(&parts->weights, (size_t)p->batch * sizeof(*net->lengths));
    if (net->canonical && lb_has_backward(p))
        net->gradients = lb_arena_take(&parts->gradients, lb_packed_bytes(p, net->gradients_dtype));
    return lb_arena_take(&parts->workspace, (size_t)net->stream_count * lb_stream_scratch_bytes());
}

void *lb_gpu_carve_storage(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count)
{
    return lb_arena_take(from, lb_gpu_storage(net, count));
}

void *lb_gpu_carve_real(const struct lb_gpu_network *net, struct lb_arena *from, int64_t count)
{
    return lb_arena_take(from, lb_gpu_real(net, count));
}

enum lb_status lb_gpu_network_prepare(void *state, const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_gpu_network *net = state;
    const struct lb_problem *p = net->problem;
    struct lb_gpu_parts parts = {.weights = {.base = buffers->weights},
                                 .gradients = {.base = buffers->gradients},
                                 .reserve = {.base = buffers->reserve},
                                 .workspace = {.base = buffers->workspace}};
    void *scratch = net->carve(state, &parts);
    LB_CHECK(lb_streams_create(net->stream_count, net->stream, scratch, &net->streams, err));
    if (net->canonical)
        LB_CHECK(lb_packed_upload(p, &lb_device_space, net->weights, weights, err));
    if (p->ragged)
        LB_CHECK(lb_device_space.upload(net->lengths, buffers->lengths,
                                        (size_t)p->batch * sizeof(*net->lengths), err));
    return LB_OK;
}

const void *lb_gpu_weight(const struct lb_gpu_network *net, int64_t layer_dir, enum lb_weight which)
{
    const struct lb_problem *p = net->problem;
    return net->weights ? net->weights + lb_packed_offset(p, p->dtype, (size_t)layer_dir, which)
                        : NULL;
}

struct lb_gpu_weights lb_gpu_weights_of(const struct lb_gpu_network *net, int64_t layer_dir)
{
    struct lb_gpu_weights w = {.w_ih = lb_gpu_weight(net, layer_dir, LB_W_IH),
                               .w_hh = lb_gpu_weight(net, layer_dir, LB_W_HH)};
    if (lb_cell_weight_count(net->problem) > 0)
        w.w_cell = lb_gpu_weight(net, layer_dir, LB_W_CELL);
    for (int which = 0; net->gradients && which < LB_WEIGHT_COUNT; which++)
        w.dweights[which] =
            net->gradients + lb_packed_offset(net->problem, net->gradients_dtype, (size_t)layer_dir,
                                              (enum lb_weight)which);
    return w;
}

enum lb_status lb_gpu_network_gradients(void *state, const struct lb_gradients *gradients,
                                        struct lb_error *err)
{
    const struct lb_gpu_network *net = state;
    return lb_packed_download(net->problem, &lb_device_space, net->gradients_dtype, net->gradients,
                              gradients, err);
}

size_t lb_gpu_storage(const struct lb_gpu_network *net, int64_t count)
{
    return (size_t)count * lb_dtype_size(net->problem->dtype);
}

size_t lb_gpu_real(const struct lb_gpu_network *net, int64_t count)
{
    return (size_t)count * lb_dtype_size(net->real);
}

void *lb_gpu_storage_at(const struct lb_gpu_network *net, const void *base, int64_t index)
{
    return (char *)base + lb_gpu_storage(net, index);
}

void *lb_gpu_real_at(const struct lb_gpu_network *net, const void *base, int64_t index)
{
    return (char *)base + lb_gpu_real(net, index);
}

enum lb_status lb_gpu_gemm(const struct lb_gpu_network *net, int stream_index, struct lb_gemm gemm,
                           struct lb_error *err)
{
    gemm.in = net->problem->dtype;
    gemm.math = net->problem->math;
    gemm.lda = gemm.transpose_a ? gemm.m : gemm.k;
    gemm.ldb = gemm.transpose_b ? gemm.k : gemm.n;
    gemm.ldc = gemm.n;
    return lb_stream_gemm(net->streams, stream_index, &gemm, err);
}

/* ---- State ---------------------------------------------------------------------------------- */

/* Elements of c, and of h, of one layer_dir. */
static int64_t c_count(const struct lb_gpu_network *net)
{
    return net->problem->batch * net->problem->hidden;
}

static int64_t h_count(const struct lb_gpu_network *net)
{
    return net->problem->batch * lb_h_size(net->problem);
}

/* Element 0 of a layer_dir in a tensor of the case. */
static void *c_at(const struct lb_gpu_network *net, const void *base, int64_t layer_dir)
{
    return lb_gpu_storage_at(net, base, layer_dir * c_count(net));
}

static void *h_at(const struct lb_gpu_network *net, const void *base, int64_t layer_dir)
{
    return lb_gpu_storage_at(net, base, layer_dir * h_count(net));
}

enum lb_status lb_gpu_start_state(const struct lb_gpu_network *net, int stream_index,
                                  int64_t layer_dir, const struct lb_forward_io *io, void *h,
                                  void *c, struct lb_error *err)
{
    LB_CHECK(lb_stream_copy(net->streams, stream_index, h, h_at(net, io->h0, layer_dir),
                            lb_gpu_storage(net, h_count(net)), err));
    return lb_cell_convert_to_sums(net->problem->dtype, c, c_at(net, io->c0, layer_dir),
                                   c_count(net), lb_stream_handle(net->streams, stream_index), err);
}

enum lb_status lb_gpu_start_gradients(const struct lb_gpu_network *net, int stream_index,
                                      int64_t layer_dir, const struct lb_backward_io *io, void *dh,
                                      void *dc, struct lb_error *err)
{
    void *stream = lb_stream_handle(net->streams, stream_index);
    LB_CHECK(lb_cell_convert_to_sums(net->problem->dtype, dh, h_at(net, io->dhn, layer_dir),
                                     h_count(net), stream, err));
    return lb_cell_convert_to_sums(net->problem->dtype, dc, c_at(net, io->dcn, layer_dir),
                                   c_count(net), stream, err);
}

enum lb_status lb_gpu_finish_gradients(const struct lb_gpu_network *net, int stream_index,
                                       int64_t layer_dir, const struct lb_backward_io *io,
                                       const void *dh, const void *dc, struct lb_error *err)
{
    void *stream = lb_stream_handle(net->streams, stream_index);
    LB_CHECK(lb_cell_convert_to_storage(net->problem->dtype, h_at(net, io->dh0, layer_dir), dh,
                                        h_count(net), stream, err));
    return lb_cell_convert_to_storage(net->problem->dtype, c_at(net, io->dc0, layer_dir), dc,
                                      c_count(net), stream, err);
}

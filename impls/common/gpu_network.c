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

struct lb_gpu_weights lb_gpu_weights_of(const struct lb_gpu_network *net, int64_t layer_dir)
{
    struct lb_gpu_weights of = {{NULL}, {NULL}};
    for (enum lb_weight w = LB_W_IH; w < LB_WEIGHT_COUNT; w++) {
        const struct lb_problem *p = net->problem;
        size_t e = (size_t)layer_dir;
        if (net->weights)
            of.weights[w] = net->weights + lb_packed_offset(p, p->dtype, e, w);
        if (net->gradients)
            of.dweights[w] = net->gradients + lb_packed_offset(p, net->gradients_dtype, e, w);
    }
    return of;
}

enum lb_status lb_gpu_network_gradients(void *state, const struct lb_gradients *gradients,
                                        struct lb_error *err)
{
    const struct lb_gpu_network *net = state;
    return lb_packed_download(net->problem, &lb_device_space, net->gradients_dtype, net->gradients,
                              gradients, err);
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

/* h and c of one layer_dir, or their gradients, in tensors of the case. */
struct state {
    void *h, *c;
    int64_t h_count, c_count; /* elements */
    void *stream;
};

static struct state state_of(const struct lb_gpu_network *net, int stream_index, int64_t layer_dir,
                             const void *h, const void *c)
{
    const struct lb_problem *p = net->problem;
    int64_t h_count = p->batch * lb_h_size(p), c_count = p->batch * p->hidden;
    return (struct state){
        .h = lb_gpu_storage_at(net, h, layer_dir * h_count),
        .c = lb_gpu_storage_at(net, c, layer_dir * c_count),
        .h_count = h_count,
        .c_count = c_count,
        .stream = lb_stream_handle(net->streams, stream_index),
    };
}

enum lb_status lb_gpu_start_state(const struct lb_gpu_network *net, int stream_index,
                                  int64_t layer_dir, const struct lb_forward_io *io, void *h,
                                  void *c, struct lb_error *err)
{
    const struct state s = state_of(net, stream_index, layer_dir, io->h0, io->c0);
    LB_CHECK(
        lb_stream_copy(net->streams, stream_index, h, s.h, lb_gpu_storage(net, s.h_count), err));
    return lb_cell_convert_to_sums(net->problem->dtype, c, s.c, s.c_count, s.stream, err);
}

enum lb_status lb_gpu_start_gradients(const struct lb_gpu_network *net, int stream_index,
                                      int64_t layer_dir, const struct lb_backward_io *io, void *dh,
                                      void *dc, struct lb_error *err)
{
    const struct state s = state_of(net, stream_index, layer_dir, io->dhn, io->dcn);
    LB_CHECK(lb_cell_convert_to_sums(net->problem->dtype, dh, s.h, s.h_count, s.stream, err));
    return lb_cell_convert_to_sums(net->problem->dtype, dc, s.c, s.c_count, s.stream, err);
}

enum lb_status lb_gpu_finish_gradients(const struct lb_gpu_network *net, int stream_index,
                                       int64_t layer_dir, const struct lb_backward_io *io,
                                       const void *dh, const void *dc, struct lb_error *err)
{
    const struct state s = state_of(net, stream_index, layer_dir, io->dh0, io->dc0);
    LB_CHECK(lb_cell_convert_to_storage(net->problem->dtype, s.h, dh, s.h_count, s.stream, err));
    return lb_cell_convert_to_storage(net->problem->dtype, s.c, dc, s.c_count, s.stream, err);
}

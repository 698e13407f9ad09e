/* What the GPU implementations on canonical weights have in common. */
#include "impls/common/gpu_network.h"

#include "device/device.h"

enum lb_status lb_gpu_network_supports(const struct lb_problem *problem,
                                       const struct lb_exec_config *place, struct lb_error *why)
{
    (void)problem, (void)place;
    return lb_device_needs(lb_device_known(NULL), 8, 0, "", why);
}

struct lb_gpu_network lb_gpu_network_make(const struct lb_problem *problem,
                                          const struct lb_exec_config *place, int stream_count)
{
    return (struct lb_gpu_network){
        .problem = problem,
        .stream = place->stream,
        .stream_count = stream_count,
        .real = problem->dtype == LB_F64 ? LB_F64 : LB_F32,
        .gradients_dtype = problem->dtype,
    };
}

void lb_gpu_network_destroy(struct lb_gpu_network *net)
{
    lb_streams_destroy(net->streams);
}

struct lb_gpu_parts lb_gpu_parts_of(const struct lb_buffers *buffers)
{
    return (struct lb_gpu_parts){.weights = {.base = buffers->weights},
                                 .gradients = {.base = buffers->gradients},
                                 .reserve = {.base = buffers->reserve},
                                 .workspace = {.base = buffers->workspace}};
}

struct lb_sizes lb_gpu_parts_sizes(const struct lb_gpu_parts *parts)
{
    return (struct lb_sizes){
        .weights = parts->weights.used,
        .gradients = parts->gradients.used,
        .reserve = parts->reserve.used,
        .workspace = parts->workspace.used,
    };
}

void *lb_gpu_network_carve(struct lb_gpu_network *net, struct lb_gpu_parts *parts)
{
    const struct lb_problem *p = net->problem;
    net->weights = lb_arena_take(&parts->weights, lb_packed_bytes(p, p->dtype));
    if (p->ragged)
        net->lengths = lb_arena_take(&parts->weights, (size_t)p->batch * sizeof(*net->lengths));
    if (lb_has_backward(p))
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

enum lb_status lb_gpu_network_prepare(struct lb_gpu_network *net, void *scratch,
                                      const struct lb_buffers *buffers,
                                      const struct lb_weights *weights, struct lb_error *err)
{
    const struct lb_problem *p = net->problem;
    enum lb_status st = LB_OK;
    LB_TRY(lb_streams_create(net->stream_count, net->stream, &net->streams, err));
    LB_TRY(lb_streams_set_workspace(net->streams, scratch, err));
    LB_TRY(lb_packed_upload(p, &lb_device_space, net->weights, weights, err));
    if (p->ragged)
        LB_TRY(lb_device_space.upload(net->lengths, buffers->lengths,
                                      (size_t)p->batch * sizeof(*net->lengths), err));
done:
    return st;
}

const void *lb_gpu_weight(const struct lb_gpu_network *net, int64_t entry, enum lb_weight which)
{
    const struct lb_problem *p = net->problem;
    return net->weights ? net->weights + lb_packed_offset(p, p->dtype, (size_t)entry, which) : NULL;
}

void *lb_gpu_gradient(const struct lb_gpu_network *net, int64_t entry, enum lb_weight which)
{
    return net->gradients ? net->gradients + lb_packed_offset(net->problem, net->gradients_dtype,
                                                              (size_t)entry, which)
                          : NULL;
}

enum lb_status lb_gpu_network_gradients(const struct lb_gpu_network *net,
                                        const struct lb_gradients *gradients, struct lb_error *err)
{
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

/* One cuDNN RNN under one algorithm. */
#include "impls/cudnn/rnn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/common/cell.h"
#include "device/device.h"
#include "device/weight_packing.h"

struct lb_cudnn lb_cudnn;

static void print_version(char *text, size_t size)
{
    size_t version = lb_cudnn.cudnnGetVersion();
    snprintf(text, size, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
}

struct lb_shared_library lb_cudnn_library = {
    .name = "cuDNN",
    .file = LB_CUDNN_FILE,
    .built = LB_VERSION_TEXT(CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL),
    LB_FUNCTIONS_OF(LB_CUDNN_FUNCTIONS, lb_cudnn),
    .print_version = print_version,
};

/* ---- The library's answers ----------------------------------------------------------------- */

/* The reason that the library logged last: more than its error strings say. */
static _Thread_local char logged[200];

/* Lines are separated by a zero and end with two. */
static void CUDNNWINAPI on_log(cudnnSeverity_t severity, void *user, const cudnnDebug_t *debug,
                               const char *message)
{
    (void)severity, (void)user, (void)debug;
    for (const char *line = message; line && *line; line += strlen(line) + 1) {
        const char *reason = strstr(line, "Reason: ");
        if (reason && !logged[0])
            snprintf(logged, sizeof(logged), "%s", reason + strlen("Reason: "));
    }
}

enum lb_status lb_cudnn_check(cudnnStatus_t status, const char *what, struct lb_error *err)
{
    char said[200] = "";
    if (status == CUDNN_STATUS_SUCCESS) {
        logged[0] = '\0';
        return LB_OK;
    }
    lb_cudnn.cudnnGetLastErrorString(said, sizeof(said));
    const char *reason = said[0] ? said : logged;
    int category = CUDNN_STATUS_CATEGORY((int)status);
    bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                  status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    enum lb_status st = memory                                   ? LB_OOM
                        : category == CUDNN_STATUS_NOT_SUPPORTED ? LB_UNSUPPORTED
                                                                 : LB_FAILED;
    lb_fail(err, st, "%s: %s (%d)%s%s", what, lb_cudnn.cudnnGetErrorString(status), (int)status,
            reason[0] ? ": " : "", reason);
    logged[0] = '\0';
    return st;
}

/* The status of a call of the library, and of a probe. */
#define CUDNN(function, ...)       lb_cudnn_check(lb_cudnn.function(__VA_ARGS__), #function, err)
#define CUDNN_PROBE(function, ...) lb_cudnn_probed(lb_cudnn.function(__VA_ARGS__), #function, err)

/* ---- Shapes -------------------------------------------------------------------------------- */

static cudnnDataType_t data_type(enum lb_dtype dtype)
{
    static const cudnnDataType_t types[LB_DTYPE_COUNT] = {[LB_F64] = CUDNN_DATA_DOUBLE,
                                                          [LB_F32] = CUDNN_DATA_FLOAT,
                                                          [LB_F16] = CUDNN_DATA_HALF,
                                                          [LB_BF16] = CUDNN_DATA_BFLOAT16};
    return types[dtype];
}

/* lb_at_thread_end */
static void destroy_handle(void *handle)
{
    (void)lb_cudnn.cudnnDestroy(handle);
}

/* The thread's handle: made once, since it costs a second and memory. */
static enum lb_status open_handle(void *stream, cudnnHandle_t *handle, struct lb_error *err)
{
    static _Thread_local cudnnHandle_t kept;
    LB_CHECK(lb_shared_library_load(&lb_cudnn_library, err));
    if (!kept) {
        (void)lb_cudnn.cudnnSetCallback(CUDNN_SEV_ERROR_EN | CUDNN_SEV_WARNING_EN, NULL, on_log);
        LB_CHECK(CUDNN(cudnnCreate, &kept));
        LB_CHECK(lb_at_thread_end(destroy_handle, kept, err));
    }
    LB_CHECK(CUDNN(cudnnSetStream, kept, stream));
    *handle = kept;
    return LB_OK;
}

/* The descriptors of x and y with the lengths that shapes has. */
static enum lb_status describe_data(const struct lb_cudnn_shapes *shapes, struct lb_error *err)
{
    const struct lb_problem *p = shapes->problem;
    double zero = 0; /* also the bits of zero of every narrower type */
    const cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
    LB_CHECK(CUDNN(cudnnSetRNNDataDescriptor, shapes->x, data_type(p->dtype), layout,
                   (int)p->seq_len, (int)p->batch, (int)p->input, shapes->lengths, &zero));
    return CUDNN(cudnnSetRNNDataDescriptor, shapes->y, data_type(p->dtype), layout, (int)p->seq_len,
                 (int)p->batch, (int)(p->directions * lb_h_size(p)), shapes->lengths, &zero);
}

/* A descriptor of states [L*D, B, size]. */
static enum lb_status describe_states(const struct lb_problem *p, int64_t size,
                                      cudnnTensorDescriptor_t *descriptor, struct lb_error *err)
{
    const int dims[] = {(int)(p->layers * p->directions), (int)p->batch, (int)size};
    const int strides[] = {(int)(p->batch * size), (int)size, 1};
    LB_CHECK(CUDNN(cudnnCreateTensorDescriptor, descriptor));
    return CUDNN(cudnnSetTensorNdDescriptor, *descriptor, data_type(p->dtype), 3, dims, strides);
}

enum lb_status lb_cudnn_shapes_create(const struct lb_problem *problem, void *stream,
                                      struct lb_cudnn_shapes *shapes, struct lb_error *err)
{
    const struct lb_problem *p = problem;
    *shapes = (struct lb_cudnn_shapes){.problem = p};
    shapes->lengths = malloc((size_t)p->batch * sizeof(*shapes->lengths));
    if (!shapes->lengths)
        return lb_fail(err, LB_OOM, "out of memory");
    for (int64_t b = 0; b < p->batch; b++)
        shapes->lengths[b] = (int32_t)p->seq_len;
    if (p->ragged && p->batch > 1 && p->seq_len > 1)
        shapes->lengths[p->batch - 1]--;

    LB_CHECK(open_handle(stream, &shapes->handle, err));
    LB_CHECK(CUDNN(cudnnCreateDropoutDescriptor, &shapes->dropout));
    LB_CHECK(CUDNN(cudnnSetDropoutDescriptor, shapes->dropout, shapes->handle, 0, NULL, 0, 0));
    LB_CHECK(CUDNN(cudnnCreateRNNDataDescriptor, &shapes->x));
    LB_CHECK(CUDNN(cudnnCreateRNNDataDescriptor, &shapes->y));
    LB_CHECK(describe_data(shapes, err));
    LB_CHECK(describe_states(p, lb_h_size(p), &shapes->h, err));
    return describe_states(p, p->hidden, &shapes->c, err);
}

enum lb_status lb_cudnn_shapes_set_lengths(struct lb_cudnn_shapes *shapes, const int32_t *lengths,
                                           const int32_t *device_lengths, struct lb_error *err)
{
    memcpy(shapes->lengths, lengths, (size_t)shapes->problem->batch * sizeof(*lengths));
    shapes->device_lengths = device_lengths;
    return describe_data(shapes, err);
}

void lb_cudnn_shapes_destroy(struct lb_cudnn_shapes *shapes)
{
    if (shapes->c)
        lb_cudnn.cudnnDestroyTensorDescriptor(shapes->c);
    if (shapes->h)
        lb_cudnn.cudnnDestroyTensorDescriptor(shapes->h);
    if (shapes->y)
        lb_cudnn.cudnnDestroyRNNDataDescriptor(shapes->y);
    if (shapes->x)
        lb_cudnn.cudnnDestroyRNNDataDescriptor(shapes->x);
    if (shapes->dropout)
        lb_cudnn.cudnnDestroyDropoutDescriptor(shapes->dropout);
    free(shapes->lengths);
}

/* ---- An RNN -------------------------------------------------------------------------------- */

/* f32 and f64 stay away from tensor cores unless told otherwise; TF32 is the library's default. */
static cudnnMathType_t math_type(const struct lb_problem *p)
{
    static const cudnnMathType_t f32[LB_MATH_COUNT] = {
        [LB_IEEE] = CUDNN_FMA_MATH,
        [LB_TF32] = CUDNN_DEFAULT_MATH,
        [LB_HALF] = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION,
    };
    if (p->dtype == LB_F64)
        return CUDNN_FMA_MATH;
    return p->dtype == LB_F32 ? f32[p->math] : CUDNN_TENSOR_OP_MATH;
}

enum lb_status lb_cudnn_probed(cudnnStatus_t status, const char *what, struct lb_error *err)
{
    enum lb_status st = lb_cudnn_check(status, what, err);
    bool refused = CUDNN_STATUS_CATEGORY((int)status) == CUDNN_STATUS_BAD_PARAM;
    return st == LB_FAILED && refused ? LB_UNSUPPORTED : st;
}

static enum lb_status ask_sizes(struct lb_cudnn_rnn *rnn, struct lb_error *err)
{
    const struct lb_cudnn_shapes *s = rnn->shapes;
    cudnnForwardMode_t mode =
        lb_trains(s->problem) ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    LB_CHECK(CUDNN_PROBE(cudnnGetRNNWeightSpaceSize, s->handle, rnn->descriptor, &rnn->weights));
    return CUDNN_PROBE(cudnnGetRNNTempSpaceSizes, s->handle, rnn->descriptor, mode, s->x,
                       &rnn->workspace, &rnn->reserve);
}

enum lb_status lb_cudnn_rnn_create(const struct lb_cudnn_shapes *shapes,
                                   enum lb_cudnn_variant variant, struct lb_cudnn_rnn *rnn,
                                   struct lb_error *err)
{
    static const cudnnRNNAlgo_t algorithms[CUDNN_VARIANT_COUNT] = {
        [CUDNN_STANDARD] = CUDNN_RNN_ALGO_STANDARD,
        [CUDNN_PERSIST_STATIC] = CUDNN_RNN_ALGO_PERSIST_STATIC,
        [CUDNN_PERSIST_DYNAMIC] = CUDNN_RNN_ALGO_PERSIST_DYNAMIC,
        [CUDNN_SMALL_H] = CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H,
    };
    const struct lb_problem *p = shapes->problem;
    *rnn = (struct lb_cudnn_rnn){.shapes = shapes};
    LB_CHECK(CUDNN(cudnnCreateRNNDescriptor, &rnn->descriptor));
    LB_CHECK(CUDNN_PROBE(cudnnSetRNNDescriptor_v8, rnn->descriptor, algorithms[variant], CUDNN_LSTM,
                         CUDNN_RNN_DOUBLE_BIAS,
                         p->directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                         CUDNN_LINEAR_INPUT, data_type(p->dtype),
                         p->dtype == LB_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, math_type(p),
                         (int32_t)p->input, (int32_t)p->hidden, (int32_t)lb_h_size(p),
                         (int32_t)p->layers, shapes->dropout, CUDNN_RNN_PADDED_IO_ENABLED));
    if (variant == CUDNN_PERSIST_DYNAMIC)
        LB_CHECK(CUDNN_PROBE(cudnnBuildRNNDynamic, shapes->handle, rnn->descriptor, (int)p->batch));
    return ask_sizes(rnn, err);
}

void lb_cudnn_rnn_destroy(struct lb_cudnn_rnn *rnn)
{
    if (rnn->descriptor)
        lb_cudnn.cudnnDestroyRNNDescriptor(rnn->descriptor);
    *rnn = (struct lb_cudnn_rnn){0};
}

/* ---- Weights -------------------------------------------------------------------------------- */

/* The parts of a layer_dir, as cuDNN numbers its linear layers: input products of i f g o, then
 * recurrent ones, and last, of the cell projection alone, w_hr, which has no bias. */
enum { GATE_PARTS = 8 };

/* Also of the projection, whose matrix [P, H] has as many elements as a recurrent one [H, P]. */
static size_t matrix_bytes(const struct lb_problem *p, size_t layer_dir, int part)
{
    int64_t layer = (int64_t)layer_dir / p->directions;
    int64_t columns = part < 4 ? lb_layer_input(p, layer) : lb_h_size(p);
    return (size_t)(p->hidden * columns) * lb_dtype_size(p->dtype);
}

/* Copies one gate's rows of the canonical tensor `from` to where the library places a part's matrix
 * ([H, I_l], recurrent [H, P], projection [P, H], all row-major; P is H but for the cell
 * projection) or bias [H] in the weight space. Where `from` is NULL, it copies them from there to
 * the tensor `to`. */
static enum lb_status copy(const struct lb_cudnn_rnn *rnn, const char *space, size_t layer_dir,
                           int part, char *there, size_t bytes, const void *from, void *to,
                           struct lb_error *err)
{
    size_t offset = (size_t)part % 4 * bytes;
    if (!there)
        return lb_fail(err, LB_FAILED, "cuDNN has no part %d of layer_dir %zu", part, layer_dir);
    size_t at = (size_t)(there - space);
    if (at > rnn->weights || bytes > rnn->weights - at)
        return lb_fail(err, LB_FAILED,
                       "cuDNN places part %d of layer_dir %zu outside its %zu bytes of weights",
                       part, layer_dir, rnn->weights);
    return from ? lb_device_space.upload(there, (const char *)from + offset, bytes, err)
                : lb_device_space.download((char *)to + offset, there, bytes, err);
}

/* Copies all parts, from or to the tensors of enum lb_weight [L*D]; `from` or `to` is NULL. In both
 * layouts the rows of a gate are together. The library also describes each matrix and bias, which
 * nobody reads. What it says of a projection's bias is ignored. */
static enum lb_status copy_parts(const struct lb_cudnn_rnn *rnn, char *space,
                                 const void *const *const *from, void *const *const *to,
                                 struct lb_error *err)
{
    const struct lb_problem *p = rnn->shapes->problem;
    const int parts = p->cell == LB_CELL_PROJECTION ? GATE_PARTS + 1 : GATE_PARTS;
    enum lb_status st = LB_OK;
    cudnnTensorDescriptor_t of_matrix = NULL, of_bias = NULL;
    LB_TRY(CUDNN(cudnnCreateTensorDescriptor, &of_matrix));
    LB_TRY(CUDNN(cudnnCreateTensorDescriptor, &of_bias));
    for (size_t e = 0; e < lb_layer_dir_count(p); e++)
        for (int part = 0; part < parts; part++) {
            void *matrix = NULL, *bias = NULL;
            bool is_gate = part < GATE_PARTS;
            enum lb_weight w = part < 4 ? LB_W_IH : is_gate ? LB_W_HH : LB_W_CELL;
            enum lb_weight b = part < 4 ? LB_B_IH : LB_B_HH;
            LB_TRY(CUDNN(cudnnGetRNNWeightParams, rnn->shapes->handle, rnn->descriptor, (int32_t)e,
                         rnn->weights, space, part, of_matrix, &matrix, of_bias, &bias));
            LB_TRY(copy(rnn, space, e, part, matrix, matrix_bytes(p, e, part),
                        from ? from[w][e] : NULL, to ? to[w][e] : NULL, err));
            if (is_gate)
                LB_TRY(copy(rnn, space, e, part, bias, (size_t)p->hidden * lb_dtype_size(p->dtype),
                            from ? from[b][e] : NULL, to ? to[b][e] : NULL, err));
        }
done:
    if (of_bias)
        lb_cudnn.cudnnDestroyTensorDescriptor(of_bias);
    if (of_matrix)
        lb_cudnn.cudnnDestroyTensorDescriptor(of_matrix);
    return st;
}

enum lb_status lb_cudnn_rnn_load(struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                 const struct lb_weights *weights, struct lb_error *err)
{
    const void *const *const tables[] = {weights->w_ih, weights->w_hh, weights->b_ih, weights->b_hh,
                                         weights->w_cell};
    size_t given = rnn->workspace, kept = rnn->reserve;
    /* The sizes were asked for with made-up lengths; the real ones may need more. */
    LB_CHECK(ask_sizes(rnn, err));
    if (rnn->workspace > given || rnn->reserve > kept)
        return lb_fail(err, LB_FAILED,
                       "for these lengths cuDNN needs %zu bytes of workspace and %zu of reserve, "
                       "more than the %zu and %zu that it asked for",
                       rnn->workspace, rnn->reserve, given, kept);
    /* What lies between the parts is zero. */
    LB_CHECK(lb_device()->fill(memory->weights, 0, rnn->weights, err));
    return copy_parts(rnn, memory->weights, tables, NULL, err);
}

enum lb_status lb_cudnn_rnn_fetch(const struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                  const struct lb_gradients *gradients, struct lb_error *err)
{
    void *const *const tables[] = {gradients->dw_ih, gradients->dw_hh, gradients->db_ih,
                                   gradients->db_hh, gradients->dw_cell};
    return copy_parts(rnn, memory->gradients, NULL, tables, err);
}

/* ---- Calls -----------------------------------------------------------------------------------
 * devSeqLengths is NULL, as in PyTorch: the library takes the lengths from the data descriptors. */

enum lb_status lb_cudnn_rnn_forward(const struct lb_cudnn_rnn *rnn, const struct lb_buffers *memory,
                                    const struct lb_forward_io *io, struct lb_error *err)
{
    const struct lb_cudnn_shapes *s = rnn->shapes;
    cudnnForwardMode_t mode =
        lb_trains(s->problem) ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    return CUDNN(cudnnRNNForward, s->handle, rnn->descriptor, mode, NULL, s->x, io->x, s->y, io->y,
                 s->h, io->h0, io->hn, s->c, io->c0, io->cn, rnn->weights, memory->weights,
                 rnn->workspace, memory->workspace, rnn->reserve, memory->reserve);
}

enum lb_status lb_cudnn_rnn_backward(const struct lb_cudnn_rnn *rnn,
                                     const struct lb_buffers *memory,
                                     const struct lb_backward_io *io, struct lb_error *err)
{
    const struct lb_cudnn_shapes *s = rnn->shapes;
    const struct lb_problem *p = s->problem;
    LB_CHECK(lb_device()->fill(memory->gradients, 0, rnn->weights, err));
    LB_CHECK(CUDNN(cudnnRNNBackwardData_v8, s->handle, rnn->descriptor, NULL, s->y, io->y, io->dy,
                   s->x, io->dx, s->h, io->h0, io->dhn, io->dh0, s->c, io->c0, io->dcn, io->dc0,
                   rnn->weights, memory->weights, rnn->workspace, memory->workspace, rnn->reserve,
                   memory->reserve));
    LB_CHECK(CUDNN(cudnnRNNBackwardWeights_v8, s->handle, rnn->descriptor, CUDNN_WGRAD_MODE_ADD,
                   NULL, s->x, io->x, s->h, io->h0, s->y, io->y, rnn->weights, memory->gradients,
                   rnn->workspace, memory->workspace, rnn->reserve, memory->reserve));
    /* The library fills the padding of y alone, and that of dx must be zero. */
    if (p->ragged)
        LB_CHECK(lb_cell_zero_tails(p->dtype, io->dx, s->device_lengths, p->seq_len, p->batch,
                                    p->input, lb_device()->stream(), err));
    return LB_OK;
}

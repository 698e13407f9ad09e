/* cuDNN's RNN on the fake device. It has the functions that impls/cudnn calls, follows the rules
 * of cuDNN 9's API reference, and computes with cpu_ref. Where the reference leaves a choice,
 * the model takes the one that is worst for a caller: weights lie in an order of its own, the
 * padding of dx is NaN, the reserve space serves for one backward pass, and a call does nothing
 * before its turn in the stream. */
#include <cudnn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/impl.h"
#include "fake_libraries.h"
#include "queue.h"

enum {
    GATE_PARTS = 8, /* per layer and direction: matrices of i f g o for x, then for h */
    PROJECTION = 8, /* the matrix of a projection, which has no bias */
    PARTS_MAX = 9,
    TENSORS_MAX = 5,     /* canonical: w_ih, w_hh, b_ih, b_hh, and w_hr where h is projected */
    SMALL_HIDDEN = 192,  /* largest of CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H */
    LONGEST = 65535,     /* most steps of a data descriptor */
    LENGTHS_MAX = 256,   /* rows of a batch, a limit of the model */
    LAYER_DIRS_MAX = 64, /* a limit of the model */
    ALIGNMENT = 64,      /* of parts of the weight space */
    WORKSPACE_BYTES = 4096,
    HANDLES_MAX = 16
};

extern const struct lb_impl lb_impl_cpu_ref;

struct cudnnContext {
    bool used;
    void *stream;
};

struct cudnnDropoutStruct {
    float dropout;
};

struct cudnnTensorStruct {
    cudnnDataType_t type;
    int count, dims[CUDNN_DIM_MAX], strides[CUDNN_DIM_MAX];
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int steps, batch, width; /* 0 steps: not set */
    int32_t lengths[LENGTHS_MAX];
    bool fills;
    double padding;
};

struct cudnnRNNStruct {
    bool set;
    cudnnRNNAlgo_t algorithm;
    cudnnDataType_t type;
    int layers, directions, input, hidden, projection; /* projection: hidden where there is none */
    bool padded;
    int built_batch; /* the batch for which cudnnBuildRNNDynamic was called */
};

static struct {
    enum fake_cudnn_fault fault;
    double forward_ns[CUDNN_RNN_ALGO_COUNT], backward_ns[CUDNN_RNN_ALGO_COUNT];
    char said[200];
    bool lengths_known; /* a data descriptor was set for the second time */
} library;

void fake_cudnn_reset(enum fake_cudnn_fault fault)
{
    memset(&library, 0, sizeof(library));
    library.fault = fault;
}

void fake_cudnn_set_time(int algorithm, double forward_ns, double backward_ns)
{
    library.forward_ns[algorithm] = forward_ns;
    library.backward_ns[algorithm] = backward_ns;
}

/* ---- Answers ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static cudnnStatus_t refuse(cudnnStatus_t status,
                                                                  const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(library.said, sizeof(library.said), format, values);
    va_end(values);
    return status;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    switch ((int)status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR: return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_UNKNOWN";
    }
}

void cudnnGetLastErrorString(char *message, size_t size)
{
    snprintf(message, size, "%s", library.said);
    library.said[0] = '\0';
}

cudnnStatus_t cudnnSetCallback(unsigned mask, void *user, cudnnCallback_t function)
{
    (void)mask, (void)user, (void)function;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return CUDNN_VERSION;
}

/* ---- Descriptors --------------------------------------------------------------------------- */

static cudnnStatus_t make(void **object, size_t bytes)
{
    *object = calloc(1, bytes);
    return *object ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

#define DESCRIPTOR(name)                                                               \
    cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *created)    \
    {                                                                                  \
        return make((void **)created, sizeof(**created));                              \
    }                                                                                  \
    cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t descriptor) \
    {                                                                                  \
        free(descriptor);                                                              \
        return CUDNN_STATUS_SUCCESS;                                                   \
    }
DESCRIPTOR(Dropout)
DESCRIPTOR(Tensor)
DESCRIPTOR(RNNData)
DESCRIPTOR(RNN)

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
    static struct cudnnContext handles[HANDLES_MAX];
    int i = 0;
    while (i < HANDLES_MAX && handles[i].used)
        i++;
    if (i == HANDLES_MAX)
        abort();
    *handle = &handles[i];
    handles[i].used = true;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    handle->used = false;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
                                        float dropout, void *states, size_t bytes,
                                        unsigned long long seed)
{
    (void)handle, (void)states, (void)bytes, (void)seed;
    descriptor->dropout = dropout;
    return dropout == 0 ? CUDNN_STATUS_SUCCESS
                        : refuse(CUDNN_STATUS_BAD_PARAM, "dropout needs states");
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                         int count, const int dims[], const int strides[])
{
    if (count < 3 || count > CUDNN_DIM_MAX)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a tensor of %d dimensions", count);
    descriptor->type = type;
    descriptor->count = count;
    for (int i = 0; i < count; i++) {
        descriptor->dims[i] = dims[i];
        descriptor->strides[i] = strides[i];
        if (dims[i] < 1 || strides[i] < 1)
            return refuse(CUDNN_STATUS_BAD_PARAM, "dimension %d is %d", i, dims[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

static bool in_double(cudnnDataType_t type)
{
    return type == CUDNN_DATA_DOUBLE;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t d, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int width, const int lengths[], void *padding)
{
    if (steps < 1 || steps > LONGEST || batch < 1 || width < 1)
        return refuse(CUDNN_STATUS_BAD_PARAM, "maxSeqLength %d, batchSize %d, vectorSize %d", steps,
                      batch, width);
    if (layout != CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the model supports one layout only");
    for (int b = 0; b < batch; b++)
        if (lengths[b] < 0 || lengths[b] > steps)
            return refuse(CUDNN_STATUS_BAD_PARAM, "seqLengthArray[%d] is %d", b, lengths[b]);
    if (batch > LENGTHS_MAX)
        abort();
    library.lengths_known = d->steps > 0;
    d->type = type;
    d->steps = steps;
    d->batch = batch;
    d->width = width;
    memcpy(d->lengths, lengths, (size_t)batch * sizeof(*lengths));
    d->fills = padding != NULL;
    if (padding && in_double(type))
        memcpy(&d->padding, padding, sizeof(d->padding));
    return CUDNN_STATUS_SUCCESS;
}

/* Whether the compute type and the tensor-core option are allowed for the type of data. */
static bool goes_with(cudnnDataType_t type, cudnnDataType_t precision, cudnnMathType_t math)
{
    if (in_double(type))
        return in_double(precision) && (math == CUDNN_FMA_MATH || math == CUDNN_DEFAULT_MATH);
    if (type == CUDNN_DATA_FLOAT)
        return precision == CUDNN_DATA_FLOAT && math != CUDNN_TENSOR_OP_MATH;
    return precision == CUDNN_DATA_FLOAT && math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION &&
           (type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16);
}

static bool is_persistent(cudnnRNNAlgo_t algorithm)
{
    return algorithm != CUDNN_RNN_ALGO_STANDARD;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t d, cudnnRNNAlgo_t algorithm,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t precision,
                                       cudnnMathType_t math, int32_t input_size,
                                       int32_t hidden_size, int32_t projection_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t flags)
{
    (void)dropout;
    if (cell != CUDNN_LSTM || bias != CUDNN_RNN_DOUBLE_BIAS || input != CUDNN_LINEAR_INPUT)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED,
                      "the model supports the LSTM with two biases only");
    if (input_size < 1 || hidden_size < 1 || layers < 1 || projection_size < 1)
        return refuse(CUDNN_STATUS_BAD_PARAM, "inputSize %d, hiddenSize %d, projSize %d, layers %d",
                      input_size, hidden_size, projection_size, layers);
    if (!goes_with(type, precision, math))
        return refuse(CUDNN_STATUS_BAD_PARAM, "mathPrec %d and mathType %d with dataType %d",
                      (int)precision, (int)math, (int)type);
    if (in_double(type) && (algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC ||
                            algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H))
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d has no double precision",
                      (int)algorithm);
    if (projection_size > hidden_size ||
        (is_persistent(algorithm) && projection_size != hidden_size))
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d with projSize %d of hiddenSize %d",
                      (int)algorithm, projection_size, hidden_size);
    if (algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H && hidden_size > SMALL_HIDDEN)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "hiddenSize %d is too large for small_h",
                      hidden_size);
    *d = (struct cudnnRNNStruct){
        .set = true,
        .algorithm = algorithm,
        .type = type,
        .layers = layers,
        .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
        .input = input_size,
        .hidden = hidden_size,
        .projection = projection_size,
        .padded = (flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0,
    };
    if (layers * d->directions > LAYER_DIRS_MAX)
        abort();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t d, int batch)
{
    (void)handle;
    if (!d->set || d->algorithm != CUDNN_RNN_ALGO_PERSIST_DYNAMIC || batch < 1)
        return refuse(CUDNN_STATUS_BAD_PARAM, "building algorithm %d for batch %d",
                      (int)d->algorithm, batch);
    d->built_batch = batch;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Weight space -------------------------------------------------------------------------- */

static enum lb_dtype dtype_of(cudnnDataType_t type)
{
    switch ((int)type) {
    case CUDNN_DATA_DOUBLE: return LB_F64;
    case CUDNN_DATA_HALF: return LB_F16;
    case CUDNN_DATA_BFLOAT16: return LB_BF16;
    default: return LB_F32;
    }
}

static bool projects(const struct cudnnRNNStruct *d)
{
    return d->projection != d->hidden;
}

static size_t rows_of(const struct cudnnRNNStruct *d, int part)
{
    return (size_t)(part == PROJECTION ? d->projection : d->hidden);
}

static size_t columns_of(const struct cudnnRNNStruct *d, int layer_dir, int part)
{
    if (part >= GATE_PARTS / 2)
        return (size_t)(part == PROJECTION ? d->hidden : d->projection);
    return (size_t)(layer_dir < d->directions ? d->input : d->directions * d->projection);
}

/* Where the parts of each layer and direction lie in the weight space, in bytes. */
struct layout {
    size_t matrices[LAYER_DIRS_MAX][PARTS_MAX], biases[LAYER_DIRS_MAX][GATE_PARTS];
};

/* Moves *at past so many elements and returns where they begin. */
static size_t place(const struct cudnnRNNStruct *d, size_t elements, size_t *at)
{
    size_t begin = *at, bytes = elements * lb_dtype_size(dtype_of(d->type));
    *at += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return begin;
}

/* Lays out each layer and direction with the biases first, then the matrices, each with the last
 * gate first, and before them that of a projection. Returns the bytes of all. */
static size_t lay_out(const struct cudnnRNNStruct *d, struct layout *to)
{
    size_t at = ALIGNMENT;
    for (int i = d->layers * d->directions - 1; i >= 0; i--) {
        for (int part = GATE_PARTS - 1; part >= 0; part--)
            to->biases[i][part] = place(d, (size_t)d->hidden, &at);
        for (int part = projects(d) ? PROJECTION : GATE_PARTS - 1; part >= 0; part--)
            to->matrices[i][part] = place(d, rows_of(d, part) * columns_of(d, i, part), &at);
    }
    return at;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                         size_t *bytes)
{
    struct layout layout;
    (void)handle;
    if (!d->set)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptor is not set");
    *bytes = lay_out(d, &layout);
    return CUDNN_STATUS_SUCCESS;
}

/* Either pair of a descriptor and an address may be NULL. What does not exist, such as the bias of
 * a projection, has a descriptor without dimensions and the address NULL. */
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                      int32_t layer_dir, size_t bytes, const void *space,
                                      int32_t part, cudnnTensorDescriptor_t matrix_descriptor,
                                      void **matrix, cudnnTensorDescriptor_t bias_descriptor,
                                      void **bias)
{
    struct layout layout;
    (void)handle;
    if (!d->set || layer_dir < 0 || layer_dir >= d->layers * d->directions || part < 0 ||
        part > PROJECTION || bytes < lay_out(d, &layout) || !matrix || !matrix_descriptor ||
        !bias || !bias_descriptor)
        return refuse(CUDNN_STATUS_BAD_PARAM, "pseudoLayer %d, linLayerID %d, %zu bytes", layer_dir,
                      part, bytes);
    struct cudnnTensorStruct none = {.type = d->type}, of_matrix = none, of_bias = none;
    void *at_matrix = NULL, *at_bias = NULL;
    if (part < GATE_PARTS || projects(d)) {
        of_matrix.count = 3;
        of_matrix.dims[0] = 1;
        of_matrix.dims[1] = (int)rows_of(d, part);
        of_matrix.dims[2] = (int)columns_of(d, layer_dir, part);
        at_matrix = (char *)space + layout.matrices[layer_dir][part];
    }
    if (part < GATE_PARTS) {
        of_bias = (struct cudnnTensorStruct){d->type, 3, {1, d->hidden, 1}, {0}};
        at_bias = (char *)space + layout.biases[layer_dir][part];
    }
    if (library.fault == FAKE_CUDNN_MOVES_WEIGHTS && part == 2)
        at_matrix = (char *)space + bytes - 1;
    *matrix_descriptor = of_matrix;
    *matrix = at_matrix;
    *bias_descriptor = of_bias;
    *bias = at_bias;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Calls -------------------------------------------------------------------------------- */

enum stage { STAGE_FORWARD = 0x46, STAGE_DATA = 0x44, STAGE_DONE = 0x57 };

/* The head of a reserve space. Behind it lie what cpu_ref reserves and copies of dy, dhy, dcy
 * and cx, from which the weight gradients are computed later. */
struct reserved {
    enum stage stage;
    const void *weights;
    size_t kept; /* bytes that cpu_ref reserves */
};

struct call {
    struct lb_problem problem;
    struct cudnnRNNStruct rnn;
    struct cudnnRNNDataStruct x_data, y_data;
    const void *x, *hx, *cx, *y_in, *dy, *dhy, *dcy, *weights;
    void *y, *hy, *cy, *dx, *dhx, *dcx, *dweights, *workspace;
    struct reserved *reserve;
    size_t reserve_bytes, workspace_bytes;
};

static bool is_ragged(const struct cudnnRNNDataStruct *data)
{
    for (int b = 0; b < data->batch; b++)
        if (data->lengths[b] != data->steps)
            return true;
    return false;
}

static struct lb_problem problem_of(const struct cudnnRNNStruct *d,
                                    const struct cudnnRNNDataStruct *x, bool trains)
{
    return (struct lb_problem){.seq_len = x->steps,
                               .batch = x->batch,
                               .input = d->input,
                               .hidden = d->hidden,
                               .layers = d->layers,
                               .directions = d->directions,
                               .dtype = dtype_of(d->type),
                               .pass = trains ? LB_TRAIN : LB_INFER,
                               .ragged = is_ragged(x),
                               .cell = projects(d) ? LB_CELL_PROJECTION : LB_CELL_STANDARD,
                               .projection = projects(d) ? d->projection : 0};
}

static size_t y_bytes(const struct lb_problem *p)
{
    return (size_t)(p->seq_len * p->batch * p->directions * lb_h_size(p)) * lb_dtype_size(p->dtype);
}

static size_t x_bytes(const struct lb_problem *p)
{
    return (size_t)(p->seq_len * p->batch * p->input) * lb_dtype_size(p->dtype);
}

static size_t h_bytes(const struct lb_problem *p)
{
    return lb_h_count(p) * lb_dtype_size(p->dtype);
}

static size_t c_bytes(const struct lb_problem *p)
{
    return (size_t)(p->layers * p->directions * p->batch * p->hidden) * lb_dtype_size(p->dtype);
}

static struct lb_sizes reference_sizes(const struct lb_problem *p)
{
    const struct lb_exec_config config = {.threads = 1};
    struct lb_sizes sizes;
    void *self = calloc(1, lb_impl_cpu_ref.state_size);
    if (!self || lb_impl_cpu_ref.create(self, p, &config, NULL) != LB_OK ||
        lb_impl_cpu_ref.sizes(self, &sizes, NULL) != LB_OK)
        abort();
    free(self);
    return sizes;
}

static size_t workspace_size(void)
{
    bool grows = library.fault == FAKE_CUDNN_GROWS && library.lengths_known;
    return grows ? 2 * WORKSPACE_BYTES : WORKSPACE_BYTES;
}

static size_t reserve_size(const struct lb_problem *p)
{
    return p->pass != LB_TRAIN ? 0
                               : sizeof(struct reserved) + reference_sizes(p).reserve + y_bytes(p) +
                                     h_bytes(p) + 2 * c_bytes(p);
}

/* Checks what is required both for asking for sizes and for the calls. */
static cudnnStatus_t check_rnn(const struct cudnnRNNStruct *d, const struct cudnnRNNDataStruct *x)
{
    if (!d->set || x->steps == 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is not set");
    if (x->type != d->type || x->width != d->input)
        return refuse(CUDNN_STATUS_BAD_PARAM,
                      "x is %d wide and of type %d, not %d wide and of type %d", x->width,
                      (int)x->type, d->input, (int)d->type);
    if (!d->padded)
        return refuse(CUDNN_STATUS_BAD_PARAM, "this layout needs CUDNN_RNN_PADDED_IO_ENABLED");
    if (is_persistent(d->algorithm) && is_ragged(x))
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "algorithm %d takes no rows of different lengths",
                      (int)d->algorithm);
    if (d->algorithm == CUDNN_RNN_ALGO_PERSIST_DYNAMIC && d->built_batch != x->batch)
        return refuse(CUDNN_STATUS_BAD_PARAM, "built for batch %d, called with %d", d->built_batch,
                      x->batch);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t *workspace, size_t *reserve)
{
    cudnnStatus_t status = check_rnn(d, x);
    (void)handle;
    if (status == CUDNN_STATUS_SUCCESS && d->algorithm == CUDNN_RNN_ALGO_PERSIST_STATIC) {
        if (library.fault == FAKE_CUDNN_PROBE_FAILS)
            return refuse(CUDNN_STATUS_INTERNAL_ERROR, "the probe was made to fail");
        if (library.fault == FAKE_CUDNN_PROBE_REFUSES)
            return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the probe was made to refuse");
    }
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    struct lb_problem p = problem_of(d, x, mode == CUDNN_FWD_MODE_TRAINING);
    *workspace = workspace_size();
    *reserve = reserve_size(&p);
    return CUDNN_STATUS_SUCCESS;
}

/* Whether the descriptor is that of states [L*D, B, size]. */
static bool is_state(const struct cudnnTensorStruct *t, const struct lb_problem *p, int64_t size,
                     cudnnDataType_t type)
{
    return t->count == 3 && t->type == type && t->dims[0] == p->layers * p->directions &&
           t->dims[1] == p->batch && t->dims[2] == size && t->strides[2] == 1 &&
           t->strides[1] == size && t->strides[0] == p->batch * size;
}

/* Makes the checks that all three calls share, and fills in what each of them needs. */
static cudnnStatus_t check_call(struct call *c, cudnnRNNDescriptor_t d, bool trains,
                                cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y,
                                cudnnTensorDescriptor_t h, size_t weight_bytes)
{
    struct layout layout;
    cudnnStatus_t status = check_rnn(d, x);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    c->problem = problem_of(d, x, trains);
    c->rnn = *d;
    c->x_data = *x;
    c->y_data = *y;
    if (y->type != x->type || y->steps != x->steps || y->batch != x->batch ||
        y->width != d->directions * d->projection ||
        memcmp(y->lengths, x->lengths, (size_t)x->batch * sizeof(*x->lengths)) != 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptors of x and y do not match");
    if (!is_state(h, &c->problem, lb_h_size(&c->problem), d->type))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the states' descriptor has other sizes");
    if (weight_bytes < lay_out(d, &layout))
        return refuse(CUDNN_STATUS_BAD_PARAM, "%zu bytes of weights are too few", weight_bytes);
    if (c->workspace_bytes < workspace_size() || !c->workspace)
        return refuse(CUDNN_STATUS_BAD_PARAM, "%zu bytes of workspace", c->workspace_bytes);
    if (trains && (c->reserve_bytes < reserve_size(&c->problem) || !c->reserve))
        return refuse(CUDNN_STATUS_BAD_PARAM, "%zu bytes of reserve space are too few",
                      c->reserve_bytes);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Computing with cpu_ref ------------------------------------------------------------------ */

struct reference {
    void *self;
    struct lb_buffers buffers;
    const void *w[TENSORS_MAX][LAYER_DIRS_MAX]; /* canonical tensors of each layer_dir */
};

/* Canonical tensors of a layer_dir: the fifth, w_hr, is one part, the others one part per gate. */
static int tensor_count(const struct cudnnRNNStruct *d)
{
    return projects(d) ? TENSORS_MAX : TENSORS_MAX - 1;
}

static int parts_of(int which)
{
    return which == 4 ? 1 : 4;
}

/* Where the part of a gate (of w_hr: 0) of the canonical tensor number `which` lies. */
static size_t part_at(const struct cudnnRNNStruct *d, int layer_dir, int which, int gate)
{
    struct layout layout;
    (void)lay_out(d, &layout);
    if (which == 4)
        return layout.matrices[layer_dir][PROJECTION];
    int part = gate + (which % 2 ? 4 : 0);
    return which >= 2 ? layout.biases[layer_dir][part] : layout.matrices[layer_dir][part];
}

/* The number of elements of one part of the canonical tensor number `which`. */
static size_t part_elements(const struct cudnnRNNStruct *d, int layer_dir, int which)
{
    static const int first[] = {0, 4, 0, 4, PROJECTION};
    bool bias = which == 2 || which == 3;
    return rows_of(d, first[which]) * (bias ? 1 : columns_of(d, layer_dir, first[which]));
}

/* Bytes of the canonical tensor number `which`. */
static size_t tensor_bytes(const struct cudnnRNNStruct *d, int layer_dir, int which)
{
    return (size_t)parts_of(which) * part_elements(d, layer_dir, which) *
           lb_dtype_size(dtype_of(d->type));
}

/* Copies the parts of a layer_dir from the weight space into a canonical tensor. */
static void gather(const struct cudnnRNNStruct *d, const void *space, int layer_dir, int which,
                   char *canonical)
{
    size_t bytes = part_elements(d, layer_dir, which) * lb_dtype_size(dtype_of(d->type));
    for (int gate = 0; gate < parts_of(which); gate++)
        memcpy(canonical + (size_t)gate * bytes,
               (const char *)space + part_at(d, layer_dir, which, gate), bytes);
}

/* Adds a canonical tensor to the parts of a layer_dir. */
static void add_to_space(const struct cudnnRNNStruct *d, void *space, int layer_dir, int which,
                         const char *canonical)
{
    enum lb_dtype dtype = dtype_of(d->type);
    size_t count = part_elements(d, layer_dir, which), size = lb_dtype_size(dtype);
    for (int gate = 0; gate < parts_of(which); gate++) {
        char *to = (char *)space + part_at(d, layer_dir, which, gate);
        for (size_t i = 0; i < count; i++) {
            double old, more;
            lb_load(dtype, to + i * size, &old, 1);
            lb_load(dtype, canonical + ((size_t)gate * count + i) * size, &more, 1);
            more += old;
            lb_store(dtype, to + i * size, &more, 1);
        }
    }
}

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

static void open_reference(const struct call *c, const void *space, void *reserve,
                           struct reference *r)
{
    const struct lb_exec_config config = {.threads = 1};
    struct lb_sizes sizes = reference_sizes(&c->problem);
    int count = c->rnn.layers * c->rnn.directions;
    *r = (struct reference){.self = must(calloc(1, lb_impl_cpu_ref.state_size))};
    for (int which = 0; which < tensor_count(&c->rnn); which++)
        for (int i = 0; i < count; i++) {
            char *tensor = must(malloc(tensor_bytes(&c->rnn, i, which)));
            gather(&c->rnn, space, i, which, tensor);
            r->w[which][i] = tensor;
        }
    r->buffers.weights = must(malloc(sizes.weights + 1));
    r->buffers.gradients = must(malloc(sizes.gradients + 1));
    r->buffers.workspace = must(malloc(sizes.workspace + 1));
    r->buffers.reserve = reserve;
    r->buffers.lengths = c->x_data.lengths;
    const struct lb_weights weights = {r->w[0], r->w[1], r->w[2], r->w[3], r->w[4]};
    (void)lb_impl_cpu_ref.create(r->self, &c->problem, &config, NULL);
    (void)lb_impl_cpu_ref.prepare(r->self, &r->buffers, &weights, NULL);
}

static void close_reference(struct reference *r)
{
    lb_impl_cpu_ref.destroy(r->self);
    for (int which = 0; which < TENSORS_MAX; which++)
        for (int i = 0; i < LAYER_DIRS_MAX; i++)
            free((void *)r->w[which][i]);
    free(r->buffers.weights);
    free(r->buffers.gradients);
    free(r->buffers.workspace);
    free(r->self);
}

/* Fills the padding of a tensor [T, B, width], which lies behind the end of each row's sequence. */
static void fill_padding(const struct call *c, void *tensor, int width, int byte)
{
    size_t row = (size_t)width * lb_dtype_size(c->problem.dtype);
    for (int64_t t = 0; t < c->problem.seq_len; t++)
        for (int64_t b = 0; b < c->problem.batch; b++)
            if (t >= c->x_data.lengths[b])
                memset((char *)tensor + (size_t)(t * c->problem.batch + b) * row, byte, row);
}

static bool reachable(const void *tensor, size_t bytes)
{
    return fake_device_holds(tensor, bytes);
}

/* Every call overwrites its workspace, because no caller may keep anything there. */
static void scribble(const struct call *c)
{
    memset(c->workspace, 0xff, workspace_size());
}

/* fake_work */
static enum lb_status run_forward(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    memcpy(&c, arguments, sizeof(c));
    size_t hs = h_bytes(&c.problem), cs = c_bytes(&c.problem);
    fake_clock_add(library.forward_ns[c.rnn.algorithm]);
    if (fake_device_strikes(FAKE_LIBRARY_FAULT) || !reachable(c.x, x_bytes(&c.problem)) ||
        !reachable(c.y, y_bytes(&c.problem)) || !reachable(c.hx, hs) || !reachable(c.cx, cs) ||
        !reachable(c.hy, hs) || !reachable(c.cy, cs))
        return fake_device_lose(err);
    const struct lb_forward_io io = {c.x, c.hx, c.cx, c.y, c.hy, c.cy, NULL};
    scribble(&c);
    open_reference(&c, c.weights, c.reserve ? c.reserve + 1 : NULL, &r);
    (void)lb_impl_cpu_ref.forward(r.self, &io, NULL);
    close_reference(&r);
    fill_padding(&c, c.y, c.y_data.width, c.y_data.fills ? 0 : 0xff);
    if (c.problem.pass == LB_TRAIN)
        *c.reserve = (struct reserved){.stage = STAGE_FORWARD,
                                       .weights = c.weights,
                                       .kept = reference_sizes(&c.problem).reserve};
    return LB_OK;
}

static char *copies_of(const struct call *c)
{
    return (char *)(c->reserve + 1) + c->reserve->kept;
}

/* fake_work. Computes the data gradients, which do not depend on x. */
static enum lb_status run_backward_data(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    memcpy(&c, arguments, sizeof(c));
    size_t hs = h_bytes(&c.problem), cs = c_bytes(&c.problem), ys = y_bytes(&c.problem);
    fake_clock_add(library.backward_ns[c.rnn.algorithm]);
    if (fake_device_strikes(FAKE_LIBRARY_FAULT) || !reachable(c.y_in, ys) || !reachable(c.dy, ys) ||
        !reachable(c.dx, x_bytes(&c.problem)) || !reachable(c.dhx, hs) || !reachable(c.dcx, cs) ||
        !reachable(c.dhy, hs) || !reachable(c.dcy, cs) || !reachable(c.hx, hs) ||
        !reachable(c.cx, cs))
        return fake_device_lose(err);
    scribble(&c);
    if (c.reserve->stage != STAGE_FORWARD) { /* used by an earlier backward pass, or never filled */
        memset(c.dx, 0xff, x_bytes(&c.problem));
        return LB_OK;
    }
    char *copies = copies_of(&c);
    memcpy(copies, c.dy, ys);
    memcpy(copies + ys, c.dhy, hs);
    memcpy(copies + ys + hs, c.dcy, cs);
    memcpy(copies + ys + hs + cs, c.cx, cs);
    void *no_x = must(calloc(1, x_bytes(&c.problem)));
    const struct lb_backward_io io = {no_x,  c.hx, c.cx,  c.y_in, c.dy, c.dhy,
                                      c.dcy, c.dx, c.dhx, c.dcx,  NULL};
    void *kept = must(malloc(c.reserve->kept)); /* cpu_ref changes it and is called again */
    memcpy(kept, c.reserve + 1, c.reserve->kept);
    open_reference(&c, c.weights, kept, &r);
    (void)lb_impl_cpu_ref.backward(r.self, &io, NULL);
    close_reference(&r);
    free(kept);
    free(no_x);
    fill_padding(&c, c.dx, c.x_data.width, 0xff);
    c.reserve->stage = STAGE_DATA;
    return LB_OK;
}

/* Adds the weight gradients, which are canonical tensors, to the weight space. */
static void add_gradients(const struct call *c, struct reference *r)
{
    void *tensors[TENSORS_MAX][LAYER_DIRS_MAX] = {{NULL}};
    int count = c->rnn.layers * c->rnn.directions;
    for (int which = 0; which < tensor_count(&c->rnn); which++)
        for (int i = 0; i < count; i++)
            tensors[which][i] = must(malloc(tensor_bytes(&c->rnn, i, which)));
    const struct lb_gradients gradients = {tensors[0], tensors[1], tensors[2], tensors[3],
                                           tensors[4]};
    (void)lb_impl_cpu_ref.gradients(r->self, &gradients, NULL);
    for (int which = 0; which < tensor_count(&c->rnn); which++)
        for (int i = 0; i < count; i++) {
            add_to_space(&c->rnn, c->dweights, i, which, tensors[which][i]);
            free(tensors[which][i]);
        }
}

/* fake_work */
static enum lb_status run_backward_weights(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    struct layout layout;
    memcpy(&c, arguments, sizeof(c));
    size_t hs = h_bytes(&c.problem), cs = c_bytes(&c.problem), ys = y_bytes(&c.problem);
    size_t weights = lay_out(&c.rnn, &layout);
    if (!reachable(c.x, x_bytes(&c.problem)) || !reachable(c.hx, hs) || !reachable(c.y_in, ys) ||
        !reachable(c.dweights, weights))
        return fake_device_lose(err);
    scribble(&c);
    if (c.reserve->stage != STAGE_DATA) {
        memset(c.dweights, 0xff, weights);
        return LB_OK;
    }
    const char *copies = copies_of(&c);
    char *ignored = must(malloc(x_bytes(&c.problem) + hs + cs));
    const struct lb_backward_io io = {c.x,
                                      c.hx,
                                      copies + ys + hs + cs,
                                      c.y_in,
                                      copies,
                                      copies + ys,
                                      copies + ys + hs,
                                      ignored,
                                      ignored + x_bytes(&c.problem),
                                      ignored + x_bytes(&c.problem) + hs,
                                      NULL};
    open_reference(&c, c.reserve->weights, c.reserve + 1, &r);
    (void)lb_impl_cpu_ref.backward(r.self, &io, NULL);
    add_gradients(&c, &r);
    close_reference(&r);
    free(ignored);
    c.reserve->stage = STAGE_DONE;
    return LB_OK;
}

/* ---- The calls ----------------------------------------------------------------------------- */

static cudnnStatus_t enqueue(cudnnHandle_t handle, fake_work *work, const struct call *c)
{
    if (fake_device.lost())
        return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the device is lost");
    return fake_enqueue(handle->stream, work, c, sizeof(*c), NULL) == LB_OK
               ? CUDNN_STATUS_SUCCESS
               : CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnForwardMode_t mode,
                              const int32_t lengths[], cudnnRNNDataDescriptor_t x_data,
                              const void *x, cudnnRNNDataDescriptor_t y_data, void *y,
                              cudnnTensorDescriptor_t h, const void *hx, void *hy,
                              cudnnTensorDescriptor_t cell, const void *cx, void *cy,
                              size_t weight_bytes, const void *weights, size_t workspace_bytes,
                              void *workspace, size_t reserve_bytes, void *reserve)
{
    struct call c = {.x = x,
                     .y = y,
                     .hx = hx,
                     .hy = hy,
                     .cx = cx,
                     .cy = cy,
                     .weights = weights,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths; /* since cuDNN 8.9.1 the lengths of the data descriptors are used */
    if (library.fault == FAKE_CUDNN_CALL_FAILS)
        return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the call was made to fail");
    cudnnStatus_t status =
        check_call(&c, d, mode == CUDNN_FWD_MODE_TRAINING, x_data, y_data, h, weight_bytes);
    if (status == CUDNN_STATUS_SUCCESS && !is_state(cell, &c.problem, c.problem.hidden, d->type))
        status = refuse(CUDNN_STATUS_BAD_PARAM, "the cells' descriptor has other sizes");
    return status == CUDNN_STATUS_SUCCESS ? enqueue(handle, run_forward, &c) : status;
}

cudnnStatus_t cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                      const int32_t lengths[], cudnnRNNDataDescriptor_t y_data,
                                      const void *y, const void *dy,
                                      cudnnRNNDataDescriptor_t x_data, void *dx,
                                      cudnnTensorDescriptor_t h, const void *hx, const void *dhy,
                                      void *dhx, cudnnTensorDescriptor_t cell, const void *cx,
                                      const void *dcy, void *dcx, size_t weight_bytes,
                                      const void *weights, size_t workspace_bytes, void *workspace,
                                      size_t reserve_bytes, void *reserve)
{
    struct call c = {.y_in = y,
                     .dy = dy,
                     .dx = dx,
                     .hx = hx,
                     .dhy = dhy,
                     .dhx = dhx,
                     .cx = cx,
                     .dcy = dcy,
                     .dcx = dcx,
                     .weights = weights,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths;
    cudnnStatus_t status = check_call(&c, d, true, x_data, y_data, h, weight_bytes);
    if (status == CUDNN_STATUS_SUCCESS && !is_state(cell, &c.problem, c.problem.hidden, d->type))
        status = refuse(CUDNN_STATUS_BAD_PARAM, "the cells' descriptor has other sizes");
    return status == CUDNN_STATUS_SUCCESS ? enqueue(handle, run_backward_data, &c) : status;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnWgradMode_t mode, const int32_t lengths[],
    cudnnRNNDataDescriptor_t x_data, const void *x, cudnnTensorDescriptor_t h, const void *hx,
    cudnnRNNDataDescriptor_t y_data, const void *y, size_t weight_bytes, void *gradients,
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
    struct call c = {.x = x,
                     .hx = hx,
                     .y_in = y,
                     .dweights = gradients,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths;
    if (mode != CUDNN_WGRAD_MODE_ADD)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "gradients can only be added");
    cudnnStatus_t status = check_call(&c, d, true, x_data, y_data, h, weight_bytes);
    return status == CUDNN_STATUS_SUCCESS ? enqueue(handle, run_backward_weights, &c) : status;
}

/* cuDNN's RNN on the fake device. It has the functions that impls/cudnn calls, follows the rules
 * of cuDNN 9's API reference, and computes with cpu_ref. Where the reference leaves a choice,
 * the model takes the one that is worst for a caller: weights lie in an order of its own, the
 * padding of dx is NaN, the reserve space serves for one backward pass, and a call does nothing
 * before its turn in the stream. */
#include <cudnn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/impl.h"
#include "device/weight_packing.h"
#include "fake_libraries.h"
#include "queue.h"
#include "reference/case_tensors.h"

enum {
    GATE_PARTS = 8,      /* matrices of i f g o for x, then for h, each with a bias */
    PROJECTION = 8,      /* the matrix of a projection, which has no bias */
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
    int dims[3], strides[3];
};

struct cudnnRNNDataStruct {
    cudnnDataType_t type;
    int steps, batch, width; /* 0 steps: not set */
    int32_t lengths[LENGTHS_MAX];
    bool fills; /* the padding */
};

struct cudnnRNNStruct {
    cudnnRNNAlgo_t algorithm;
    cudnnDataType_t type;
    struct lb_problem problem; /* what is known of it without x; hidden 0: not set */
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

static bool has(enum fake_cudnn_fault fault)
{
    return library.fault == fault;
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
    static char text[32];
    snprintf(text, sizeof(text), "cuDNN status %d", (int)status);
    return text;
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
    if (count != 3)
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "the model has tensors of 3 dimensions only");
    descriptor->type = type;
    memcpy(descriptor->dims, dims, sizeof(descriptor->dims));
    memcpy(descriptor->strides, strides, sizeof(descriptor->strides));
    descriptor->dims[2] += has(FAKE_CUDNN_WIDE_STATES);
    return CUDNN_STATUS_SUCCESS;
}

static enum lb_dtype dtype_of(cudnnDataType_t type)
{
    switch ((int)type) {
    case CUDNN_DATA_DOUBLE: return LB_F64;
    case CUDNN_DATA_HALF: return LB_F16;
    case CUDNN_DATA_BFLOAT16: return LB_BF16;
    default: return LB_F32;
    }
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
    flags = has(FAKE_CUDNN_NO_PADDED_IO) ? CUDNN_RNN_PADDED_IO_DISABLED : flags;
    math = has(FAKE_CUDNN_WRONG_MATH) ? CUDNN_TENSOR_OP_MATH : math;
    projection_size = has(FAKE_CUDNN_NO_PROJECTION) ? hidden_size : projection_size;
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
    bool projects = projection_size != hidden_size;
    *d = (struct cudnnRNNStruct){
        .algorithm = algorithm,
        .type = type,
        .problem = {.input = input_size,
                    .hidden = hidden_size,
                    .layers = layers,
                    .directions = direction == CUDNN_BIDIRECTIONAL ? 2 : 1,
                    .dtype = dtype_of(type),
                    .cell = projects ? LB_CELL_PROJECTION : LB_CELL_STANDARD,
                    .projection = projects ? projection_size : 0},
        .padded = (flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0,
    };
    if (lb_layer_dir_count(&d->problem) > LAYER_DIRS_MAX)
        abort();
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t d, int batch)
{
    (void)handle;
    if (d->algorithm != CUDNN_RNN_ALGO_PERSIST_DYNAMIC || batch < 1)
        return refuse(CUDNN_STATUS_BAD_PARAM, "building algorithm %d for batch %d",
                      (int)d->algorithm, batch);
    d->built_batch = batch + has(FAKE_CUDNN_OTHER_BATCH);
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Weight space -------------------------------------------------------------------------- */

/* Where the parts lie in the weight space, in bytes, by the canonical tensor and its gate. */
struct layout {
    size_t at[LAYER_DIRS_MAX][LB_WEIGHT_COUNT][4];
};

static int gates_of(int weight)
{
    return weight == LB_W_CELL ? 1 : 4;
}

static size_t part_bytes(const struct lb_problem *p, size_t layer_dir, int weight)
{
    return lb_weight_elements(p, layer_dir, (enum lb_weight)weight) / (size_t)gates_of(weight) *
           lb_dtype_size(p->dtype);
}

/* Lays everything out from the last to the first, at other places for each algorithm. Returns the
 * bytes of all. */
static size_t lay_out(const struct lb_problem *p, cudnnRNNAlgo_t algorithm, struct layout *to)
{
    size_t at = ALIGNMENT * (1 + (size_t)algorithm);
    for (size_t e = lb_layer_dir_count(p); e-- > 0;)
        for (int w = LB_WEIGHT_COUNT - 1; w >= 0; w--)
            for (int gate = gates_of(w) - 1; gate >= 0; gate--) {
                to->at[e][w][gate] = at;
                at += (part_bytes(p, e, w) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
            }
    return at;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                         size_t *bytes)
{
    struct layout layout;
    (void)handle;
    *bytes = lay_out(&d->problem, d->algorithm, &layout);
    return CUDNN_STATUS_SUCCESS;
}

/* What does not exist, such as the bias of a projection, has the address NULL. */
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t d,
                                      int32_t layer_dir, size_t bytes, const void *space,
                                      int32_t part, cudnnTensorDescriptor_t matrix_descriptor,
                                      void **matrix, cudnnTensorDescriptor_t bias_descriptor,
                                      void **bias)
{
    struct layout layout;
    const struct lb_problem *p = &d->problem;
    (void)handle;
    if (layer_dir < 0 || layer_dir >= (int32_t)lb_layer_dir_count(p) || part < 0 ||
        part > PROJECTION || bytes < lay_out(p, d->algorithm, &layout) || !matrix ||
        !matrix_descriptor || !bias || !bias_descriptor)
        return refuse(CUDNN_STATUS_BAD_PARAM, "pseudoLayer %d, linLayerID %d, %zu bytes", layer_dir,
                      part, bytes);
    if (has(FAKE_CUDNN_OTHER_MATRIX) && part == PROJECTION)
        part = PROJECTION - 1;
    int w = part == PROJECTION ? LB_W_CELL : part < GATE_PARTS / 2 ? LB_W_IH : LB_W_HH;
    const size_t *biases = layout.at[layer_dir][w == LB_W_IH ? LB_B_IH : LB_B_HH];
    size_t at = layout.at[layer_dir][w][part % 4];
    if (has(FAKE_CUDNN_MOVES_WEIGHTS) && part == (lb_cell_weight_count(p) ? PROJECTION : 2))
        at = bytes - 1;
    *matrix = part_bytes(p, (size_t)layer_dir, w) > 0 ? (char *)space + at : NULL;
    *bias = part < GATE_PARTS ? (char *)space + biases[part % 4] : NULL;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Calls --------------------------------------------------------------------------------- */

struct call {
    struct lb_problem problem;
    cudnnRNNAlgo_t algorithm;
    int32_t lengths[LENGTHS_MAX];
    bool fills;                /* the padding of y */
    void *at[LB_TENSOR_COUNT]; /* NULL: no argument of the call */
    void *weights, *workspace; /* weights: or their gradients */
    struct reserved *reserve;
    size_t weight_bytes, workspace_bytes, reserve_bytes;
};

/* The head of a reserve space. Behind it lies what cpu_ref reserves. */
struct reserved {
    enum { STAGE_FORWARD = 0x46, STAGE_DATA = 0x44, STAGE_DONE = 0x57 } stage;
    struct call data; /* which has arguments that the weight gradients need */
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
    struct lb_problem p = d->problem;
    p.seq_len = x->steps;
    p.batch = x->batch;
    p.pass = trains ? LB_TRAIN : LB_INFER;
    p.ragged = is_ragged(x);
    return p;
}

static size_t tensor_bytes(const struct lb_problem *p, int t)
{
    size_t steps, width;
    lb_tensor_shape(p, (enum lb_tensor)t, &steps, &width);
    return steps * (size_t)p->batch * width * lb_dtype_size(p->dtype);
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
    bool grows = has(FAKE_CUDNN_GROWS) && library.lengths_known;
    return grows ? 2 * WORKSPACE_BYTES : WORKSPACE_BYTES;
}

static size_t reserve_size(const struct lb_problem *p)
{
    return p->pass == LB_TRAIN ? sizeof(struct reserved) + reference_sizes(p).reserve : 0;
}

/* Checks what is required both for asking for sizes and for the calls. */
static cudnnStatus_t check_rnn(const struct cudnnRNNStruct *d, const struct cudnnRNNDataStruct *x)
{
    if (d->problem.hidden == 0 || x->steps == 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "a descriptor is not set");
    if (x->type != d->type || x->width != d->problem.input)
        return refuse(CUDNN_STATUS_BAD_PARAM, "x is %d wide and of type %d", x->width,
                      (int)x->type);
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
        if (has(FAKE_CUDNN_PROBE_FAILS))
            return refuse(CUDNN_STATUS_INTERNAL_ERROR, "the probe was made to fail");
        if (has(FAKE_CUDNN_PROBE_REFUSES))
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
    return t->type == type && t->dims[0] == (int)lb_layer_dir_count(p) && t->dims[1] == p->batch &&
           t->dims[2] == size && t->strides[2] == 1 && t->strides[1] == size &&
           t->strides[0] == p->batch * size;
}

/* Makes the checks that all three calls share, and fills in what each of them needs. cell: NULL for
 * the call that has none. */
static cudnnStatus_t check_call(struct call *c, cudnnRNNDescriptor_t d, bool trains,
                                cudnnRNNDataDescriptor_t x, cudnnRNNDataDescriptor_t y,
                                cudnnTensorDescriptor_t h, cudnnTensorDescriptor_t cell)
{
    struct layout layout;
    cudnnStatus_t status = check_rnn(d, x);
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    const struct lb_problem *p = &c->problem;
    c->problem = problem_of(d, x, trains);
    c->algorithm = d->algorithm;
    c->fills = y->fills;
    memcpy(c->lengths, x->lengths, sizeof(c->lengths));
    if (has(FAKE_CUDNN_FULL_LENGTHS))
        y->lengths[y->batch - 1] = y->steps;
    if (y->type != x->type || y->steps != x->steps || y->batch != x->batch ||
        y->width != p->directions * lb_h_size(p) ||
        memcmp(y->lengths, x->lengths, (size_t)x->batch * sizeof(*x->lengths)) != 0)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the descriptors of x and y do not match");
    if (!is_state(h, p, lb_h_size(p), d->type) || (cell && !is_state(cell, p, p->hidden, d->type)))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the states' descriptor has other sizes");
    if (c->weight_bytes - has(FAKE_CUDNN_SHORT_WEIGHTS) < lay_out(p, d->algorithm, &layout))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the bytes of weights are too few");
    if (c->workspace_bytes - has(FAKE_CUDNN_SHORT_WORKSPACE) < workspace_size() || !c->workspace)
        return refuse(CUDNN_STATUS_BAD_PARAM, "the bytes of workspace are too few");
    if (trains &&
        (c->reserve_bytes - has(FAKE_CUDNN_SHORT_RESERVE) < reserve_size(p) || !c->reserve))
        return refuse(CUDNN_STATUS_BAD_PARAM, "the bytes of reserve space are too few");
    return CUDNN_STATUS_SUCCESS;
}

/* ---- Computing with cpu_ref ---------------------------------------------------------------- */

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

struct reference {
    void *self, *packed; /* packed: the canonical weights, of which table has the addresses */
    void *table[LB_WEIGHT_COUNT * LAYER_DIRS_MAX];
    struct lb_buffers buffers;
};

/* Copies the parts of a weight space to the canonical tensors, or adds these to them. */
static void move_parts(const struct call *c, void *space, void *const *table, bool add)
{
    struct layout layout;
    const struct lb_problem *p = &c->problem;
    size_t count = lb_layer_dir_count(p), size = lb_dtype_size(p->dtype);
    (void)lay_out(p, c->algorithm, &layout);
    for (size_t e = 0; e < count; e++)
        for (int w = 0; w < LB_WEIGHT_COUNT; w++)
            for (int gate = 0; gate < gates_of(w); gate++) {
                size_t bytes = part_bytes(p, e, w);
                char *part = (char *)space + layout.at[e][w][gate];
                char *canonical = (char *)table[(size_t)w * count + e] + (size_t)gate * bytes;
                if (!add)
                    memcpy(canonical, part, bytes);
                for (size_t i = 0; add && i < bytes; i += size) {
                    double sum, more;
                    lb_load(p->dtype, part + i, &sum, 1);
                    lb_load(p->dtype, canonical + i, &more, 1);
                    sum += more;
                    lb_store(p->dtype, part + i, &sum, 1);
                }
            }
}

static void open_reference(const struct call *c, void *weights, void *reserve, struct reference *r)
{
    const struct lb_exec_config config = {.threads = 1};
    const struct lb_problem *p = &c->problem;
    struct lb_sizes sizes = reference_sizes(p);
    r->packed = must(malloc(lb_packed_bytes(p, p->dtype)));
    lb_packed_table(p, p->dtype, r->packed, r->table);
    move_parts(c, weights, r->table, false);
    r->self = must(calloc(1, lb_impl_cpu_ref.state_size));
    r->buffers = (struct lb_buffers){.weights = must(malloc(sizes.weights + 1)),
                                     .gradients = must(malloc(sizes.gradients + 1)),
                                     .workspace = must(malloc(sizes.workspace + 1)),
                                     .reserve = reserve,
                                     .lengths = c->lengths};
    const struct lb_weights canonical = lb_weights_of(r->table, lb_layer_dir_count(p));
    (void)lb_impl_cpu_ref.create(r->self, p, &config, NULL);
    (void)lb_impl_cpu_ref.prepare(r->self, &r->buffers, &canonical, NULL);
}

static void close_reference(struct reference *r)
{
    lb_impl_cpu_ref.destroy(r->self);
    free(r->buffers.weights);
    free(r->buffers.gradients);
    free(r->buffers.workspace);
    free(r->packed);
    free(r->self);
}

/* Fills the padding of y or dx, which lies behind the end of each row's sequence. */
static void fill_padding(const struct call *c, enum lb_tensor t, int byte)
{
    size_t rows = (size_t)(c->problem.seq_len * c->problem.batch);
    size_t row = tensor_bytes(&c->problem, t) / rows;
    for (size_t i = 0; i < rows; i++)
        if ((int64_t)i / c->problem.batch >= c->lengths[(int64_t)i % c->problem.batch])
            memset((char *)c->at[t] + i * row, byte, row);
}

/* Begins a call when its turn comes. An address outside the device's memory loses the device, as a
 * planted fault does. The workspace is overwritten, because no caller may keep anything there. */
static enum lb_status begin(const struct call *c, struct lb_error *err)
{
    struct layout layout;
    bool reachable = fake_device_holds(c->weights, lay_out(&c->problem, c->algorithm, &layout)) &&
                     fake_device_holds(c->workspace, workspace_size());
    for (int t = 0; t < LB_TENSOR_COUNT; t++)
        if (c->at[t])
            reachable = reachable && fake_device_holds(c->at[t], tensor_bytes(&c->problem, t));
    if (!reachable || fake_device_strikes(FAKE_LIBRARY_FAULT))
        return fake_device_lose(err);
    memset(c->workspace, 0xff, workspace_size());
    return LB_OK;
}

/* fake_work */
static enum lb_status run_forward(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    memcpy(&c, arguments, sizeof(c));
    fake_clock_add(library.forward_ns[c.algorithm]);
    LB_CHECK(begin(&c, err));
    const struct lb_forward_io io = lb_forward_io(c.at);
    open_reference(&c, c.weights, c.reserve ? c.reserve + 1 : NULL, &r);
    (void)lb_impl_cpu_ref.forward(r.self, &io, NULL);
    close_reference(&r);
    fill_padding(&c, LB_Y, c.fills ? 0 : 0xff);
    if (c.problem.pass == LB_TRAIN)
        c.reserve->stage = STAGE_FORWARD;
    return LB_OK;
}

/* fake_work. Computes the data gradients, which do not depend on x. */
static enum lb_status run_backward_data(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    memcpy(&c, arguments, sizeof(c));
    fake_clock_add(library.backward_ns[c.algorithm]);
    LB_CHECK(begin(&c, err));
    if (c.reserve->stage != STAGE_FORWARD) { /* used by an earlier backward pass, or never filled */
        memset(c.at[LB_DX], 0xff, tensor_bytes(&c.problem, LB_DX));
        return LB_OK;
    }
    c.reserve->data = c;
    c.at[LB_X] = must(calloc(1, tensor_bytes(&c.problem, LB_X)));
    const struct lb_backward_io io = lb_backward_io(c.at);
    size_t bytes = reference_sizes(&c.problem).reserve;
    void *kept = must(malloc(bytes)); /* cpu_ref changes it and is called again */
    memcpy(kept, c.reserve + 1, bytes);
    open_reference(&c, c.weights, kept, &r);
    (void)lb_impl_cpu_ref.backward(r.self, &io, NULL);
    close_reference(&r);
    free(kept);
    free(c.at[LB_X]);
    fill_padding(&c, LB_DX, 0xff);
    c.reserve->stage = STAGE_DATA;
    return LB_OK;
}

/* fake_work. Adds the weight gradients to the weight space. */
static enum lb_status run_backward_weights(const void *arguments, struct lb_error *err)
{
    struct call c;
    struct reference r;
    struct layout layout;
    static const enum lb_tensor of_data[] = {LB_C0, LB_DY, LB_DHN, LB_DCN},
                                ignored[] = {LB_DX, LB_DH0, LB_DC0};
    memcpy(&c, arguments, sizeof(c));
    LB_CHECK(begin(&c, err));
    if (c.reserve->stage != STAGE_DATA) {
        memset(c.weights, 0xff, lay_out(&c.problem, c.algorithm, &layout));
        return LB_OK;
    }
    for (int i = 0; i < 4; i++)
        c.at[of_data[i]] = c.reserve->data.at[of_data[i]];
    for (int i = 0; i < 3; i++)
        c.at[ignored[i]] = must(malloc(tensor_bytes(&c.problem, ignored[i])));
    const struct lb_backward_io io = lb_backward_io(c.at);
    const struct lb_gradients gradients = lb_gradients_of(r.table, lb_layer_dir_count(&c.problem));
    open_reference(&c, c.reserve->data.weights, c.reserve + 1, &r);
    (void)lb_impl_cpu_ref.backward(r.self, &io, NULL);
    (void)lb_impl_cpu_ref.gradients(r.self, &gradients, NULL);
    move_parts(&c, c.weights, r.table, true);
    close_reference(&r);
    for (int i = 0; i < 3; i++)
        free(c.at[ignored[i]]);
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
    struct call c = {.at = {[LB_X] = (void *)x,
                            [LB_H0] = (void *)hx,
                            [LB_C0] = (void *)cx,
                            [LB_Y] = y,
                            [LB_HN] = hy,
                            [LB_CN] = cy},
                     .weights = (void *)weights,
                     .weight_bytes = weight_bytes,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths; /* since cuDNN 8.9.1 the lengths of the data descriptors are used */
    if (has(FAKE_CUDNN_CALL_FAILS))
        return refuse(CUDNN_STATUS_EXECUTION_FAILED, "the call was made to fail");
    cudnnStatus_t status =
        check_call(&c, d, mode == CUDNN_FWD_MODE_TRAINING, x_data, y_data, h, cell);
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
    struct call c = {.at = {[LB_Y] = (void *)y,
                            [LB_DY] = (void *)dy,
                            [LB_DX] = dx,
                            [LB_H0] = (void *)hx,
                            [LB_DHN] = (void *)dhy,
                            [LB_DH0] = dhx,
                            [LB_C0] = (void *)cx,
                            [LB_DCN] = (void *)dcy,
                            [LB_DC0] = dcx},
                     .weights = (void *)weights,
                     .weight_bytes = weight_bytes,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths;
    cudnnStatus_t status = check_call(&c, d, true, x_data, y_data, h, cell);
    return status == CUDNN_STATUS_SUCCESS ? enqueue(handle, run_backward_data, &c) : status;
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t d, cudnnWgradMode_t mode, const int32_t lengths[],
    cudnnRNNDataDescriptor_t x_data, const void *x, cudnnTensorDescriptor_t h, const void *hx,
    cudnnRNNDataDescriptor_t y_data, const void *y, size_t weight_bytes, void *gradients,
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
    struct call c = {.at = {[LB_X] = (void *)x, [LB_H0] = (void *)hx, [LB_Y] = (void *)y},
                     .weights = gradients,
                     .weight_bytes = weight_bytes,
                     .workspace = workspace,
                     .workspace_bytes = workspace_bytes,
                     .reserve = reserve,
                     .reserve_bytes = reserve_bytes};
    (void)lengths;
    if (mode != CUDNN_WGRAD_MODE_ADD || has(FAKE_CUDNN_SET_GRADIENTS))
        return refuse(CUDNN_STATUS_NOT_SUPPORTED, "gradients can only be added");
    cudnnStatus_t status = check_call(&c, d, true, x_data, y_data, h, NULL);
    return status == CUDNN_STATUS_SUCCESS ? enqueue(handle, run_backward_weights, &c) : status;
}

/* Shows wrong gradients of oneDNN's bf16 LSTM on CPUs with AMX, with oneDNN 3 and its documented
 * interface alone (impls/onednn/README.md):
 *
 *     cc -O2 onednn_bf16_gradients.c -ldnnl -lm && ./a.out
 *     ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 ./a.out        without AMX, the gradients are right
 *
 * It trains one layer in f32 and in bf16 on the same values, which bf16 represents exactly, and
 * prints how far dx and dW_ih are apart, over the norm of those in f32. bf16 gives about 1 %.
 * Exit code 0: every gradient is right, or wrong in the sizes that the fault is known for alone.
 * 1: another one is wrong. 2: a call of oneDNN failed. 77: this CPU has no bf16 LSTM. */
#include <dnnl.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if DNNL_VERSION_MAJOR < 3
int main(void)
{
    printf("this needs the interface of oneDNN 3\n");
    return 77;
}
#else

enum { T = 4, B = 32, TENSORS = 9, SKIPPED = 77 };

/* The tensors of a layer, in the order of the library's arguments. */
enum tensor { X, H0, C0, W_IH, W_HH, BIAS, Y, HN, CN };

static const int forward_args[TENSORS] = {
    DNNL_ARG_SRC_LAYER,     DNNL_ARG_SRC_ITER,     DNNL_ARG_SRC_ITER_C,
    DNNL_ARG_WEIGHTS_LAYER, DNNL_ARG_WEIGHTS_ITER, DNNL_ARG_BIAS,
    DNNL_ARG_DST_LAYER,     DNNL_ARG_DST_ITER,     DNNL_ARG_DST_ITER_C,
};
static const int gradient_args[TENSORS] = {
    DNNL_ARG_DIFF_SRC_LAYER,     DNNL_ARG_DIFF_SRC_ITER,     DNNL_ARG_DIFF_SRC_ITER_C,
    DNNL_ARG_DIFF_WEIGHTS_LAYER, DNNL_ARG_DIFF_WEIGHTS_ITER, DNNL_ARG_DIFF_BIAS,
    DNNL_ARG_DIFF_DST_LAYER,     DNNL_ARG_DIFF_DST_ITER,     DNNL_ARG_DIFF_DST_ITER_C,
};

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void check(dnnl_status_t status, const char *what)
{
    if (status == dnnl_unimplemented) {
        printf("oneDNN has no bf16 LSTM for this CPU\n");
        exit(SKIPPED);
    }
    if (status != dnnl_success) {
        fprintf(stderr, "%s: status %d\n", what, (int)status);
        exit(2);
    }
}

/* A plain tensor of the layer: gradients, cell states and the bias are f32 always. */
static dnnl_memory_desc_t describe(enum tensor tensor, int64_t I, int64_t H, dnnl_data_type_t type,
                                   bool gradient, bool any)
{
    const struct {
        int ndims;
        dnnl_dims_t dims;
        dnnl_format_tag_t tag;
    } shapes[TENSORS] = {
        [X] = {3, {T, B, I}, dnnl_tnc},
        [H0] = {4, {1, 1, B, H}, dnnl_ldnc},
        [C0] = {4, {1, 1, B, H}, dnnl_ldnc},
        [W_IH] = {5, {1, 1, I, 4, H}, dnnl_ldigo},
        [W_HH] = {5, {1, 1, H, 4, H}, dnnl_ldigo},
        [BIAS] = {4, {1, 1, 4, H}, dnnl_ldgo},
        [Y] = {3, {T, B, H}, dnnl_tnc},
        [HN] = {4, {1, 1, B, H}, dnnl_ldnc},
        [CN] = {4, {1, 1, B, H}, dnnl_ldnc},
    };
    bool wide = gradient || tensor == C0 || tensor == CN || tensor == BIAS;
    bool packed = any && (tensor == W_IH || tensor == W_HH);
    dnnl_memory_desc_t desc;
    check(dnnl_memory_desc_create_with_tag(&desc, shapes[tensor].ndims, shapes[tensor].dims,
                                           wide ? dnnl_f32 : type,
                                           packed ? dnnl_format_tag_any : shapes[tensor].tag),
          "dnnl_memory_desc_create_with_tag");
    return desc;
}

static dnnl_memory_t allocate(const_dnnl_memory_desc_t desc)
{
    dnnl_memory_t memory;
    check(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE), "dnnl_memory_create");
    return memory;
}

/* Copies from one layout and data type to another. */
static void reorder(dnnl_memory_t from, dnnl_memory_t to)
{
    const_dnnl_memory_desc_t source, target;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    check(dnnl_memory_get_memory_desc(from, &source), "dnnl_memory_get_memory_desc");
    check(dnnl_memory_get_memory_desc(to, &target), "dnnl_memory_get_memory_desc");
    check(dnnl_reorder_primitive_desc_create(&pd, source, engine, target, engine, NULL),
          "dnnl_reorder_primitive_desc_create");
    check(dnnl_primitive_create(&primitive, pd), "dnnl_primitive_create");
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    check(dnnl_primitive_execute(primitive, stream, 2, args), "reorder");
    dnnl_stream_wait(stream);
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(pd);
}

/* Values within `scale` of zero with 8 significant bits, which are exact in bf16. */
static void fill(float *values, size_t count, float scale, uint32_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        values[i] = ((float)(seed >> 25) - 63.5f) / 64 * scale;
    }
}

static size_t count_of(dnnl_memory_desc_t plain)
{
    return dnnl_memory_desc_get_size(plain) / sizeof(float);
}

static const_dnnl_memory_desc_t wanted(dnnl_primitive_desc_t pd, int arg)
{
    return dnnl_primitive_desc_query_md(pd, dnnl_query_exec_arg_md, arg);
}

/* A tensor with random values in the layout that the primitive asks for. */
static dnnl_memory_t input(dnnl_primitive_desc_t pd, int arg, enum tensor tensor, int64_t I,
                           int64_t H)
{
    dnnl_memory_desc_t plain = describe(tensor, I, H, dnnl_f32, false, false);
    dnnl_memory_t values = allocate(plain), memory = allocate(wanted(pd, arg));
    void *data;
    bool weights = tensor == W_IH || tensor == W_HH;
    check(dnnl_memory_get_data_handle(values, &data), "dnnl_memory_get_data_handle");
    fill(data, count_of(plain), weights ? 0.0625f : 1, (uint32_t)arg);
    reorder(values, memory);
    dnnl_memory_destroy(values);
    dnnl_memory_desc_destroy(plain);
    return memory;
}

/* Returns a gradient in the plain layout, which the caller frees. */
static float *output(dnnl_memory_t memory, enum tensor tensor, int64_t I, int64_t H, size_t *count)
{
    dnnl_memory_desc_t plain = describe(tensor, I, H, dnnl_f32, true, false);
    dnnl_memory_t values = allocate(plain);
    void *data;
    *count = count_of(plain);
    float *copy = malloc(*count * sizeof(*copy));
    reorder(memory, values);
    check(dnnl_memory_get_data_handle(values, &data), "dnnl_memory_get_data_handle");
    if (copy)
        memcpy(copy, data, *count * sizeof(*copy));
    dnnl_memory_destroy(values);
    dnnl_memory_desc_destroy(plain);
    return copy;
}

/* Runs forward and backward of a layer in the data type; dx [T, B, I] and dw [I, 4, H] receive the
 * gradients. */
static void train(dnnl_data_type_t type, int64_t I, int64_t H, float **dx, float **dw,
                  size_t *x_count, size_t *w_count)
{
    dnnl_memory_desc_t d[TENSORS], g[TENSORS];
    dnnl_primitive_desc_t forward_pd, backward_pd;
    dnnl_primitive_t forward, backward;
    dnnl_exec_arg_t args[3 * TENSORS];
    int count = 0, forward_count;
    for (int i = 0; i < TENSORS; i++) {
        d[i] = describe((enum tensor)i, I, H, type, false, true);
        g[i] = describe((enum tensor)i, I, H, type, true, true);
    }
    check(dnnl_lstm_forward_primitive_desc_create(
              &forward_pd, engine, dnnl_forward_training, dnnl_unidirectional_left2right, d[X],
              d[H0], d[C0], d[W_IH], d[W_HH], NULL, NULL, d[BIAS], d[Y], d[HN], d[CN], 0, NULL),
          "dnnl_lstm_forward_primitive_desc_create");
    check(dnnl_lstm_backward_primitive_desc_create(
              &backward_pd, engine, dnnl_backward, dnnl_unidirectional_left2right, d[X], d[H0],
              d[C0], d[W_IH], d[W_HH], NULL, NULL, d[BIAS], d[Y], d[HN], d[CN], g[X], g[H0], g[C0],
              g[W_IH], g[W_HH], NULL, NULL, g[BIAS], g[Y], g[HN], g[CN], 0, forward_pd, NULL),
          "dnnl_lstm_backward_primitive_desc_create");
    check(dnnl_primitive_create(&forward, forward_pd), "dnnl_primitive_create");
    check(dnnl_primitive_create(&backward, backward_pd), "dnnl_primitive_create");

    for (int i = 0; i < TENSORS; i++)
        args[count++] = (dnnl_exec_arg_t){
            forward_args[i], i < Y ? input(forward_pd, forward_args[i], (enum tensor)i, I, H)
                                   : allocate(wanted(forward_pd, forward_args[i]))};
    args[count++] =
        (dnnl_exec_arg_t){DNNL_ARG_WORKSPACE, allocate(wanted(forward_pd, DNNL_ARG_WORKSPACE))};
    forward_count = count;
    check(dnnl_primitive_execute(forward, stream, count, args), "forward");
    for (int i = W_IH; i <= W_HH; i++) { /* backward wants other layouts of the weights */
        dnnl_memory_destroy(args[i].memory);
        args[i].memory = input(backward_pd, forward_args[i], (enum tensor)i, I, H);
    }
    for (int i = 0; i < TENSORS; i++) {
        int arg = gradient_args[i];
        dnnl_memory_t memory = i >= Y ? input(backward_pd, arg, (enum tensor)i, I, H)
                                      : allocate(wanted(backward_pd, arg));
        void *data;
        check(dnnl_memory_get_data_handle(memory, &data), "dnnl_memory_get_data_handle");
        if (i < Y) /* gradients of weights are added to */
            memset(data, 0, dnnl_memory_desc_get_size(wanted(backward_pd, arg)));
        args[count++] = (dnnl_exec_arg_t){arg, memory};
    }
    check(dnnl_primitive_execute(backward, stream, count, args), "backward");
    dnnl_stream_wait(stream);
    *dx = output(args[forward_count + X].memory, X, I, H, x_count);
    *dw = output(args[forward_count + W_IH].memory, W_IH, I, H, w_count);

    for (int i = 0; i < count; i++)
        dnnl_memory_destroy(args[i].memory);
    dnnl_primitive_destroy(forward);
    dnnl_primitive_destroy(backward);
    dnnl_primitive_desc_destroy(forward_pd);
    dnnl_primitive_desc_destroy(backward_pd);
    for (int i = 0; i < TENSORS; i++) {
        dnnl_memory_desc_destroy(d[i]);
        dnnl_memory_desc_destroy(g[i]);
    }
}

/* The norm of the difference over the norm of what is right. */
static double distance(const float *is, const float *right, size_t count)
{
    double difference = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        difference += ((double)is[i] - right[i]) * ((double)is[i] - right[i]);
        norm += (double)right[i] * right[i];
    }
    return sqrt(difference / norm);
}

int main(void)
{
    static const struct {
        int64_t I, H;
    } sizes[] = {{512, 512}, {1024, 992}, {1040, 1040}, {1024, 1024}, {512, 1024}, {1000, 1024}};
    const dnnl_version_t *version = dnnl_version();
    int unexpected = 0;
    check(dnnl_engine_create(&engine, dnnl_cpu, 0), "dnnl_engine_create");
    check(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags), "dnnl_stream_create");
    printf("oneDNN %d.%d.%d, bf16 against f32, T %d, B %d\n", version->major, version->minor,
           version->patch, T, B);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        int64_t I = sizes[i].I, H = sizes[i].H;
        float *dx, *dw, *right_dx, *right_dw;
        size_t x_count, w_count;
        train(dnnl_bf16, I, H, &dx, &dw, &x_count, &w_count);
        train(dnnl_f32, I, H, &right_dx, &right_dw, &x_count, &w_count);
        double x = distance(dx, right_dx, x_count), w = distance(dw, right_dw, w_count);
        bool wrong = !(x < 0.1 && w < 0.1); /* NaN is wrong */
        bool known = H >= 1024 && (I > H ? I : H) % 32 == 0;
        printf("I %4d  H %4d   dx %6.2f %%   dW_ih %6.2f %%   %s\n", (int)I, (int)H, 100 * x,
               100 * w, wrong ? "wrong" : "right");
        unexpected += wrong && !known;
        free(dx);
        free(dw);
        free(right_dx);
        free(right_dw);
    }
    return unexpected > 0;
}

#endif

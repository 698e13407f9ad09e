/* cpu_ref in int8: quantised operands, sums in whole numbers, the cell in f32. */
#include "impls/cpu_ref/int8.h"

#include <math.h>
#include <string.h>

#include "api/int8.h"

/* The quantised weights of one layer and direction, one after the other in the buffer of weights.
 * A row of w is a row of w_ih beside the same row of w_hh. */
struct quantised {
    size_t input;
    float *scale; /* [4H] of a sum */
    float *bias;  /* [4H] */
    int8_t *w;    /* [4H, I_l + H] */
};

static size_t bytes_of(const struct lb_problem *p, size_t input)
{
    size_t gates = 4 * (size_t)p->hidden, row = input + (size_t)p->hidden;
    return gates * (2 * sizeof(float) + row);
}

static struct quantised quantised_of(const struct lb_problem *p, void *base, size_t layer_dir)
{
    size_t D = (size_t)p->directions, H = (size_t)p->hidden, I = (size_t)p->input;
    size_t first = layer_dir < D ? layer_dir : D;
    struct quantised q = {.input = layer_dir < D ? I : D * H};
    char *at = (char *)base + first * bytes_of(p, I) + (layer_dir - first) * bytes_of(p, D * H);
    q.scale = (float *)(void *)at;
    q.bias = q.scale + 4 * H;
    q.w = (int8_t *)(q.bias + 4 * H);
    return q;
}

size_t lb_cpu_ref_int8_weight_bytes(const struct lb_problem *p)
{
    size_t D = (size_t)p->directions, later = (size_t)(p->layers - 1) * D;
    return D * bytes_of(p, (size_t)p->input) + later * bytes_of(p, D * (size_t)p->hidden);
}

/* The outputs of two layers, and one row of operands. */
size_t lb_cpu_ref_int8_workspace_bytes(const struct lb_problem *p)
{
    size_t wide = (size_t)(p->directions * p->hidden), I = (size_t)p->input;
    size_t y = (size_t)(p->seq_len * p->batch) * wide;
    return (p->layers > 1 ? 2 * y * sizeof(float) : 0) + (wide > I ? wide : I) + (size_t)p->hidden;
}

void lb_cpu_ref_int8_prepare(const struct lb_problem *p, const struct lb_buffers *buffers,
                             const struct lb_weights *weights)
{
    size_t H = (size_t)p->hidden;
    for (size_t ld = 0; ld < lb_layer_dir_count(p); ld++) {
        struct quantised q = quantised_of(p, buffers->weights, ld);
        float x_max = ld < (size_t)p->directions ? buffers->x_max : 1;
        const float *b_ih = weights->b_ih[ld], *b_hh = weights->b_hh[ld];
        for (size_t g = 0; g < 4 * H; g++) {
            const float *w_ih = (const float *)weights->w_ih[ld] + g * q.input;
            const float *w_hh = (const float *)weights->w_hh[ld] + g * H;
            float most = lb_int8_channel(w_ih, q.input, x_max, w_hh, H);
            float factor = lb_int8_factor(most);
            int8_t *row = q.w + g * (q.input + H);
            for (size_t i = 0; i < q.input; i++)
                row[i] = lb_int8_round(w_ih[i] * x_max, factor);
            for (size_t i = 0; i < H; i++)
                row[q.input + i] = lb_int8_round(w_hh[i], factor);
            q.scale[g] = most / (127 * 127);
            q.bias[g] = b_ih[g] + b_hh[g];
        }
    }
}

static float sigmoid(float v)
{
    return 1 / (1 + expf(-v));
}

/* One row of one step: operand [I_l + H] is [x_q h_q]; h and c [H] become those of the step. */
static void step(const struct quantised *q, size_t H, const int8_t *operand, float *h, float *c)
{
    for (size_t j = 0; j < H; j++) {
        float a[4];
        for (size_t gate = 0; gate < 4; gate++) {
            size_t g = gate * H + j, row = q->input + H;
            int32_t sum = 0;
            for (size_t k = 0; k < row; k++)
                sum += operand[k] * q->w[g * row + k];
            a[gate] = (float)sum * q->scale[g] + q->bias[g];
        }
        c[j] = sigmoid(a[1]) * c[j] + sigmoid(a[0]) * tanhf(a[2]);
        h[j] = sigmoid(a[3]) * tanhf(c[j]);
    }
}

/* All steps of a layer and direction. in [T, B, I_l]; y [T, B, D*H] from this direction's first
 * unit on; h and c [B, H] begin as h0 and c0, and end as hn and cn. */
static void run_layer_dir(const struct lb_problem *p, const struct quantised *q, float x_factor,
                          size_t d, const int32_t *lengths, const float *in, float *y, float *h,
                          float *c, int8_t *operand)
{
    size_t T = (size_t)p->seq_len, B = (size_t)p->batch, H = (size_t)p->hidden;
    size_t wide = (size_t)p->directions * H;
    for (size_t i = 0; i < T; i++)
        for (size_t b = 0; b < B; b++) {
            size_t t = d == 0 ? i : T - 1 - i, row = t * B + b;
            if (lengths && t >= (size_t)lengths[b]) {
                memset(y + row * wide, 0, H * sizeof(*y));
                continue;
            }
            for (size_t k = 0; k < q->input; k++)
                operand[k] = lb_int8_round(in[row * q->input + k], x_factor);
            for (size_t k = 0; k < H; k++)
                operand[q->input + k] = lb_int8_round(h[b * H + k], 127);
            step(q, H, operand, h + b * H, c + b * H);
            memcpy(y + row * wide, h + b * H, H * sizeof(*y));
        }
}

void lb_cpu_ref_int8_forward(const struct lb_problem *p, const struct lb_buffers *buffers,
                             const struct lb_forward_io *io)
{
    size_t D = (size_t)p->directions, L = (size_t)p->layers, H = (size_t)p->hidden;
    size_t state = (size_t)p->batch * H, count = (size_t)(p->seq_len * p->batch) * D * H;
    float *outputs[2] = {buffers->workspace, (float *)buffers->workspace + count};
    int8_t *operand = (int8_t *)(outputs[0] + (L > 1 ? 2 * count : 0));
    memcpy(io->hn, io->h0, L * D * state * sizeof(float));
    memcpy(io->cn, io->c0, L * D * state * sizeof(float));
    for (size_t ld = 0; ld < L * D; ld++) {
        struct quantised q = quantised_of(p, buffers->weights, ld);
        size_t l = ld / D;
        float *y = l == L - 1 ? io->y : outputs[l % 2];
        run_layer_dir(p, &q, lb_int8_factor(l == 0 ? buffers->x_max : 1), ld % D, buffers->lengths,
                      l == 0 ? io->x : outputs[(l - 1) % 2], y + ld % D * H,
                      (float *)io->hn + ld * state, (float *)io->cn + ld * state, operand);
    }
}

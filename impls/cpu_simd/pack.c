/* cpu_simd: where an entry's weights and gradients lie, and their way there and back. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

size_t lb_cpu_input(const struct lb_cpu_simd *blas, size_t entry)
{
    return entry < blas->s.D ? (size_t)blas->problem.input : blas->s.wide;
}

/* Elements of weights of so many columns for the way back, filled up to whole vectors. */
static size_t backward_count(const struct lb_cpu_sizes *s, size_t columns)
{
    return s->gates * lb_cpu_cover(columns, s->lanes) * s->lanes;
}

/* Elements of an entry's weight gradients for an input size; the weights for the way there are as
 * many. */
static size_t gradients_of(const struct lb_cpu_simd *blas, size_t input)
{
    return blas->s.gates * (input + blas->s.H + 1);
}

/* Elements of an entry's packed weights for an input size. */
static size_t weights_of(const struct lb_cpu_simd *blas, size_t input)
{
    const struct lb_cpu_sizes *s = &blas->s;
    size_t backward = backward_count(s, input) + backward_count(s, s->H);
    return gradients_of(blas, input) + (lb_has_backward(&blas->problem) ? backward : 0);
}

/* Elements of all entries before one, of each as many as `of` says; entry L*D: of all. */
static size_t before(const struct lb_cpu_simd *blas, size_t entry,
                     size_t (*of)(const struct lb_cpu_simd *blas, size_t input))
{
    size_t first = entry < blas->s.D ? entry : blas->s.D, later = entry - first;
    return first * of(blas, (size_t)blas->problem.input) + later * of(blas, blas->s.wide);
}

size_t lb_cpu_weight_count(const struct lb_cpu_simd *blas)
{
    return before(blas, blas->s.entries, weights_of);
}

size_t lb_cpu_gradient_count(const struct lb_cpu_simd *blas)
{
    return before(blas, blas->s.entries, gradients_of);
}

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_simd *blas, size_t entry)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_weights w;
    w.w_ih = lb_cpu_at(blas, blas->buffers.weights, before(blas, entry, weights_of));
    w.w_hh = lb_cpu_at(blas, w.w_ih, s->gates * lb_cpu_input(blas, entry));
    w.bias = lb_cpu_at(blas, w.w_hh, s->gates * s->H);
    w.back_hh = lb_cpu_at(blas, w.bias, s->gates);
    w.back_ih = lb_cpu_at(blas, w.back_hh, backward_count(s, s->H));
    return w;
}

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_simd *blas, size_t entry)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_gradients g;
    g.dw_ih = lb_cpu_at(blas, blas->buffers.gradients, before(blas, entry, gradients_of));
    g.dw_hh = lb_cpu_at(blas, g.dw_ih, s->gates * lb_cpu_input(blas, entry));
    g.db = lb_cpu_at(blas, g.dw_hh, s->gates * s->H);
    return g;
}

/* Place of canonical gate row g*H + unit among the packed ones. */
static size_t packed_row(const struct lb_cpu_simd *blas, size_t g, size_t unit)
{
    size_t lanes = blas->s.lanes;
    return unit / lanes * 4 * lanes + g * lanes + unit % lanes;
}

/* count elements, each `stride` elements behind the one before, at both ends. */
static void copy_apart(const struct lb_cpu_simd *blas, char *to, size_t to_stride, const char *from,
                       size_t from_stride, size_t count)
{
    size_t elem = blas->elem, to_step = to_stride * elem, from_step = from_stride * elem;
    if (elem == sizeof(float))
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, sizeof(float));
    else
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, sizeof(double));
}

/* Place of gate g of a unit in [panels, columns, 4, lanes]: of the first column; a column is
 * `width` further than the one before. */
static size_t panel_place(const struct lb_cpu_simd *blas, size_t g, size_t unit, size_t columns)
{
    size_t lanes = blas->s.lanes;
    return (unit / lanes * columns * 4 + g) * lanes + unit % lanes;
}

/* from [4H, columns] -> to [panels, columns, 4, lanes]; units that are not there stay 0. */
static void pack_forward(const struct lb_cpu_simd *blas, char *to, const void *from, size_t columns)
{
    const struct lb_cpu_sizes *s = &blas->s;
    memset(to, 0, s->gates * columns * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            copy_apart(blas, lb_cpu_at(blas, to, panel_place(blas, g, unit, columns)), s->width,
                       lb_cpu_at(blas, from, (g * s->H + unit) * columns), 1, columns);
}

/* And back. */
static void unpack_forward(const struct lb_cpu_simd *blas, void *to, const char *from,
                           size_t columns)
{
    const struct lb_cpu_sizes *s = &blas->s;
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            copy_apart(blas, lb_cpu_at(blas, to, (g * s->H + unit) * columns), 1,
                       lb_cpu_at(blas, from, panel_place(blas, g, unit, columns)), s->width,
                       columns);
}

/* from [4H, columns] -> to [groups of width, gates, columns filled up to whole vectors]. */
static void pack_backward(const struct lb_cpu_simd *blas, char *to, const void *from,
                          size_t columns)
{
    const struct lb_cpu_sizes *s = &blas->s;
    memset(to, 0, backward_count(s, columns) * blas->elem);
    for (size_t first = 0; first < columns; first += s->width) {
        size_t count = columns - first < s->width ? columns - first : s->width;
        size_t width = lb_cpu_cover(count, s->lanes) * s->lanes;
        for (size_t g = 0; g < 4; g++)
            for (size_t unit = 0; unit < s->H; unit++) {
                size_t row = first * s->gates + packed_row(blas, g, unit) * width;
                memcpy(lb_cpu_at(blas, to, row),
                       lb_cpu_at(blas, from, (g * s->H + unit) * columns + first),
                       count * blas->elem);
            }
    }
}

/* The sum of both biases. */
static void pack_bias(const struct lb_cpu_simd *blas, char *to, const void *b_ih, const void *b_hh)
{
    const struct lb_cpu_sizes *s = &blas->s;
    enum lb_dtype dtype = blas->problem.dtype;
    memset(to, 0, s->gates * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++) {
            double ih, hh;
            lb_load(dtype, lb_cpu_at(blas, b_ih, g * s->H + unit), &ih, 1);
            lb_load(dtype, lb_cpu_at(blas, b_hh, g * s->H + unit), &hh, 1);
            ih += hh;
            lb_store(dtype, lb_cpu_at(blas, to, packed_row(blas, g, unit)), &ih, 1);
        }
}

void lb_cpu_pack(const struct lb_cpu_simd *blas, size_t entry, const struct lb_weights *weights)
{
    struct lb_cpu_weights w = lb_cpu_weights_of(blas, entry);
    size_t input = lb_cpu_input(blas, entry);
    pack_forward(blas, w.w_ih, weights->w_ih[entry], input);
    pack_forward(blas, w.w_hh, weights->w_hh[entry], blas->s.H);
    pack_bias(blas, w.bias, weights->b_ih[entry], weights->b_hh[entry]);
    if (lb_has_backward(&blas->problem)) {
        pack_backward(blas, w.back_hh, weights->w_hh[entry], blas->s.H);
        pack_backward(blas, w.back_ih, weights->w_ih[entry], input);
    }
}

void lb_cpu_unpack(const struct lb_cpu_simd *blas, size_t entry,
                   const struct lb_gradients *gradients)
{
    struct lb_cpu_gradients from = lb_cpu_gradients_of(blas, entry);
    unpack_forward(blas, gradients->dw_ih[entry], from.dw_ih, lb_cpu_input(blas, entry));
    unpack_forward(blas, gradients->dw_hh[entry], from.dw_hh, blas->s.H);
    unpack_forward(blas, gradients->db_ih[entry], from.db, 1);
    unpack_forward(blas, gradients->db_hh[entry], from.db, 1);
}

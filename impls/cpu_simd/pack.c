/* cpu_simd: the layout of weights and weight gradients, and their conversion from and to the
 * canonical layout. */
#include <string.h>

#include "impls/cpu_simd/cpu_simd.h"

size_t lb_cpu_input(const struct lb_cpu_simd *simd, size_t layer_dir)
{
    return layer_dir < simd->s.D ? (size_t)simd->problem.input : simd->s.wide;
}

/* Number of backward weights with so many columns, padded to whole vectors. */
static size_t backward_count(const struct lb_cpu_sizes *s, size_t columns)
{
    return s->gates * lb_cpu_cover(columns, s->simd_width) * s->simd_width;
}

/* Number of weight gradients of a layer_dir with this input size. It has as many forward weights.
 */
static size_t gradients_of(const struct lb_cpu_simd *simd, size_t input)
{
    return simd->s.gates * (input + simd->s.H + 1);
}

/* Number of packed weights of a layer_dir with this input size. */
static size_t weights_of(const struct lb_cpu_simd *simd, size_t input)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t backward = backward_count(s, input) + backward_count(s, s->H);
    return gradients_of(simd, input) + (lb_has_backward(&simd->problem) ? backward : 0);
}

/* Sum of of(input size) over all layer_dirs before this one; layer_dir L*D gives the total. */
static size_t before(const struct lb_cpu_simd *simd, size_t layer_dir,
                     size_t (*of)(const struct lb_cpu_simd *simd, size_t input))
{
    size_t first = layer_dir < simd->s.D ? layer_dir : simd->s.D, later = layer_dir - first;
    return first * of(simd, (size_t)simd->problem.input) + later * of(simd, simd->s.wide);
}

size_t lb_cpu_weight_count(const struct lb_cpu_simd *simd)
{
    return before(simd, simd->s.layer_dirs, weights_of);
}

size_t lb_cpu_gradient_count(const struct lb_cpu_simd *simd)
{
    return before(simd, simd->s.layer_dirs, gradients_of);
}

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_simd *simd, size_t layer_dir)
{
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_weights w;
    w.w_ih = lb_cpu_at(simd, simd->buffers.weights, before(simd, layer_dir, weights_of));
    w.w_hh = lb_cpu_at(simd, w.w_ih, s->gates * lb_cpu_input(simd, layer_dir));
    w.bias = lb_cpu_at(simd, w.w_hh, s->gates * s->H);
    w.back_hh = lb_cpu_at(simd, w.bias, s->gates);
    w.back_ih = lb_cpu_at(simd, w.back_hh, backward_count(s, s->H));
    return w;
}

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_simd *simd, size_t layer_dir)
{
    const struct lb_cpu_sizes *s = &simd->s;
    struct lb_cpu_gradients g;
    g.dw_ih = lb_cpu_at(simd, simd->buffers.gradients, before(simd, layer_dir, gradients_of));
    g.dw_hh = lb_cpu_at(simd, g.dw_ih, s->gates * lb_cpu_input(simd, layer_dir));
    g.db = lb_cpu_at(simd, g.dw_hh, s->gates * s->H);
    return g;
}

/* The index of canonical gate row g*H + unit in the packed order. */
static size_t packed_row(const struct lb_cpu_simd *simd, size_t g, size_t unit)
{
    size_t simd_width = simd->s.simd_width;
    return unit / simd_width * 4 * simd_width + g * simd_width + unit % simd_width;
}

/* Copies count elements with a stride, in elements, on both sides. */
static void copy_strided(const struct lb_cpu_simd *simd, char *to, size_t to_stride,
                         const char *from, size_t from_stride, size_t count)
{
    size_t elem = simd->elem, to_step = to_stride * elem, from_step = from_stride * elem;
    if (elem == sizeof(float))
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, sizeof(float));
    else
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * to_step, from + i * from_step, sizeof(double));
}

/* The index of gate g of a unit in the first column of [panels, columns, 4, simd_width]. The next
 * column is `width` further. */
static size_t panel_index(const struct lb_cpu_simd *simd, size_t g, size_t unit, size_t columns)
{
    size_t simd_width = simd->s.simd_width;
    return (unit / simd_width * columns * 4 + g) * simd_width + unit % simd_width;
}

/* from [4H, columns] -> to [panels, columns, 4, simd_width]; padding is 0. */
static void pack_forward(const struct lb_cpu_simd *simd, char *to, const void *from, size_t columns)
{
    const struct lb_cpu_sizes *s = &simd->s;
    memset(to, 0, s->gates * columns * simd->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            copy_strided(simd, lb_cpu_at(simd, to, panel_index(simd, g, unit, columns)), s->width,
                         lb_cpu_at(simd, from, (g * s->H + unit) * columns), 1, columns);
}

/* from [panels, columns, 4, simd_width] -> to [4H, columns]. */
static void unpack_forward(const struct lb_cpu_simd *simd, void *to, const char *from,
                           size_t columns)
{
    const struct lb_cpu_sizes *s = &simd->s;
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            copy_strided(simd, lb_cpu_at(simd, to, (g * s->H + unit) * columns), 1,
                         lb_cpu_at(simd, from, panel_index(simd, g, unit, columns)), s->width,
                         columns);
}

/* from [4H, columns] -> to [groups of width, gates, columns padded to whole vectors]. */
static void pack_backward(const struct lb_cpu_simd *simd, char *to, const void *from,
                          size_t columns)
{
    const struct lb_cpu_sizes *s = &simd->s;
    memset(to, 0, backward_count(s, columns) * simd->elem);
    for (size_t first = 0; first < columns; first += s->width) {
        size_t count = columns - first < s->width ? columns - first : s->width;
        size_t width = lb_cpu_cover(count, s->simd_width) * s->simd_width;
        for (size_t g = 0; g < 4; g++)
            for (size_t unit = 0; unit < s->H; unit++) {
                size_t row = first * s->gates + packed_row(simd, g, unit) * width;
                memcpy(lb_cpu_at(simd, to, row),
                       lb_cpu_at(simd, from, (g * s->H + unit) * columns + first),
                       count * simd->elem);
            }
    }
}

/* The sum of both biases. */
static void pack_bias(const struct lb_cpu_simd *simd, char *to, const void *b_ih, const void *b_hh)
{
    const struct lb_cpu_sizes *s = &simd->s;
    enum lb_dtype dtype = simd->problem.dtype;
    memset(to, 0, s->gates * simd->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++) {
            double ih, hh;
            lb_load(dtype, lb_cpu_at(simd, b_ih, g * s->H + unit), &ih, 1);
            lb_load(dtype, lb_cpu_at(simd, b_hh, g * s->H + unit), &hh, 1);
            ih += hh;
            lb_store(dtype, lb_cpu_at(simd, to, packed_row(simd, g, unit)), &ih, 1);
        }
}

void lb_cpu_pack(const struct lb_cpu_simd *simd, size_t layer_dir, const struct lb_weights *weights)
{
    struct lb_cpu_weights w = lb_cpu_weights_of(simd, layer_dir);
    size_t input = lb_cpu_input(simd, layer_dir);
    pack_forward(simd, w.w_ih, weights->w_ih[layer_dir], input);
    pack_forward(simd, w.w_hh, weights->w_hh[layer_dir], simd->s.H);
    pack_bias(simd, w.bias, weights->b_ih[layer_dir], weights->b_hh[layer_dir]);
    if (lb_has_backward(&simd->problem)) {
        pack_backward(simd, w.back_hh, weights->w_hh[layer_dir], simd->s.H);
        pack_backward(simd, w.back_ih, weights->w_ih[layer_dir], input);
    }
}

void lb_cpu_unpack(const struct lb_cpu_simd *simd, size_t layer_dir,
                   const struct lb_gradients *gradients)
{
    struct lb_cpu_gradients from = lb_cpu_gradients_of(simd, layer_dir);
    unpack_forward(simd, gradients->dw_ih[layer_dir], from.dw_ih, lb_cpu_input(simd, layer_dir));
    unpack_forward(simd, gradients->dw_hh[layer_dir], from.dw_hh, simd->s.H);
    unpack_forward(simd, gradients->db_ih[layer_dir], from.db, 1);
    unpack_forward(simd, gradients->db_hh[layer_dir], from.db, 1);
}

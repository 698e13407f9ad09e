/* cpu_simd in int8: the weights as tiles. The passes are those of tiles_forward.c. */
#include <string.h>

#include "api/int8.h"
#include "impls/cpu_simd/cpu_simd.h"

/* Writes w_q of one gate of one unit, which is a column of the tiles, and returns its sum. from
 * [columns] is multiplied by `by` before it is rounded. */
static int32_t pack_channel(const float *from, size_t columns, float by, float factor, size_t gate,
                            size_t unit, int8_t *panel)
{
    enum { DEPTH = 64 };
    size_t tiles = lb_cpu_cover(columns, DEPTH);
    int32_t sum = 0;
    for (size_t k = 0; k < columns; k++) {
        size_t tile = (gate / 2 * tiles + k / DEPTH) * 2 + gate % 2;
        int8_t *four = panel + tile * LB_TILE_BYTES + k % DEPTH / 4 * 64 + unit * 4;
        four[k % 4] = lb_int8_round(from[k] * by, factor);
        sum += four[k % 4];
    }
    return sum;
}

void lb_cpu_pack_int8(const struct lb_cpu_simd *simd, size_t layer_dir, size_t panel,
                      const struct lb_weights *weights, const struct lb_cpu_weights *w)
{
    const struct lb_cpu_sizes *s = &simd->s;
    size_t input = lb_cpu_input(simd, layer_dir), H = s->H;
    size_t ih_bytes = lb_cpu_padded(simd, input) * s->width;
    size_t hh_bytes = lb_cpu_padded(simd, H) * s->width;
    int8_t *ih = (int8_t *)w->w_ih + panel * ih_bytes, *hh = (int8_t *)w->w_hh + panel * hh_bytes;
    float x_max = layer_dir < s->D ? simd->buffers.x_max : 1;
    struct lb_cpu_range units = lb_cpu_panel_units(simd, panel);
    memset(ih, 0, ih_bytes);
    memset(hh, 0, hh_bytes);
    for (size_t at = 0; at < s->width; at++) {
        size_t gate = at / s->simd_width, unit = at % s->simd_width, to = panel * s->width + at;
        bool exists = units.from + unit < units.to;
        size_t row = gate * H + units.from + unit;
        float most = 0, bias = 0;
        int32_t sum = 0;
        if (exists) {
            const float *w_ih = (const float *)weights->w_ih[layer_dir] + row * input;
            const float *w_hh = (const float *)weights->w_hh[layer_dir] + row * H;
            most = lb_int8_channel(w_ih, input, x_max, w_hh, H);
            bias = ((const float *)weights->b_ih[layer_dir])[row] +
                   ((const float *)weights->b_hh[layer_dir])[row];
            sum = pack_channel(w_ih, input, x_max, lb_int8_factor(most), gate, unit, ih) +
                  pack_channel(w_hh, H, 1, lb_int8_factor(most), gate, unit, hh);
        }
        ((float *)(void *)w->bias)[to] = bias;
        ((float *)(void *)w->scale)[to] = most / (127 * 127);
        ((int32_t *)(void *)w->start)[to] = -simd->kernels->tiles->zero_point * sum;
    }
}

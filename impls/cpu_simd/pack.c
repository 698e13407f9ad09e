/* cpu_simd: the layout of weights and weight gradients, and their conversion from and to the
 * canonical layout. */
#include <string.h>

#include "api/int8.h"
#include "impls/cpu_simd/cpu_simd.h"

/* Elements of backward weights with so many columns, padded to whole vectors, or to whole groups of
 * `most` columns where they are tiles. Else groups before the last have no padding. */
static size_t backward_count(const struct lb_cpu_simd *s, size_t columns, size_t most)
{
    size_t multiple = s->kernels->tiles ? most : s->simd_width;
    return s->gates * lb_cpu_cover(columns, multiple) * multiple;
}

/* Bytes of w_cell packed for forward. */
static size_t cell_bytes(const struct lb_cpu_simd *s)
{
    if (s->problem.cell != LB_CELL_PROJECTION)
        return s->cell_rows * s->units * s->sum_elem;
    size_t columns = lb_cpu_cover(s->P, s->simd_width) * s->simd_width;
    return lb_cpu_padded(s, s->H) * columns * s->elem;
}

/* The packed weights of a layer_dir with this input size. */
static struct lb_cpu_weights take_weights(const struct lb_cpu_simd *s, size_t input,
                                          struct lb_arena *arena)
{
    size_t bias = s->gates * s->sum_elem, scale = s->problem.dtype == LB_INT8 ? bias : 0;
    struct lb_cpu_weights w = {
        .w_ih = lb_arena_take(arena, s->gates * lb_cpu_padded(s, input) * s->w_elem),
        .w_hh = lb_arena_take(arena, s->gates * lb_cpu_padded(s, s->P) * s->w_elem),
        .bias = lb_arena_take(arena, bias),
        .scale = lb_arena_take(arena, scale),
        .start = lb_arena_take(arena, scale),
        .cell = lb_arena_take(arena, cell_bytes(s)),
    };
    if (!lb_has_backward(&s->problem))
        return w;
    size_t hh = backward_count(s, s->P, s->group * s->simd_width);
    size_t ih = backward_count(s, input, s->width);
    w.back_hh = lb_arena_take(arena, hh * s->elem);
    if (s->problem.cell == LB_CELL_PROJECTION)
        w.back_cell = lb_arena_take(arena, lb_cpu_padded(s, s->P) * s->units * s->elem);
    w.back_ih = lb_arena_take(arena, ih * s->elem);
    return w;
}

static size_t weight_bytes(const struct lb_cpu_simd *s, size_t input)
{
    struct lb_arena arena = {0};
    take_weights(s, input, &arena);
    return arena.used;
}

/* Bytes of the weight gradients of a layer_dir with this input size. */
static size_t gradient_bytes(const struct lb_cpu_simd *s, size_t input)
{
    size_t columns = lb_cpu_gradient_columns(s, input) + lb_cpu_gradient_columns(s, s->P);
    size_t of_cell = s->problem.cell == LB_CELL_PROJECTION ? s->h_panels * s->H * s->width
                                                           : s->cell_rows * s->units;
    return lb_arena_round_up((s->gates * (columns + 1) + of_cell) * s->sum_elem);
}

/* Sum of of(input size) over all layer_dirs before this one; layer_dir L*D gives the total. */
static size_t before(const struct lb_cpu_simd *s, size_t layer_dir,
                     size_t (*of)(const struct lb_cpu_simd *s, size_t input))
{
    size_t first = lb_cpu_least(layer_dir, s->D), later = layer_dir - first;
    return first * of(s, (size_t)s->problem.input) + later * of(s, s->wide);
}

/* Bytes of a copy of the weights: whole pages, so that each page belongs to one node. */
static size_t copy_bytes(const struct lb_cpu_simd *s)
{
    enum { HUGE_PAGE = 2 << 20 };
    size_t bytes = before(s, s->layer_dirs, weight_bytes);
    return s->copies > 1 ? lb_cpu_cover(bytes, HUGE_PAGE) * HUGE_PAGE : bytes;
}

size_t lb_cpu_weight_bytes(const struct lb_cpu_simd *s)
{
    return s->copies * copy_bytes(s);
}

size_t lb_cpu_gradient_bytes(const struct lb_cpu_simd *s)
{
    return before(s, s->layer_dirs, gradient_bytes);
}

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_simd *s, size_t copy, size_t layer_dir)
{
    struct lb_arena arena = {.base = s->buffers.weights,
                             .used = copy * copy_bytes(s) + before(s, layer_dir, weight_bytes)};
    return take_weights(s, lb_cpu_input(s, layer_dir), &arena);
}

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_simd *s, size_t layer_dir)
{
    size_t input = lb_cpu_gradient_columns(s, lb_cpu_input(s, layer_dir));
    struct lb_cpu_gradients g;
    g.dw_ih = (char *)s->buffers.gradients + before(s, layer_dir, gradient_bytes);
    g.dw_hh = lb_cpu_sum_at(s, g.dw_ih, s->gates * input);
    g.db = lb_cpu_sum_at(s, g.dw_hh, s->gates * lb_cpu_gradient_columns(s, s->P));
    g.dw_cell = lb_cpu_sum_at(s, g.db, s->gates);
    return g;
}

enum { TILE = 16 }; /* columns whose gradients are transposed at a time; no vector has more */

typedef uint32_t words __attribute__((vector_size(16)));

/* Writes four columns of four elements of 4 bytes as rows. */
static inline void transpose_fours(char *to, size_t to_bytes, const char *from, size_t from_bytes)
{
    words row[4];
    for (size_t r = 0; r < 4; r++)
        memcpy(&row[r], from + r * from_bytes, sizeof(row[r]));
    words left[2], right[2]; /* of two rows each: elements 0 and 1, and 2 and 3, in pairs */
    for (size_t i = 0; i < 2; i++) {
        left[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 0, 4, 1, 5);
        right[i] = __builtin_shufflevector(row[2 * i], row[2 * i + 1], 2, 6, 3, 7);
    }
    words column[4] = {__builtin_shufflevector(left[0], left[1], 0, 1, 4, 5),
                       __builtin_shufflevector(left[0], left[1], 2, 3, 6, 7),
                       __builtin_shufflevector(right[0], right[1], 0, 1, 4, 5),
                       __builtin_shufflevector(right[0], right[1], 2, 3, 6, 7)};
    for (size_t c = 0; c < 4; c++)
        memcpy(to + c * to_bytes, &column[c], sizeof(column[c]));
}

/* As transpose, with a size that is constant where this is inlined. */
static inline __attribute__((always_inline)) void transpose_sized(size_t size, char *to,
                                                                  size_t to_bytes, const char *from,
                                                                  size_t from_bytes, size_t rows,
                                                                  size_t columns)
{
    const size_t fours = size == 4 ? rows / 4 * 4 : 0, line = 64 / size;
    for (size_t first = 0; first < columns; first += line) {
        size_t end = columns - first < line ? columns : first + line;
        size_t whole = first + (end - first) / 4 * 4;
        for (size_t r = 0; r < fours; r += 4)
            for (size_t c = first; c < whole; c += 4)
                transpose_fours(to + c * to_bytes + r * size, to_bytes,
                                from + r * from_bytes + c * size, from_bytes);
        for (size_t r = 0; r < rows; r++)
            for (size_t c = r < fours ? whole : first; c < end; c++)
                memcpy(to + c * to_bytes + r * size, from + r * from_bytes + c * size, size);
    }
}

/* Writes column c of `from` to row c of `to`: elements of 2, 4 or 8 bytes, whose rows are
 * from_bytes apart. to_stride: elements from one row of `to` to the next. Takes 64 bytes of every
 * row before the next 64, because rows whose distance is a power of two drive one another out of
 * the L1 cache. */
static void transpose(size_t size, void *to, size_t to_stride, const char *from, size_t from_bytes,
                      size_t rows, size_t columns)
{
    switch (size) {
    case 2: transpose_sized(2, to, to_stride * 2, from, from_bytes, rows, columns); break;
    case 4: transpose_sized(4, to, to_stride * 4, from, from_bytes, rows, columns); break;
    default: transpose_sized(8, to, to_stride * 8, from, from_bytes, rows, columns);
    }
}

/* Some columns of one gate of a panel: from [units, columns], rows `stride` apart -> to [columns,
 * width], whose columns may come in pairs: two of them then move as one element, and a last odd one
 * alone. */
static void pack_columns(const struct lb_cpu_simd *s, char *to, size_t width, const char *from,
                         size_t stride, size_t columns, size_t units)
{
    size_t pair = s->kernels->pair, odd = columns % pair, last = columns - odd;
    transpose(pair * s->elem, to, width, from, stride * s->elem, units, columns / pair);
    for (size_t unit = 0; unit < units && odd > 0; unit++)
        memcpy(lb_cpu_at(s, to, last * width + unit * pair),
               lb_cpu_at(s, from, unit * stride + last), s->elem);
}

/* from [4H, columns] -> to [panels, columns padded, 4, simd_width], or tiles [panels, gate pair 2,
 * k tiles, gate 2] of [16 pairs, 16 units, 2], some of the panels; padding is 0. projection: from
 * [P, columns], whose panels are groups of up to four vectors of consecutive rows. */
static void pack_forward(const struct lb_cpu_simd *s, char *to, const char *from, size_t columns,
                         struct lb_cpu_range panels, bool projection)
{
    size_t k_count = lb_cpu_padded(s, columns), all = projection ? s->P : s->H;
    size_t tiles = s->kernels->tiles ? lb_cpu_cover(columns, LB_TILE_DEPTH) : 0;
    size_t depth = tiles > 0 ? LB_TILE_DEPTH : columns;
    for (size_t panel = panels.from; panel < panels.to; panel++) {
        size_t first = panel * (projection ? s->width : s->simd_width), vectors = 4;
        if (projection)
            vectors = lb_cpu_least(lb_cpu_cover(all - first, s->simd_width), 4);
        size_t width = vectors * s->simd_width;
        char *start = lb_cpu_at(s, to, panel * k_count * s->width);
        bool padded = k_count > columns || all - first < (projection ? width : s->simd_width);
        if (padded)
            memset(start, 0, k_count * width * s->elem);
        for (size_t g = 0; g < vectors; g++) {
            size_t unit = first + (projection ? g * s->simd_width : 0);
            size_t row = unit + (projection ? 0 : g * s->H);
            for (size_t k = 0; k < columns; k += depth) {
                size_t tile = (g / 2 * tiles + k / depth) * 2 + g % 2;
                size_t place =
                    tiles > 0 ? tile * LB_TILE_HALVES : g * s->simd_width * s->kernels->pair;
                pack_columns(s, lb_cpu_at(s, start, place), tiles > 0 ? LB_TILE_COLUMNS : width,
                             lb_cpu_at(s, from, row * columns + k), columns,
                             lb_cpu_least(columns - k, depth),
                             lb_cpu_least(all - unit, s->simd_width));
            }
        }
    }
}

/* Copies a row of `count` elements to every second place. */
static void spread_row(void *to, const void *from, size_t count)
{
    uint16_t *out = to;
    const uint16_t *in = from;
    for (size_t j = 0; j < count; j++)
        out[2 * j] = in[j];
}

/* from [rows, columns] -> to [groups, k, columns padded to whole vectors], or tiles [groups, pairs,
 * k tiles, 2] of [16 pairs of k, 16 columns, 2], some of the groups, which have up to `most`
 * columns. k: rows padded; 4H rows become gates in the order of panels. Where k come in pairs, the
 * elements of two rows alternate. */
static void pack_backward(const struct lb_cpu_simd *s, char *to, const char *from, size_t rows,
                          size_t columns, size_t most, struct lb_cpu_range groups)
{
    bool gates = rows == 4 * s->H, tiled = s->kernels->tiles;
    size_t pair = s->kernels->pair, k = gates ? s->gates : lb_cpu_padded(s, rows);
    for (size_t group = groups.from; group < groups.to; group++) {
        size_t first = group * most, count = lb_cpu_least(columns - first, most);
        size_t width = tiled ? most : lb_cpu_cover(count, s->simd_width) * s->simd_width;
        size_t step = tiled ? LB_TILE_COLUMNS : width, tiles = k / LB_TILE_DEPTH;
        char *start = lb_cpu_at(s, to, first * k);
        bool padded = k > rows || width > count;
        if (padded)
            memset(start, 0, width * k * s->elem);
        for (size_t r = 0, gate = 0, unit = 0; r < rows; r++, unit++) {
            gate += unit == s->H;
            unit = unit == s->H ? 0 : unit;
            size_t panel = unit / s->simd_width, in_panel = unit - panel * s->simd_width;
            size_t place = gates ? panel * s->width + gate * s->simd_width + in_panel : r;
            const char *row = lb_cpu_at(s, from, r * columns + first);
            if (pair == 1)
                memcpy(lb_cpu_at(s, start, place * width), row, count * s->elem);
            for (size_t c = 0; c < count && pair > 1; c += step) {
                size_t at = place / 2 * width * 2 + place % 2;
                size_t tile = (c / LB_TILE_DEPTH * tiles + place / LB_TILE_DEPTH) * 2 +
                              c / LB_TILE_COLUMNS % 2;
                if (tiled)
                    at = tile * LB_TILE_HALVES + place % LB_TILE_DEPTH / 2 * LB_TILE_DEPTH +
                         place % 2;
                spread_row(lb_cpu_at(s, start, at), lb_cpu_at(s, row, c),
                           lb_cpu_least(count - c, step));
            }
        }
    }
}

/* The sum of both biases, of some panels. */
static void pack_bias(const struct lb_cpu_simd *s, char *to, const void *b_ih, const void *b_hh,
                      struct lb_cpu_range panels)
{
    enum lb_dtype dtype = s->problem.dtype, sum_dtype = s->half ? LB_F32 : dtype;
    struct lb_cpu_range units = lb_cpu_units(s, panels);
    memset(lb_cpu_sum_at(s, to, panels.from * s->width), 0,
           (panels.to - panels.from) * s->width * s->sum_elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = units.from; unit < units.to; unit++) {
            double ih, hh;
            size_t at = unit / s->simd_width * s->width + g * s->simd_width + unit % s->simd_width;
            lb_load(dtype, lb_cpu_at(s, b_ih, g * s->H + unit), &ih, 1);
            lb_load(dtype, lb_cpu_at(s, b_hh, g * s->H + unit), &hh, 1);
            ih += hh;
            lb_store(sum_dtype, lb_cpu_sum_at(s, to, at), &ih, 1);
        }
}

/* The thread's part of w_cell. The vectors of layernorm and peephole, [cell_rows, H], become
 * [cell_rows, units] of sum_elem, all by the first thread of a team. */
static void pack_cell(const struct lb_cpu_simd *s, const struct lb_cpu_weights *w, const char *from,
                      size_t thread)
{
    if (s->problem.cell != LB_CELL_PROJECTION) {
        if (thread % s->team_size > 0)
            return;
        memset(w->cell, 0, cell_bytes(s));
        for (size_t r = 0; r < s->cell_rows; r++)
            lb_cpu_to_sums(s, lb_cpu_at(s, from, r * s->H), lb_cpu_sum_at(s, w->cell, r * s->units),
                           s->H);
        return;
    }
    pack_forward(s, w->cell, from, s->H, lb_cpu_columns(s, s->h_panels, thread), true);
    if (lb_has_backward(&s->problem))
        pack_backward(s, w->back_cell, from, s->P, s->H, s->group * s->simd_width,
                      lb_cpu_columns(s, lb_cpu_cover(s->panels, s->group), thread));
}

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

/* Packs a panel of a layer_dir in int8. */
static void pack_int8(const struct lb_cpu_simd *s, size_t layer_dir, size_t panel,
                      const struct lb_weights *weights, const struct lb_cpu_weights *w)
{
    size_t input = lb_cpu_input(s, layer_dir), H = s->H;
    size_t ih_bytes = lb_cpu_padded(s, input) * s->width;
    size_t hh_bytes = lb_cpu_padded(s, H) * s->width;
    int8_t *ih = (int8_t *)w->w_ih + panel * ih_bytes, *hh = (int8_t *)w->w_hh + panel * hh_bytes;
    float x_max = layer_dir < s->D ? s->buffers.x_max : 1;
    struct lb_cpu_range units = lb_cpu_panel_units(s, panel);
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
        ((int32_t *)(void *)w->start)[to] = -s->kernels->tiles->zero_point * sum;
    }
}

/* The thread's part of a copy of the weights of a layer_dir: what it reads in steps, and a share of
 * the weights for input gradients, of which every thread reads all. */
static void pack_layer_dir(const struct lb_cpu_simd *s, size_t layer_dir, size_t thread,
                           const struct lb_weights *weights)
{
    struct lb_cpu_weights w = lb_cpu_weights_of(s, s->copy_of[thread], layer_dir);
    size_t input = lb_cpu_input(s, layer_dir), columns = s->group * s->simd_width;
    struct lb_cpu_range panels = lb_cpu_columns(s, s->panels, thread);
    if (s->problem.dtype == LB_INT8) {
        for (size_t panel = panels.from; panel < panels.to; panel++)
            pack_int8(s, layer_dir, panel, weights, &w);
        return;
    }
    pack_forward(s, w.w_ih, weights->w_ih[layer_dir], input, panels, false);
    pack_forward(s, w.w_hh, weights->w_hh[layer_dir], s->P, panels, false);
    pack_bias(s, w.bias, weights->b_ih[layer_dir], weights->b_hh[layer_dir], panels);
    if (s->cell_rows > 0)
        pack_cell(s, &w, weights->w_cell[layer_dir], thread);
    if (!lb_has_backward(&s->problem))
        return;
    pack_backward(s, w.back_hh, weights->w_hh[layer_dir], 4 * s->H, s->P, columns,
                  lb_cpu_columns(s, lb_cpu_cover(s->P, columns), thread));
    pack_backward(s, w.back_ih, weights->w_ih[layer_dir], 4 * s->H, input, s->width,
                  lb_cpu_columns(s, lb_cpu_cover(input, s->width), thread));
}

void lb_cpu_pack_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *s = call->s;
    size_t first = thread / s->team_size * s->team_size; /* of its team */
    bool packs = first == 0 || s->copy_of[first - 1] != s->copy_of[first];
    for (size_t ld = 0; ld < s->layer_dirs && packs; ld++)
        pack_layer_dir(s, ld, thread, call->weights);
}

void lb_cpu_touch_work(void *arg, size_t thread)
{
    const struct lb_cpu_simd *s = ((const struct lb_cpu_call *)arg)->s;
    struct lb_cpu_range panels = lb_cpu_own_panels(s, thread, s->panels);
    size_t hidden = lb_cpu_gradient_columns(s, s->P);
    size_t count = (panels.to - panels.from) * s->width * s->sum_elem;
    if (thread % s->column_parts > 0) /* the first of those that share the panels does it */
        return;
    for (size_t ld = 0; ld < s->layer_dirs; ld++) {
        struct lb_cpu_gradients g = lb_cpu_gradients_of(s, ld);
        size_t input = lb_cpu_gradient_columns(s, lb_cpu_input(s, ld));
        memset(lb_cpu_sum_at(s, g.dw_ih, panels.from * input * s->width), 0, count * input);
        memset(lb_cpu_sum_at(s, g.dw_hh, panels.from * hidden * s->width), 0, count * hidden);
    }
}

/* One gate of a panel: from [columns, width] -> to [units, columns]. */
static void unpack_gate(const struct lb_cpu_simd *s, char *to, const char *from, size_t columns,
                        size_t units)
{
    double tile[TILE * TILE]; /* [units, TILE] of sum_elem */
    for (size_t first = 0; first < columns; first += TILE) {
        size_t part = lb_cpu_least(columns - first, TILE);
        transpose(s->sum_elem, tile, TILE, lb_cpu_sum_at(s, from, first * s->width),
                  s->width * s->sum_elem, part, units);
        for (size_t unit = 0; unit < units; unit++)
            lb_cpu_from_sums(s, lb_cpu_sum_at(s, tile, unit * TILE),
                             lb_cpu_at(s, to, unit * columns + first), part);
    }
}

/* from [panels, columns padded to stride, 4, simd_width] -> to [4H, columns], some of the panels.
 */
static void unpack(const struct lb_cpu_simd *s, void *to, const char *from, size_t columns,
                   size_t stride, struct lb_cpu_range panels)
{
    for (size_t panel = panels.from; panel < panels.to; panel++) {
        struct lb_cpu_range units = lb_cpu_panel_units(s, panel);
        for (size_t g = 0; g < 4; g++)
            unpack_gate(s, lb_cpu_at(s, to, (g * s->H + units.from) * columns),
                        lb_cpu_sum_at(s, from, panel * stride * s->width + g * s->simd_width),
                        columns, units.to - units.from);
    }
}

/* The thread's part of w_cell's gradient. */
static void unpack_cell(const struct lb_cpu_simd *s, char *to, const char *from, size_t thread)
{
    bool projects = s->problem.cell == LB_CELL_PROJECTION;
    size_t parts = projects ? lb_cpu_cover(s->P, s->simd_width) : s->cell_rows;
    struct lb_cpu_range own = lb_cpu_share(parts, s->threads, thread);
    for (size_t p = own.from; p < own.to; p++) {
        size_t first = p * s->simd_width, column = first % s->width;
        if (projects)
            unpack_gate(s, lb_cpu_at(s, to, first * s->H),
                        lb_cpu_sum_at(s, from, (first - column) * s->H + column), s->H,
                        lb_cpu_least(s->P - first, s->simd_width));
        else
            lb_cpu_from_sums(s, lb_cpu_sum_at(s, from, p * s->units), lb_cpu_at(s, to, p * s->H),
                             s->H);
    }
}

void lb_cpu_unpack_work(void *arg, size_t thread)
{
    const struct lb_cpu_call *call = arg;
    const struct lb_cpu_simd *s = call->s;
    const struct lb_gradients *to = call->gradients;
    struct lb_cpu_range panels = lb_cpu_share(s->panels, s->threads, thread);
    for (size_t ld = 0; ld < s->layer_dirs; ld++) {
        struct lb_cpu_gradients from = lb_cpu_gradients_of(s, ld);
        size_t input = lb_cpu_input(s, ld), hidden = s->P;
        unpack(s, to->dw_ih[ld], from.dw_ih, input, lb_cpu_gradient_columns(s, input), panels);
        unpack(s, to->dw_hh[ld], from.dw_hh, hidden, lb_cpu_gradient_columns(s, hidden), panels);
        unpack(s, to->db_ih[ld], from.db, 1, 1, panels);
        unpack(s, to->db_hh[ld], from.db, 1, 1, panels);
        if (s->cell_rows > 0)
            unpack_cell(s, to->dw_cell[ld], from.dw_cell, thread);
    }
}

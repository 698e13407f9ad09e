/* Packs recurrent weights in the rows that the step kernels read. */
#include "cuda/fused/step/tile.h"

#include <string.h>

static size_t round_up(size_t value, size_t unit)
{
    return (value + unit - 1) / unit * unit;
}

size_t lb_fused_step_row_bytes(const struct lb_fused_step_tile *tile, bool backward,
                               enum lb_dtype dtype, int64_t hidden)
{
    size_t depth = (size_t)hidden * (backward ? 4 : 1);
    return round_up(depth * lb_dtype_size(dtype), 64 * (size_t)tile->split);
}

size_t lb_fused_step_weight_bytes(const struct lb_fused_step_tile *tile, bool backward,
                                  enum lb_dtype dtype, int64_t hidden)
{
    size_t rows = (size_t)hidden * (backward ? 1 : 4);
    return round_up(rows, 16 * (size_t)tile->row_tiles) *
           lb_fused_step_row_bytes(tile, backward, dtype, hidden);
}

/* Rounds to the nearest TF32, ties away from zero, as cvt.rna does; infinities and NaN stay. */
static void round_to_tf32(void *value)
{
    uint32_t bits;
    memcpy(&bits, value, sizeof(bits));
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0x1000u) & 0xffffe000u;
    memcpy(value, &bits, sizeof(bits));
}

void lb_fused_step_pack(const struct lb_fused_step_tile *tile, bool backward, enum lb_dtype dtype,
                        enum lb_math math, int64_t hidden, const void *w_hh, void *packed)
{
    size_t row_bytes = lb_fused_step_row_bytes(tile, backward, dtype, hidden);
    size_t size = lb_dtype_size(dtype), h = (size_t)hidden;
    memset(packed, 0, lb_fused_step_weight_bytes(tile, backward, dtype, hidden));
    for (size_t q = 0; q < 4; q++) {
        for (size_t unit = 0; unit < h; unit++) {
            for (size_t from = 0; from < h; from++) {
                size_t row = backward ? from : 4 * unit + q;
                size_t column = backward ? 4 * unit + q : from;
                char *to = (char *)packed + row * row_bytes + column * size;
                memcpy(to, (const char *)w_hh + ((q * h + unit) * h + from) * size, size);
                if (dtype == LB_F32 && math != LB_IEEE)
                    round_to_tf32(to);
            }
        }
    }
}

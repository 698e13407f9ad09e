/* The quantisation of the precision int8, for one layer and direction. All values are f32. round is
 * to nearest even, limited to +-127. Layer 0 has x_max of struct lb_buffers, other layers have 1.
 *
 *     m    the largest of |w_ih x_max| and |w_hh| in a row of both, which is an output channel
 *
 *     w_q  round(w_ih x_max 127 / m) and round(w_hh 127 / m)
 *
 *     x_q  round(x 127 / x_max)
 *
 *     h_q  round(127 h)
 *
 *     a    w_q [x_q h_q] m / 127^2 + b_ih + b_hh
 *
 * The sum of products is an exact 32-bit integer. Because w_ih takes over the scale of x, it is one
 * sum. Activations may be stored as u8, with 128 added. The cell is computed in f32 from a, with
 * absolute errors that are small beside a 127th. */
#ifndef LB_INT8_H
#define LB_INT8_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* round(v factor) as above; -127 of NaN. */
static inline int8_t lb_int8_round(float v, float factor)
{
    float rounded = rintf(v * factor);
    return (int8_t)(rounded > 127 ? 127 : rounded > -127 ? rounded : -127);
}

/* 127 / most, the factor that takes values up to `most` to +-127; 0 where all values are 0. */
static inline float lb_int8_factor(float most)
{
    return most > 0 ? 127 / most : 0;
}

/* m of a row of w_ih [input] and w_hh [hidden]. */
static inline float lb_int8_channel(const float *w_ih, size_t input, float x_max, const float *w_hh,
                                    size_t hidden)
{
    float most = 0;
    for (size_t i = 0; i < input; i++)
        most = fmaxf(most, fabsf(w_ih[i] * x_max));
    for (size_t i = 0; i < hidden; i++)
        most = fmaxf(most, fabsf(w_hh[i]));
    return most;
}

#ifdef __cplusplus
}
#endif
#endif

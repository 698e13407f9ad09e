/* Which colour an implementation has, in pictures and in profilers' timelines. */
#ifndef LB_PALETTE_H
#define LB_PALETTE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LB_PALETTE_COUNT = 8 };

/* 0xRRGGBB, the colours of plots/style.gp in its order: 1 to 7 of Okabe & Ito, Color Universal
 * Design (2008), 8 a grey for the reference. Number n is lb_palette[n - 1]. */
extern const uint32_t lb_palette[LB_PALETTE_COUNT];

/* The number, from 1, of a colour that stays with an implementation from run to run; 0 when it has
 * none of its own and takes 5 or 7. */
int lb_palette_fixed(const char *impl);

/* 0xRRGGBB of an implementation: its own, or one of those two by its name. */
uint32_t lb_palette_color(const char *impl);

#ifdef __cplusplus
}
#endif
#endif

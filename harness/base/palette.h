/* The colour of each implementation, in pictures and in profilers' timelines. */
#ifndef LB_PALETTE_H
#define LB_PALETTE_H

#include <stdint.h>

enum { LB_PALETTE_COUNT = 12 };

/* The colours of plots/style.gp in its order, as 0xRRGGBB; number n is lb_palette[n - 1]. 1 to 7
 * are those of Okabe & Ito, Color Universal Design (2008), 8 is a grey for the reference, and 9 to
 * 12, of the frameworks, are dark ones of Paul Tol's scheme "muted" (Colour Schemes, 2021). */
extern const uint32_t lb_palette[LB_PALETTE_COUNT];

/* The number, from 1, of the colour that an implementation has in every run; 0 when it has no
 * colour of its own. */
int lb_palette_fixed(const char *impl);

/* The colour of an implementation as 0xRRGGBB. One without a colour of its own has number 5 or 7,
 * depending on its name. */
uint32_t lb_palette_color(const char *impl);
#endif

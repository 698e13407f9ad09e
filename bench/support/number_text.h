/* Numbers as people read them, on the terminal, in pictures and on the page. */
#ifndef LB_NUMBER_TEXT_H
#define LB_NUMBER_TEXT_H

/* "12.3 us", "1.05 s": three significant digits and a unit; "-" for NaN. */
void lb_format_ns(double ns, char text[32]);

/* "2.31": a ratio in three significant digits; "–" for NaN. */
void lb_format_ratio(double ratio, char text[32]);

#endif

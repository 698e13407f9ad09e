/* Numbers as people read them, on the terminal, in pictures and on the page. */
#ifndef LB_NUMBER_TEXT_H
#define LB_NUMBER_TEXT_H

/* "12.3 us", "1.05 s": three significant digits and a unit; "-" for NaN. */
void lb_format_ns(double ns, char text[32]);

/* "2.31": a ratio in three significant digits; "–" for NaN. */
void lb_format_ratio(double ratio, char text[32]);

/* "31 s", "3 min 5 s" or "2 h 3 min" from seconds. */
void lb_format_duration(double seconds, char text[32]);

/* "1:05" or "2:03:00" from seconds. */
void lb_format_clock(double seconds, char text[32]);

#endif

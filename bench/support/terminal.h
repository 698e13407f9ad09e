/* What the terminal can do, and how numbers look on it. */
#ifndef LB_TERMINAL_H
#define LB_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Escape sequences are wanted: the stream is a terminal and NO_COLOR is not set. */
bool lb_has_style(FILE *stream);

/* Columns of the stream's terminal; 80 when it is none. */
int lb_columns(FILE *stream);

/* Writes the text, which has no line ends, to go on from a column of the stream's terminal: broken
 * at spaces, later lines indented to that column. Where there is no terminal it stays one line, for
 * whoever searches it. */
void lb_print_wrapped(FILE *stream, int column, const char *text);

/* "12.3 us", "1.05 s": three significant digits and a unit; "-" for NaN. */
void lb_format_ns(double ns, char text[32]);

/* "2.31": a ratio in three digits, as many behind the point as tell something; "–" for NaN. */
void lb_format_ratio(double ratio, char text[32]);

/* "31 s", "3 min 5 s" or "2 h 3 min" from seconds. */
void lb_format_duration(double seconds, char text[32]);

/* "1:05" or "2:03:00" from seconds. */
void lb_format_clock(double seconds, char text[32]);

/* The text as one word of a shell's command line: in single quotes where it needs them. Four times
 * the text's length and three bytes are always enough. */
void lb_shell_word(const char *text, char *word, size_t size);

#endif

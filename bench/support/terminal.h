/* What the terminal can do, and texts that go to it. */
#ifndef LB_TERMINAL_H
#define LB_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

/* Whether the stream is a terminal that acts on escape sequences: TERM is not "dumb". */
bool lb_takes_escapes(FILE *stream);

/* Whether to write in bold and in colours: it takes escape sequences and NO_COLOR is not set. */
bool lb_has_style(FILE *stream);

/* Writes "warning: " and the text to stderr, unless the text is empty. */
void lb_warn(const char *text);

/* Whether nobody can read what is written to the stream any more: its pipe was closed at the other
 * end, or its terminal is gone. */
bool lb_reader_left(FILE *stream);

/* Columns of the stream's terminal; 80 when it is no terminal. */
int lb_columns(FILE *stream);

/* Writes a text without line ends from a column on: it is broken at spaces into lines that end
 * before `columns`, and later lines are indented to that column. */
void lb_print_lines(FILE *stream, int column, int columns, const char *text);

/* The same with the columns of the stream's terminal. Without one the text stays one line, so that
 * it can be searched. */
void lb_print_wrapped(FILE *stream, int column, const char *text);

/* Writes the label to stdout, and behind it the text, wrapped likewise, and a line end. */
void lb_print_labelled(const char *label, const char *text);

/* The text as one word of a shell's command line, in single quotes where it needs them. Four times
 * the text's length plus four bytes are always enough. */
void lb_shell_word(const char *text, char *word, size_t size);

/* "2.31": a ratio in three significant digits; "–" for NaN. */
void lb_format_ratio(double ratio, char text[32]);

#endif

/* Texts for people, the terminal that they go to, and the progress of a sweep on it. */
#ifndef LB_TEXTS_H
#define LB_TEXTS_H

#include <stdio.h>

#include "record/record.h"

/* Texts of cases, rows and numbers as expressions: LB_NS_TEXT(row->median_ns). A text lives until
 * the end of the block in which its macro stands. */

/* The texts that lb_case_print, lb_case_print_problem and lb_row_print_id print. */
#define LB_CASE_TEXT(c)    lb_case_text((c), (char[LB_CASE_ID_SIZE]){""})
#define LB_PROBLEM_TEXT(c) lb_problem_text((c), (char[LB_CASE_ID_SIZE]){""})
#define LB_ROW_ID(row)     lb_row_id((row), (char[LB_ROW_ID_SIZE]){""})

/* "impl" or "impl:variant". */
#define LB_IMPL_LABEL(c) lb_impl_label((c), (char[2 * LB_NAME_SIZE]){""})

/* "12.3 us", "1.05 s": three significant digits and a unit; "-" for what is not finite. */
#define LB_NS_TEXT(ns) lb_ns_text((ns), (char[32]){""})

/* The text that lb_format_bytes writes. */
#define LB_BYTES_TEXT(bytes) lb_bytes_text((bytes), (char[32]){""})

/* Each of these returns the buffer that it is given, or a constant text. */
const char *lb_case_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);
const char *lb_problem_text(const struct lb_case *c, char text[LB_CASE_ID_SIZE]);
const char *lb_row_id(const struct lb_row *row, char id[LB_ROW_ID_SIZE]);
const char *lb_impl_label(const struct lb_case *c, char label[2 * LB_NAME_SIZE]);
const char *lb_ns_text(double ns, char text[32]);
const char *lb_bytes_text(double bytes, char text[32]);

/* Whether to write in bold and in colours: the stream is a terminal that acts on escape sequences,
 * because TERM is not "dumb", and NO_COLOR is not set. */
bool lb_has_style(FILE *stream);

/* Writes "warning: " and the text to stderr, unless the text is empty. */
void lb_warn(const char *text);

/* Whether nobody can read what is written to the stream any more: its pipe was closed at the other
 * end, or its terminal is gone. */
bool lb_reader_left(FILE *stream);

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

/* Progress of a sweep on stderr: one line that is redrawn on a terminal, else a new line every ten
 * seconds. */
struct lb_progress {
    size_t total, done; /* of cases, or of the rounds or blocks that they are repeated in */
    size_t failed, skipped;
    double start_ns, last_ns;
    bool terminal;
    bool quiet; /* shows nothing; to be set after the start */
};

void lb_progress_start(struct lb_progress *progress, size_t total);

/* Shows which case runs now. id: its text. */
void lb_progress_case(struct lb_progress *progress, const char *id);

/* Counts a finished case or round. failed, skipped: the case ended so. */
void lb_progress_done(struct lb_progress *progress, bool failed, bool skipped);

/* Clears the line, so that something else can be written. */
void lb_progress_clear(const struct lb_progress *progress);

#endif

/* Texts of cases, rows and numbers for people, as expressions:
 *
 *     printf("%s: %s\n", LB_CASE_TEXT(&row->c), LB_NS_TEXT(row->median_ns));
 *
 * A text lives until the end of the block in which its macro stands. */
#ifndef LB_TEXTS_H
#define LB_TEXTS_H

#include "record/record.h"

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

#endif

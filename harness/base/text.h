/* Building texts in buffers, cleaning texts that come from outside the program, and reading the
 * small files in which the system describes itself. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Appends formatted text to the string in a buffer of that size. What does not fit is cut off
 * between two UTF-8 characters. */
void lb_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The length in bytes of the UTF-8 character at the start. 0 when there is no valid one: a stray or
 * incomplete sequence, an overlong form, a surrogate, or a code above U+10FFFF. Source: RFC 3629,
 * section 4. */
size_t lb_character_bytes(const char *text);

/* Changes the text in place into valid UTF-8 that is safe to print on a terminal: a byte that is
 * not part of a character becomes '?', and a control character (C0, DEL, C1) becomes a space. The
 * text never grows. */
void lb_clean_text(char *text);

/* Reads the first line of the file, without its newline. False, and line "", where there is none.
 */
bool lb_read_line(const char *path, char *line, size_t size);

/* The number behind `word`, which begins a line of the file; with "" that of the first line. NaN
 * where there is no such line or no number in it. */
double lb_read_number(const char *path, const char *word);

#ifdef __cplusplus
}
#endif
#endif

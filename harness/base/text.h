/* Building texts in buffers, cleaning texts that come from outside the program, taking them from
 * JSON, and reading the small files in which the system describes itself. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct json_t;

/* Appends formatted text to the string in a buffer of that size. What does not fit is cut off
 * between two UTF-8 characters. */
void lb_append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Copies the next item of a list with commas between, cut to that size, and moves *list behind it.
 * False when there is none left: *list is NULL. */
bool lb_next_item(const char **list, char *item, size_t size);

/* Writes "12.3 GiB" or "64 B" into text, or "more than any memory" of what is not finite. */
void lb_format_bytes(double bytes, char text[32]);

/* Changes the text in place, without growing, into valid UTF-8 that is safe on a terminal: a byte
 * that is not part of a character becomes '?', a control character (C0, DEL, C1) a space. */
void lb_clean_text(char *text);

bool lb_is_utf8(const char *text);

/* The text under a key of a JSON object; fallback, which may be NULL, where there is none. */
const char *lb_json_text(const struct json_t *object, const char *key, const char *fallback);

/* The number of the text in a JSON object that serves as a table. A new text gets the number
 * `next`. */
size_t lb_json_number(struct json_t *table, const char *text, size_t next);

/* Reads the rest of the first line of the file that begins with `word`, without its newline; with
 * "" the first line. False, and text "", where there is none. */
bool lb_read_line(const char *path, const char *word, char *text, size_t size);

/* The number at the start of what lb_read_line reads; NaN where there is none. */
double lb_read_number(const char *path, const char *word);
#endif

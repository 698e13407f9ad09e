/* Text that comes from outside the program: from implementations, libraries and files. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The length in bytes of the UTF-8 character at the start. 0 when there is no valid one: a stray or
 * incomplete sequence, an overlong form, a surrogate, or a code above U+10FFFF. Source: RFC 3629,
 * section 4. */
size_t lb_character_bytes(const char *text);

/* Changes the text in place into valid UTF-8 that is safe to print on a terminal: a byte that is
 * not part of a character becomes '?', and a control character (C0, DEL, C1) becomes a space. The
 * text never grows. */
void lb_clean_text(char *text);

#ifdef __cplusplus
}
#endif
#endif

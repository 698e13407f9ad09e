/* Text that comes from outside the program: from implementations, libraries and files. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Changes the text in place into valid UTF-8 that is safe to print on a terminal: a byte that is
 * not part of a character becomes '?', and a control character (C0, DEL, C1) becomes a space. The
 * text never grows. */
void lb_clean_text(char *text);

#ifdef __cplusplus
}
#endif
#endif

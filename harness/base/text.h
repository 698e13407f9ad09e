/* Text from outside the project: implementations, libraries, files. */
#ifndef LB_TEXT_H
#define LB_TEXT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the text valid UTF-8 that a terminal can be given, in place: a byte that is part of no
 * character becomes '?', a control character (C0, DEL, C1) a space. It never grows. */
void lb_clean_text(char *text);

#ifdef __cplusplus
}
#endif
#endif

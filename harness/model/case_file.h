/* Case files: one problem or whole case per line, as in bench/cases/.
 *
 *     # comment
 *     T25_B16_I512_H512                   dtype, pass and the rest are left to the axes
 *     cudnn/T25_B16_I512_H512/f16/train   a whole case
 *
 * A comment may follow a case. Blanks around a case, CRLF line ends and a missing last newline are
 * accepted. */
#ifndef LB_CASE_FILE_H
#define LB_CASE_FILE_H

#include "model/case.h"

struct lb_case_line {
    struct lb_case c;
    unsigned given; /* an or of LB_GIVEN: which fields the line gave */
    size_t source;  /* index in lb_case_list.sources */
    size_t line;    /* number of the line, from 1; 0: the source is a flag, not a file */
    size_t column;  /* where the case text begins in its line, from 1 */
};

/* Cases from any number of files and texts, in the order in which they were read. A zeroed list is
 * empty. */
struct lb_case_list {
    struct lb_case_line *lines; /* [count], owned */
    size_t count;
    char **sources; /* [source_count] paths of files and names of flags, owned */
    size_t source_count;
};

void lb_case_list_free(struct lb_case_list *list); /* accepts a zeroed list and leaves it zeroed */

/* Appends the cases of a file. LB_INVALID when the file can't be read or has no case, or when a
 * line is malformed; err then gives "path:line:column", what is wrong and what is allowed. */
enum lb_status lb_case_list_read(struct lb_case_list *list, const char *path, struct lb_error *err);

/* Appends one case text; source is the flag that gave it, for messages. LB_INVALID: the text is
 * malformed. */
enum lb_status lb_case_list_add(struct lb_case_list *list, const char *source, const char *text,
                                struct lb_error *err);

/* Writes where a line came from into text [size]: "bench/cases/quick.txt:7:1" or "--case". Returns
 * text. */
const char *lb_case_line_origin(const struct lb_case_list *list, const struct lb_case_line *line,
                                char *text, size_t size);
#endif

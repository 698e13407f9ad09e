/* Case files: one problem or whole case a line, as in bench/cases/.
 *
 *     # comment
 *     T25_B16_I512_H512                   dtype, pass and the rest are left to the axes
 *     cudnn/T25_B16_I512_H512/f16/train   a whole case
 *
 * A comment may follow a case; blanks around it, CRLF and a missing last newline are tolerated. */
#ifndef LB_CASE_FILE_H
#define LB_CASE_FILE_H

#include "model/case.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_case_line {
    struct lb_case c;
    unsigned given; /* enum lb_given: what the line said by itself */
    size_t source;  /* index of lb_case_list.sources */
    size_t line;    /* from 1; 0: the source is no file */
    size_t column;  /* of the case text in its line, from 1 */
};

/* Cases of any number of files and texts, in the order they were read. Zeroed: empty. */
struct lb_case_list {
    struct lb_case_line *lines; /* [count], owned */
    size_t count, capacity;
    char **sources; /* [source_count] paths and flags, owned */
    size_t source_count;
};

void lb_case_list_free(struct lb_case_list *list); /* accepts a zeroed one, and leaves one */

/* Appends the cases of a file. LB_INVALID names the path when it can't be read or holds no case,
 * and "path:line:column" with what is wrong and what is allowed for a malformed line; LB_OOM. */
enum lb_status lb_case_list_read(struct lb_case_list *list, const char *path, struct lb_error *err);

/* Appends one case text; source is the flag that gave it, for messages. LB_INVALID, LB_OOM. */
enum lb_status lb_case_list_add(struct lb_case_list *list, const char *source, const char *text,
                                struct lb_error *err);

/* Where a line came from: "bench/cases/quick.txt:7:1" or "--case"; returns text. */
const char *lb_case_line_origin(const struct lb_case_list *list, const struct lb_case_line *line,
                                char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif

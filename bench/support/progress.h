/* Progress of a sweep on stderr: one line that is redrawn on a terminal, else a new line every ten
 * seconds. */
#ifndef LB_PROGRESS_H
#define LB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

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

/* Progress of a sweep on stderr: a line that is redrawn on a terminal, else a line now and then. */
#ifndef LB_PROGRESS_H
#define LB_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>

struct lb_progress {
    size_t total, done; /* cases, or what they are repeated in: rounds, blocks */
    size_t failed, skipped;
    double start_ns, last_ns;
    bool terminal;
};

void lb_progress_start(struct lb_progress *progress, size_t total);

/* Shows what runs now. id: the case's text. */
void lb_progress_case(struct lb_progress *progress, const char *id);

/* Counts a finished case or round; failed and skipped say so of a case. */
void lb_progress_done(struct lb_progress *progress, bool failed, bool skipped);

/* Leaves the line. */
void lb_progress_end(struct lb_progress *progress);

#endif

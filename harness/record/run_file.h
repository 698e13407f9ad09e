/* The file of a run, run.jsonl: one JSON object a line, appended as cases finish.
 *
 *     {"kind":"header","schema":1,"started":"2026-01-31T12:00:00Z","environment":{...},...}
 *     {"kind":"row",...}                            one a case, see record.h
 *     {"kind":"resume","started":...,...}           where an interrupted run went on
 *     {"kind":"footer","finished":...,"rows":12,"interrupted":false}
 *
 * A line is written by one write(2), so that a run killed at any time leaves whole lines and at
 * most one torn line at the end, which readers ignore and a resume cuts off. Lines survive the
 * death of the process, not of the machine: there is no fsync, which would disturb the timing. */
#ifndef LB_RUN_FILE_H
#define LB_RUN_FILE_H

#include <sys/types.h>

#include "record/record.h"

#define LB_RUN_FILE_NAME "run.jsonl"

/* folder/run.jsonl, for the caller to free; NULL when memory runs out. */
char *lb_run_path(const char *folder);

/* A run as read back. */
struct lb_run {
    json_t *header;  /* object: schema, started, environment, command, seed, ... */
    json_t *resumes; /* array of the objects that later sittings appended; empty when there are
                        none */
    struct lb_row *rows;
    size_t count;
    size_t duplicates; /* rows that a later row of the same case replaced */
    bool finished;     /* the last line is a footer */
    bool interrupted;  /* that footer says that the run was stopped early */
    bool torn;         /* there was a torn line after the last whole one */
    off_t whole_bytes; /* up to the end of the last whole line */
};

void lb_run_free(struct lb_run *run); /* accepts a zeroed one */

/* Reads a run; path is run.jsonl, under whatever name, or the folder that holds it.
 * LB_IO when it can't be read, LB_INVALID when it is no run or one of another schema version:
 * one line that names the file, the line and what is wrong with it. */
enum lb_status lb_run_read(const char *path, struct lb_run *run, struct lb_error *err);

/* A run being written. Zero it before use. */
struct lb_run_file {
    char *path; /* of run.jsonl */
    int fd;     /* open while path is set; holds the lock; not inherited by other programs */
    off_t size; /* up to the end of the last whole line */
    bool torn;  /* half a line lies behind that, which lb_run_resume cuts off */
    size_t rows;
};

/* Makes the folder if need be (its parent must be there), locks and starts run.jsonl in it.
 * details is an object that is borrowed: its keys (environment, command, seed, ...) follow kind,
 * schema and started in the header.
 * LB_INVALID when a run is there already (it says to use --resume) or is being written by another
 * process; LB_IO when the folder can't be made or written. A folder made is removed on failure. */
enum lb_status lb_run_create(const char *folder, const json_t *details, struct lb_run_file *file,
                             struct lb_error *err);

/* Locks the run in the folder and reads it. The file stays as it is, so that a caller may still
 * find that it can't go on. The caller owns both results. Errors as those of lb_run_read and
 * lb_run_create. */
enum lb_status lb_run_open(const char *folder, struct lb_run_file *file, struct lb_run *run,
                           struct lb_error *err);

/* Goes on with a run that was opened: cuts off a torn tail and appends a resume line with the
 * details, an object that is borrowed (environment, command). LB_IO. */
enum lb_status lb_run_resume(struct lb_run_file *file, const json_t *details, struct lb_error *err);

/* Appends one row. On LB_IO (disk full, file too large) the file again ends with its last whole
 * line, and a later append may succeed. The process should ignore SIGXFSZ. */
enum lb_status lb_run_append(struct lb_run_file *file, const struct lb_row *row,
                             struct lb_error *err);

/* Appends the footer. */
enum lb_status lb_run_finish(struct lb_run_file *file, bool interrupted, struct lb_error *err);

void lb_run_close(struct lb_run_file *file); /* accepts a zeroed or closed one */

#endif

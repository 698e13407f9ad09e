/* The file of a run, run.jsonl: one JSON object per line, appended as cases finish.
 *
 *     {"kind":"header","schema":2,"started":"2026-01-31T12:00:00Z","environment":{...},...}
 *     {"kind":"row",...}                            one per case, see record.h
 *     {"kind":"canary",...}                         a row beside the run's own: see canaries.h
 *     {"kind":"resume","started":...,...}           an interrupted run was resumed here
 *     {"kind":"footer","finished":...,"rows":12,"interrupted":false}
 *
 * Each line is written by one write(2), so a run that is killed at any time leaves whole lines and
 * at most one torn line at the end. Readers ignore a torn line, and a resume cuts it off. Lines
 * survive when the process dies, but perhaps not when the machine does: there is no fsync, because
 * it would disturb the timing. */
#ifndef LB_RUN_FILE_H
#define LB_RUN_FILE_H

#include <sys/types.h>

#include "record/record.h"

#define LB_RUN_FILE_NAME "run.jsonl"

/* folder/run.jsonl; the caller frees it. */
char *lb_run_path(const char *folder);

/* The folder of a run that is named by its folder, whatever that is called, or by its file,
 * NAME.jsonl. */
void lb_run_folder(const char *name, char *folder, size_t size);

/* A run that was read from its file. */
struct lb_run {
    json_t *header;       /* object: schema, started, environment, command, seed, ... */
    json_t *environments; /* array of objects: those of the header, of which a merged run has more
                             than one, and of later sessions; rows refer to them by number */
    json_t *labels;       /* array of strings, one per environment; NULL until lb_run_arrange */
    json_t *resumes;      /* array of the resume lines, one for each later session of the run */
    json_t *footer;       /* the last footer; NULL: there is none */
    struct lb_row *rows;
    size_t count;
    bool finished;     /* the last line is a footer */
    bool interrupted;  /* that footer says that the run was stopped early */
    bool torn;         /* there is a torn line after the last whole one */
    bool other_schema; /* lb_run_read refused it for its schema version; nothing else is set */
    bool empty; /* lb_run_read refused it because it has no whole line; nothing else is set */
    off_t whole_bytes; /* bytes up to the end of the last whole line */
    char doubt[640];   /* why no comparison may rest on it, with the file's name and without control
                          characters; "" when it is sound */
};

void lb_run_free(struct lb_run *run); /* accepts a zeroed run */

/* Reads a run. path is the file, which may have any name, or the folder that contains run.jsonl.
 * LB_IO: it can't be read. LB_INVALID: it is no regular file, it is not a run, or has another
 * schema version. A doubtful run is read: the caller says run->doubt, or refuses the run. */
enum lb_status lb_run_read(const char *path, struct lb_run *run, struct lb_error *err);

/* Takes a row or a canary as it is read. object: its line, with "started", when its session began;
 * borrowed, and may be changed. */
typedef void lb_run_visitor(void *user, const struct lb_row *row, json_t *object, bool canary);

/* Reads a run as lb_run_read does, but hands each row and each canary to visit and keeps none of
 * them: run->rows is NULL, and run->count the number of cases. visit NULL: lb_run_read. */
enum lb_status lb_run_visit(const char *path, lb_run_visitor *visit, void *user, struct lb_run *run,
                            struct lb_error *err);

/* A run that is being written. Zero it before use. */
struct lb_run_file {
    char *path; /* of run.jsonl */
    int fd;     /* open while path is set; holds the lock; closed on exec */
    off_t size; /* bytes up to the end of the last whole line */
    size_t rows;
};

/* Creates the folder and its parents where they are missing, and creates and locks run.jsonl in it,
 * with a header that has the keys of details, a borrowed object. LB_INVALID: the folder has a run
 * already, or another process is writing one. LB_IO: the folder can't be created or written. */
enum lb_status lb_run_create(const char *folder, const json_t *details, struct lb_run_file *file,
                             struct lb_error *err);

/* Locks the run in the folder and reads it; the caller may still decide not to resume, closes file
 * and frees run. Errors are those of lb_run_read and lb_run_create. */
enum lb_status lb_run_open(const char *folder, struct lb_run_file *file, struct lb_run *run,
                           struct lb_error *err);

/* Resumes a run that was opened: cuts off a torn line and appends a resume line with details, a
 * borrowed object (environment, command). LB_IO. */
enum lb_status lb_run_resume(struct lb_run_file *file, const json_t *details, struct lb_error *err);

/* Appends one row. LB_IO: the disk is full or the file too large, and the file still ends with its
 * last whole line; or the file was deleted, moved or replaced, so that nobody would find what is
 * appended. The process should ignore SIGXFSZ. */
enum lb_status lb_run_append(struct lb_run_file *file, const struct lb_row *row,
                             struct lb_error *err);

/* Appends the row of a canary, which readers of the run leave out. when: "start" or "end" of a
 * session. Errors are those of lb_run_append. */
enum lb_status lb_run_append_canary(struct lb_run_file *file, const struct lb_row *row,
                                    const char *when, struct lb_error *err);

/* Finds the number of an environment among those of a run, by its identity
 * (lb_environment_identity); a new one is added to the array. */
size_t lb_run_find_environment(json_t *environments, json_t *environment);

/* Appends the footer. Errors are those of lb_run_append. */
enum lb_status lb_run_finish(struct lb_run_file *file, bool interrupted, struct lb_error *err);

void lb_run_close(struct lb_run_file *file); /* accepts a zeroed or closed file */

/* Results of several devices or nodes in one run: keeping them apart, or side by side. */

enum lb_by {
    LB_BY_DEFAULT, /* by device, each on pages and under problems of its own */
    LB_BY_DEVICE,  /* by device, side by side: a series of its own for each */
    LB_BY_NODE,    /* by host and GPU, side by side */
    LB_BY_NONE     /* all together, as if they were one device */
};

/* Gives labels to the rows of the runs [count] that need them, and combines the rows of one case
 * and one label, as if they came from several processes of one run. Devices are told apart by
 * lb_environment_kind. With LB_BY_DEFAULT, rows get labels only when one of the runs alone has
 * several devices; with the other values, when the runs together have several. A run must be
 * arranged at most once. */
void lb_run_arrange(struct lb_run *runs, size_t count, enum lb_by by);

/* Calls lb_run_read and lb_run_arrange for this run alone. */
enum lb_status lb_run_read_by(const char *path, enum lb_by by, struct lb_run *run,
                              struct lb_error *err);

/* Writes one line that tells where the run was measured: the environment or, when there are
 * several, their number and the devices. */
void lb_run_machine_line(const struct lb_run *run, char *line, size_t size);

#endif

/* Merging the runs of several machines, such as the shards of a sweep, into one run.
 *
 * Rows are read one at a time: an index keeps about 150 bytes of each, whatever the number of its
 * samples, and their lines are read again when the result is written. */
#ifndef LB_RUN_MERGE_H
#define LB_RUN_MERGE_H

#include <jansson.h>

#include "record/run_file.h"

/* Where a row or a canary is, and what identifies it. */
struct lb_merge_line {
    char *id;         /* the case's text; owned */
    json_t *started;  /* when its session began; NULL: unknown; owned */
    double median_ns; /* NaN: it has no time */
    off_t offset;     /* of the line in its file */
    uint32_t length, file, environment;
    bool canary;
    bool ran; /* false: its verdict is "skipped" */
    bool dropped;
};

/* Zero it before use. */
struct lb_merge {
    char **paths; /* [files] owned */
    int *fds;     /* [files] open for reading lines again, or -1; owned */
    size_t files;
    struct lb_merge_line *lines; /* [count]; owned */
    size_t count, capacity;
    json_t *environments; /* array of objects */
    json_t *warnings;     /* object: from an environment's number, as text, to its warning */
    json_t *header;       /* of the first run, but for "started": that of the earliest */
    char finished[32];    /* when the last of the runs ended; "": unknown */
    char plan[17];        /* hash of the plan that runs are shards of; "": none is a shard */
    json_t *shards;       /* array, one per shard of the plan: the shard, or null while missing */
    size_t rows;          /* of the result */
    size_t replaced;      /* rows that a later row of the same case and environment replaced */
    size_t skipped;       /* rows of skipped cases that another row has */
    size_t unfinished;    /* runs without a footer, or interrupted */
};

void lb_merge_free(struct lb_merge *merge);

/* Indexes one run.jsonl, which may be a result of merging. The file must not change until
 * lb_merge_write has returned. LB_INVALID, with both values: its seed, the hash of the weights or
 * inputs that a file gave, or the plan that it is a shard of is another one than that of the runs
 * before it; or it is one side of --ab. Other errors are those of lb_run_read. */
enum lb_status lb_merge_add(struct lb_merge *merge, const char *path, struct lb_error *err);

/* Sorts the lines and drops those that others replace: a row that ran replaces one that was
 * skipped, and one of a later session replaces one of the same case and environment. Call it once,
 * after the last lb_merge_add. */
void lb_merge_sort(struct lb_merge *merge);

/* Sets the node_warning of all rows of the environment. LB_OOM. */
enum lb_status lb_merge_warn(struct lb_merge *merge, size_t environment, const char *warning,
                             struct lb_error *err);

/* Writes the result into the folder, which is created if it is missing. An earlier result of
 * merging in it is replaced. LB_INVALID: the folder holds a run that is not a result of merging.
 * LB_IO, LB_OOM. */
enum lb_status lb_merge_write(struct lb_merge *merge, const char *folder, struct lb_error *err);

#endif

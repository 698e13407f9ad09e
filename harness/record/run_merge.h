/* Merging the runs of several machines, such as the shards of a sweep, into one run.
 *
 * Rows are copied as text and never held in memory: an index keeps about 150 bytes per row,
 * whatever the number of its samples. The result depends on the rows alone, not on the order of the
 * runs, and merging a result again gives the same file. */
#ifndef LB_RUN_MERGE_H
#define LB_RUN_MERGE_H

#include <jansson.h>

#include "record/run_file.h"

struct lb_merge;

/* The time of a canary, one of the cases that every shard begins and ends with. */
struct lb_merge_canary {
    size_t environment;
    const char *id; /* the case's text */
    double median_ns;
};

struct lb_merge_counts {
    size_t runs, rows; /* rows of the result */
    size_t replaced;   /* rows that a later row of the same case and environment replaced */
    size_t skipped;    /* rows of skipped cases that another environment has run */
    size_t unfinished; /* runs without a footer, or interrupted */
};

/* LB_OOM. */
enum lb_status lb_merge_create(struct lb_merge **merge, struct lb_error *err);
void lb_merge_destroy(struct lb_merge *merge); /* accepts NULL */

/* Indexes one run.jsonl, which may be a result of merging. The file must not change until
 * lb_merge_write has returned. LB_INVALID: it is not a run, its schema version is another one,
 * its seed, or the hash of the weights or inputs that a file gave, differs from that of the runs
 * before it (err has both values), or it is one side of --ab. LB_IO, LB_OOM. */
enum lb_status lb_merge_add(struct lb_merge *merge, const char *path, struct lb_error *err);

/* Sorts the index. Call it once, after the last lb_merge_add and before the functions below.
 * LB_OOM. */
enum lb_status lb_merge_sort(struct lb_merge *merge, struct lb_error *err);

struct lb_merge_counts lb_merge_counts(const struct lb_merge *merge);

/* The environments of the result, an array of objects; borrowed. */
const json_t *lb_merge_environments(const struct lb_merge *merge);

/* The canaries of all runs that have a time; borrowed. */
const struct lb_merge_canary *lb_merge_canaries(const struct lb_merge *merge, size_t *count);

/* Writes which shards are missing, such as "shards 3, 7 of 8 are missing", with a part for each
 * plan, and says so when there is more than one plan. "" when none is missing. */
void lb_merge_missing(const struct lb_merge *merge, char *text, size_t size);

/* Sets the node_warning of all rows of the environment. LB_OOM. */
enum lb_status lb_merge_warn(struct lb_merge *merge, size_t environment, const char *warning,
                             struct lb_error *err);

/* Writes the result into the folder, which is created if it is missing. An earlier result of
 * merging in it is replaced. LB_INVALID: the folder holds a run that is not a result of merging.
 * LB_IO, LB_OOM. */
enum lb_status lb_merge_write(struct lb_merge *merge, const char *folder, struct lb_error *err);

#endif

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

/* A canary that was measured: one of the cases that every shard begins and ends with. */
struct lb_merge_canary {
    size_t environment;
    const char *id; /* the case's text */
    double median_ns;
};

struct lb_merge_counts {
    size_t runs, rows; /* rows of the result */
    size_t replaced;   /* rows that gave way to a later row of the same case and environment */
    size_t skipped;    /* rows of skipped cases that another environment has run */
    size_t unfinished; /* runs without a footer, or interrupted */
};

/* LB_OOM. */
enum lb_status lb_merge_create(struct lb_merge **merge, struct lb_error *err);
void lb_merge_destroy(struct lb_merge *merge); /* accepts NULL */

/* Indexes one run.jsonl, which may be a result of merging, and must stay as it is until
 * lb_merge_write. LB_INVALID: it is no run, has another schema, another seed than the runs before
 * it (err has both), or is one side of --ab. LB_IO, LB_OOM. */
enum lb_status lb_merge_add(struct lb_merge *merge, const char *path, struct lb_error *err);

/* Sorts what was added; call it once, before what follows. LB_OOM. */
enum lb_status lb_merge_sort(struct lb_merge *merge, struct lb_error *err);

struct lb_merge_counts lb_merge_counts(const struct lb_merge *merge);

/* The environments of the result, an array of objects; borrowed. */
const json_t *lb_merge_environments(const struct lb_merge *merge);

/* The canaries of all runs with a time; borrowed. */
const struct lb_merge_canary *lb_merge_canaries(const struct lb_merge *merge, size_t *count);

/* Which shards are missing, a sentence per plan: "shards 3 and 7 of 8 are missing"; "" when none
 * is. A second plan shows as further sentences. */
void lb_merge_missing(const struct lb_merge *merge, char *text, size_t size);

/* The rows of the environment get this node_warning. LB_OOM. */
enum lb_status lb_merge_warn(struct lb_merge *merge, size_t environment, const char *warning,
                             struct lb_error *err);

/* Writes the result into the folder, which is created if it is missing and may hold an earlier
 * result, which is then replaced. LB_INVALID: it holds a run that is no result of merging. LB_IO,
 * LB_OOM. */
enum lb_status lb_merge_write(struct lb_merge *merge, const char *folder, struct lb_error *err);

#endif

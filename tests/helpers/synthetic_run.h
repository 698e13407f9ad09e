/* Runs made up for tests: rows whose times follow a simple law with seeded noise. Nothing in them
 * was measured. */
#ifndef LB_SYNTHETIC_H
#define LB_SYNTHETIC_H

#include "record/run_file.h"
#include "report/compare.h"

/* A header as lb_run_create writes it, with a synthetic environment. */
json_t *synthetic_header(void);

/* A row of the case with the verdict; an ok row has samples of about median_ns in blocks. */
struct lb_row synthetic_row(const char *case_text, enum lb_verdict verdict, double median_ns,
                            size_t blocks, size_t samples_per_block);

/* A plausible time of one call of the case: a cost per step, and arithmetic at a fixed rate. */
double synthetic_ns(const struct lb_case *c);

struct synthetic_grid {
    const char *const *impls;            /* ends with NULL, like all of these */
    const int *seq_len, *batch, *hidden; /* end with 0 */
    const char *const *tails;            /* "f32/infer" */
    bool failures; /* some rows are unsupported, wrong, oom, crashed, timed out, missing */
};

/* A run with a row for each combination. */
struct lb_run synthetic_run(const struct synthetic_grid *grid);

/* A run without rows. */
struct lb_run synthetic_empty(void);

/* Appends a case of so many processes, ten samples each, whose medians scatter by half a percent
 * about the level. */
void synthetic_add_processes(struct lb_run *run, const char *case_text, double level,
                             size_t processes, uint64_t seed);

/* The comparison of two runs with the options that --compare has by default. */
struct lb_run_comparison synthetic_compare(const struct lb_run *base, const struct lb_run *now);

/* Frees a comparison and the runs that it compares. */
void synthetic_free(struct lb_run_comparison *comparison, struct lb_run *base, struct lb_run *now);

/* Appends a row; the run takes ownership of it. */
void synthetic_add(struct lb_run *run, struct lb_row row);

#endif

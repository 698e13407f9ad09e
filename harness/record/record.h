/* One row of a run: what a case was, whether it was right, and how long it took. */
#ifndef LB_RECORD_H
#define LB_RECORD_H

#include <jansson.h>

#include "model/case.h"
#include "record/gpu_kernels.h"

#define LB_SCHEMA_VERSION 1

enum lb_verdict {
    LB_VERDICT_OK,
    LB_VERDICT_WRONG,       /* ran, and the answer is not the oracle's */
    LB_VERDICT_UNSUPPORTED, /* the implementation says why not */
    LB_VERDICT_ABSENT,      /* not built, or no device */
    LB_VERDICT_OOM,
    LB_VERDICT_TIMEOUT,
    LB_VERDICT_CRASH,
    LB_VERDICT_ERROR,   /* an implementation or library reported a failure */
    LB_VERDICT_SKIPPED, /* the time budget ran out */
    LB_VERDICT_COUNT
};

const char *lb_verdict_name(enum lb_verdict verdict); /* "ok", "wrong", ... */

/* wrong, timeout, crash and error: a run that holds one ends with exit code 1. */
bool lb_verdict_is_failure(enum lb_verdict verdict);

enum lb_stop_reason {
    LB_STOP_NONE,        /* nothing was sampled */
    LB_STOP_PRECISION,   /* the median's interval is narrow enough */
    LB_STOP_PLATEAU,     /* more samples no longer narrow it */
    LB_STOP_TIME,        /* the case's time ran out */
    LB_STOP_COUNT_LIMIT, /* the largest number of samples was reached */
    LB_STOP_COUNT
};

const char *lb_stop_reason_name(enum lb_stop_reason reason); /* "none", "precision", ... */

/* Unknown numbers are NaN here and null in JSON. Times in ns. */
struct lb_row {
    struct lb_case c;
    enum lb_verdict verdict;
    char reason[512];      /* of any verdict but ok */
    char description[512]; /* what actually ran, in the implementation's words */
    char warning[256];     /* an ok row's caveat, or "" */

    double err_max_abs, err_max_rel, err_norm; /* against the oracle */
    uint64_t hash;                             /* of the checked result's bits; 0 unknown */

    double prepare_ns; /* create, sizes and prepare */
    double verify_ns;  /* oracle, checked calls and comparison */
    double elapsed_ns; /* the whole case */

    double *samples_ns; /* [samples] each the time of one call; owned by the row */
    size_t samples;
    size_t *blocks; /* [block_count] samples in each block, in order; owned by the row */
    size_t block_count;
    size_t *processes; /* [process_count] blocks in each process, in order; owned by the row */
    size_t process_count;
    double calls_per_sample; /* 1 isolated, N batched; the mean where blocks chose different N */
    enum lb_stop_reason stop_reason;

    /* Derived from samples_ns; recomputed by readers. */
    double min_ns, median_ns, median_lo_ns, median_hi_ns, p5_ns, p95_ns, mad_ns;
    double outliers_mild, outliers_severe; /* counts, see lb_find_anomalies */
    double spread_within;                  /* relative, of a block's samples about their median */
    double spread_between;                 /* relative, of the units' medians; NaN for one unit */
    unsigned flags;                        /* an or of enum lb_anomaly */

    double flops, bytes; /* of one call */
    double floor_ns;     /* the least that one call can take: floor.h; NaN where it is not known */
    double chain_steps;  /* that wait for one another, both passes; NaN likewise, as the next */
    double chain_ns;     /* the least that those steps take */
    double floor_multiple; /* derived: median_ns / floor_ns */
    double weights_bytes, gradients_bytes, reserve_bytes, workspace_bytes, peak_bytes;
    double sm_mhz, memory_mhz, temperature_c; /* of the GPU, right after the samples */

    struct lb_kernels kernels; /* of one untimed call, where that was traced; owned by the row */
    char kernels_reason[256];  /* why there are none though they were asked for; else "" */
};

/* An empty row of the case: verdict error, every number unknown. */
struct lb_row lb_row_make(const struct lb_case *c);

void lb_row_free(struct lb_row *row); /* accepts a zeroed one */

/* Appends one block of samples to the latest process; LB_OOM. */
enum lb_status lb_row_add_block(struct lb_row *row, const double *samples_ns, size_t count,
                                struct lb_error *err);

/* The next block is the first of another process; LB_OOM. */
enum lb_status lb_row_add_process(struct lb_row *row, struct lb_error *err);

/* Adds a block to the case's row: the first becomes the row, later ones give it their samples and
 * warnings, their errors and peak where those are larger, and the clocks and stop reason that are
 * the latest; one that is not ok takes the row over, and is not taken over again. new_process: the
 * block is the first of another process. Summarizes the row; block may be empty afterwards; LB_OOM.
 */
enum lb_status lb_row_merge(struct lb_row *row, struct lb_row *block, bool first, bool new_process,
                            struct lb_error *err);

/* A wrong or failed case has a verdict and no speed: drops samples and what is derived of them. */
void lb_row_drop_samples(struct lb_row *row);

/* Computes the derived numbers; interval bounds stay NaN below 6 samples. With two processes or
 * more, median_ns and its interval are those of the processes' medians, since samples of one
 * process share what it drew: the interval then needs 6 processes. */
enum lb_status lb_row_summarize(struct lb_row *row, struct lb_error *err);

/* Units of replication: the processes where there are two or more, else the blocks.
 * medians [lb_row_units] gets the median of each in ns; empty ones are passed over. LB_OOM. */
size_t lb_row_units(const struct lb_row *row);
enum lb_status lb_row_unit_medians(const struct lb_row *row, double *medians, struct lb_error *err);

/* True when the row has a time to show: verdict ok, and a median above zero. */
bool lb_row_is_timed(const struct lb_row *row);

/* Row <-> JSON object. From: checks types and ranges (no negative times, counts consistent, keys
 * that agree with the case's text), reads unknown keys over and computes the derived numbers anew;
 * LB_INVALID names the key. The caller owns the object and the row. */
json_t *lb_row_to_json(const struct lb_row *row); /* NULL when memory runs out */
enum lb_status lb_row_from_json(const json_t *object, struct lb_row *row, struct lb_error *err);

#endif

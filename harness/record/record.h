/* A row of a run: the case, whether its results were correct, and how long it took. */
#ifndef LB_RECORD_H
#define LB_RECORD_H

#include <jansson.h>

#include "model/case.h"
#include "record/gpu_kernels.h"

#define LB_SCHEMA_VERSION 2

/* Bytes of texts and their terminators. */
#define LB_LABEL_SIZE    80 /* of a device's label */
#define LB_ROW_ID_SIZE   (LB_CASE_ID_SIZE + LB_LABEL_SIZE + 8)
#define LB_ROW_TEXT_SIZE 512 /* of a text of a row */

enum lb_verdict {
    LB_VERDICT_OK,
    LB_VERDICT_SUSPECT,     /* its results are right, but a finding puts its time in doubt */
    LB_VERDICT_WRONG,       /* it ran, and its results differ from the oracle's */
    LB_VERDICT_UNSUPPORTED, /* the implementation can't run it; reason says why */
    LB_VERDICT_ABSENT,      /* the implementation was not built, or there is no device */
    LB_VERDICT_OOM,         /* it does not fit into the available memory */
    LB_VERDICT_TIMEOUT,     /* a call took longer than allowed */
    LB_VERDICT_CRASH,       /* its process died */
    LB_VERDICT_ERROR,       /* an implementation or library reported a failure */
    LB_VERDICT_SKIPPED,     /* the time budget ran out before it, or others of its variant hung */
    LB_VERDICT_COUNT
};

const char *lb_verdict_name(enum lb_verdict verdict); /* "ok", "wrong", ... */

/* True for ok and suspect: the row has samples. */
bool lb_verdict_has_samples(enum lb_verdict verdict);

/* True for wrong, timeout, crash and error: a run with one of them ends with exit code 1. */
bool lb_verdict_is_failure(enum lb_verdict verdict);

enum lb_stop_reason {
    LB_STOP_NONE,        /* no sample was taken */
    LB_STOP_PRECISION,   /* the median's confidence interval is narrow enough */
    LB_STOP_PLATEAU,     /* more samples no longer narrow the interval */
    LB_STOP_TIME,        /* the case's time ran out */
    LB_STOP_COUNT_LIMIT, /* the largest number of samples was reached */
    LB_STOP_COUNT
};

/* Percentiles of the samples of a stream, and the median of those of any case. */
enum { LB_MEDIAN = -1, LB_P90, LB_P99, LB_P999, LB_PERCENTILES };

const char *lb_percentile_name(int percentile); /* "p50", "p90", "p99", "p99.9" */
double lb_percentile_share(int percentile);     /* 0.5, 0.9, 0.99, 0.999 */

const char *lb_stop_reason_name(enum lb_stop_reason reason); /* "none", "precision", ... */

/* Unknown numbers are NaN here and null in JSON. Arrays and texts are the row's own; texts are set
 * by lb_row_print alone, because most rows have few and a run may have a hundred thousand rows. */
struct lb_row {
    struct lb_case c;
    enum lb_verdict verdict;
    const char *reason;      /* why the verdict is not ok; "" when it is */
    const char *description; /* what actually ran, in the implementation's words */
    const char *warning;     /* what a reader must know about a time that is ok, or "" */

    double err_max_abs, err_max_rel, err_norm; /* errors against the oracle's results */
    double tolerance_used; /* the largest of them over what is allowed: above 1 it is wrong */
    double error_ratio;    /* of errors in norm over those of the rounded evaluation of the same
                              dtype and math (verify.h) */
    double scheme_error;   /* of int8: lb_reference_scheme_error; NaN where it is not known */

    /* Of passes with a backward alone. */
    double gradient_err_norm; /* err_norm of the gradients alone */
    double loss_scale;        /* that the timed calls ran with; 1: none */
    double overflow_share; /* share of the steps that a dynamic scale skipped; NaN: it is fixed */
    double overflow_check_ns; /* of one check of the weight gradients, which a dynamic scale needs
                                 per step and samples_ns do not hold; NaN: unknown or not needed */

    uint64_t hash; /* of the bits of the checked results; 0: unknown */

    double prepare_ns; /* time of create, sizes, prepare and the first update */
    double update_ns;  /* median time of update (impl.h); NaN: it has none, or was not timed */
    double verify_ns;  /* time of the oracle, the checked calls and the comparison */
    double elapsed_ns; /* time of the whole case */

    double others_share; /* of the CPUs' time while it was sampled that other programs used, at
                            least; the largest of its blocks */

    double *samples_ns; /* [samples] each is the time of one call */
    size_t samples;
    size_t *blocks; /* [block_count] how many samples each block has, in order */
    size_t block_count;
    size_t *processes; /* [process_count] how many blocks each process has, in order */
    size_t process_count;
    double *reference_ns;    /* [block_count] times of the fixed loop around each block */
    double stream_calls;     /* verified calls of a stream, which then begins again; NaN: none */
    double harness_ns;       /* of a stream on the host: what timing adds to each call */
    double calls_per_sample; /* 1 when isolated, N when batched; the mean when blocks differ */
    enum lb_stop_reason stop_reason;

    /* Derived from samples_ns; readers compute them anew. */
    double min_ns, median_ns, median_lo_ns, median_hi_ns, p5_ns, p95_ns, mad_ns;
    double outliers_mild, outliers_severe; /* counts, see lb_find_anomalies */
    double spread_within;                  /* relative spread of samples within their block */
    double spread_between;                 /* relative spread of the units' medians; NaN for one */
    unsigned flags;                        /* an or of enum lb_anomaly */

    double flops, bytes;   /* of one call, see lb_problem_flops and lb_problem_bytes */
    double floor_ns;       /* lower bound of one call's time (lower_bound.h); NaN: not known */
    double chain_steps;    /* steps of all passes that must run one after another; NaN: not known */
    double chain_ns;       /* lower bound of the time of those steps; NaN: not known */
    double floor_multiple; /* derived: median_ns / floor_ns */
    double checked_calls;  /* samples whose results were checked, those of the warm-up too */
    double order_seed;     /* decided what was checked and which inputs calls read */
    double input_sets;     /* that calls read in random order */
    double call_bytes;     /* memory of one call: tensors and the implementation's buffers */
    double working_set_bytes; /* of all calls: that with the inputs of the other sets */
    double deterministic;     /* 1: the implementation says that equal inputs give equal bits */
    double weights_bytes, gradients_bytes, reserve_bytes, workspace_bytes, peak_bytes;
    double slowdown; /* of the fixed loop, see lb_rows_find_slowdowns; NaN: not known */
    double sm_mhz;   /* mean clock of the GPU during the samples */
    double memory_mhz, temperature_c; /* of the GPU at the same work, right after the samples */

    size_t environment; /* number in lb_run.environments, of where it was measured */
    const char *label;  /* of its device or node, in lb_run.labels; NULL: all rows are of one */
    bool beside;        /* rows of other labels belong on the same page */

    struct lb_kernels kernels;  /* of one untimed call, when it was traced */
    const char *kernels_reason; /* why a requested trace is missing */
};

/* A row of the case with the verdict error, no samples, and all numbers unknown. */
struct lb_row lb_row_make(const struct lb_case *c);

void lb_row_free(struct lb_row *row); /* accepts a zeroed row; its texts become "" */

/* Sets a text of a row, such as &row->reason, to what the format makes, or appends that to it. It
 * is cleaned (lb_clean_text), and cut to LB_ROW_TEXT_SIZE. */
void lb_row_print(const char **text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void lb_row_append(const char **text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends one block of samples [count] to the latest process. */
void lb_row_add_block(struct lb_row *row, const double *samples_ns, size_t count);

/* Sets the time of the fixed loop around the latest block; without effect when there is none. */
void lb_row_set_reference(struct lb_row *row, double reference_ns);

/* Begins another process, to which the blocks that follow belong. */
void lb_row_add_process(struct lb_row *row);

/* Adds the row of one block to the row of the whole case and summarizes that. The first block
 * becomes the row. A later one adds its samples, and its numbers as record.c's table says; a
 * suspect block makes the row suspect. The first block without samples replaces the row, and later
 * blocks are then ignored; so does a block whose results have other bits although the
 * implementation is deterministic, with the verdict wrong. new_process: the block is the first of
 * another process. block may be empty afterwards, but must still be freed. */
void lb_row_merge(struct lb_row *row, struct lb_row *block, bool first, bool new_process);

/* Takes another row of the same case, measured on another node, into the row: its processes become
 * processes of the row. A row that was skipped or absent gives way to one that was not, and one
 * that has samples to one that failed. other must still be freed. */
void lb_row_pool(struct lb_row *row, struct lb_row *other);

/* The text of the row's case, with " on LABEL" behind it where it has a label. */
void lb_row_print_id(const struct lb_row *row, char id[LB_ROW_ID_SIZE]);

/* Appends a warning to those of the row, unless the row has it already. */
void lb_row_warn(struct lb_row *row, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Makes a row that is ok suspect for that reason, or appends a new reason to a suspect row. Without
 * effect on any other row. */
void lb_row_suspect(struct lb_row *row, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Drops the samples and what follows from them: a wrong or failed case must not show a time. */
void lb_row_drop_samples(struct lb_row *row);

/* Computes the derived numbers. With two processes or more, median_ns and its interval, which needs
 * 6 of them, are those of the processes' medians, because the samples of one process are not
 * independent. Drops, with a warning, a lower bound that the median of a right result is below. */
void lb_row_summarize(struct lb_row *row);

/* Units of replication are the processes when there are two or more, else the blocks; empty ones do
 * not count. lb_row_unit_times returns their number; times [lb_row_units] receives the p-quantile
 * of each unit's samples in ns; 0.5: the median. */
size_t lb_row_units(const struct lb_row *row);
size_t lb_row_unit_times(const struct lb_row *row, double p, double *times);

/* The mean time of the fixed loop around the row's blocks; NaN where it is not known for all. */
double lb_row_mean_reference(const struct lb_row *row);

#define LB_SLOW_MACHINE  1.15
#define LB_SLOWDOWN_ROWS 8

/* Finds the slowdown of each row of a run: the mean of its reference_ns over the median of these
 * means, for all rows of one implementation and environment; NaN where these are fewer than
 * LB_SLOWDOWN_ROWS. A row whose slowdown is above LB_SLOW_MACHINE gets a warning. */
void lb_rows_find_slowdowns(struct lb_row *rows, size_t count);

/* The median of a row, or of a stream a high percentile of all samples, with its 95 % interval. A
 * percentile is NaN where there are too few samples for its interval, and of any other row. It is
 * computed anew in each call. */
struct lb_percentile {
    double ns, lo_ns, hi_ns;
};
struct lb_percentile lb_row_time(const struct lb_row *row, int percentile);

/* The longest sample of a stream; NaN for any other row. */
double lb_row_longest(const struct lb_row *row);

/* The calls per second that a stream has made, by all of its instances together: without what the
 * harness did between them, or by the clock of its rate. NaN for any other row. */
double lb_row_calls_per_s(const struct lb_row *row);

/* The share of the samples that are longer than that. */
double lb_row_share_above(const struct lb_row *row, double ns);

/* True when the row has a time that speed-ups and comparisons may use: its verdict is ok and its
 * median is above 0. */
bool lb_row_is_timed(const struct lb_row *row);

/* The row as a new JSON object. */
json_t *lb_row_to_json(const struct lb_row *row);

/* Reads a row and computes the derived numbers anew. LB_INVALID: a type or a range is wrong, or
 * counts do not add up; err names the key. The caller frees the row. */
enum lb_status lb_row_from_json(const json_t *object, struct lb_row *row, struct lb_error *err);

#endif

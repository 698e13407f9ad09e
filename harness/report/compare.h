/* Compares two runs case by case: which cases got slower, faster or stayed the same, and for which
 * the data cannot tell. */
#ifndef LB_COMPARE_H
#define LB_COMPARE_H

#include "record/run_file.h"
#include "stats/shift.h"

/* Which time of a unit, a process or a block, is compared. */
struct lb_time_basis {
    bool low;       /* the 10 % quantile of its samples instead of their median */
    bool corrected; /* divided by the time of the fixed loop around them */
};

/* The logarithms of the times of a row's units, logs [lb_row_units], in ns or, where corrected,
 * without a unit. LB_INVALID where they are to be corrected and the fixed loop was not timed around
 * each unit; LB_OOM. */
enum lb_status lb_log_times(const struct lb_row *row, const struct lb_time_basis *basis,
                            double *logs, struct lb_error *err);

/* The spread between runs of the same code on one machine: the standard deviation of the logarithms
 * of a case's time, for each basis; 0: not known. */
struct lb_run_spread {
    double raw, corrected;         /* of medians */
    double low_raw, low_corrected; /* of 10 % quantiles */
    size_t df;                     /* degrees of freedom of all of them */
};

/* The one of a basis. */
double lb_run_spread_by(const struct lb_run_spread *spread, const struct lb_time_basis *basis);

struct lb_compare_options {
    double margin; /* smallest relative difference that matters, above 0; 0.02 by default */
    double level;  /* false discovery rate: the expected share of wrong verdicts among the cases
                      that are called slower or faster; 0.01 by default */

    /* How much whole runs of the same code differ. Runs that follow each other differ by more than
     * their processes show, because the machine changes in between. Unknown by default. */
    const struct lb_run *bases; /* [base_count] further runs of the base, which show the spread */
    size_t base_count;
    struct lb_run_spread learnt; /* what --self-test kept; used when there are no further runs */
};

/* The defaults. */
struct lb_compare_options lb_compare_defaults(void);

/* How a case changed from the base run to the new one, in order of severity. A failure is a verdict
 * for which lb_verdict_is_failure is true. */
enum lb_change {
    LB_CHANGE_BROKEN,        /* it fails now, and did not fail or had no row before */
    LB_CHANGE_SLOWER,        /* the adjusted p-value is at most the level, and the estimate is
                                larger than the margin */
    LB_CHANGE_GONE,          /* it had a time before; now it has none, without failing */
    LB_CHANGE_INCONCLUSIVE,  /* it has a time in both runs, but the data does not decide */
    LB_CHANGE_FASTER,        /* as slower, in the other direction */
    LB_CHANGE_MENDED,        /* it has a time now, and failed or did not run before */
    LB_CHANGE_NEW,           /* it has a time now, and had no row before */
    LB_CHANGE_SAME,          /* two one-sided tests place the shift within the margin */
    LB_CHANGE_STILL_FAILING, /* it failed before and fails now */
    LB_CHANGE_NOT_RUN,       /* it had no time before, and now has neither a time nor a failure */
    LB_CHANGE_COUNT
};

const char *lb_change_name(enum lb_change change); /* "broken", "slower", ... */

/* True for broken and slower, which make --compare end with exit code 3. */
bool lb_change_is_regression(enum lb_change change);

/* One case in both runs. The rows belong to the runs. */
struct lb_pair {
    char id[LB_ROW_ID_SIZE];         /* the case's text and label (lb_row_print_id); without the
                                        implementation if interleaved */
    const struct lb_row *base, *now; /* the rows of the base run and the new run; NULL: no row */
    enum lb_change change;
    size_t base_units, now_units;
    bool compared;         /* shift and adjusted_p are valid */
    struct lb_shift shift; /* of the logarithms of times, now minus base: above 0 is slower */
    double adjusted_p;     /* corrected for the number of compared cases (lb_adjust); single ones
                              and others are corrected apart */
    char note[256];        /* why the case is inconclusive, broken or gone; or "" */
};

struct lb_run_comparison {
    struct lb_pair *pairs; /* [count] in order of severity, the worst first */
    size_t count;
    size_t counts[LB_CHANGE_COUNT]; /* of pairs by their change */
    size_t compared;                /* pairs with a p-value */
    size_t common;                  /* cases with a time in both runs */
    bool interleaved;     /* the runs took turns block by block, and blocks are compared in pairs */
    double margin, level; /* those of the options */
    struct lb_time_basis times; /* what was compared */
    double run_spread; /* standard deviation of the logarithms between runs, for which p-values
                          and intervals allow; 0: they allow for none */
    size_t run_df;     /* its degrees of freedom */
    size_t run_count;  /* runs of the base that showed it; 0: it was kept by --self-test */
    size_t single;     /* number of cases that have one process per run, while no runs of the base
                          show the spread between runs */
    char basis[768];   /* which of these were used and why, in sentences */
    char environments[256]; /* keys in which the environments differ, as "cpu, threads"; or "" */
    char notes[1024];       /* what a reader must know, one sentence per line; or "" */
};

/* Compares two runs. The runs must outlive the comparison. LB_INVALID: margin or level is out of
 * range. LB_OOM.
 *
 * Rows: those are compared whose cases have the same text and the same label, or no label on both
 * sides. So rows of different devices are not compared. Rows of runs that --ab interleaved (both
 * headers have the same "interleaved") are matched without the implementation and compared block by
 * block.
 *
 * Units: processes, or blocks when each side has one process. One process that is compared with
 * several counts as one unit. A case is inconclusive when
 * - it has fewer than LB_SHIFT_MIN_UNITS units on a side or fewer than LB_SHIFT_MIN_PAIRS pairs
 * - interleaved sides have different numbers of blocks
 * - each side has one process and no further runs of the base show the spread between runs.
 *
 * Other programs: the time of a unit is the median of its samples. Where other programs disturb
 * many samples, the 10 % quantiles of the units differ much less than their medians. They are
 * compared instead where they lower the scatter by LB_LOW_GAIN or more, and each unit has
 * LB_LOW_SAMPLES samples. Interleaved runs are always compared by medians.
 *
 * Speed of the machine: runs that are not interleaved are divided by the times of the fixed loop,
 * where that was timed around every block and the division lowers the scatter. Scatter is that of
 * the units within the runs and, where it is known, the spread between runs.
 *
 * Spread between runs: where it is known, a difference must be significant by the units, and also
 * by that spread with the run as the unit (Student's t). Where further runs of the base show it,
 * too few units are judged by the latter alone, if the new run has no fewer processes than the
 * base. What --self-test kept does not do for that: a single process scatters more than the median
 * of the several from which it comes. A basis by which the spread is unknown is not chosen while it
 * is known by another. */
#define LB_LOW_GAIN 0.25 /* 25 % */
enum { LB_LOW_SAMPLES = 20 };
enum lb_status lb_compare_runs(const struct lb_run *base, const struct lb_run *now,
                               const struct lb_compare_options *options,
                               struct lb_run_comparison *comparison, struct lb_error *err);
void lb_run_comparison_free(struct lb_run_comparison *comparison); /* accepts a zeroed comparison */

/* Confirms slowdowns: `again` compares the same base with another sweep of the same code. A case
 * that is slower, but is neither slower nor broken in `again`, becomes inconclusive. Broken cases
 * stay broken. */
void lb_run_comparison_confirm(struct lb_run_comparison *comparison,
                               const struct lb_run_comparison *again);

/* Compares one pair, whose rows both have a time, without any correction, and fills in shift, units
 * and note. False when there are too few units; note then says so. */
bool lb_compare_rows(struct lb_pair *pair, bool interleaved);

#endif

/* Compares two runs case by case: which cases got slower, faster or stayed the same, and for which
 * the data cannot tell. */
#ifndef LB_COMPARE_H
#define LB_COMPARE_H

#include <stdio.h>

#include "record/run_file.h"
#include "stats/comparison.h"

struct lb_compare_options {
    struct lb_judgement judgement; /* a margin of 0.02 and a level of 0.01 by default */
    const struct lb_run *bases;    /* [base_count] further runs of the base; none by default */
    size_t base_count;
    const struct lb_run *again; /* another run of the new side: a case that is slower, but neither
                                   slower nor broken in it, becomes inconclusive. NULL by default */
    const char *base_name, *now_name; /* of the runs, such as their folders; "" by default */
};

/* The defaults. */
struct lb_compare_options lb_compare_defaults(void);

/* How a case changed from the base run to the new one, in order of severity. A failure is a verdict
 * for which lb_verdict_is_failure is true; slower, faster, same and inconclusive are the outcomes
 * of lb_judge_cases. */
enum lb_change {
    LB_CHANGE_BROKEN, /* it fails now, and did not fail or had no row before */
    LB_CHANGE_SLOWER,
    LB_CHANGE_GONE, /* it had a time before; now it has none, without failing */
    LB_CHANGE_INCONCLUSIVE,
    LB_CHANGE_FASTER,
    LB_CHANGE_MENDED, /* it has a time now, and failed or did not run before */
    LB_CHANGE_NEW,    /* it has a time now, and had no row before */
    LB_CHANGE_SAME,
    LB_CHANGE_STILL_FAILING, /* it failed before and fails now */
    LB_CHANGE_NOT_RUN,       /* it had no time before, and now has neither a time nor a failure */
    LB_CHANGE_COUNT
};

const char *lb_change_name(enum lb_change change); /* "broken", "slower", ... */

/* True for broken and slower, which make --compare end with exit code 3. */
bool lb_change_is_regression(enum lb_change change);

/* One case in both runs, and of a stream each high percentile that both have. The rows belong to
 * the runs. */
struct lb_pair {
    char id[LB_ROW_ID_SIZE + 8];     /* the case's text and label (lb_row_print_id), without the
                                        implementation if interleaved; and " p99" of a percentile */
    int percentile;                  /* LB_MEDIAN, or the percentile whose times are compared */
    const struct lb_row *base, *now; /* the rows of the base run and the new run; NULL: no row */
    const struct lb_row **further; /* [base_count] those of the further runs of the base, likewise;
                                      NULL without a row of the base run */
    enum lb_change change;
    size_t base_units, now_units;
    double assumed_spread; /* the deviation between processes that was assumed, because a side has
                              too few of them; 0: none was */
    bool compared;         /* the intervals of the shift, its p-value and adjusted_p are valid */
    struct lb_shift shift; /* of the logarithms of times, now minus base: above 0 is slower. The
                              estimate is NaN without a time in both runs. */
    double adjusted_p;     /* corrected for the number of compared cases */
    char note[256];        /* why the case is inconclusive, broken or gone; or "" */
};

/* What the runs of a comparison have several of, which is what tells a change from chance. */
enum lb_unit { LB_UNIT_PROCESS, LB_UNIT_RUN, LB_UNIT_BLOCK };

struct lb_run_comparison {
    struct lb_pair *pairs; /* [count] in order of severity, the worst first */
    size_t count;
    const struct lb_row **further;  /* of all pairs; owned */
    size_t counts[LB_CHANGE_COUNT]; /* of pairs by their change */
    size_t compared;                /* pairs with a p-value */
    size_t assumed;                 /* pairs whose spread was assumed */
    size_t common;                  /* cases with a time in both runs */
    enum lb_unit unit;              /* blocks: the runs took turns block by block */
    struct lb_judgement judgement;  /* that of the options */
    struct lb_spread spread;        /* between runs of the base, over all cases; 0: not known */
    char base_name[4400], now_name[4400]; /* in UTF-8, while a folder's name can be any bytes */
    char verdict[512];      /* "REGRESSION: 48 cases: 1 broken, 2 slower, 45 same (margin 2 %)." */
    char basis[256];        /* which units are compared, in a sentence */
    char environments[256]; /* keys in which the environments differ, as "cpu, threads" */
    char notes[1024];       /* what a reader must know, one sentence per line; or "" */
};

/* Standard deviation of the logarithms of medians of single processes that run the same code one
 * after the other on a quiet machine, and the degrees of freedom that it is used with. */
#define LB_PROCESS_SPREAD    0.05
#define LB_PROCESS_SPREAD_DF 30

/* Compares two runs, which must outlive the comparison, in the steps of STATISTICS.md. Rows of runs
 * that --ab interleaved (both headers have the same "interleaved", and a "side") are matched
 * without the implementation. LB_INVALID: a run is not sound. */
enum lb_status lb_compare_runs(const struct lb_run *base, const struct lb_run *now,
                               const struct lb_compare_options *options,
                               struct lb_run_comparison *comparison, struct lb_error *err);
void lb_run_comparison_free(struct lb_run_comparison *comparison); /* accepts a zeroed comparison */

/* Writes a comparison of two runs: Markdown for people, JUnit and JSON for CI. */

/* Formats the relative change of a pair's time, "+3.1 %", and its 95 % interval, "+2.0 to +4.2 %";
 * each is "" where it is not known. */
void lb_format_change(const struct lb_pair *pair, char change[32], char interval[64]);

/* Makes text fit for a cell of a Markdown table: blanks replace what is markup. */
void lb_markdown_cell(char *text);

#define LB_MARKDOWN_LIMIT 60000 /* bytes; GitHub takes comments of 65,536 characters */

/* Each of these writes to out, which the caller checks for errors and closes.
 * - Markdown has the outcome, then the regressions, then all other cases in a folded section. Where
 *   it would exceed LB_MARKDOWN_LIMIT, it leaves out the least severe cases and says how many.
 * - JUnit has one test per case; regressions are failures. With strict, inconclusive and gone cases
 *   are failures too. Without strict, an inconclusive case passes, with the reason as its output,
 *   and a gone case is skipped.
 * - JSON has everything; lb_report_json returns a new object. */
void lb_report_markdown(const struct lb_run_comparison *comparison, FILE *out);
void lb_report_junit(const struct lb_run_comparison *comparison, bool strict, FILE *out);
json_t *lb_report_json(const struct lb_run_comparison *comparison);

/* Writes a JSON document, indented and with a newline at the end, and drops the reference to it. */
void lb_json_write(json_t *document, FILE *out);

#endif

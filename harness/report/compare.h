/* Two runs, case by case: what got slower, what got faster, what stayed, and what nobody can say.
 */
#ifndef LB_COMPARE_H
#define LB_COMPARE_H

#include "record/run_file.h"
#include "stats/shift.h"

struct lb_compare_options {
    double margin; /* smallest relative difference that matters, above 0; 0.02 by default */
    double level;  /* largest share of false names among those named; when nothing differs, of the
                      comparisons that name anything: 0.01 */
};

struct lb_compare_options lb_compare_defaults(void);

/* What became of a case, the worst first. */
enum lb_change {
    LB_CHANGE_BROKEN, /* did not fail, or had no row, and fails: wrong, timeout, crash, error */
    LB_CHANGE_SLOWER, /* the adjusted p-value is within the level, the estimate beyond the margin */
    LB_CHANGE_GONE,   /* had a time, and has no row, or one without a time that is no failure */
    LB_CHANGE_INCONCLUSIVE, /* nothing can be said of both times */
    LB_CHANGE_FASTER,       /* as slower */
    LB_CHANGE_MENDED,       /* failed or did not run, and has a time now */
    LB_CHANGE_NEW,          /* has a time, and had no row */
    LB_CHANGE_SAME,         /* two one-sided tests: the shift lies within the margin */
    LB_CHANGE_STILL_FAILING,
    LB_CHANGE_NOT_RUN, /* had no time, and has neither a time nor a failure */
    LB_CHANGE_COUNT
};

const char *lb_change_name(enum lb_change change); /* "broken", "slower", ... */

/* broken and slower: what a gate stops. */
bool lb_change_is_regression(enum lb_change change);

/* One case in both runs. Rows are borrowed from the runs. */
struct lb_pair {
    char id[LB_CASE_ID_SIZE];        /* of the case; without the implementation where they differ */
    const struct lb_row *base, *now; /* NULL where there is none */
    enum lb_change change;
    size_t base_units, now_units;
    bool compared;         /* shift and adjusted_p hold */
    struct lb_shift shift; /* of log times, now minus base: above 0 is slower */
    double adjusted_p;     /* Benjamini-Hochberg over all compared cases */
    char note[256];        /* why it is inconclusive, broken or gone; or "" */
};

struct lb_run_comparison {
    struct lb_pair *pairs; /* [count] worst first */
    size_t count;
    size_t counts[LB_CHANGE_COUNT];
    size_t compared;        /* pairs with a p-value */
    size_t common;          /* cases with a time in both runs */
    bool interleaved;       /* both were measured in turn, and units are compared pair by pair */
    double margin, level;   /* as asked for */
    char environments[256]; /* how they differ, such as "cpu, threads"; "" when they don't */
    char notes[1024];       /* what a reader must know, a sentence a line; or "" */
};

/* Compares by case id. Runs that --ab interleaved (equal "interleaved" in both headers) are matched
 * without the implementation, and block by block. Units are processes, or blocks where each side
 * has one process; one process beside several is one unit. Too few of them is inconclusive: less
 * than LB_SHIFT_MIN_UNITS on a side or LB_SHIFT_MIN_PAIRS; so are blocks that are no pairs.
 * The runs must outlive the comparison. LB_INVALID for a margin or level out of range; LB_OOM. */
enum lb_status lb_compare_runs(const struct lb_run *base, const struct lb_run *now,
                               const struct lb_compare_options *options,
                               struct lb_run_comparison *comparison, struct lb_error *err);
void lb_run_comparison_free(struct lb_run_comparison *comparison); /* accepts a zeroed one */

/* Takes back each "slower" that a comparison of the same base with another sweep of the same code
 * does not show too: it becomes inconclusive. What broke stays broken. */
void lb_run_comparison_confirm(struct lb_run_comparison *comparison,
                               const struct lb_run_comparison *again);

/* One pair of rows by itself: fills shift, units and note, and returns whether it could. */
bool lb_compare_rows(struct lb_pair *pair, bool interleaved);

#endif

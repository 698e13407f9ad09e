/* The command line: what to do, on which cases, with which settings. */
#ifndef LB_OPTIONS_H
#define LB_OPTIONS_H

#include "cli/selection.h"
#include "measure/sampler.h"

enum lb_command {
    LB_CMD_NONE, /* nothing was asked for */
    LB_CMD_HELP,
    LB_CMD_VERSION,
    LB_CMD_SWEEP,
    LB_CMD_RESUME,
    LB_CMD_LIST,
    LB_CMD_PLAN,
    LB_CMD_EXPLAIN,
    LB_CMD_PROFILE,
    LB_CMD_EXPORT,
    LB_CMD_CEILINGS,
    LB_CMD_PLOT,
    LB_CMD_REPORT,
    LB_CMD_COMPARE,
    LB_CMD_AB,
    LB_CMD_SELF_TEST,
    LB_CMD_HISTORY,
    LB_CMD_LAST = LB_CMD_HISTORY
};

/* Pointers lie in argv unless said otherwise. */
struct lb_options {
    enum lb_command command;
    char *const *argv; /* [argc] the whole command line, for the record */
    int argc;
    const char *subject; /* what a command is about: folder, case, format, kind, implementation */
    const char *run;     /* a second word: the run to read, or the other side of a comparison */
    char *const *runs;   /* [run_count] of --report: the runs behind the first, which is run */
    size_t run_count;
    struct lb_selection selection; /* owned */
    bool sized;                    /* -T, -B, -H, --case or --cases was given: not the quick grid */
    bool quick;
    bool kernels;          /* trace the GPU kernels of one more call */
    bool strict;           /* what a comparison can't decide fails it */
    bool benchmark_json;   /* Google Benchmark JSON on stdout in the table's place */
    bool benchmark_filter; /* there is a filter among the arguments */
    const char *out;       /* folder; NULL: one is named by the time */
    const char *baseline;  /* impl[:variant]; NULL: chosen */
    const char **plugins;  /* [plugin_count], the array owned */
    size_t plugin_count;
    char **benchmark; /* [benchmark_count] the --benchmark_* arguments, the array owned */
    size_t benchmark_count;
    const char *benchmark_out; /* file for Google Benchmark JSON; NULL: none */
    int repetitions;           /* blocks of samples, from --benchmark_repetitions */
    int processes;             /* fresh ones a case; 0: not given */
    double margin;             /* relative difference that matters to a comparison */
    const char *format;        /* of a comparison */
    const char *confirm;       /* a second run that slowdowns must show in too; NULL: none */
    size_t profile_calls;      /* of --profile, at least 1 */
    const char *perf_control;  /* pipes to perf; NULL: none */
    double time_budget_s;      /* infinite: none */
    double case_time_s;        /* NaN: not given */
    double call_limit_s;
    int hang_limit;           /* cases of a variant that may hang before the others are skipped;
                                 0: all */
    double memory_bytes;      /* 0: no limit but the host's */
    double loss_scale;        /* of incoming gradients; 1: as they are */
    bool tune;                /* measure what is not tuned yet */
    const char *tuned;        /* file of tuned choices; NULL: the usual one */
    int device;               /* ordinal of the GPU */
    const char *device_model; /* answer for a GPU of that name, without one; NULL: the real one */
    uint64_t seed;
    unsigned given; /* which flags were: a bit 1 << enum lb_flag_action each */
};

/* Reads argv. Where nothing gives sizes, a sweep, list or plan is that of the quick grid.
 * LB_INVALID: one line that names the flag, what is wrong and what is allowed. */
enum lb_status lb_options_parse(int argc, char **argv, struct lb_options *options,
                                struct lb_error *err);
void lb_options_free(struct lb_options *options); /* accepts a zeroed one */

/* The sampler's settings that follow from the options. */
struct lb_sampler_options lb_options_sampler(const struct lb_options *options);

/* The text of --help, part by part; ends with NULL. */
extern const char *const lb_help_text[];

#endif

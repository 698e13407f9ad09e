/* The options of the command line: one table of them, and what they set.
 *
 * Whatever reads, checks or lists options walks lb_option_table. A new option is a row of it: with
 * one of the setters there when it stores a text, a switch, a number or seconds, else with its own.
 */
#ifndef LB_OPTIONS_H
#define LB_OPTIONS_H

#include <limits.h>
#include <stdio.h>

#include "base/given_files.h"
#include "cli/plan.h"
#include "record/run_file.h"

#define LB_QUICK_DTYPES "f32,bf16" /* of the quick grid, where bf16 may be faster */

/* Bits, because a setting has an effect on several. */
enum lb_command {
    LB_CMD_NONE = 0, /* no command was given */
    LB_CMD_HELP = 1 << 0,
    LB_CMD_VERSION = 1 << 1,
    LB_CMD_SWEEP = 1 << 2,
    LB_CMD_RESUME = 1 << 3,
    LB_CMD_LIST = 1 << 4,
    LB_CMD_PLAN = 1 << 5,
    LB_CMD_EXPLAIN = 1 << 6,
    LB_CMD_PROFILE = 1 << 7,
    LB_CMD_EXPORT = 1 << 8,
    LB_CMD_CEILINGS = 1 << 9,
    LB_CMD_PLOT = 1 << 10,
    LB_CMD_REPORT = 1 << 11,
    LB_CMD_MERGE = 1 << 12,
    LB_CMD_COMPARE = 1 << 13,
    LB_CMD_AB = 1 << 14,
    LB_CMD_SELF_TEST = 1 << 15,
    LB_CMD_CROSS_CHECK = 1 << 16,
    LB_CMD_HISTORY = 1 << 17
};

/* What the command line asks for. Strings lie in argv unless a comment says otherwise. */
struct lb_options {
    enum lb_command command;
    char *const *argv; /* [argc] the whole command line, kept in the record */
    int argc;
    const char **given; /* [lb_option_count] the word that first used each row, or NULL; owned */
    const char **words; /* [word_count] what the command takes: folders, cases, ...; in word_pool */
    size_t word_count;
    const char **word_pool; /* [argc + 1] the words of each option, from its place in argv; owned */
    struct lb_selection selection; /* owned */
    bool sized;                    /* -T, -B, -H, --case or --cases: not the quick grid */
    const char *shard;             /* "I/N"; NULL: the whole plan */
    bool quick;
    bool kernels;     /* trace the GPU kernels of one more call */
    bool retry_noisy; /* resume: measure noisy cases again */
    unsigned retry;   /* resume: run those again whose verdict has its bit 1 << enum lb_verdict */
    bool quiet;       /* of a sweep: nothing on stderr but warnings and errors */
    bool verbose;     /* of a sweep: a line on stderr for each case that ends */
    bool strict;      /* an inconclusive comparison is a failure */
    bool benchmark_json;          /* print Google Benchmark JSON instead of the table */
    const char *benchmark_filter; /* regular expression that names of cases match; NULL: none */
    const char *measured;         /* run that --explain takes the measured ratio from; NULL: none */
    struct lb_given_files given_files; /* for all cases; its batch_first holds of outputs too */
    const char *outputs;  /* .npy file with y that was computed elsewhere; NULL: none */
    const char *out;      /* folder, of --report a file; NULL: named after the time */
    const char *baseline; /* impl[:variant]; NULL: chosen by the program */
    const char *plots;    /* "none", or kinds of pictures with commas between; NULL: all */
    char **plugins;       /* [plugin_count] paths; owned */
    size_t plugin_count;
    char **absent; /* [absent_count] names of frameworks without a plug-in; owned */
    size_t absent_count;
    char **benchmark; /* [benchmark_count] words for Google Benchmark; owned */
    size_t benchmark_count;
    bool shuffled;             /* cases in random order, as one of these words says */
    const char *benchmark_out; /* file for Google Benchmark JSON; NULL: none */
    int repetitions;           /* blocks of samples per process, from --benchmark_repetitions */
    int processes;             /* fresh processes per case; 1: not given */
    double margin;             /* relative difference that matters to a comparison */
    const char *format;        /* of a comparison */
    const char *confirm;       /* second run that must show a slowdown too; NULL: none */
    int profile_calls;         /* calls in the range that --profile times, at least 1 */
    double time_budget_s;      /* infinite: no limit */
    double case_time_s;        /* NaN: not given */
    double deadline_s;         /* of a call of a stream; 0: the time until the next one is due */
    double call_limit_s;       /* longest silence of an implementation */
    const char *against;       /* another build of this program, which takes turns; NULL: none */
    int hang_limit;            /* hung cases after which a variant is skipped; 0: never */
    double memory_bytes;       /* of a worker; 0: all that the host has */
    double loss_scale;         /* factor on incoming gradients; 1: unchanged */
    bool dynamic_loss_scale;   /* of f16, from loss_scale on */
    enum lb_by by;             /* how results of several devices are told apart */
    int device;                /* ordinal of the GPU; with devices, of the first of them */
    const char *devices;       /* "all", or ordinals with commas between; NULL: one device */
    const char *device_model;  /* plan for that GPU or CPU, a name or a path; NULL: real ones */
    uint64_t seed;
};

struct lb_option;

/* One use of an option on the command line; all strings lie in argv. */
struct lb_option_use {
    struct lb_options *options;
    const struct lb_option *option;
    const char *word;   /* the option's own word as it was written: "--out=run" */
    const char **words; /* [word_count] what it takes */
    size_t word_count;
    const char *value; /* the first of them, never empty; "" when it takes none */
};

/* Checks and stores what an option was given. LB_INVALID names the option and what is allowed. */
typedef enum lb_status lb_option_setter(const struct lb_option_use *use, struct lb_error *err);

/* The headings of --help, in their order. */
enum lb_option_group { LB_GROUP_COMMANDS, LB_GROUP_CASES, LB_GROUP_SETTINGS, LB_GROUP_COUNT };

enum { LB_WORDS_MANY = INT_MAX };

/* One option, which may be a command. Zeroed fields: it takes no argument, has no short name. */
struct lb_option {
    const char *name;        /* "--out" */
    const char *argument;    /* what it takes, for messages: "a folder"; NULL: nothing */
    const char *placeholder; /* the same in --help: "DIR"; NULL: nothing */
    enum lb_option_group group;
    unsigned commands; /* enum lb_command: those that the setting has an effect on; of a command
                          itself */
    lb_option_setter *set;
    size_t field;           /* of setters that store one value: its offset in struct lb_options */
    const char *help;       /* whole sentences on one line; --help breaks it */
    const char *short_name; /* "-o" */
    bool joined;            /* matches every word that begins with name; takes the rest of it */
    int least, most;        /* number of words of an option with an argument. least 0: one; most 0:
                               as many as least; LB_WORDS_MANY: all up to the next option */
    int min, max;           /* of setters that read a whole number: what is allowed */
};

extern const struct lb_option lb_option_table[];
extern const size_t lb_option_count;

/* The option that a word of the command line names: alone, with "=value", with its value behind a
 * one-letter name ("-T64"), or joined. *value points at the value in the word; NULL when the word
 * has none. NULL when the word names no option. */
const struct lb_option *lb_option_match(const char *word, const char **value);

/* Whether the command line gave the option of that name. */
bool lb_option_given(const struct lb_options *options, const char *name);

/* The command that the option is; LB_CMD_NONE for a setting. */
enum lb_command lb_option_command(const struct lb_option *option);

/* The name of the command's option; "" for LB_CMD_NONE. */
const char *lb_command_name(enum lb_command command);

/* The settings of an empty command line. */
struct lb_options lb_options_defaults(void);
void lb_options_free(struct lb_options *options); /* accepts a zeroed one */

/* Adds the frameworks that have no plug-in, whose rows say so. */
enum lb_status lb_options_add_absent(const struct lb_options *options, struct lb_registry *registry,
                                     struct lb_error *err);

/* The sampler's settings that follow from the options. */
struct lb_sampler_options lb_options_sampler(const struct lb_options *options);

/* Reads argv, which a NULL ends, into *options, which the caller frees with lb_options_free. A
 * command on cases that is given no sizes gets the quick grid. After a failure *options is zeroed.
 * LB_INVALID: one line that names the option, what is wrong and what is allowed. */
enum lb_status lb_command_line_read(int argc, char **argv, struct lb_options *options,
                                    struct lb_error *err);

/* Whether an option, as it was written on the command line, has an effect with the command. Every
 * option has with --help and --version. LB_INVALID names both and the commands it works with. */
enum lb_status lb_check_effect(const struct lb_option *option, const char *word,
                               enum lb_command command, struct lb_error *err);

/* The exit codes of the program, which --help lists. */
enum lb_exit {
    LB_EXIT_FINE = 0,
    LB_EXIT_FAILED = 1,       /* a case is wrong or failed, or the run could not be kept */
    LB_EXIT_USAGE = 2,        /* the command line, or a file that it names, is wrong */
    LB_EXIT_REGRESSION = 3,   /* a case is slower or broken */
    LB_EXIT_INCONCLUSIVE = 4, /* no case could be judged; with --strict, one is still open */
    LB_EXIT_NOTHING = 5,      /* no case ran, or none has a time to compare or draw */
    LB_EXIT_INCOMPLETE = 6,   /* --merge: a part of what was planned is not in the result */
    LB_EXIT_INTERRUPTED = 130
};

/* What --help says below the options: exit codes and examples. */
extern const char lb_help_epilogue[];

/* Prints the text of --help in lines of at most 80 columns. */
void lb_help_print(FILE *stream);

#endif

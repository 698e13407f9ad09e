/* The flags: what each takes, what becomes of it, and which commands it says something to. */
#ifndef LB_FLAGS_H
#define LB_FLAGS_H

#include "cli/options.h"

enum lb_flag_action {
    LB_FLAG_COMMAND, /* sets command to value, takes no argument */
    LB_FLAG_SUBJECT, /* sets command to value, the argument is its subject */
    LB_FLAG_TWO,     /* as SUBJECT, and the word after it is the run */
    LB_FLAG_RUNS,    /* sets command to value, the argument and the words after it are runs */
    LB_FLAG_SELECTION,
    LB_FLAG_CASES,
    LB_FLAG_OUT,
    LB_FLAG_QUICK,
    LB_FLAG_KERNELS,
    LB_FLAG_PROFILE_CALLS,
    LB_FLAG_PERF_CONTROL,
    LB_FLAG_CASE_TIME,
    LB_FLAG_TIME_BUDGET,
    LB_FLAG_CALL_LIMIT,
    LB_FLAG_HANG_LIMIT,
    LB_FLAG_MEMORY,
    LB_FLAG_BASELINE,
    LB_FLAG_PLUGIN,
    LB_FLAG_SEED,
    LB_FLAG_LOSS_SCALE,
    LB_FLAG_DEVICE,
    LB_FLAG_DEVICE_MODEL,
    LB_FLAG_PROCESSES,
    LB_FLAG_MARGIN,
    LB_FLAG_STRICT,
    LB_FLAG_CONFIRM,
    LB_FLAG_FORMAT,
    LB_FLAG_TUNE,
    LB_FLAG_TUNED
};

enum { LB_FLAG_SIZES = 1 /* value of the selections that say which sizes to run */ };

struct lb_flag {
    const char *name;
    enum lb_flag_action action;
    int value;
    const char *argument; /* what it takes; NULL: nothing */
    unsigned commands;    /* that heed it, a bit 1 << enum lb_command each; 0: it is one itself */
};

/* The flag of that name; NULL when there is none. */
const struct lb_flag *lb_flag_find(const char *name, size_t length);

/* LB_INVALID, with the nearest name. */
enum lb_status lb_flag_unknown(const char *text, struct lb_error *err);

/* The commands that heed a --benchmark_ argument. */
unsigned lb_flag_benchmark_commands(const char *text);

/* LB_INVALID when the command does not heed the flag: names both, and the commands that do. */
enum lb_status lb_flag_check(const char *name, unsigned commands, enum lb_command command,
                             struct lb_error *err);

#endif

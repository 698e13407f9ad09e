/* What a sweep runs with, kept in its header so that a resumed run goes on as it began. */
#ifndef LB_RUN_SETTINGS_H
#define LB_RUN_SETTINGS_H

#include <jansson.h>

#include "cli/options.h"
#include "record/environment.h"
#include "record/run_file.h"
#include "run/worker.h"

struct lb_settings {
    char **command; /* [command_count] the command line, for the reader; owned, as all below */
    size_t command_count;
    uint64_t seed;
    struct lb_sampler_options sampler;
    int repetitions;   /* blocks of samples a process */
    int processes;     /* fresh ones a case; 1: whichever worker there is */
    bool kernels;      /* trace the kernels of one more call of each case */
    double loss_scale; /* of incoming gradients */
    struct lb_worker_limits limits;
    bool tune;      /* measure what is not tuned yet */
    char *tuned;    /* absolute path of the tuned choices; NULL: the usual file */
    char *baseline; /* NULL: chosen when the rows are known */
    char **plugins; /* [plugin_count] absolute paths */
    size_t plugin_count;
    char **benchmark; /* [benchmark_count] arguments for Google Benchmark */
    size_t benchmark_count;
};

enum lb_status lb_settings_from_options(const struct lb_options *options,
                                        struct lb_settings *settings, struct lb_error *err);
void lb_settings_free(struct lb_settings *settings); /* accepts a zeroed one */

/* Tells this process and its workers, through the environment. tuned: NULL means the usual file;
 * one that can't be read is LB_INVALID, unless tuning is to make it. LB_OOM. */
enum lb_status lb_settings_tune(bool tune, const char *tuned, struct lb_error *err);

/* A new object for lb_run_create: environment, command line, settings and the cases' texts. */
enum lb_status lb_settings_to_header(const struct lb_settings *settings,
                                     const struct lb_case *cases, size_t count,
                                     const struct lb_library *libraries, json_t **header,
                                     struct lb_error *err);

/* Reads that back; *cases [*count] is the caller's to free. Limits, device and tuning are those of
 * the options where their flags were given, else of the latest sitting, and the options' again
 * where the run is an older one without them. LB_INVALID names what is missing. */
enum lb_status lb_settings_from_run(const struct lb_run *run, const struct lb_options *options,
                                    struct lb_settings *settings, struct lb_case **cases,
                                    size_t *count, struct lb_error *err);

/* A new object for lb_run_resume: environment, command line, and what workers now run under. */
enum lb_status lb_settings_to_resume(const struct lb_settings *settings,
                                     const struct lb_options *options,
                                     const struct lb_library *libraries, json_t **details,
                                     struct lb_error *err);

#endif

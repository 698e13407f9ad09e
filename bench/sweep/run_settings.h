/* The settings of a sweep, kept in the header of its run so that --resume continues with them. */
#ifndef LB_RUN_SETTINGS_H
#define LB_RUN_SETTINGS_H

#include <jansson.h>

#include "cli/options.h"
#include "cli/shard.h"
#include "record/environment.h"
#include "record/run_file.h"
#include "run/worker.h"

struct lb_settings {
    char *const *command; /* [command_count] the command line, for a reader; borrowed, but all
                             below is owned */
    size_t command_count;
    uint64_t seed;
    struct lb_sampler_options sampler;
    int repetitions;   /* blocks of samples per process */
    int processes;     /* fresh processes per case; 1: any worker that is alive */
    bool kernels;      /* trace the GPU kernels of one more call of each case */
    double loss_scale; /* factor on incoming gradients */
    bool dynamic_loss_scale;
    struct lb_worker_limits limits;
    bool tune;        /* measure kernel families for which no choice is kept */
    char *tuned;      /* absolute path of the tuned choices; NULL: the usual file */
    char *weights;    /* absolute path of the file of weights; NULL: they are drawn */
    char *prefix;     /* of its tensors' names; NULL: none */
    char *inputs;     /* absolute path of the file of x; NULL: it is drawn */
    bool batch_first; /* the file of x is [B, T, I] */
    char *baseline;   /* NULL: chosen once the results are known */
    char **plugins;   /* [plugin_count] absolute paths */
    size_t plugin_count;
    json_t
        *shard; /* which part of a plan this is, and the texts of its canaries; NULL: a whole one */
};

enum lb_status lb_settings_from_options(const struct lb_options *options,
                                        struct lb_settings *settings, struct lb_error *err);
void lb_settings_free(struct lb_settings *settings); /* accepts a zeroed one */

/* Gives this process, and with each request its workers, weights, inputs and tuned choices
 * (base/given_files.h). LB_OOM. */
enum lb_status lb_settings_give(const struct lb_settings *settings, struct lb_error *err);

/* A new object for lb_run_create: environment, command line, settings and the text of each case. */
enum lb_status lb_settings_to_header(const struct lb_settings *settings,
                                     const struct lb_case *cases, size_t count, json_t *libraries,
                                     json_t **header, struct lb_error *err);

/* Reads the settings of a run. The caller frees *cases [*count]. Limits, device and tuning are
 * those of the command line where it gives them, else those with which the run began. LB_INVALID
 * names what is missing. */
enum lb_status lb_settings_from_run(const struct lb_run *run, const struct lb_options *options,
                                    struct lb_settings *settings, struct lb_case **cases,
                                    size_t *count, struct lb_error *err);

/* A new object for lb_run_resume: environment and command line. */
enum lb_status lb_settings_to_resume(const struct lb_settings *settings,
                                     const struct lb_options *options, json_t *libraries,
                                     json_t **details, struct lb_error *err);

#endif

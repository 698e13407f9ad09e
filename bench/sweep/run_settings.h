/* The settings of a sweep, kept in the header of its run so that --resume continues with them. */
#ifndef LB_RUN_SETTINGS_H
#define LB_RUN_SETTINGS_H

#include <jansson.h>

#include "cli/options.h"
#include "model/case.h"

/* A new object: environment and command line of this session, for lb_run_resume. */
json_t *lb_settings_of_session(const struct lb_options *options, json_t *libraries);

/* The same with the settings and the text of each case, for lb_run_create. The caller releases
 * *header, also after a failure. LB_INVALID: a path is not UTF-8. */
enum lb_status lb_settings_to_header(const struct lb_options *options,
                                     const struct lb_sampler_options *sampler,
                                     const struct lb_case *cases, size_t count, json_t *libraries,
                                     json_t **header, struct lb_error *err);

/* Sets the settings with which the run began, and gives its files to this process
 * (lb_give_files). Limits, device and tuning stay those of the command line where it gives them.
 * New strings of the options lie in the header. The caller frees *cases [*count], also after a
 * failure. LB_INVALID names what is missing. */
enum lb_status lb_settings_from_header(const json_t *header, struct lb_options *options,
                                       struct lb_case **cases, size_t *count, struct lb_error *err);

#endif

/* Reading the command line by the table of options. */
#ifndef LB_COMMAND_LINE_H
#define LB_COMMAND_LINE_H

#include "cli/options.h"

/* Reads argv into *options, which the caller frees with lb_options_free. A command on cases that is
 * given no sizes gets the quick grid. After a failure *options is zeroed.
 * LB_INVALID: one line that names the option, what is wrong and what is allowed; LB_OOM. */
enum lb_status lb_command_line_read(int argc, char **argv, struct lb_options *options,
                                    struct lb_error *err);

/* Whether an option, as it was written on the command line, has an effect with the command. Every
 * option has with --help and --version. LB_INVALID names both and the commands it works with. */
enum lb_status lb_check_effect(const struct lb_option *option, const char *word,
                               enum lb_command command, struct lb_error *err);

#endif

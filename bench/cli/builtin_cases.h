/* Sets of cases by name: files, and those that come with the program. */
#ifndef LB_BUILTIN_CASES_H
#define LB_BUILTIN_CASES_H

#include <stdbool.h>

#include "cli/selection.h"

/* Adds the cases of a file to the selection, or of the shipped set of that name where there is no
 * such file, or none is meant. A folder is no file: runs may be called as sets are.
 * LB_INVALID: there is neither; err names the nearest set, or all. */
enum lb_status lb_take_cases(struct lb_selection *selection, const char *name, bool shipped,
                             struct lb_error *err);

#endif

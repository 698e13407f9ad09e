/* Sets of cases by name: files, and the builtin ones that come with the program (bench/cases). */
#ifndef LB_BUILTIN_CASES_H
#define LB_BUILTIN_CASES_H

#include <stdbool.h>

#include "cli/selection.h"

/* Adds the cases of a file to the selection, or those of the builtin set of that name where there
 * is no such file. builtin: looks for the set alone. A folder does not count as a file, because
 * runs may have the name of a set. LB_INVALID: there is neither; err suggests a set, or lists all.
 */
enum lb_status lb_take_cases(struct lb_selection *selection, const char *name, bool builtin,
                             struct lb_error *err);

#endif

/* Which cases a command line chose: axes, implementations, --where expressions, case texts and
 * files. plan.h expands it to a list of cases. */
#ifndef LB_SELECTION_H
#define LB_SELECTION_H

#include "model/axes.h"
#include "model/case_file.h"
#include "model/filter.h"

/* Zeroed: nothing chosen. */
struct lb_selection {
    struct lb_axis axes[LB_AXIS_COUNT]; /* count 0: not set */
    const char **impls; /* [impl_count] impl[:variant] with commas between, borrowed; the array is
                           owned; none: every implementation */
    size_t impl_count;
    const char *
        *filters; /* [filter_count] expressions, borrowed; the array is owned; all must hold */
    size_t filter_count;
    struct lb_case_list cases;
};

void lb_selection_free(struct lb_selection *selection); /* accepts a zeroed one */

/* Takes one option and its value, which must outlive the selection: an axis of lb_axis_table,
 * --impl, --where, --case or --cases (a file, or the name of a set in bench/cases). A repeated
 * option adds values (--where: conditions). LB_INVALID names the option, what is wrong and what is
 * allowed. */
enum lb_status lb_selection_take(struct lb_selection *selection, const char *flag,
                                 const char *value, struct lb_error *err);

/* Takes the cases of the builtin set "quick", whatever files are called so. LB_INVALID. */
enum lb_status lb_selection_take_quick(struct lb_selection *selection, struct lb_error *err);

#endif

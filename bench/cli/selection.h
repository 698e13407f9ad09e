/* Which cases a command line chose: axes, implementations, --where expressions, case texts and
 * files. plan.h expands it to a list of cases. */
#ifndef LB_SELECTION_H
#define LB_SELECTION_H

#include "model/axes.h"
#include "model/case_file.h"
#include "model/filter.h"

enum lb_axis_id {
    LB_AXIS_SEQ_LEN,
    LB_AXIS_INPUT,
    LB_AXIS_HIDDEN,
    LB_AXIS_LAYERS,
    LB_AXIS_DIRECTIONS,
    LB_AXIS_CELL,
    LB_AXIS_PROJECTION,
    LB_AXIS_BATCH,
    LB_AXIS_DTYPE,
    LB_AXIS_PASS,
    LB_AXIS_MATH,
    LB_AXIS_RAGGED,
    LB_AXIS_ACT,
    LB_AXIS_LAUNCH,
    LB_AXIS_CACHE,
    LB_AXIS_TIMING,
    LB_AXIS_THREADS,
    LB_AXIS_RATE,
    LB_AXIS_INSTANCES,
    LB_AXIS_COUNT
};

/* An axis of the command line, which sets one field of a case. */
struct lb_axis_info {
    const char *flag;         /* "-B", "--dtype" */
    const char *what;         /* its name in messages: "batch" */
    const char *const *words; /* NULL-terminated, in the order of the field's enum; NULL: numbers */
    int64_t max;              /* of numbers */
    unsigned given;           /* enum lb_given of the field; 0: every case text has the field */
    size_t offset, size;      /* of the field in struct lb_case: 8 or 4 bytes signed, or 1 byte */
};

extern const struct lb_axis_info lb_axis_table[LB_AXIS_COUNT];

/* The field of a case that an axis sets, as a number: a size, or the value of an enum. */
int64_t lb_axis_get(const struct lb_case *c, enum lb_axis_id axis);
void lb_axis_set(struct lb_case *c, enum lb_axis_id axis, int64_t value);

/* Zeroed: nothing chosen. */
struct lb_selection {
    struct lb_axis axes[LB_AXIS_COUNT]; /* count 0: not set */
    const char **impls; /* [impl_count] impl[:variant] with commas between, borrowed; the array is
                           owned; none: every implementation */
    size_t impl_count;
    struct lb_filter *filters; /* [filter_count], owned; all must hold */
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

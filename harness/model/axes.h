/* Axes: the lists of values that a command line asks for, of numbers or of words.
 *
 *     numbers   item[,item...]     item = 64 | 64:512:+64 | 64:1024:x2
 *     words     word[,word...]
 *
 * A range holds its first number, and its last one when the steps hit it. */
#ifndef LB_AXES_H
#define LB_AXES_H

#include <stddef.h>
#include <stdint.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LB_AXIS_MAX_VALUES 10000000

/* Values in the order they were given, repetitions included. Zeroed: not set. */
struct lb_axis {
    int64_t *values; /* [count], owned */
    size_t count, capacity;
};

void lb_axis_free(struct lb_axis *axis); /* accepts a zeroed one, and leaves one */

/* What an axis is called in messages and which numbers it takes. */
struct lb_axis_numbers {
    const char *flag; /* "-B" */
    const char *what; /* "batch" */
    int64_t max;      /* values are 1 to max; INT64_MAX: no limit */
};

/* Appends the numbers of text. LB_INVALID names flag, column, what is wrong and what is allowed:
 * "-B 0: batch must be 1 or more"; LB_OOM. The axis is as before after a failure. */
enum lb_status lb_axis_add_numbers(struct lb_axis *axis, const struct lb_axis_numbers *allowed,
                                   const char *text, struct lb_error *err);

/* Appends the words of text, each as its index in words (NULL-terminated). LB_INVALID lists the
 * words and names the nearest; LB_OOM. The axis is as before after a failure. */
enum lb_status lb_axis_add_words(struct lb_axis *axis, const char *flag, const char *const *words,
                                 const char *text, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

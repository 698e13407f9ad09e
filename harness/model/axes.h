/* Axes: lists of numbers or words that a command line gives, such as -B 1,16:64:x2.
 *
 *     numbers   item[,item...]     item = 64 | 64:512:+64 | 64:1024:x2
 *     words     word[,word...]
 *
 * A range includes its first number, and its last one when a step lands on it. */
#ifndef LB_AXES_H
#define LB_AXES_H

#include "model/case.h"

#define LB_AXIS_MAX_VALUES 10000000 /* 80 MB; a text with more values is refused */

/* Values in the order in which they were given, with repetitions. A zeroed axis is empty. */
struct lb_axis {
    int64_t *values; /* [count], owned */
    size_t count;
};

void lb_axis_free(struct lb_axis *axis); /* accepts a zeroed axis and leaves it zeroed */

/* Appends the numbers of text, or its words, each as its index in the axis's words. LB_INVALID: the
 * message names the flag, the column, what is wrong and what is allowed, as in "-B 0: batch must be
 * 1 or more"; for a word it suggests the most similar one, or lists all. After a failure the axis
 * is unchanged. */
enum lb_status lb_axis_add(struct lb_axis *axis, const struct lb_axis_info *info, const char *text,
                           struct lb_error *err);
#endif

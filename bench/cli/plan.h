/* The plan: the cases that a selection stands for, in the order in which they run. */
#ifndef LB_PLAN_H
#define LB_PLAN_H

#include "cli/impl_names.h"

#define LB_PLAN_MAX_CASES        1000000   /* planned; 160 bytes each */
#define LB_PLAN_MAX_COMBINATIONS 100000000 /* looked at */

struct lb_plan {
    struct lb_case *cases; /* [count], owned; no two the same */
    size_t count;
    size_t filtered;         /* case lines that an axis or --impl ruled out, and what --where did */
    size_t left_out;         /* combinations that break lb_case_check */
    struct lb_error because; /* the first such rule, where left_out is not 0 */
};

/* Expands a selection. Zeroed plan and error on failure.
 *
 * Case lines (--case, --cases): axes and --impl fill what a line left out and filter what it gave:
 * a line that says f32 is dropped under --dtype f16. An axis that is not set fills in the default.
 * A line that names an implementation without a variant means its default variant.
 * Without lines: the product of the axes, -T, -B and -H required, I = H where -I is not set.
 * --impl cudnn is every variant of it, cudnn:auto the one; without --impl, every entry.
 *
 * Order: lines as they came; in each, sizes outermost (T, I, H, L, D, then B, since batches of one
 * problem share an oracle), then dtype, pass and so on, implementations innermost; cases of one
 * problem are adjacent even if they come from several lines.
 *
 * LB_INVALID: an unknown implementation or variant (names the nearest), a grid without -T, -B or
 * -H, an expression that can't be evaluated, more cases than the limits; LB_OOM. */
enum lb_status lb_plan_build(const struct lb_selection *selection,
                             const struct lb_available_impl *entries, size_t entry_count,
                             struct lb_plan *plan, struct lb_error *err);

void lb_plan_free(struct lb_plan *plan); /* accepts a zeroed one */

#endif

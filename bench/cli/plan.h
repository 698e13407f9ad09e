/* The plan: the cases that a selection stands for, in the order in which they run. */
#ifndef LB_PLAN_H
#define LB_PLAN_H

#include "cli/impl_names.h"

#define LB_PLAN_MAX_CASES        1000000   /* in a plan, 160 bytes each */
#define LB_PLAN_MAX_COMBINATIONS 100000000 /* examined while planning */

/* Which part of a plan is left, and of what (shard.h). Times are predicted ones, in seconds, before
 * repetitions and processes; they are for proportions. */
struct lb_shard {
    int index, count;                /* part index of count, from 1; count 0: the plan is whole */
    uint64_t plan_hash;              /* of all cases of the plan with their shards */
    size_t plan_count;               /* cases of the whole plan */
    int threads;                     /* the most that a case of the whole plan has */
    double own_s, longest_s, plan_s; /* of this shard, of the one with the most work, of all */
};

struct lb_plan {
    struct lb_case *cases; /* [count], owned; no two the same */
    size_t count;
    size_t filtered;         /* case lines that an axis or --impl ruled out, and combinations that
                                --where did */
    size_t left_out;         /* combinations that lb_case_check refuses */
    struct lb_error because; /* why it refused the first; set where left_out is not 0 */
    struct lb_shard shard;
};

/* Expands a selection. After a failure the plan is zeroed.
 *
 * Case lines (--case, --cases): axes and --impl fill in what a line left out and filter what it
 * gave: with --dtype f16, a line that says f32 is dropped. An axis that is not set fills in the
 * default. A line that names an implementation without a variant means its default variant. Without
 * lines: all combinations of the axes, of which -T, -B and -H are required; I = H where -I is not
 * set. "--impl cudnn" means every variant of it, "--impl cudnn:auto" the default one; without
 * --impl, every implementation.
 *
 * Order: lines as they were given. In each line, sizes are the outermost loops (T, I, H, L, D, then
 * B, because batches of one problem share an oracle), then dtype, pass and so on; implementations
 * are the innermost. Cases of one problem are adjacent even if they come from several lines.
 *
 * LB_INVALID: an unknown implementation or variant (with a suggestion), a grid without -T, -B or
 * -H, an expression that can't be evaluated, more cases than the limits allow; LB_OOM. */
enum lb_status lb_plan_build(const struct lb_selection *selection,
                             const struct lb_registry *registry, struct lb_plan *plan,
                             struct lb_error *err);

void lb_plan_free(struct lb_plan *plan); /* accepts a zeroed one */

#endif

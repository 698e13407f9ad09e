/* The plan: the cases that a command line stands for, in the order in which they run. */
#ifndef LB_PLAN_H
#define LB_PLAN_H

#include "measure/sampler.h"
#include "model/axes.h"
#include "model/case_file.h"
#include "model/filter.h"
#include "model/registry.h"

#define LB_PLAN_MAX_CASES        1000000   /* in a plan, 160 bytes each, 280 while it is made */
#define LB_PLAN_MAX_COMBINATIONS 100000000 /* examined while planning */

/* Which cases a command line chose. Zeroed: nothing chosen. */
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

/* Which part of a plan is left, and of what: shards run on different machines, or on different
 * devices of one. Times are predicted ones, in seconds, before repetitions and processes; they are
 * for proportions. */
struct lb_shard {
    int index, count;                /* part index of count, from 1; count 0: the plan is whole */
    uint64_t plan_hash;              /* of all cases of the plan with their shards, by which --merge
                                        recognises parts of one plan */
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
 * -H, an expression that can't be evaluated, more cases than the limits allow. */
enum lb_status lb_plan_build(const struct lb_selection *selection,
                             const struct lb_registry *registry, struct lb_plan *plan,
                             struct lb_error *err);

void lb_plan_free(struct lb_plan *plan); /* accepts a zeroed one */

/* An implementation in one variant. Both strings belong to the registry that it was found in, or
 * are static. */
struct lb_named_impl {
    const char *name;
    const char *variant; /* "": the default */
};

/* Finds the implementation and the variant that "name" or "name:variant" means. Without a variant,
 * or with "auto" or the default's own name, it is the default. LB_INVALID: there is none; err
 * begins with origin and suggests the closest name, or lists all of them. */
enum lb_status lb_named_impl_parse(const struct lb_registry *registry, const char *origin,
                                   const char *word, struct lb_named_impl *impl,
                                   struct lb_error *err);

#define LB_SHARD_MAX_COUNT 10000
#define LB_MAX_DEVICES     64 /* of --devices */
#define LB_MAX_DEVICE      1023

/* Rates for predictions, in flops per second. */
#define LB_GPU_FLOPS_S 5e12
#define LB_CPU_FLOPS_S 4e10 /* of one thread */

#define LB_PREDICTED_MAX_S 1e9 /* 30 years; milliseconds of a whole plan then fit into 64 bits */

/* A rough estimate of the time that measuring the case takes, in seconds, at most
 * LB_PREDICTED_MAX_S. A call takes the flops of the case divided by `rate`, in flops per second,
 * and 1 us per step. */
double lb_predict_seconds(const struct lb_case *c, double rate, const struct lb_sampler_options *s);

/* Keeps the cases of the plan that belong to the shard "I/N", in their order, and fills in
 * plan->shard. LB_INVALID: the text is no shard.
 *
 * All cases of a problem (lb_case_same_problem) belong to one shard, so that they run on one
 * device and their ratios hold. Problems go to the shard with the least work so far, the longest
 * first, so no shard has more than 4/3 of the work of the best cut (Graham, Bounds on
 * multiprocessing timing anomalies, 1969). The work of a problem is predicted from its sizes and
 * its number of cases alone, and a hash orders problems of equal work, so that every machine
 * cuts the same plan in the same way, whatever its device. */
enum lb_status lb_shard_keep(const char *shard, const struct lb_sampler_options *sampler,
                             struct lb_plan *plan, struct lb_error *err);

/* Reads the text of --devices: a list such as "0,2" into devices [LB_MAX_DEVICES], or "all", for
 * which *count is 0. LB_INVALID: the text is neither, or has a number twice. */
enum lb_status lb_devices_parse(const char *text, int *devices, size_t *count,
                                struct lb_error *err);

/* Reads "I/N". LB_INVALID, with a message that says what is allowed. */
enum lb_status lb_shard_parse(const char *text, int *index, int *count, struct lb_error *err);

#endif

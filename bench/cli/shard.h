/* Shards: cutting a plan into parts that run on different machines. */
#ifndef LB_SHARD_H
#define LB_SHARD_H

#include "cli/plan.h"
#include "measure/sampler.h"

#define LB_SHARD_MAX_COUNT 10000

/* Returns a rough estimate for planning, in seconds: the flops of the case divided by `rate` in
 * flops per second, times the usual number of samples. The estimate is at most the time that a
 * case may take. */
double lb_predict_seconds(const struct lb_case *c, double rate, const struct lb_sampler_options *s);

/* Keeps the cases of the plan that belong to the shard, in their order, and fills in plan->shard.
 * shard: "I/N" with I from 1 to N.
 *
 * All cases of a problem (lb_case_same_problem) belong to one shard, so that they run on one
 * device and their ratios hold. Problems go to the shard with the least work so far, the longest
 * first, so no shard has more than 4/3 of the work of the best cut (Graham, Bounds on
 * multiprocessing timing anomalies, 1969). The work of a problem is predicted from its sizes and
 * its number of cases alone, and a hash orders problems of equal work, so that every machine
 * cuts the same plan in the same way, whatever its device. LB_INVALID: the text is not a shard.
 * LB_OOM. */
enum lb_status lb_shard_keep(const char *shard, const struct lb_sampler_options *sampler,
                             struct lb_plan *plan, struct lb_error *err);

/* Reads "I/N". LB_INVALID, with a message that says what is allowed. */
enum lb_status lb_shard_parse(const char *text, int *index, int *count, struct lb_error *err);

#endif

/* Cutting a plan into shards, which run on different machines or on different devices of one. */
#ifndef LB_SHARD_H
#define LB_SHARD_H

#include "cli/plan.h"
#include "measure/sampler.h"

#define LB_SHARD_MAX_COUNT 10000
#define LB_MAX_DEVICES     64 /* of --devices */

/* Rates for predictions, in flops per second. */
#define LB_GPU_FLOPS_S 5e12
#define LB_CPU_FLOPS_S 4e10 /* of one thread */

#define LB_PREDICTED_MAX_S 1e9 /* 30 years; milliseconds of a whole plan then fit into 64 bits */

/* Returns a rough estimate of the time that measuring the case takes, in seconds, for planning. A
 * call takes the flops of the case divided by `rate`, in flops per second, and 1 us per step. At
 * most LB_PREDICTED_MAX_S. */
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

/* Reads the text of --devices: a list such as "0,2" into devices [LB_MAX_DEVICES], or "all", for
 * which *count is 0. LB_INVALID: the text is neither, or has a number twice. */
enum lb_status lb_devices_parse(const char *text, int *devices, size_t *count,
                                struct lb_error *err);

/* Reads "I/N". LB_INVALID, with a message that says what is allowed. */
enum lb_status lb_shard_parse(const char *text, int *index, int *count, struct lb_error *err);

#endif

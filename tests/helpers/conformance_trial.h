/* One checked call of an implementation through the contract, and runs of whole cases, for tests.
 */
#ifndef LB_TRIAL_H
#define LB_TRIAL_H

#include "api/impl.h"
#include "measure/case_run.h"
#include "reference/reference.h"

/* Runs the problem's pass once, from supports to destroy, on host memory that is full of NaN where
 * nothing has been written, into results (which are poisoned first). LB_UNSUPPORTED with a reason
 * where the implementation says so. */
enum lb_status trial_run(const struct lb_impl *impl, const struct lb_problem *problem,
                         const struct lb_exec_config *place, const struct lb_inputs *inputs,
                         const struct lb_results *results, struct lb_error *err);

/* Opens the reference, runs the trial and checks it; results are kept where wanted is not NULL, for
 * the caller to destroy. */
enum lb_status trial_check(const struct lb_impl *impl, const struct lb_problem *problem,
                           struct lb_reference_cache *cache, uint64_t seed, struct lb_check *check,
                           struct lb_error *err);

/* The case of such a text, which must be well-formed; its problem. */
struct lb_case trial_case(const char *text);
struct lb_problem trial_problem(const char *text);

/* lb_case_run where nobody watches; row is the caller's to free. */
void trial_case_run(const struct lb_impl *impl, const char *text,
                    const struct lb_run_options *options, struct lb_row *row);

/* "T3_B17_I1_H3_L2/f32/train": the problem as a case's text, in a static buffer. */
const char *trial_name(const struct lb_problem *problem);

#endif

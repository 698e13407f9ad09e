/* For tests: calls an implementation through the contract and checks its results; runs whole cases.
 */
#ifndef LB_CONFORMANCE_TRIAL_H
#define LB_CONFORMANCE_TRIAL_H

#include "api/impl.h"
#include "case/options.h"
#include "machine/machine.h"
#include "reference/reference.h"

/* Runs the problem's pass twice between one supports and one destroy, on host memory that is full
 * of NaN where nothing has been written, into results, which are poisoned before each call. Where
 * the implementation has an update, it converts the weights and the gradients of the second call.
 * LB_FAILED when the implementation writes outside its buffers, or promises to be deterministic and
 * is not; otherwise what it returned. */
enum lb_status trial_run(const struct lb_impl *impl, const struct lb_problem *problem,
                         const struct lb_exec_config *config, const struct lb_inputs *inputs,
                         const struct lb_results *results, struct lb_error *err);

/* Opens the reference of the problem (cache may be NULL), runs the trial with the first variant on
 * one thread for each input set, and compares its results into *check, up to the first that is
 * wrong. */
enum lb_status trial_check(const struct lb_impl *impl, const struct lb_problem *problem,
                           struct lb_reference_cache *cache, uint64_t seed, struct lb_check *check,
                           struct lb_error *err);

/* The case of a text, and its problem; a machine and a device by name or file. They abort when the
 * text is not well-formed or nothing has the name. */
struct lb_case trial_case(const char *text);
struct lb_problem trial_problem(const char *text);
struct lb_machine trial_machine(const char *name);
struct lb_device_info trial_device(const char *name);

/* lb_case_run without an observer; row is the caller's to free. */
void trial_case_run(const struct lb_impl *impl, const char *text,
                    const struct lb_run_options *options, struct lb_row *row);

/* The cache of expected results that a program's tests may share, and what empties it after the
 * last of them (TEST_GROUP). */
extern struct lb_reference_cache *const trial_cache;
int trial_close_cache(void **state);

/* "T3_B17_I1_H3_L2/f32/train": the problem as a case's text, in a static buffer. */
const char *trial_name(const struct lb_problem *problem);

#endif

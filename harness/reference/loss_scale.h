/* Loss scaling, as mixed-precision training uses it: incoming gradients are multiplied by a factor
 * so that small ones survive in f16, and the gradients that come out are divided by it. Gradients
 * that overflowed on the way are reported. A scale of 0 (not set) or 1 scales nothing. */
#ifndef LB_LOSS_SCALE_H
#define LB_LOSS_SCALE_H

#include "reference/case_tensors.h"

/* ---- Scaling and unscaling. ---------------------------------------------------------------------
 */

/* to = from * factor, both [count] in dtype and rounded to it; to may be from. */
void lb_scale_array(enum lb_dtype dtype, void *to, const void *from, size_t count, double factor);

/* Replaces dy, dhn and dcn of inputs by copies times scale, rounded to the dtype. *storage holds
 * the copies and is the caller's to free; it is NULL where nothing is scaled, as without a
 * backward. LB_OOM. */
enum lb_status lb_loss_scale(const struct lb_problem *problem, double scale,
                             struct lb_inputs *inputs, void **storage, struct lb_error *err);

/* Divides all gradients of results by scale, rounded to the dtype. */
void lb_loss_unscale(const struct lb_problem *problem, double scale,
                     const struct lb_results *results);

/* True when the problem's gradients were scaled and any is infinite or NaN; text then says how
 * many. */
bool lb_loss_overflow(const struct lb_problem *problem, double scale,
                      const struct lb_results *results, char *text, size_t size);

/* How many of all gradients of results are infinite or NaN, and of the weight gradients alone. The
 * second is the check that training makes per step; what it costs is recorded
 * (overflow_check_ns).
 */
size_t lb_gradients_non_finite(const struct lb_problem *problem, const struct lb_results *results);
size_t lb_weight_gradients_non_finite(const struct lb_problem *problem,
                                      const struct lb_results *results);

/* ---- The dynamic loss scale. --------------------------------------------------------------------
 *
 * A step whose gradients overflow is skipped and halves the scale; after 2000 steps in a row
 * without overflow the scale is doubled. These are the defaults of two frameworks:
 * torch.amp.GradScaler (PyTorch 2.15, torch/amp/grad_scaler.py: init_scale 2^16, growth_factor 2,
 * backoff_factor 0.5, growth_interval 2000) and keras.optimizers.LossScaleOptimizer (Keras 3.15,
 * keras/src/optimizers/loss_scale_optimizer.py: initial_scale 2^15, dynamic_growth_steps 2000). */

#define LB_LOSS_SCALE_START 65536.0
enum { LB_LOSS_SCALE_INTERVAL = 2000, LB_LOSS_SCALE_STEPS = 10000 };

/* Makes one training step on an input set at a scale: *overflow says whether its gradients
 * overflowed. */
typedef enum lb_status lb_loss_trial(void *user, double scale, int set, bool *overflow,
                                     struct lb_error *err);

struct lb_loss_schedule {
    double scale;   /* in force at the end, at which no set overflows */
    double skipped; /* share of the steps that were skipped */
};

/* Follows the dynamic scale over LB_LOSS_SCALE_STEPS steps, which take the input sets in turn. The
 * weights of a benchmark do not change, so a step's outcome depends on the scale and the set alone:
 * each pair is tried once. Where a set overflows at a scale below 2 the schedule ends there with
 * that scale. Returns what trial returned. start: 1 or more. */
enum lb_status lb_loss_schedule_run(double start, lb_loss_trial *trial, void *user,
                                    struct lb_loss_schedule *schedule, struct lb_error *err);

#endif

/* Loss scaling, as mixed-precision training uses it: incoming gradients are multiplied by a factor
 * so that small ones survive in f16, and the gradients that come out are divided by it. Gradients
 * that overflowed on the way are reported. A scale of 0 (not set) or 1 scales nothing. */
#ifndef LB_LOSS_SCALE_H
#define LB_LOSS_SCALE_H

#include "reference/case_tensors.h"

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

#endif

/* Loss scaling, as mixed-precision training uses it: gradients that come in are multiplied by a
 * factor so that small ones survive in f16, those that come out are divided by it, and what passed
 * the dtype's range is reported. */
#ifndef LB_LOSS_SCALE_H
#define LB_LOSS_SCALE_H

#include "reference/reference.h"

/* dy, dhn, dcn of inputs are replaced by copies times scale, rounded to the dtype; *storage holds
 * them and is the caller's to free. Nothing happens without a backward, or at scale 1 or 0 (not
 * set). */
enum lb_status lb_loss_scale(const struct lb_problem *problem, double scale,
                             struct lb_inputs *inputs, void **storage, struct lb_error *err);

/* All gradients of results divided by scale, rounded to the dtype. */
enum lb_status lb_loss_unscale(const struct lb_problem *problem, double scale,
                               const struct lb_results *results, struct lb_error *err);

/* True when scaled gradients are infinite or NaN; text then says how many of them. */
bool lb_loss_overflow(const struct lb_problem *problem, double scale,
                      const struct lb_results *results, char *text, size_t size);

#endif

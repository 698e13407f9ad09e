/* Loss scaling: how gradients are scaled, unscaled, and checked for overflow, and the schedule of a
 * dynamic scale. */
#include "reference/loss_scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "host/fp_environment.h"

enum { BLOCK = 4096 /* elements converted at a time */ };

static bool scales(const struct lb_problem *problem, double scale)
{
    return scale != 0 && scale != 1 && lb_has_backward(problem);
}

void lb_scale_array(enum lb_dtype dtype, void *to, const void *from, size_t count, double factor)
{
    double values[BLOCK];
    size_t size = lb_dtype_size(dtype);
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        lb_load(dtype, (const char *)from + i * size, values, n);
        for (size_t k = 0; k < n; k++)
            values[k] *= factor;
        lb_store(dtype, (char *)to + i * size, values, n);
    }
}

/* The same of 16-bit values by their exponent bits, whose loop compilers vectorise: its time is
 * recorded as that of the check. */
static size_t count_non_finite_halves(const uint16_t *bits, size_t count, uint16_t exponent)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        uint16_t here = 0;
        for (size_t k = 0; k < n; k++)
            here = (uint16_t)(here + ((bits[i + k] & exponent) == exponent));
        found += here;
    }
    return found;
}

static size_t count_non_finite(enum lb_dtype dtype, const void *from, size_t count)
{
    double values[BLOCK];
    size_t found = 0;
    if (dtype == LB_F16 || dtype == LB_BF16)
        return count_non_finite_halves(from, count, dtype == LB_F16 ? 0x7c00 : 0x7f80);
    for (size_t i = 0; i < count; i += BLOCK) {
        size_t n = count - i < BLOCK ? count - i : BLOCK;
        lb_load(dtype, (const char *)from + i * lb_dtype_size(dtype), values, n);
        for (size_t k = 0; k < n; k++)
            found += isfinite(values[k]) ? 0 : 1;
    }
    return found;
}

enum lb_status lb_loss_scale(const struct lb_problem *problem, double scale,
                             struct lb_inputs *inputs, void **storage, struct lb_error *err)
{
    size_t size = lb_dtype_size(problem->dtype), all = 0;
    *storage = NULL;
    if (!scales(problem, scale))
        return LB_OK;
    for (enum lb_tensor t = LB_DY; t <= LB_DCN; t++)
        all += lb_tensor_elements(problem, t);
    char *at = *storage = malloc(all * size);
    if (!at)
        return lb_fail(err, LB_OOM, "out of memory for scaled gradients");
    for (enum lb_tensor t = LB_DY; t <= LB_DCN; t++) {
        size_t count = lb_tensor_elements(problem, t);
        lb_scale_array(problem->dtype, at, inputs->at[t], count, scale);
        inputs->at[t] = at;
        at += count * size;
    }
    return LB_OK;
}

void lb_loss_unscale(const struct lb_problem *problem, double scale,
                     const struct lb_results *results)
{
    fenv_t environment;
    void *weights = results->gradients.dw_ih ? results->gradients.dw_ih[0] : NULL;
    if (!scales(problem, scale))
        return;
    lb_fp_enter(&environment);
    for (int t = LB_DX; t <= LB_DC0; t++)
        lb_scale_array(problem->dtype, results->at[t], results->at[t], results->counts[t],
                       1 / scale);
    lb_scale_array(problem->dtype, weights, weights, results->weight_count, 1 / scale);
    fesetenv(&environment);
}

size_t lb_gradients_non_finite(const struct lb_problem *problem, const struct lb_results *results)
{
    size_t found = lb_weight_gradients_non_finite(problem, results);
    for (int t = LB_DX; t <= LB_DC0; t++)
        found += count_non_finite(problem->dtype, results->at[t], results->counts[t]);
    return found;
}

size_t lb_weight_gradients_non_finite(const struct lb_problem *problem,
                                      const struct lb_results *results)
{
    return count_non_finite(problem->dtype, results->gradients.dw_ih[0], results->weight_count);
}

bool lb_loss_overflow(const struct lb_problem *problem, double scale,
                      const struct lb_results *results, char *text, size_t size)
{
    size_t all = results->weight_count;
    if (!scales(problem, scale))
        return false;
    size_t found = lb_gradients_non_finite(problem, results);
    for (int t = LB_DX; t <= LB_DC0; t++)
        all += results->counts[t];
    if (found > 0)
        snprintf(text, size, "gradients overflow at loss scale %g: %zu of %zu are infinite or NaN",
                 scale, found, all);
    return found > 0;
}

/* The dynamic scale is start * 2^doublings. A start below 2^1023 is halved 1022 times at most. */
enum { MOST_HALVINGS = 1022, MOST_DOUBLINGS = LB_LOSS_SCALE_STEPS / LB_LOSS_SCALE_INTERVAL };

enum outcome { UNKNOWN, FINE, OVERFLOWS };

struct schedule {
    lb_loss_trial *trial;
    void *user;
    double start;
    int doublings, good_steps; /* good_steps: in a row, since the scale last changed */
    enum outcome outcomes[MOST_HALVINGS + MOST_DOUBLINGS + 1][LB_TIMED_SETS];
};

static double scale_of(const struct schedule *s)
{
    return ldexp(s->start, s->doublings);
}

/* Whether a step on the set overflows at the scale; tried once. */
static enum lb_status overflows(struct schedule *s, int set, bool *overflow, struct lb_error *err)
{
    enum outcome *outcome = &s->outcomes[MOST_HALVINGS + s->doublings][set];
    enum lb_status st = LB_OK;
    *overflow = *outcome == OVERFLOWS;
    if (*outcome == UNKNOWN)
        st = s->trial(s->user, scale_of(s), set, overflow, err);
    *outcome = *overflow ? OVERFLOWS : FINE;
    return st;
}

enum lb_status lb_loss_schedule_run(double start, lb_loss_trial *trial, void *user,
                                    struct lb_loss_schedule *schedule, struct lb_error *err)
{
    struct schedule s = {.trial = trial, .user = user, .start = start};
    bool overflow = false, ended = false;
    int steps = 0, skipped = 0, fine = 0;
    while (steps < LB_LOSS_SCALE_STEPS && !ended) {
        LB_CHECK(overflows(&s, steps % LB_TIMED_SETS, &overflow, err));
        steps++;
        skipped += overflow;
        ended = overflow && scale_of(&s) < 2;
        bool grows = !overflow && s.good_steps + 1 == LB_LOSS_SCALE_INTERVAL;
        s.doublings += grows - (overflow && !ended);
        s.good_steps = grows || overflow ? 0 : s.good_steps + 1;
    }
    /* The last step may have doubled the scale, or was of the set that does not overflow. */
    while (!ended && fine < LB_TIMED_SETS) {
        LB_CHECK(overflows(&s, fine, &overflow, err));
        ended = overflow && scale_of(&s) < 2;
        s.doublings -= overflow && !ended;
        fine = overflow ? 0 : fine + 1;
    }
    *schedule = (struct lb_loss_schedule){scale_of(&s), (double)skipped / steps};
    return LB_OK;
}

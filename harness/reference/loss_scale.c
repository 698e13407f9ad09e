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

/* to = from * factor, both [count] in dtype; to may be from. */
static void scale_array(enum lb_dtype dtype, void *to, const void *from, size_t count,
                        double factor)
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
    size_t size = lb_dtype_size(problem->dtype), counts[LB_Y] = {0}, all = 0, steps, width;
    *storage = NULL;
    if (!scales(problem, scale))
        return LB_OK;
    for (int t = LB_DY; t <= LB_DCN; t++) {
        lb_tensor_shape(problem, (enum lb_tensor)t, &steps, &width);
        counts[t] = steps * (size_t)problem->batch * width;
        all += counts[t];
    }
    char *at = *storage = malloc(all * size);
    if (!at)
        return lb_fail(err, LB_OOM, "out of memory for scaled gradients");
    for (int t = LB_DY; t <= LB_DCN; at += counts[t++] * size) {
        scale_array(problem->dtype, at, inputs->at[t], counts[t], scale);
        inputs->at[t] = at;
    }
    return LB_OK;
}

void lb_loss_unscale(const struct lb_problem *problem, double scale,
                     const struct lb_results *results)
{
    struct lb_fp_environment environment;
    void *weights = results->gradients.dw_ih ? results->gradients.dw_ih[0] : NULL;
    if (!scales(problem, scale))
        return;
    lb_fp_enter(&environment);
    for (int t = LB_DX; t <= LB_DC0; t++)
        scale_array(problem->dtype, results->at[t], results->at[t], results->counts[t], 1 / scale);
    scale_array(problem->dtype, weights, weights, results->weight_count, 1 / scale);
    lb_fp_leave(&environment);
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

void lb_loss_scaler_step(struct lb_loss_scaler *scaler, bool overflow)
{
    if (overflow) {
        scaler->scale /= 2;
        scaler->good_steps = 0;
    } else if (++scaler->good_steps == LB_LOSS_SCALE_INTERVAL) {
        scaler->scale *= 2;
        scaler->good_steps = 0;
    }
}

/* Outcomes of the steps that were tried: a start below 2^128 is halved 127 times at most, and the
 * steps double it 5 times. */
enum { MOST_SCALES = 128 + LB_LOSS_SCALE_STEPS / LB_LOSS_SCALE_INTERVAL };

struct tried {
    double scale;
    bool known[LB_INPUT_SETS], overflow[LB_INPUT_SETS];
};

struct trials {
    lb_loss_trial *trial;
    void *user;
    struct tried items[MOST_SCALES];
    size_t count;
};

static enum lb_status overflows(struct trials *trials, double scale, int set, bool *overflow,
                                struct lb_error *err)
{
    size_t i = 0;
    enum lb_status st = LB_OK;
    while (i < trials->count && trials->items[i].scale != scale)
        i++;
    if (i == MOST_SCALES)
        return lb_fail(err, LB_INVALID, "loss scale %g: it took more than %d other values", scale,
                       (int)MOST_SCALES);
    struct tried *tried = &trials->items[i];
    if (i == trials->count)
        trials->items[trials->count++] = (struct tried){.scale = scale};
    if (!tried->known[set])
        st = trials->trial(trials->user, scale, set, &tried->overflow[set], err);
    tried->known[set] = true;
    *overflow = tried->overflow[set];
    return st;
}

enum lb_status lb_loss_schedule_run(double start, lb_loss_trial *trial, void *user,
                                    struct lb_loss_schedule *schedule, struct lb_error *err)
{
    struct trials trials = {.trial = trial, .user = user};
    struct lb_loss_scaler scaler = {.scale = start};
    enum lb_status st = LB_OK;
    bool overflow = false, ended = false;
    int steps = 0, skipped = 0, fine = 0;
    while (steps < LB_LOSS_SCALE_STEPS && !ended) {
        LB_TRY(overflows(&trials, scaler.scale, steps % LB_INPUT_SETS, &overflow, err));
        steps++;
        skipped += overflow;
        ended = overflow && scaler.scale < 2;
        if (!ended)
            lb_loss_scaler_step(&scaler, overflow);
    }
    /* The last step may have doubled the scale, or was of the set that does not overflow. */
    while (!ended && fine < LB_INPUT_SETS) {
        LB_TRY(overflows(&trials, scaler.scale, fine, &overflow, err));
        ended = overflow && scaler.scale < 2;
        if (overflow && !ended)
            scaler.scale /= 2;
        fine = overflow ? 0 : fine + 1;
    }
    *schedule = (struct lb_loss_schedule){scaler.scale, (double)skipped / steps};
done:
    return st;
}

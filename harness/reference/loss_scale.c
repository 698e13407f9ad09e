/* Loss scaling: gradients in and out, and what overflowed. */
#include "reference/loss_scale.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/weight_packing.h"

enum { PIECE = 4096 /* elements converted at a time */ };

static bool scales(const struct lb_problem *problem, double scale)
{
    return scale != 0 && scale != 1 && lb_has_backward(problem);
}

/* to = from * factor, both [count] in dtype; to may be from. */
static void scale_array(enum lb_dtype dtype, void *to, const void *from, size_t count,
                        double factor)
{
    double values[PIECE];
    size_t size = lb_dtype_size(dtype);
    for (size_t i = 0; i < count; i += PIECE) {
        size_t n = count - i < PIECE ? count - i : PIECE;
        lb_load(dtype, (const char *)from + i * size, values, n);
        for (size_t k = 0; k < n; k++)
            values[k] *= factor;
        lb_store(dtype, (char *)to + i * size, values, n);
    }
}

static size_t count_non_finite(enum lb_dtype dtype, const void *from, size_t count)
{
    double values[PIECE];
    size_t found = 0;
    for (size_t i = 0; i < count; i += PIECE) {
        size_t n = count - i < PIECE ? count - i : PIECE;
        lb_load(dtype, (const char *)from + i * lb_dtype_size(dtype), values, n);
        for (size_t k = 0; k < n; k++)
            found += isfinite(values[k]) ? 0 : 1;
    }
    return found;
}

enum lb_status lb_loss_scale(const struct lb_problem *problem, double scale,
                             struct lb_inputs *inputs, void **storage, struct lb_error *err)
{
    struct lb_counts n;
    enum lb_dtype dtype = problem->dtype;
    size_t size = lb_dtype_size(dtype);
    *storage = NULL;
    if (!scales(problem, scale))
        return LB_OK;
    enum lb_status st = lb_problem_counts(problem, &n, err);
    if (st != LB_OK)
        return st;
    char *block = malloc((n.y + 2 * n.state) * size);
    if (!block)
        return lb_fail(err, LB_OOM, "out of memory for scaled gradients");
    const size_t counts[] = {n.y, n.state, n.state};
    void **const tensors[] = {&inputs->dy, &inputs->dhn, &inputs->dcn};
    char *at = block;
    for (int i = 0; i < 3; i++) {
        scale_array(dtype, at, *tensors[i], counts[i], scale);
        *tensors[i] = at;
        at += counts[i] * size;
    }
    *storage = block;
    return LB_OK;
}

/* A gradient of results: the i-th of dx, dh0, dc0 and then all weight gradients. */
struct gradient {
    void *data; /* NULL behind the last */
    size_t count;
};

static struct gradient gradient_at(const struct lb_problem *p, const struct lb_counts *n,
                                   const struct lb_results *results, size_t i)
{
    const struct gradient states[] = {
        {results->dx, n->x}, {results->dh0, n->state}, {results->dc0, n->state}};
    void *const *const weights[LB_WEIGHT_COUNT] = {
        results->gradients.dw_ih, results->gradients.dw_hh, results->gradients.db_ih,
        results->gradients.db_hh};
    if (i < 3)
        return states[i];
    size_t entry = (i - 3) / LB_WEIGHT_COUNT;
    enum lb_weight which = (enum lb_weight)((i - 3) % LB_WEIGHT_COUNT);
    if (entry >= lb_layer_dir_count(p))
        return (struct gradient){NULL, 0};
    return (struct gradient){weights[which][entry], lb_weight_elements(p, entry, which)};
}

enum lb_status lb_loss_unscale(const struct lb_problem *problem, double scale,
                               const struct lb_results *results, struct lb_error *err)
{
    struct lb_counts n;
    if (!scales(problem, scale))
        return LB_OK;
    enum lb_status st = lb_problem_counts(problem, &n, err);
    for (size_t i = 0; st == LB_OK; i++) {
        struct gradient g = gradient_at(problem, &n, results, i);
        if (!g.data)
            break;
        scale_array(problem->dtype, g.data, g.data, g.count, 1 / scale);
    }
    return st;
}

bool lb_loss_overflow(const struct lb_problem *problem, double scale,
                      const struct lb_results *results, char *text, size_t size)
{
    struct lb_counts n;
    size_t found = 0, all = 0;
    if (!scales(problem, scale) || lb_problem_counts(problem, &n, NULL) != LB_OK)
        return false;
    for (size_t i = 0;; i++) {
        struct gradient g = gradient_at(problem, &n, results, i);
        if (!g.data)
            break;
        found += count_non_finite(problem->dtype, g.data, g.count);
        all += g.count;
    }
    if (found > 0)
        snprintf(text, size, "gradients overflow at loss scale %g: %zu of %zu are infinite or NaN",
                 scale, found, all);
    return found > 0;
}

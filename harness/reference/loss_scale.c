/* Loss scaling: how gradients are scaled, unscaled, and checked for overflow. */
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

static size_t count_non_finite(enum lb_dtype dtype, const void *from, size_t count)
{
    double values[BLOCK];
    size_t found = 0;
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
    struct lb_counts n;
    enum lb_dtype dtype = problem->dtype;
    size_t size = lb_dtype_size(dtype);
    *storage = NULL;
    if (!scales(problem, scale))
        return LB_OK;
    enum lb_status st = lb_problem_counts(problem, &n, err);
    if (st != LB_OK)
        return st;
    char *block = malloc((n.y + n.state + lb_h_count(problem)) * size);
    if (!block)
        return lb_fail(err, LB_OOM, "out of memory for scaled gradients");
    const size_t counts[] = {n.y, lb_h_count(problem), n.state};
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

/* The gradients of results, as arrays: dx, dh0, dc0, and all weight gradients as one block. */
enum { GRADIENTS = 4 };

struct gradient {
    void *data;
    size_t count;
};

static void list_gradients(const struct lb_results *r, struct gradient gradients[GRADIENTS])
{
    gradients[0] = (struct gradient){r->dx, r->counts.x};
    gradients[1] = (struct gradient){r->dh0, r->h_count};
    gradients[2] = (struct gradient){r->dc0, r->counts.state};
    gradients[3] = (struct gradient){r->gradients.dw_ih[0], r->counts.weights};
}

void lb_loss_unscale(const struct lb_problem *problem, double scale,
                     const struct lb_results *results)
{
    struct gradient gradients[GRADIENTS];
    struct lb_fp_environment environment;
    if (!scales(problem, scale))
        return;
    list_gradients(results, gradients);
    lb_fp_enter(&environment);
    for (size_t i = 0; i < GRADIENTS; i++)
        scale_array(problem->dtype, gradients[i].data, gradients[i].data, gradients[i].count,
                    1 / scale);
    lb_fp_leave(&environment);
}

bool lb_loss_overflow(const struct lb_problem *problem, double scale,
                      const struct lb_results *results, char *text, size_t size)
{
    struct gradient gradients[GRADIENTS];
    size_t found = 0, all = 0;
    if (!scales(problem, scale))
        return false;
    list_gradients(results, gradients);
    for (size_t i = 0; i < GRADIENTS; i++) {
        found += count_non_finite(problem->dtype, gradients[i].data, gradients[i].count);
        all += gradients[i].count;
    }
    if (found > 0)
        snprintf(text, size, "gradients overflow at loss scale %g: %zu of %zu are infinite or NaN",
                 scale, found, all);
    return found > 0;
}

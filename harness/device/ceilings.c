/* What a device can do at best: the file that keeps it, and the lower bound that follows from it.
 */
#include "device/ceilings.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>

#include "base/atomic_file.h"
#include "base/cache_path.h"
#include "base/json_out.h"

/* All figures but the GEMM rates, by their keys in the file. */
static const struct {
    const char *key;
    size_t offset;
} figures[] = {
    {"copy_bytes_s", offsetof(struct lb_ceilings, copy_bytes_s)},
    {"launch_ns", offsetof(struct lb_ceilings, launch_ns)},
    {"graph_node_ns", offsetof(struct lb_ceilings, graph_node_ns)},
    {"event_ns", offsetof(struct lb_ceilings, event_ns)},
    {"grid_barrier_ns", offsetof(struct lb_ceilings, grid_barrier_ns)},
    {"cluster_barrier_ns", offsetof(struct lb_ceilings, cluster_barrier_ns)},
    {"peer_ns", offsetof(struct lb_ceilings, peer_ns)},
    {"l2_ns", offsetof(struct lb_ceilings, l2_ns)},
};
enum { FIGURE_COUNT = sizeof(figures) / sizeof(figures[0]) };

static json_t *number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double number_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Writes a rate's key, such as "gemm_f32_tf32_flops_s"; false where the dtype has no such math. */
static bool rate_key(int dtype, int math, char key[48])
{
    snprintf(key, 48, "gemm_%s%s%s_flops_s", lb_dtype_name((enum lb_dtype)dtype),
             math == LB_IEEE ? "" : "_", math == LB_IEEE ? "" : lb_math_name((enum lb_math)math));
    return math == LB_IEEE || dtype == LB_F32;
}

json_t *lb_ceilings_to_json(const struct lb_ceilings *ceilings)
{
    char key[48];
    json_t *object = json_object();
    json_object_set_new(object, "uuid", json_string(ceilings->uuid));
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        const void *figure = (const char *)ceilings + figures[i].offset;
        json_object_set_new(object, figures[i].key, number_or_null(*(const double *)figure));
    }
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        for (int m = 0; m < LB_MATH_COUNT; m++)
            if (rate_key(d, m, key))
                json_object_set_new(object, key, number_or_null(ceilings->gemm_flops_s[d][m]));
    return object;
}

void lb_ceilings_from_json(const json_t *object, struct lb_ceilings *ceilings)
{
    char key[48];
    const char *uuid = json_string_value(json_object_get(object, "uuid"));
    snprintf(ceilings->uuid, sizeof(ceilings->uuid), "%s", uuid ? uuid : "");
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        void *figure = (char *)ceilings + figures[i].offset;
        *(double *)figure = number_of(object, figures[i].key);
    }
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        for (int m = 0; m < LB_MATH_COUNT; m++)
            ceilings->gemm_flops_s[d][m] =
                rate_key(d, m, key) ? number_of(object, key) : (double)NAN;
}

void lb_ceilings_complete(struct lb_ceilings *ceilings, const struct lb_ceilings *older)
{
    for (size_t i = 0; i < FIGURE_COUNT; i++) {
        double *figure = (double *)(void *)((char *)ceilings + figures[i].offset);
        if (isnan(*figure))
            *figure = *(const double *)(const void *)((const char *)older + figures[i].offset);
    }
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        for (int m = 0; m < LB_MATH_COUNT; m++)
            if (isnan(ceilings->gemm_flops_s[d][m]))
                ceilings->gemm_flops_s[d][m] = older->gemm_flops_s[d][m];
}

static void file_path(const char *uuid, bool make, char path[4096])
{
    char name[64];
    snprintf(name, sizeof(name), "ceilings-%.47s.json", uuid);
    lb_cache_path(name, make, path);
}

static enum lb_status write_json(FILE *out, const void *user, struct lb_error *err)
{
    return lb_json_write(lb_ceilings_to_json(user), true, "ceilings", out, err);
}

enum lb_status lb_ceilings_save(const struct lb_ceilings *ceilings, struct lb_error *err)
{
    char path[4096];
    file_path(ceilings->uuid, true, path);
    return lb_write_file_atomically(path, write_json, ceilings, err);
}

bool lb_ceilings_load(const char *uuid, struct lb_ceilings *ceilings)
{
    char path[4096];
    file_path(uuid, false, path);
    json_t *object = json_load_file(path, 0, NULL);
    lb_ceilings_from_json(object, ceilings);
    bool found = object != NULL;
    json_decref(object);
    return found;
}

double lb_ceilings_lower_bound_ns(const struct lb_ceilings *ceilings,
                                  const struct lb_problem *problem)
{
    double gemms =
        lb_problem_flops(problem) / ceilings->gemm_flops_s[problem->dtype][problem->math] * 1e9;
    double traffic = lb_problem_bytes(problem) / ceilings->copy_bytes_s * 1e9;
    return isnan(gemms) || isnan(traffic) ? (double)NAN : fmax(gemms, traffic);
}

/* The GPU kernels that one call of a case ran. */
#include "record/gpu_kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static int by_name_then_start(const void *a, const void *b)
{
    const struct lb_launch_record *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_start(const void *a, const void *b)
{
    const struct lb_launch_record *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_total(const void *a, const void *b)
{
    const struct lb_kernel *x = a, *y = b;
    int order = (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
    return order ? order : strcmp(x->name, y->name);
}

/* Adds a launch to its kernel. */
static void add_launch(struct lb_kernel *kernel, const struct lb_launch_record *launch)
{
    double ns = launch->end_ns - launch->start_ns;
    kernel->count++;
    kernel->total_ns += ns;
    if (kernel->count > 1 && ns <= kernel->longest_ns)
        return;
    kernel->longest_ns = ns;
    memcpy(kernel->grid, launch->grid, sizeof(kernel->grid));
    memcpy(kernel->block, launch->block, sizeof(kernel->block));
    for (int i = 0; i < 3; i++)
        kernel->cluster[i] = launch->cluster[i] > 0 ? launch->cluster[i] : 1;
    kernel->registers = launch->registers;
    kernel->shared_bytes = launch->shared_bytes;
}

/* Computes span and gaps from launches in the order of their starts; kernels of several streams may
 * overlap. */
static void measure_gaps(const struct lb_launch_record *launches, size_t count,
                         struct lb_kernels *out)
{
    double end = launches[0].end_ns;
    out->gap_ns = out->longest_gap_ns = 0;
    for (size_t i = 1; i < count; i++) {
        double gap = launches[i].start_ns - end;
        if (gap > 0)
            out->gap_ns += gap;
        out->longest_gap_ns = fmax(out->longest_gap_ns, gap);
        end = fmax(end, launches[i].end_ns);
    }
    out->span_ns = end - launches[0].start_ns;
}

enum lb_status lb_kernels_collect(const struct lb_launch_record *launches, size_t count,
                                  struct lb_kernels *out, struct lb_error *err)
{
    struct lb_launch_record *sorted = calloc(count + 1, sizeof(*sorted));
    struct lb_kernel *items = calloc(count + 1, sizeof(*items));
    *out = (struct lb_kernels){.items = items, .launches = (double)count};
    if (!sorted || !items) {
        free(sorted);
        lb_kernels_free(out);
        return lb_fail(err, LB_OOM, "out of memory for %zu launches", count);
    }
    if (count > 0)
        memcpy(sorted, launches, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), by_name_then_start);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || strcmp(sorted[i].name, sorted[i - 1].name) != 0) {
            struct lb_kernel *kernel = &items[out->count++];
            lb_kernel_short_name(sorted[i].name, kernel->name);
            kernel->tensor_cores = lb_kernel_tensor_cores(sorted[i].name);
            kernel->persistent = lb_kernel_is_persistent(sorted[i].name);
        }
        add_launch(&items[out->count - 1], &sorted[i]);
    }
    qsort(items, out->count, sizeof(*items), by_total);
    qsort(sorted, count, sizeof(*sorted), by_start);
    if (count > 0)
        measure_gaps(sorted, count, out);
    free(sorted);
    return LB_OK;
}

void lb_kernels_free(struct lb_kernels *kernels)
{
    free(kernels->items);
    *kernels = (struct lb_kernels){.launches = (double)NAN,
                                   .span_ns = (double)NAN,
                                   .gap_ns = (double)NAN,
                                   .longest_gap_ns = (double)NAN};
}

enum lb_tensor_cores lb_kernels_tensor_cores(const struct lb_kernels *kernels)
{
    enum lb_tensor_cores used = kernels->count > 0 ? LB_TENSOR_NO : LB_TENSOR_UNKNOWN;
    for (size_t i = 0; i < kernels->count; i++) {
        if (kernels->items[i].tensor_cores == LB_TENSOR_YES)
            return LB_TENSOR_YES;
        if (kernels->items[i].tensor_cores == LB_TENSOR_UNKNOWN)
            used = LB_TENSOR_UNKNOWN;
    }
    return used;
}

static int64_t persistent_launches(const struct lb_kernels *kernels)
{
    int64_t launches = 0;
    for (size_t i = 0; i < kernels->count; i++)
        launches += kernels->items[i].persistent ? kernels->items[i].count : 0;
    return launches;
}

void lb_kernels_sentence(const struct lb_kernels *kernels, char *text, size_t size)
{
    int64_t persistent = persistent_launches(kernels);
    double launches = kernels->launches;
    const char *cores = lb_tensor_cores_name(lb_kernels_tensor_cores(kernels));
    text[0] = '\0';
    if (!kernels->items || !isfinite(launches))
        return;
    if ((double)persistent == launches)
        snprintf(text, size, "ran %.0f persistent kernel%s, tensor cores: %s", launches,
                 launches == 1 ? "" : "s", cores);
    else
        snprintf(text, size, "ran %.0f kernel%s, %" PRId64 " persistent, tensor cores: %s",
                 launches, launches == 1 ? "" : "s", persistent, cores);
}

/* The name of the first kernel that uses tensor cores. */
static const char *tensor_kernel(const struct lb_kernels *kernels)
{
    for (size_t i = 0; i < kernels->count; i++)
        if (kernels->items[i].tensor_cores == LB_TENSOR_YES)
            return kernels->items[i].name;
    return "";
}

bool lb_kernels_contradict(const struct lb_case *c, const struct lb_kernels *kernels, char *text,
                           size_t size)
{
    const struct lb_problem *p = &c->problem;
    enum lb_tensor_cores cores = lb_kernels_tensor_cores(kernels);
    int64_t persistent = persistent_launches(kernels);
    bool half = p->dtype == LB_F16 || p->dtype == LB_BF16;
    bool exact = p->dtype == LB_F32 && p->math == LB_IEEE;
    text[0] = '\0';
    if (kernels->count == 0)
        return false;
    if (strstr(c->variant, "persist") && persistent == 0 && kernels->launches >= (double)p->seq_len)
        snprintf(text, size,
                 "variant %s, but a call launched %.0f kernels for %" PRId64
                 " steps, none of them persistent",
                 c->variant, kernels->launches, p->seq_len);
    else if (strcmp(c->variant, "standard") == 0 && persistent > 0)
        snprintf(text, size, "variant standard, but a call launched %" PRId64 " persistent kernels",
                 persistent);
    else if (exact && cores == LB_TENSOR_YES)
        snprintf(text, size, "f32 under ieee math, but %s uses tensor cores",
                 tensor_kernel(kernels));
    else if ((half || p->math != LB_IEEE) && cores == LB_TENSOR_NO)
        snprintf(text, size, "%s, but no kernel uses tensor cores",
                 half ? lb_dtype_name(p->dtype) : lb_math_name(p->math));
    return text[0] != '\0';
}

/* JSON */

json_t *lb_kernels_to_json(const struct lb_kernels *kernels)
{
    json_t *array = kernels->items ? json_array() : json_null();
    for (size_t i = 0; kernels->items && i < kernels->count; i++) {
        const struct lb_kernel *k = &kernels->items[i];
        json_t *object =
            json_pack("{s:s, s:s, s:b, s:f, s:f, s:I, s:[III], s:[III], s:[III], s:I, s:I}", "name",
                      k->name, "tensor_cores", lb_tensor_cores_name(k->tensor_cores), "persistent",
                      k->persistent, "total_ns", k->total_ns, "longest_ns", k->longest_ns, "count",
                      k->count, "grid", k->grid[0], k->grid[1], k->grid[2], "block", k->block[0],
                      k->block[1], k->block[2], "cluster", k->cluster[0], k->cluster[1],
                      k->cluster[2], "registers", k->registers, "shared_bytes", k->shared_bytes);
        if (json_array_append_new(array, object) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

/* Reads kernel number `index` of the array. */
static enum lb_status read_kernel(json_t *object, size_t index, struct lb_kernel *k,
                                  struct lb_error *err)
{
    enum { WHOLE = 12 }; /* whole numbers: count, grid, block, cluster, registers, shared_bytes */
    json_error_t why;
    json_int_t n[WHOLE] = {0};
    const char *name, *cores;
    int persistent;
    if (json_unpack_ex(object, &why, 0,
                       "{s:s, s:s, s:b, s:F, s:F, s:I, s:[III!], s:[III!], s:[III!], s:I, s:I}",
                       "name", &name, "tensor_cores", &cores, "persistent", &persistent, "total_ns",
                       &k->total_ns, "longest_ns", &k->longest_ns, "count", &n[0], "grid", &n[1],
                       &n[2], &n[3], "block", &n[4], &n[5], &n[6], "cluster", &n[7], &n[8], &n[9],
                       "registers", &n[10], "shared_bytes", &n[11]) != 0)
        return lb_fail(err, LB_INVALID, "kernels[%zu]: %.200s", index, why.text);
    for (int i = 0; i < WHOLE; i++)
        if (n[i] < 0)
            return lb_fail(err, LB_INVALID, "kernels[%zu]: %lld must be 0 or more", index,
                           (long long)n[i]);
    snprintf(k->name, sizeof(k->name), "%s", name);
    lb_clean_text(k->name); /* a character may be cut */
    k->tensor_cores = strcmp(cores, "yes") == 0  ? LB_TENSOR_YES
                      : strcmp(cores, "no") == 0 ? LB_TENSOR_NO
                                                 : LB_TENSOR_UNKNOWN;
    k->persistent = persistent != 0;
    k->count = n[0];
    for (int i = 0; i < 3; i++) {
        k->grid[i] = n[1 + i];
        k->block[i] = n[4 + i];
        k->cluster[i] = n[7 + i];
    }
    k->registers = n[10];
    k->shared_bytes = n[11];
    return LB_OK;
}

enum lb_status lb_kernels_from_json(const json_t *array, struct lb_kernels *kernels,
                                    struct lb_error *err)
{
    if (!array || json_is_null(array))
        return LB_OK;
    if (!json_is_array(array))
        return lb_fail(err, LB_INVALID, "kernels: it must be null or an array");
    size_t count = json_array_size(array);
    kernels->items = calloc(count + 1, sizeof(*kernels->items));
    if (!kernels->items)
        return lb_fail(err, LB_OOM, "out of memory for %zu kernels", count);
    kernels->count = count;
    for (size_t i = 0; i < count; i++) {
        enum lb_status st = read_kernel(json_array_get(array, i), i, &kernels->items[i], err);
        if (st != LB_OK)
            return st; /* the caller frees what was read */
    }
    return LB_OK;
}

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

/* The integers of a kernel and their keys; the sizes of grid, block and cluster are three each. */
static const struct field {
    const char *key;
    size_t offset;
    size_t count;
} fields[] = {
    {"count", offsetof(struct lb_kernel, count), 1},
    {"grid", offsetof(struct lb_kernel, grid), 3},
    {"block", offsetof(struct lb_kernel, block), 3},
    {"cluster", offsetof(struct lb_kernel, cluster), 3},
    {"registers", offsetof(struct lb_kernel, registers), 1},
    {"shared_bytes", offsetof(struct lb_kernel, shared_bytes), 1},
};

enum { FIELD_COUNT = sizeof(fields) / sizeof(fields[0]) };

static json_t *field_json(const int64_t *values, size_t count)
{
    if (count == 1)
        return json_integer(values[0]);
    return json_pack("[I, I, I]", (json_int_t)values[0], (json_int_t)values[1],
                     (json_int_t)values[2]);
}

json_t *lb_kernels_to_json(const struct lb_kernels *kernels)
{
    json_t *array = kernels->items ? json_array() : json_null();
    for (size_t i = 0; kernels->items && i < kernels->count; i++) {
        const struct lb_kernel *kernel = &kernels->items[i];
        json_t *object =
            json_pack("{s:s, s:s, s:b, s:f, s:f}", "name", kernel->name, "tensor_cores",
                      lb_tensor_cores_name(kernel->tensor_cores), "persistent", kernel->persistent,
                      "total_ns", kernel->total_ns, "longest_ns", kernel->longest_ns);
        for (size_t f = 0; f < FIELD_COUNT; f++) {
            const void *values = (const char *)kernel + fields[f].offset;
            json_object_set_new(object, fields[f].key, field_json(values, fields[f].count));
        }
        if (json_array_append_new(array, object) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static enum lb_status read_field(const json_t *object, const struct field *field, int64_t *values,
                                 struct lb_error *err)
{
    const json_t *given = json_object_get(object, field->key);
    for (size_t i = 0; i < field->count; i++) {
        const json_t *value = field->count == 1 ? given : json_array_get(given, i);
        if (!json_is_integer(value) || json_integer_value(value) < 0)
            return lb_fail(err, LB_INVALID, "kernels: %s must be %s of 0 or more", field->key,
                           field->count == 1 ? "a whole number" : "three whole numbers");
        values[i] = json_integer_value(value);
    }
    return LB_OK;
}

static enum lb_status read_kernel(const json_t *object, struct lb_kernel *kernel,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *cores = json_string_value(json_object_get(object, "tensor_cores"));
    const json_t *total = json_object_get(object, "total_ns");
    const json_t *longest = json_object_get(object, "longest_ns");
    if (!name || !cores || !json_is_number(total) || !json_is_number(longest))
        return lb_fail(err, LB_INVALID,
                       "kernels: each must have name, tensor_cores, total_ns and longest_ns");
    snprintf(kernel->name, sizeof(kernel->name), "%s", name);
    lb_clean_text(kernel->name); /* a character may be cut */
    kernel->tensor_cores = strcmp(cores, "yes") == 0  ? LB_TENSOR_YES
                           : strcmp(cores, "no") == 0 ? LB_TENSOR_NO
                                                      : LB_TENSOR_UNKNOWN;
    kernel->persistent = json_is_true(json_object_get(object, "persistent"));
    kernel->total_ns = json_number_value(total);
    kernel->longest_ns = json_number_value(longest);
    for (size_t f = 0; f < FIELD_COUNT; f++) {
        void *values = (char *)kernel + fields[f].offset;
        LB_TRY(read_field(object, &fields[f], values, err));
    }
done:
    return st;
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
        enum lb_status st = read_kernel(json_array_get(array, i), &kernels->items[i], err);
        if (st != LB_OK)
            return st; /* the caller frees what was read */
    }
    return LB_OK;
}

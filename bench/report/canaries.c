/* Canaries: finding nodes that are slower or faster than others of the same device. */
#include "report/canaries.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stats/order_stats.h"

/* The first is limited by the latency of the steps, the second by arithmetic, and the third by
 * the bandwidth of the memory that holds the weights. On a CPU each call takes longer than a
 * time slice, so that other programs on the same CPU affect the median. */
static const char *const problems[LB_CANARY_COUNT] = {
    "T256_B1_I256_H256/f32/infer", "T32_B16_I256_H256/f32/infer", "T8_B1_I64_H1024/f32/infer"};

static bool is_built(const struct lb_registry *registry, const char *name)
{
    const struct lb_impl_entry *impl_entry = lb_registry_find(registry, name);
    return impl_entry && !impl_entry->absent;
}

/* The implementation that times a device; NULL: there is none. */
static const char *device_impl(const struct lb_registry *registry)
{
    if (is_built(registry, "cuda_step"))
        return "cuda_step";
    for (size_t i = 0; i < registry->count; i++)
        if (!registry->impl_entries[i].absent && registry->impl_entries[i].memory == LB_DEVICE)
            return registry->impl_entries[i].name;
    return NULL;
}

void lb_canaries_choose(const struct lb_registry *registry, bool device, int threads,
                        struct lb_case canaries[LB_CANARY_COUNT])
{
    const char *on_device = device ? device_impl(registry) : NULL;
    const char *impl = on_device                        ? on_device
                       : is_built(registry, "cpu_simd") ? "cpu_simd"
                                                        : "cpu_ref";
    for (size_t i = 0; i < LB_CANARY_COUNT; i++) {
        lb_case_parse(problems[i], &canaries[i], NULL, NULL, NULL);
        snprintf(canaries[i].impl, sizeof(canaries[i].impl), "%s", impl);
        if (strcmp(impl, "cpu_simd") == 0 && threads > 1)
            canaries[i].threads = threads;
    }
}

static int by_id(const void *a, const void *b)
{
    const struct lb_canary_time *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->node > q->node) - (p->node < q->node);
}

/* Compares a node with the others of its device by the times of one canary [count], which are
 * sorted by node, and adds its shift. Returns whether there is something to compare. scratch
 * [2 * count] */
static bool compare_node(const struct lb_canary_time *times, size_t count, const size_t *devices,
                         size_t node, double *scratch, struct lb_canary_verdict *verdict)
{
    double *own = scratch, *others = scratch + count;
    size_t own_count = 0, other_count = 0, nodes = 1;
    for (size_t i = 0; i < count; i++) {
        if (times[i].node == node) {
            own[own_count++] = log(times[i].median_ns);
        } else if (devices[times[i].node] == devices[node]) {
            nodes += i == 0 || times[i - 1].node != times[i].node;
            others[other_count++] = log(times[i].median_ns);
        }
    }
    if (own_count == 0)
        return false;
    verdict->nodes = nodes > verdict->nodes ? nodes : verdict->nodes;
    if (nodes < LB_CANARY_NODES)
        return false;
    lb_sort(own, own_count);
    lb_sort(others, other_count);
    double shift = lb_median(own, own_count) - lb_median(others, other_count);
    double spread = 1.4826 * fmax(lb_mad(own, own_count), lb_mad(others, other_count));
    verdict->shift += shift;
    verdict->spread = fmax(verdict->spread, spread);
    if (fabs(shift) > fmax(LB_CANARY_SPREADS * spread, log1p(LB_CANARY_LEAST)))
        verdict->balance += shift > 0 ? 1 : -1;
    return true;
}

void lb_canaries_judge(struct lb_canary_time *times, size_t count, const size_t *devices,
                       size_t nodes, struct lb_canary_verdict *verdicts)
{
    double *scratch = lb_needed(calloc(2 * count + 1, sizeof(*scratch)));
    qsort(times, count, sizeof(*times), by_id);
    for (size_t n = 0; n < nodes; n++) {
        size_t compared = 0;
        verdicts[n] = (struct lb_canary_verdict){0};
        for (size_t i = 0, end; i < count; i = end) {
            for (end = i; end < count && strcmp(times[end].id, times[i].id) == 0; end++)
                ;
            compared += compare_node(times + i, end - i, devices, n, scratch, &verdicts[n]);
        }
        verdicts[n].shift /= (double)(compared > 0 ? compared : 1);
        verdicts[n].off = abs(verdicts[n].balance) >= 2;
    }
    free(scratch);
}

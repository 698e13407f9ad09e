/* Canaries: finding nodes that are slower or faster than others of the same device. */
#include "report/canaries.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stats/order_stats.h"

/* The first is limited by the latency of the steps, the second by arithmetic, and the third by
 * the bandwidth of the memory that holds the weights. On a CPU each call takes longer than a
 * time slice, so that other programs on the same CPU affect the median. */
static const char *const problems[LB_CANARY_COUNT] = {
    "T256_B1_I256_H256/f32/infer", "T32_B16_I256_H256/f32/infer", "T8_B1_I1024_H1024/f32/infer"};

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

static int compare_ids(const void *a, const void *b)
{
    const struct lb_canary_time *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->node > q->node) - (p->node < q->node);
}

/* What the canaries say of one node: in how many it is faster [0] and slower [1] than the others,
 * by which sum of logarithms, and the largest spread among these. */
struct tally {
    size_t off[2];
    double sum[2], spread[2];
};

/* One node's times of one canary. */
struct center {
    size_t node;
    double value, spread; /* of the logarithms; the spread of a single time is 0 */
};

/* Returns 1.4826 times the median absolute deviation of the values, which are sorted in place, and
 * their median. */
static double spread_of(double *values, size_t count, double *median)
{
    lb_sort(values, count);
    *median = lb_median(values, count);
    return 1.4826 * lb_mad(values, count);
}

/* Summarizes the times of one canary [count], which are sorted by node, for the nodes of one
 * device. Returns how many nodes have a center. */
static size_t find_centers(const struct lb_canary_time *times, size_t count, const size_t *devices,
                           size_t device, double *scratch, struct center *centers)
{
    size_t nodes = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && times[end].node == times[i].node; end++)
            ;
        if (devices[times[i].node] != device)
            continue;
        for (size_t k = i; k < end; k++)
            scratch[k - i] = log(times[k].median_ns);
        struct center *center = &centers[nodes++];
        center->node = times[i].node;
        center->spread = spread_of(scratch, end - i, &center->value);
    }
    return nodes;
}

/* Compares the nodes of one device by one canary. tallies and verdicts: of all nodes. */
static void compare_nodes(const struct center *centers, size_t count, double *scratch,
                          struct tally *tallies, struct lb_canary_verdict *verdicts)
{
    double device, within;
    for (size_t i = 0; i < count; i++)
        scratch[i] = centers[i].spread;
    spread_of(scratch, count, &within);
    for (size_t i = 0; i < count; i++)
        scratch[i] = centers[i].value;
    double between = spread_of(scratch, count, &device);
    for (size_t i = 0; i < count; i++) {
        double shift = centers[i].value - device;
        double spread = fmax(fmax(between, within), centers[i].spread);
        struct tally *tally = &tallies[centers[i].node];
        struct lb_canary_verdict *verdict = &verdicts[centers[i].node];
        verdict->nodes = count > verdict->nodes ? count : verdict->nodes;
        if (count < LB_CANARY_NODES ||
            fabs(shift) <= fmax(LB_CANARY_SPREADS * spread, log1p(LB_CANARY_LEAST)))
            continue;
        tally->off[shift > 0]++;
        tally->sum[shift > 0] += shift;
        tally->spread[shift > 0] = fmax(tally->spread[shift > 0], spread);
    }
}

enum lb_status lb_canaries_judge(const struct lb_canary_time *times, size_t count,
                                 const size_t *devices, size_t nodes,
                                 struct lb_canary_verdict *verdicts, struct lb_error *err)
{
    struct lb_canary_time *sorted = calloc(count + 1, sizeof(*sorted));
    struct center *centers = calloc(nodes + 1, sizeof(*centers));
    struct tally *tallies = calloc(nodes + 1, sizeof(*tallies));
    double *scratch = calloc(count + nodes + 1, sizeof(*scratch));
    bool done = sorted && centers && tallies && scratch;
    memset(verdicts, 0, nodes * sizeof(*verdicts));
    if (done && count > 0) {
        memcpy(sorted, times, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), compare_ids);
    }
    for (size_t i = 0, end; done && i < count; i = end) {
        for (end = i; end < count && strcmp(sorted[end].id, sorted[i].id) == 0; end++)
            ;
        for (size_t device = 0; device < nodes; device++) /* numbers of devices are below it */
            compare_nodes(centers,
                          find_centers(sorted + i, end - i, devices, device, scratch, centers),
                          scratch, tallies, verdicts);
    }
    for (size_t n = 0; done && n < nodes; n++)
        for (int slower = 0; slower < 2; slower++) {
            const struct tally *tally = &tallies[n];
            if (tally->off[slower] < 2)
                continue;
            verdicts[n].off = true;
            verdicts[n].shift = tally->sum[slower] / (double)tally->off[slower];
            verdicts[n].spread = tally->spread[slower];
        }
    free(scratch);
    free(tallies);
    free(centers);
    free(sorted);
    return done ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu canaries", count);
}

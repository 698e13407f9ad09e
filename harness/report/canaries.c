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

/* One node's times of one canary. */
struct summary {
    size_t node;
    double center, spread; /* of the logarithms; the spread of a single time is 0 */
};

static int by_canary(const void *a, const void *b)
{
    const struct lb_canary_time *p = a, *q = b;
    int order = strcmp(p->id, q->id);
    return order ? order : (p->node > q->node) - (p->node < q->node);
}

/* Returns 1.4826 times the median absolute deviation. Sorts the values in place. */
static double spread_of(double *values, size_t count)
{
    lb_sort(values, count);
    return 1.4826 * lb_mad(values, count);
}

/* Summarizes the times of one canary, which are sorted by node, for each node. Returns how many
 * nodes have a summary. */
static size_t summarize(const struct lb_canary_time *times, size_t count, double *scratch,
                        struct summary *summaries)
{
    size_t nodes = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && times[end].node == times[i].node; end++)
            scratch[end - i] = log(times[end].median_ns);
        double spread = spread_of(scratch, end - i);
        summaries[nodes++] = (struct summary){times[i].node, lb_median(scratch, end - i), spread};
    }
    return nodes;
}

/* How one node compares with the others of its device by one canary. */
struct finding {
    double shift, spread;
    bool off;
};

/* Judges the nodes of one device by one canary. findings [nodes] */
static void judge(const struct summary *summaries, size_t count, size_t device,
                  const size_t *devices, double *scratch, struct finding *findings,
                  struct lb_canary_verdict *verdicts)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (devices[summaries[i].node] == device)
            scratch[n++] = summaries[i].center;
    double between = spread_of(scratch, n), center = lb_median(scratch, n);
    n = 0;
    for (size_t i = 0; i < count; i++)
        if (devices[summaries[i].node] == device)
            scratch[n++] = summaries[i].spread;
    lb_sort(scratch, n);
    double within = lb_median(scratch, n);
    for (size_t i = 0; i < count; i++) {
        const struct summary *summary = &summaries[i];
        struct finding *finding = &findings[summary->node];
        struct lb_canary_verdict *verdict = &verdicts[summary->node];
        if (devices[summary->node] != device)
            continue;
        finding->shift = summary->center - center;
        finding->spread = fmax(fmax(between, within), summary->spread);
        finding->off = n >= LB_CANARY_NODES &&
                       fabs(finding->shift) >
                           fmax(LB_CANARY_SPREADS * finding->spread, log1p(LB_CANARY_LEAST));
        verdict->nodes = n > verdict->nodes ? n : verdict->nodes;
    }
}

/* Combines the findings of all canaries for one node into its verdict. findings [canaries]
 * belong to the node. */
static void conclude(const struct finding *const *findings, size_t canaries, size_t node,
                     double *scratch, struct lb_canary_verdict *verdict)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        size_t off = 0;
        double spread = 0;
        for (size_t k = 0; k < canaries; k++) {
            const struct finding *finding = &findings[k][node];
            if (!finding->off || finding->shift * sign < 0)
                continue;
            scratch[off++] = finding->shift;
            spread = fmax(spread, finding->spread);
        }
        if (off < 2)
            continue;
        lb_sort(scratch, off);
        verdict->off = true;
        verdict->shift = lb_median(scratch, off);
        verdict->spread = spread;
    }
}

enum lb_status lb_canaries_judge(const struct lb_canary_time *times, size_t count,
                                 const size_t *devices, size_t nodes,
                                 struct lb_canary_verdict *verdicts, struct lb_error *err)
{
    size_t canaries = 0;
    struct lb_canary_time *sorted = calloc(count + 1, sizeof(*sorted));
    struct summary *summaries = calloc(nodes + 1, sizeof(*summaries));
    double *scratch = calloc(count + nodes + 1, sizeof(*scratch));
    struct finding *all = calloc((count + 1) * (nodes + 1), sizeof(*all));
    const struct finding **findings = calloc(count + 1, sizeof(*findings));
    bool done = sorted && summaries && scratch && all && findings;
    memset(verdicts, 0, nodes * sizeof(*verdicts));
    if (done && count > 0) {
        memcpy(sorted, times, count * sizeof(*sorted));
        qsort(sorted, count, sizeof(*sorted), by_canary);
    }
    for (size_t i = 0, end; done && i < count; i = end, canaries++) {
        for (end = i; end < count && strcmp(sorted[end].id, sorted[i].id) == 0; end++)
            ;
        struct finding *own = &all[canaries * nodes];
        size_t measured = summarize(sorted + i, end - i, scratch, summaries);
        findings[canaries] = own;
        for (size_t k = 0; k < measured; k++) {
            bool first = true;
            for (size_t j = 0; j < k && first; j++)
                first = devices[summaries[j].node] != devices[summaries[k].node];
            if (first)
                judge(summaries, measured, devices[summaries[k].node], devices, scratch, own,
                      verdicts);
        }
    }
    for (size_t n = 0; done && n < nodes; n++)
        conclude(findings, canaries, n, scratch, &verdicts[n]);
    free(findings);
    free(all);
    free(scratch);
    free(summaries);
    free(sorted);
    return done ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu canaries", count);
}

/* The median and the spread of a node's times of one canary; false when it has none. */
static bool center_of(const struct lb_canary_time *times, size_t count, size_t node, const char *id,
                      double *scratch, double *center, double *spread)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        if (times[i].node == node && strcmp(times[i].id, id) == 0)
            scratch[n++] = log(times[i].median_ns);
    if (n == 0)
        return false;
    *spread = spread_of(scratch, n);
    *center = lb_median(scratch, n);
    return true;
}

/* Whether an earlier time is of the same node and canary. */
static bool is_repeated(const struct lb_canary_time *times, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (times[k].node == times[i].node && strcmp(times[k].id, times[i].id) == 0)
            return true;
    return false;
}

/* Compares one node. shifts [canaries] receives the shift of each canary, scratch [all times]. */
static void compare_node(const struct lb_canary_time *alone, size_t alone_count,
                         const struct lb_canary_time *busy, size_t busy_count, size_t node,
                         double *shifts, double *scratch, struct lb_canary_change *change)
{
    size_t slower = 0, faster = 0;
    for (size_t i = 0; i < alone_count; i++) {
        double before, after, spread, other;
        if (alone[i].node != node || is_repeated(alone, i) ||
            !center_of(alone, alone_count, node, alone[i].id, scratch, &before, &spread) ||
            !center_of(busy, busy_count, node, alone[i].id, scratch, &after, &other))
            continue;
        shifts[change->canaries++] = after - before;
        change->spread = fmax(change->spread, fmax(spread, other));
    }
    double least = fmax(LB_CANARY_SPREADS * change->spread, log1p(LB_CANARY_LEAST));
    for (size_t i = 0; i < change->canaries; i++) {
        slower += shifts[i] > least;
        faster += shifts[i] < -least;
    }
    change->disturbed = slower >= 2 || faster >= 2;
    if (change->canaries > 0) {
        lb_sort(shifts, change->canaries);
        change->shift = lb_median(shifts, change->canaries);
    }
}

enum lb_status lb_canaries_compare(const struct lb_canary_time *alone, size_t alone_count,
                                   const struct lb_canary_time *busy, size_t busy_count,
                                   size_t nodes, struct lb_canary_change *changes,
                                   struct lb_error *err)
{
    double *scratch = calloc(alone_count + busy_count + 1, sizeof(*scratch));
    double *shifts = calloc(alone_count + 1, sizeof(*shifts));
    bool done = scratch && shifts;
    memset(changes, 0, nodes * sizeof(*changes));
    for (size_t n = 0; done && n < nodes; n++)
        compare_node(alone, alone_count, busy, busy_count, n, shifts, scratch, &changes[n]);
    free(shifts);
    free(scratch);
    return done ? LB_OK : lb_fail(err, LB_OOM, "out of memory for %zu canaries", alone_count);
}

/* Cutting a plan into shards, for several machines or several devices. */
#include "cli/plan.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/text.h"
#include "case/probe.h"

/* A problem of the plan. Work is counted in whole milliseconds, so that machines whose
 * floating-point sums differ in the last bits compute the same totals. */
struct problem {
    uint64_t hash;   /* of its case text without the parts that differ between its cases */
    int64_t work_ms; /* of all its cases */
    int shard;       /* from 0 */
};

double lb_predict_seconds(const struct lb_case *c, double rate,
                          const struct lb_sampler_options *sampler)
{
    double call = lb_problem_flops(&c->problem) / rate + 1e-6 * (double)c->problem.seq_len;
    /* The sampler takes 50 ms to max_ns, or up to 3 max_ns until it has six samples. Usual are 1.5
     * times min_samples. */
    const double most = sampler->max_ns / 1e9;
    double sampling = fmax(1.5 * (double)sampler->min_samples * call, 0.05);
    if (c->timing == LB_STREAMING)
        sampling = (double)sampler->max_samples * fmax(call, c->rate > 0 ? 1.0 / c->rate : 0);
    sampling = fmax(fmin(sampling, most), fmin(6 * call, 3 * most + call));
    int chunks;
    lb_case_whole(c, &chunks);
    double preparation = 2 * chunks * call + 0.02; /* verified calls; a guess for the rest */
    return fmin(sampling + preparation, LB_PREDICTED_MAX_S);
}

enum lb_status lb_shard_parse(const char *text, int *index, int *count, struct lb_error *err)
{
    const char *slash = strchr(text, '/');
    int64_t i = 0, n = 0;
    if (!slash || lb_parse_int(text, (size_t)(slash - text), 1, &i, NULL) != LB_OK ||
        lb_parse_int(slash + 1, strlen(slash + 1), 1, &n, NULL) != LB_OK || i > n ||
        n > LB_SHARD_MAX_COUNT)
        return lb_fail(
            err, LB_INVALID,
            "--shard %.40s: it takes I/N, part I of N, with I from 1 to N and N up to %d", text,
            LB_SHARD_MAX_COUNT);
    *index = (int)i;
    *count = (int)n;
    return LB_OK;
}

/* Sorts the longest problems first, and equally long ones by hash. The hash is unrelated to the
 * order of the plan, so that neighbours in a grid go to different shards. */
static int by_work(const void *a, const void *b)
{
    const struct problem *p = *(struct problem *const *)a, *q = *(struct problem *const *)b;
    if (p->work_ms != q->work_ms)
        return p->work_ms > q->work_ms ? -1 : 1;
    if (p->hash != q->hash)
        return p->hash < q->hash ? -1 : 1;
    return (p > q) - (p < q);
}

/* Fills problems [*count, at most case_count] and problem_of [case_count], the number of each
 * case's problem. The same rate is assumed for every implementation, because the result must not
 * depend on which of them a machine has. */
static void find_problems(const struct lb_case *cases, size_t case_count,
                          const struct lb_sampler_options *sampler, struct problem *problems,
                          size_t *count, size_t *problem_of)
{
    json_t *seen = json_object(); /* from the texts of problems to their numbers */
    *count = 0;
    for (size_t i = 0; i < case_count; i++) {
        const struct lb_case *c = &cases[i];
        char text[LB_CASE_ID_SIZE];
        size_t length = lb_plan_print_problem(c, text);
        problem_of[i] = lb_json_number(seen, text, *count);
        struct problem *problem = &problems[problem_of[i]];
        problem->hash = lb_hash_bytes(0, text, length);
        *count += problem_of[i] == *count;
        double seconds = lb_predict_seconds(c, LB_CPU_FLOPS_S * c->threads, sampler);
        problem->work_ms += (int64_t)ceil(1e3 * seconds - 1e-6); /* 853.0000000000001 is 853 */
    }
    json_decref(seen);
}

/* Gives each problem to the shard with the least work so far, and to the first such shard when
 * there are several. work_ms [shards] */
static void assign(struct problem *problems, size_t count, int64_t *work_ms, int shards)
{
    struct problem **sorted = lb_needed(calloc(count + 1, sizeof(struct problem *)));
    for (size_t i = 0; i < count; i++)
        sorted[i] = &problems[i];
    qsort(sorted, count, sizeof(struct problem *), by_work);
    for (size_t i = 0; i < count; i++) {
        int least = 0;
        for (int s = 1; s < shards; s++)
            if (work_ms[s] < work_ms[least])
                least = s;
        sorted[i]->shard = least;
        work_ms[least] += sorted[i]->work_ms;
    }
    free(sorted);
}

enum lb_status lb_shard_keep(const char *shard, const struct lb_sampler_options *sampler,
                             struct lb_plan *plan, struct lb_error *err)
{
    struct lb_shard *cut = &plan->shard;
    size_t count, kept = 0;
    LB_CHECK(lb_shard_parse(shard, &cut->index, &cut->count, err));
    struct problem *problems = lb_needed(calloc(plan->count + 1, sizeof(*problems)));
    size_t *problem_of = lb_needed(calloc(plan->count + 1, sizeof(*problem_of)));
    int64_t *work_ms = lb_needed(calloc((size_t)cut->count, sizeof(*work_ms)));
    find_problems(plan->cases, plan->count, sampler, problems, &count, problem_of);
    assign(problems, count, work_ms, cut->count);
    cut->plan_count = plan->count;
    for (int s = 0; s < cut->count; s++) {
        cut->plan_s += (double)work_ms[s] / 1e3;
        cut->longest_s = fmax(cut->longest_s, (double)work_ms[s] / 1e3);
    }
    cut->own_s = (double)work_ms[cut->index - 1] / 1e3;
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case c = plan->cases[i];
        int own = problems[problem_of[i]].shard;
        char text[LB_CASE_ID_SIZE];
        size_t length = lb_case_print(&c, text);
        cut->plan_hash = lb_hash_bytes(cut->plan_hash + (uint64_t)own, text, length);
        cut->threads = c.threads > cut->threads ? c.threads : cut->threads;
        if (own == cut->index - 1)
            plan->cases[kept++] = c;
    }
    plan->count = kept;
    free(work_ms);
    free(problem_of);
    free(problems);
    return LB_OK;
}

enum lb_status lb_devices_parse(const char *text, int *devices, size_t *count, struct lb_error *err)
{
    char item[16];
    *count = 0;
    if (strcmp(text, "all") == 0)
        return LB_OK;
    for (const char *list = text; lb_next_item(&list, item, sizeof(item));) {
        int64_t number;
        bool fine = lb_parse_int(item, strlen(item), 0, &number, NULL) == LB_OK &&
                    number <= LB_MAX_DEVICE && *count < LB_MAX_DEVICES;
        for (size_t i = 0; fine && i < *count; i++)
            fine = devices[i] != number;
        if (!fine)
            return lb_fail(err, LB_INVALID,
                           "--devices %.80s: it takes all, or up to %d different numbers of GPUs "
                           "from 0 to %d, such as 0,1,2,3",
                           text, LB_MAX_DEVICES, LB_MAX_DEVICE);
        devices[(*count)++] = (int)number;
    }
    return LB_OK;
}

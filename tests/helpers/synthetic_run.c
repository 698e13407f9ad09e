/* Synthetic runs for tests. */
#include "synthetic_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "random_draws.h"

static double next_random(uint64_t *state)
{
    return (double)draws_bits(state) * 0x1p-53;
}

json_t *synthetic_header(void)
{
    return json_pack(
        "{s:s, s:i, s:s, s:{s:s, s:s, s:i, s:i, s:n, s:s, s:s, s:s, s:s}, s:[ss], s:i, s:{s:f}}",
        "kind", "header", "schema", LB_SCHEMA_VERSION, "started", "2026-01-31T12:00:00Z",
        "environment", "host", "made-up", "cpu", "Made-up CPU & <no_such> 'thing'", "cores", 2,
        "threads", 2, "governor", "system", "Linux", "version", "0.1.0", "commit", "0123456789ab",
        "build_type", "Release", "command", "bench-lstm", "--sweep", "seed", 1, "sampler", "max_ns",
        1e10);
}

double synthetic_ns(const struct lb_case *c)
{
    static const struct {
        const char *impl;
        double step_ns, flops_per_ns;
    } laws[] = {
        {"cpu_ref", 300, 1.5}, {"cpu_simd", 2500, 60}, {"onednn", 1200, 75}, {"fused", 900, 40}};
    size_t law = 0;
    for (size_t i = 0; i < sizeof(laws) / sizeof(laws[0]); i++)
        if (strcmp(laws[i].impl, c->impl) == 0)
            law = i;
    double threads = 0.4 + 0.6 * c->threads;
    double ns = (double)(c->problem.seq_len * c->problem.layers) * laws[law].step_ns +
                lb_problem_flops(&c->problem) / (laws[law].flops_per_ns * threads);
    return c->variant[0] ? 0.6 * ns : ns;
}

struct lb_row synthetic_row(const char *case_text, enum lb_verdict verdict, double median_ns,
                            size_t blocks, size_t samples_per_block)
{
    struct lb_case c;
    struct lb_error err;
    double samples[256];
    uint64_t state = 1;
    if (lb_case_parse(case_text, &c, NULL, NULL, &err) != LB_OK || samples_per_block > 256) {
        fprintf(stderr, "%s: %s\n", case_text, err.text);
        abort();
    }
    for (const char *at = case_text; *at; at++)
        state = state * 31 + (unsigned char)*at;

    struct lb_row row = lb_row_make(&c);
    row.verdict = verdict;
    if (verdict != LB_VERDICT_OK)
        lb_row_print(&row.reason, "made up: a row of verdict %s, \"quoted\"",
                     lb_verdict_name(verdict));
    if (!lb_verdict_has_samples(verdict))
        return row;
    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < samples_per_block; i++)
            samples[i] = round(median_ns * (0.97 + 0.06 * next_random(&state)));
        lb_row_add_block(&row, samples, samples_per_block);
    }
    lb_row_summarize(&row);
    lb_row_print(&row.description, "made-up algorithm");
    row.stop_reason = LB_STOP_PRECISION;
    row.err_max_abs = 1.25e-7;
    row.err_max_rel = 3e-6;
    row.err_norm = 6.5e-8;
    row.tolerance_used = 0.25;
    row.error_ratio = 1.125;
    row.hash = 0x0123456789abcdefu;
    row.calls_per_sample = 1;
    row.prepare_ns = 51234;
    row.flops = lb_problem_flops(&c.problem);
    row.bytes = lb_problem_bytes(&c.problem);
    row.weights_bytes = 4096;
    row.peak_bytes = 1 << 20;
    return row;
}

void synthetic_add(struct lb_run *run, struct lb_row row)
{
    run->rows = lb_room(run->rows, run->count, sizeof(*run->rows));
    run->rows[run->count++] = row;
}

struct lb_run synthetic_empty(void)
{
    return (struct lb_run){.header = synthetic_header(), .resumes = json_array(), .finished = true};
}

void synthetic_add_processes(struct lb_run *run, const char *case_text, double level,
                             size_t processes, uint64_t seed)
{
    struct lb_row row = synthetic_row(case_text, LB_VERDICT_OK, 0, 0, 0);
    for (size_t p = 0; p < processes; p++) {
        double samples[10], shift = 1 + 0.01 * (next_random(&seed) - 0.5);
        for (int i = 0; i < 10; i++)
            samples[i] = level * shift * (1 + 1e-4 * i);
        if (p > 0)
            lb_row_add_process(&row);
        lb_row_add_block(&row, samples, 10);
    }
    lb_row_summarize(&row);
    synthetic_add(run, row);
}

/* Gives a few cases a failure of each kind, the same cases in each run. */
static enum lb_verdict made_up_verdict(const struct lb_case *c)
{
    static const enum lb_verdict verdicts[] = {LB_VERDICT_WRONG, LB_VERDICT_UNSUPPORTED,
                                               LB_VERDICT_OOM,   LB_VERDICT_CRASH,
                                               LB_VERDICT_ERROR, LB_VERDICT_TIMEOUT};
    const struct lb_problem *p = &c->problem;
    uint64_t state = (uint64_t)(p->seq_len * 7919 + p->batch * 104729 + p->hidden * 13) +
                     (uint64_t)(unsigned char)c->impl[0];
    next_random(&state);
    if (next_random(&state) > 0.2)
        return LB_VERDICT_OK;
    return verdicts[(size_t)(next_random(&state) * 6)];
}

struct lb_run synthetic_run(const struct synthetic_grid *grid)
{
    struct lb_run run = synthetic_empty();
    for (const char *const *impl = grid->impls; *impl; impl++)
        for (const char *const *tail = grid->tails; *tail; tail++)
            for (const int *t = grid->seq_len; *t; t++)
                for (const int *b = grid->batch; *b; b++)
                    for (const int *h = grid->hidden; *h; h++) {
                        char text[LB_CASE_ID_SIZE];
                        struct lb_case c;
                        snprintf(text, sizeof(text), "%s/T%d_B%d_H%d/%s", *impl, *t, *b, *h, *tail);
                        if (lb_case_parse(text, &c, NULL, NULL, NULL) != LB_OK)
                            abort();
                        enum lb_verdict verdict =
                            grid->failures ? made_up_verdict(&c) : LB_VERDICT_OK;
                        if (verdict != LB_VERDICT_TIMEOUT) /* stands for a row that is missing */
                            synthetic_add(&run,
                                          synthetic_row(text, verdict, synthetic_ns(&c), 3, 20));
                    }
    return run;
}

struct lb_run_comparison synthetic_compare(const struct lb_run *base, const struct lb_run *now)
{
    const struct lb_compare_options options = lb_compare_defaults();
    struct lb_run_comparison comparison;
    struct lb_error err = {""};
    if (lb_compare_runs(base, now, &options, &comparison, &err) != LB_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return comparison;
}

void synthetic_free(struct lb_run_comparison *comparison, struct lb_run *base, struct lb_run *now)
{
    lb_run_comparison_free(comparison);
    lb_run_free(now);
    lb_run_free(base);
}

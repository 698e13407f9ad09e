/* --self-test: how reliable the program's verdicts are on this machine. */
#include "commands/self_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "commands/self_test_report.h"
#include "record/environment.h"
#include "report/compare.h"
#include "report/detectable_difference.h"
#include "report/run_spread.h"
#include "run/interleaved_blocks.h"
#include "run/planted_slowdown.h"
#include "stats/order_stats.h"
#include "support/progress.h"

enum {
    SIDE = 8,            /* fresh processes per side: the exact test has p <= 0.05 in 4.99 % */
    ROUNDS = 2 * SIDE,   /* processes per case in a sweep that is compared with itself */
    MAX_CASES = 20,      /* in such a sweep */
    PLANTED_PERCENT = 3, /* slowdown planted in a case of one millisecond */
    PAIRS = 60,          /* of blocks per comparison with the planted slowdown */
    PERCENTILES = 101    /* 0 % to 100 % of the samples of a process */
};

/* The times of each case in each process of one sweep. */
struct aa_sweep {
    double percentiles[MAX_CASES][ROUNDS][PERCENTILES]; /* of the samples, which they stand for */
    double references[MAX_CASES][ROUNDS]; /* time of the fixed loop around it; NaN: not known */
    bool second[MAX_CASES][ROUNDS];       /* it belongs to the second side, as half do */
};

struct self_test {
    const struct lb_session *session;
    struct lb_case cases[MAX_CASES];
    struct lb_self_result result;
    struct lb_progress progress;
    uint64_t random;
};

static bool interrupted(const struct self_test *test)
{
    return test->session->stop && *test->session->stop;
}

/* As a process of a sweep samples, but for 0.1 s at most. */
static struct lb_sampler_options process_sampler(void)
{
    struct lb_sampler_options sampler = lb_sampler_defaults();
    sampler.max_ns = 1e8;
    return sampler;
}

static enum lb_status run_one(const struct self_test *test, const struct lb_case *c,
                              struct lb_row *row, struct lb_error *err)
{
    const struct lb_impl_entry *impl_entry = lb_registry_find(test->session->registry, c->impl);
    const struct lb_job job = {
        .c = c, .seed = test->session->options->seed, .sampler = process_sampler()};
    *row = lb_row_make(c);
    if (impl_entry->absent) {
        row->verdict = LB_VERDICT_ABSENT;
        return LB_OK;
    }
    return lb_pool_run(test->session->pool, impl_entry, &job, row, err);
}

struct candidate {
    size_t index; /* in the plan */
    double cost_ns;
};

static int by_cost(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    return (x->cost_ns > y->cost_ns) - (x->cost_ns < y->cost_ns);
}

/* Chooses the plan's cases that run here and take the least time. */
static enum lb_status choose_cases(struct self_test *test, const struct lb_plan *plan,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = 0;
    struct candidate *candidates = calloc(plan->count + 1, sizeof(*candidates));
    if (!candidates)
        return lb_fail(err, LB_OOM, "out of memory");
    lb_progress_start(&test->progress, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        struct lb_row row;
        char id[LB_CASE_ID_SIZE];
        lb_case_print(&plan->cases[i], id);
        lb_progress_case(&test->progress, id);
        lb_pool_renew(test->session->pool);
        LB_TRY(run_one(test, &plan->cases[i], &row, err));
        lb_progress_done(&test->progress, false, false);
        if (lb_row_is_timed(&row))
            candidates[count++] = (struct candidate){i, row.elapsed_ns};
        lb_row_free(&row);
    }
    qsort(candidates, count, sizeof(*candidates), by_cost);
    for (size_t i = 0; i < count && i < test->result.cases; i++)
        test->cases[i] = plan->cases[candidates[i].index];
    test->result.cases = count < test->result.cases ? count : test->result.cases;
done:
    lb_progress_end(&test->progress);
    free(candidates);
    return st;
}

/* Assigns the processes at random to two sides of the same size. */
static void assign_sides(struct self_test *test, bool second[ROUNDS])
{
    for (size_t i = 0; i < ROUNDS; i++)
        second[i] = i >= SIDE;
    for (size_t i = ROUNDS; i > 1; i--) {
        size_t j = (size_t)(lb_random_next(&test->random) % i);
        bool was = second[i - 1];
        second[i - 1] = second[j];
        second[j] = was;
    }
}

/* Replaces samples by their percentiles: median and 10 % quantile stay. */
static void keep_percentiles(const struct lb_row *row, double percentiles[PERCENTILES])
{
    lb_sort(row->samples_ns, row->samples);
    for (size_t i = 0; i < PERCENTILES; i++)
        percentiles[i] = lb_quantile(row->samples_ns, row->samples, (double)i / (PERCENTILES - 1));
}

static enum lb_status measure_sweep(struct self_test *test, struct aa_sweep *sweep,
                                    struct lb_error *err)
{
    for (size_t i = 0; i < test->result.cases; i++)
        assign_sides(test, sweep->second[i]);
    for (size_t round = 0; round < ROUNDS; round++) {
        lb_progress_case(&test->progress, "the same against the same, in fresh processes");
        for (size_t i = 0; i < test->result.cases; i++) {
            struct lb_row row;
            if (interrupted(test))
                return LB_INTERRUPTED;
            lb_pool_renew(test->session->pool);
            enum lb_status st = run_one(test, &test->cases[i], &row, err);
            lb_progress_done(&test->progress, false, false);
            if (st == LB_OK && !lb_row_is_timed(&row))
                st = lb_fail(err, LB_FAILED, "a case that ran before no longer runs: %s: %.300s",
                             lb_verdict_name(row.verdict), row.reason);
            if (st == LB_OK)
                keep_percentiles(&row, sweep->percentiles[i][round]);
            sweep->references[i][round] = row.block_count > 0 ? row.reference_ns[0] : (double)NAN;
            lb_row_free(&row);
            if (st != LB_OK)
                return st;
        }
    }
    return LB_OK;
}

/* Makes the run of one side: the processes assigned to it, or with by_time the first or last half.
 */
static enum lb_status make_run(const struct self_test *test, const struct aa_sweep *sweep,
                               bool second, bool by_time, struct lb_run *run, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *run = (struct lb_run){.finished = true, .header = json_object()};
    run->rows = calloc(test->result.cases, sizeof(*run->rows));
    if (!run->rows || !run->header)
        return lb_fail(err, LB_OOM, "out of memory");
    for (size_t i = 0; i < test->result.cases; i++) {
        struct lb_row *row = &run->rows[run->count++];
        *row = lb_row_make(&test->cases[i]);
        row->verdict = LB_VERDICT_OK;
        for (size_t p = 0; p < ROUNDS; p++) {
            bool belongs = second == (by_time ? p >= SIDE : sweep->second[i][p]);
            if (belongs && row->process_count > 0)
                LB_TRY(lb_row_add_process(row, err));
            if (belongs)
                LB_TRY(lb_row_add_block(row, sweep->percentiles[i][p], PERCENTILES, err));
            if (belongs)
                lb_row_set_reference(row, sweep->references[i][p]);
        }
        LB_TRY(lb_row_summarize(row, err));
    }
done:
    return st;
}

/* Compares a sweep with itself and counts what is named. learnt: the spread between runs to allow
 * for; NULL: none. */
static enum lb_status judge_sweep(struct self_test *test, const struct aa_sweep *sweep,
                                  bool by_time, const struct lb_run_spread *learnt,
                                  struct lb_self_rate *rate, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run sides[2] = {{.header = NULL}, {.header = NULL}};
    struct lb_run_comparison comparison = {0};
    struct lb_compare_options options = lb_compare_defaults();
    options.margin = test->session->options->margin;
    if (learnt)
        options.learnt = *learnt;
    for (int s = 0; s < 2; s++)
        LB_TRY(make_run(test, sweep, s == 1, by_time, &sides[s], err));
    LB_TRY(lb_compare_runs(&sides[0], &sides[1], &options, &comparison, err));
    bool adjusted = false;
    for (size_t i = 0; i < comparison.count; i++) {
        const struct lb_pair *pair = &comparison.pairs[i];
        rate->significant += pair->shift.p < 0.05;
        adjusted |= pair->adjusted_p <= comparison.level;
        rate->least_seen[rate->comparisons] = -pair->shift.lo95;
        LB_TRY(lb_detectable_slowdown(&comparison, pair,
                                      comparison.level / (double)comparison.count,
                                      &rate->least_named[rate->comparisons], err));
        rate->comparisons++;
    }
    rate->sweeps++;
    rate->sweeps_low += comparison.times.low;
    rate->sweeps_significant += adjusted;
    rate->sweeps_named +=
        comparison.counts[LB_CHANGE_SLOWER] + comparison.counts[LB_CHANGE_FASTER] > 0;
done:
    lb_run_comparison_free(&comparison);
    for (int s = 0; s < 2; s++)
        lb_run_free(&sides[s]);
    return st;
}

/* The difference between the median logarithms of the first and the second half of a case's
 * processes, each of which stands for a run; of 10 % quantiles where low, and over the times of the
 * fixed loop where corrected. */
static double half_difference(const struct aa_sweep *sweep, size_t c, bool low, bool corrected)
{
    double halves[ROUNDS];
    for (size_t p = 0; p < ROUNDS; p++)
        halves[p] = log(sweep->percentiles[c][p][low ? PERCENTILES / 10 : PERCENTILES / 2]) -
                    (corrected ? log(sweep->references[c][p]) : 0);
    lb_sort(halves, SIDE);
    lb_sort(halves + SIDE, SIDE);
    return lb_median(halves + SIDE, SIDE) - lb_median(halves, SIDE);
}

/* The squares of the spread between runs by one sweep, whose halves stand for two runs of it. */
static struct lb_run_spread variance_of(const struct self_test *test, const struct aa_sweep *sweep)
{
    struct lb_run_spread variance = {.df = 1};
    double *sums[] = {&variance.raw, &variance.corrected, &variance.low_raw,
                      &variance.low_corrected};
    for (size_t c = 0; c < test->result.cases; c++)
        for (int s = 0; s < 4; s++)
            *sums[s] += pow(half_difference(sweep, c, s >= 2, s % 2 == 1), 2) /
                        (2 * (double)test->result.cases);
    return variance;
}

/* The root of a mean of variances; 0, which stands for not known, where it is not finite. */
static double root_mean(double sum, size_t count)
{
    double root = sqrt(sum / (double)count);
    return isfinite(root) ? root : 0;
}

/* The spread between runs by all sweeps but one; left_out may be past the last. */
static struct lb_run_spread spread_of(const struct lb_run_spread *variances, size_t sweeps,
                                      size_t left_out)
{
    struct lb_run_spread spread = {0};
    for (size_t i = 0; i < sweeps; i++) {
        if (i == left_out)
            continue;
        spread.raw += variances[i].raw;
        spread.corrected += variances[i].corrected;
        spread.low_raw += variances[i].low_raw;
        spread.low_corrected += variances[i].low_corrected;
        spread.df++;
    }
    spread.raw = root_mean(spread.raw, spread.df);
    spread.corrected = root_mean(spread.corrected, spread.df);
    spread.low_raw = root_mean(spread.low_raw, spread.df);
    spread.low_corrected = root_mean(spread.low_corrected, spread.df);
    return spread;
}

/* Keeps the spread between runs for --compare on this machine. */
static void keep_run_spread(const struct self_test *test, const struct lb_run_spread *spread)
{
    struct lb_error why = {""};
    json_t *environment = lb_environment(test->session->libraries);
    if (lb_run_spread_save(environment, spread, &why) != LB_OK)
        fprintf(
            stderr,
            "the spread between runs is not kept for --compare: %s; set XDG_CACHE_HOME to a folder "
            "that can be written\n",
            why.text);
    json_decref(environment);
}

static enum lb_status compare_with_itself(struct self_test *test, size_t sweeps,
                                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_self_result *result = &test->result;
    struct aa_sweep *all = calloc(sweeps, sizeof(*all));
    struct lb_run_spread *variances = calloc(sweeps, sizeof(*variances));
    if (!all || !variances)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
    for (size_t i = 0; i < sweeps; i++) {
        LB_TRY(measure_sweep(test, &all[i], err));
        LB_TRY(judge_sweep(test, &all[i], false, NULL, &result->shuffled, err));
        LB_TRY(judge_sweep(test, &all[i], true, NULL, &result->in_turn, err));
        variances[i] = variance_of(test, &all[i]);
    }
    /* Each sweep is judged by what the others tell, as a comparison after this test will be. */
    for (size_t i = 0; i < sweeps; i++) {
        struct lb_run_spread others = spread_of(variances, sweeps, i);
        LB_TRY(judge_sweep(test, &all[i], true, &others, &result->allowed_for, err));
    }
    result->run_spread = spread_of(variances, sweeps, sweeps);
    keep_run_spread(test, &result->run_spread);
done:
    free(variances);
    free(all);
    return st;
}

/* Finds a case of about one millisecond for the planted slowdown. */
static enum lb_status choose_planted(struct self_test *test, const struct lb_impl_entry *impl_entry,
                                     struct lb_case *c, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_job job = {.c = c, .seed = 1, .sampler = lb_block_sampler()};
    *c = lb_case_defaults();
    snprintf(c->impl, sizeof(c->impl), "%s", impl_entry->name);
    c->problem.batch = 1;
    c->problem.input = c->problem.hidden = 64;
    c->problem.seq_len = 50;
    for (int i = 0; i < 2; i++) {
        struct lb_row row;
        st = lb_pool_run(test->session->pool, impl_entry, &job, &row, err);
        if (st == LB_OK && !lb_row_is_timed(&row))
            st = lb_fail(err, LB_FAILED, "planted: %.400s", row.reason);
        if (st == LB_OK && i == 0)
            c->problem.seq_len = (int64_t)fmax(1, round(50 * 1e6 / row.median_ns));
        test->result.planted_ns = row.median_ns;
        lb_row_free(&row);
        if (st != LB_OK)
            break;
    }
    return st;
}

/* Compares the case with its slowed-down version once, interleaved. */
static enum lb_status compare_planted(struct self_test *test, const struct lb_case *c,
                                      const struct lb_side sides[2], struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_self_result *result = &test->result;
    struct lb_row rows[2];
    struct lb_run runs[2] = {{.header = NULL}, {.header = NULL}};
    struct lb_run_comparison comparison = {0};
    struct lb_compare_options options = lb_compare_defaults();
    options.margin = test->session->options->margin;
    lb_pool_renew(test->session->pool);
    LB_TRY(lb_measure_pairs(test->session, c, sides, PAIRS, &test->random, rows, err));
    for (int s = 0; s < 2; s++) {
        runs[s] = (struct lb_run){.rows = malloc(sizeof(*rows)), .finished = true};
        runs[s].header = json_pack("{s:s}", "interleaved", "self-test");
        if (!runs[s].rows || !runs[s].header)
            LB_TRY(lb_fail(err, LB_OOM, "out of memory"));
        runs[s].rows[runs[s].count++] = rows[s];
        rows[s] = (struct lb_row){.verdict = LB_VERDICT_OK};
    }
    LB_TRY(lb_compare_runs(&runs[0], &runs[1], &options, &comparison, err));
    const struct lb_pair *pair = &comparison.pairs[0];
    if (!pair->compared)
        LB_TRY(lb_fail(err, LB_FAILED, "planted: %s", pair->note));
    result->planted_significant += pair->shift.lo95 > 0;
    result->planted_found += pair->change == LB_CHANGE_SLOWER;
    result->planted_estimates[result->planted] = pair->shift.estimate;
    double planted = log1p(PLANTED_PERCENT / 100.0), named;
    LB_TRY(lb_detectable_slowdown(&comparison, pair, comparison.level, &named, err));
    result->planted_least_seen[result->planted] = planted - pair->shift.lo95;
    result->planted_least_named[result->planted++] = planted + named;
done:
    lb_run_comparison_free(&comparison);
    for (int s = 0; s < 2; s++)
        lb_run_free(&runs[s]);
    return st;
}

static enum lb_status find_planted(struct self_test *test, size_t comparisons, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_case c;
    char name[] = "planted";
    const struct lb_impl_entry impl_entry = {.name = name, .impl = &lb_planted_impl};
    const struct lb_side sides[2] = {{"planted", "", &impl_entry},
                                     {"planted:slower_3", "slower_3", &impl_entry}};
    LB_TRY(choose_planted(test, &impl_entry, &c, err));
    for (size_t i = 0; i < comparisons; i++) {
        if (interrupted(test))
            return LB_INTERRUPTED;
        lb_progress_case(&test->progress, "a planted slowdown against none, interleaved");
        LB_TRY(compare_planted(test, &c, sides, err));
        for (int block = 0; block < 2 * PAIRS; block++)
            lb_progress_done(&test->progress, false, false);
    }
done:
    return st;
}

enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool quick = session->options->quick;
    size_t sweeps = quick ? 4 : 20, planted = quick ? 10 : 100;
    struct self_test *test = calloc(1, sizeof(*test));
    if (!test)
        return lb_fail(err, LB_OOM, "out of memory");
    test->session = session;
    test->random = session->options->seed ^ (uint64_t)time(NULL) << 20;
    test->result.cases = quick ? MAX_CASES / 2 : MAX_CASES;
    test->result.quick = quick;
    test->result.side = SIDE;
    test->result.margin = session->options->margin;
    fprintf(stderr, "checking the machine and the cost of the cases\n");
    lb_pool_renew(session->pool); /* else the check counts our own worker as another GPU process */
    lb_noise_check_run(1.0, session->options->call_limit_s, &test->result.noise);
    LB_TRY(choose_cases(test, plan, err));
    if (test->result.cases == 0) {
        fprintf(stderr, "bench-lstm: no case runs here\n");
        *exit_code = LB_EXIT_NOTHING;
        goto done;
    }
    lb_progress_start(&test->progress, sweeps * ROUNDS * test->result.cases + planted * 2 * PAIRS);
    LB_TRY(compare_with_itself(test, sweeps, err));
    LB_TRY(find_planted(test, planted, err));
    lb_progress_end(&test->progress);
    *exit_code = lb_self_report(&test->result, stdout) ? LB_EXIT_FINE : LB_EXIT_FAILED;
done:
    free(test);
    return st;
}

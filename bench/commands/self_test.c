/* --self-test: how reliable the program's verdicts are on this machine. */
#include "commands/self_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "commands/self_test_report.h"
#include "report/compare.h"
#include "run/interleaved_blocks.h"
#include "run/planted_slowdown.h"
#include "stats/order_stats.h"
#include "support/progress.h"

enum {
    SIDE = 8,            /* fresh processes per side: the exact test has p <= 0.05 in 4.99 % */
    ROUNDS = 2 * SIDE,   /* processes per case in a sweep that is compared with itself */
    MAX_CASES = 20,      /* in such a sweep */
    MAX_SWEEPS = 20,     /* that are compared with themselves */
    PLANTED_PERCENT = 3, /* slowdown planted in a case of one millisecond */
    PAIRS = 60           /* of blocks per comparison with the planted slowdown */
};

/* The logarithms of the times of each case in each process of one sweep, in the order of time. */
struct aa_sweep {
    double logs[MAX_CASES][ROUNDS];
};

struct self_test {
    const struct lb_session *session;
    struct lb_judgement judgement;
    struct lb_case cases[MAX_CASES];
    struct lb_self_result result;
    struct lb_progress progress;
    uint64_t random;
};

/* Measures a case in a worker process as a sweep does, but for 0.1 s at most. */
static enum lb_status run_one(const struct self_test *test, const struct lb_case *c,
                              struct lb_row *row, struct lb_error *err)
{
    const struct lb_impl_entry *impl_entry = lb_registry_find(test->session->registry, c->impl);
    struct lb_job job = {
        .c = c, .seed = test->session->options->seed, .sampler = lb_sampler_defaults()};
    job.sampler.max_ns = 1e8;
    *row = lb_row_make(c);
    if (impl_entry->absent) {
        row->verdict = LB_VERDICT_ABSENT;
        return LB_OK;
    }
    lb_pool_renew(test->session->pool);
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

static enum lb_status measure_sweep(struct self_test *test, struct aa_sweep *sweep,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    lb_progress_case(&test->progress, "the same against the same, in fresh processes");
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < test->result.cases; i++) {
            struct lb_row row;
            if (test->session->stop && *test->session->stop)
                return LB_INTERRUPTED;
            st = run_one(test, &test->cases[i], &row, err);
            lb_progress_done(&test->progress, false, false);
            if (st == LB_OK && !lb_row_is_timed(&row))
                st = lb_fail(err, LB_FAILED, "a case that ran before no longer runs: %s: %.300s",
                             lb_verdict_name(row.verdict), row.reason);
            sweep->logs[i][round] = log(row.median_ns);
            lb_row_free(&row);
            if (st != LB_OK)
                return st;
        }
    return st;
}

/* The smallest slowdown which, added to the times of now, would be called slower as the only one
 * among so many cases; infinite when there are too few units for that. */
static double find_least_named(const struct self_test *test, const struct lb_contrast *c,
                               size_t cases)
{
    double low = -1, high = 1, now[PAIRS];
    struct lb_contrast moved = *c;
    const struct lb_judgement judgement = {test->judgement.margin,
                                           test->judgement.level / (double)cases};
    moved.now = now;
    for (double middle = high; high - low > 1e-5; middle = (low + high) / 2) {
        for (size_t i = 0; i < c->now_count; i++)
            now[i] = c->now[i] + middle;
        bool slower = lb_judge_cases(&moved, 1, &judgement, NULL) == LB_OK &&
                      moved.outcome == LB_OUTCOME_SLOWER;
        if (!slower && middle == 1)
            return INFINITY;
        *(slower ? &high : &low) = middle;
    }
    return high;
}

/* Judges cases together, as --compare does, and counts what is found. planted is the shift that the
 * cases have by intention. */
static enum lb_status count_findings(const struct self_test *test, struct lb_contrast *cases,
                                     size_t count, double planted, struct lb_self_rate *rate,
                                     struct lb_error *err)
{
    bool significant = false;
    size_t named = 0;
    enum lb_status st = lb_judge_cases(cases, count, &test->judgement, err);
    for (size_t i = 0; st == LB_OK && i < count; i++) {
        const struct lb_contrast *c = &cases[i];
        rate->significant += c->shift.p < 0.05;
        significant |= c->adjusted_p <= test->judgement.level;
        named += c->outcome == LB_OUTCOME_SLOWER || c->outcome == LB_OUTCOME_FASTER;
        rate->estimates[rate->comparisons] = c->shift.estimate;
        rate->least_seen[rate->comparisons] = planted - c->shift.lo95;
        rate->least_named[rate->comparisons++] = planted + find_least_named(test, c, count);
    }
    rate->named += named;
    rate->sweeps++;
    rate->sweeps_significant += significant;
    rate->sweeps_named += named > 0;
    return st;
}

/* Draws which half of the processes belong to the second side. */
static void draw_side(struct self_test *test, bool second[ROUNDS])
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

/* Compares two halves of each case's processes: drawn at random, or the first with the last. */
static enum lb_status judge_halves(struct self_test *test, const struct aa_sweep *sweep,
                                   bool in_turn, struct lb_self_rate *rate, struct lb_error *err)
{
    double sides[MAX_CASES][2][SIDE];
    struct lb_contrast cases[MAX_CASES] = {0};
    for (size_t c = 0; c < test->result.cases; c++) {
        bool second[ROUNDS];
        size_t counts[2] = {0, 0};
        draw_side(test, second);
        for (size_t p = 0; p < ROUNDS; p++) {
            int side = in_turn ? p >= SIDE : second[p];
            sides[c][side][counts[side]++] = sweep->logs[c][p];
        }
        cases[c] = (struct lb_contrast){
            .base = sides[c][0], .now = sides[c][1], .base_count = SIDE, .now_count = SIDE};
    }
    return count_findings(test, cases, test->result.cases, 0, rate, err);
}

/* The times of a case in two runs that follow each other: the median logarithms of the first and of
 * the last half of its processes. */
static void run_times(const struct aa_sweep *sweep, size_t c, double times[2])
{
    double halves[ROUNDS];
    memcpy(halves, sweep->logs[c], sizeof(halves));
    for (int s = 0; s < 2; s++) {
        lb_sort(halves + s * SIDE, SIDE);
        times[s] = lb_median(halves + s * SIDE, SIDE);
    }
}

/* The spread between such runs by all sweeps [count] but one; left_out may be past the last. */
static struct lb_spread spread_of(const struct self_test *test, const struct aa_sweep *sweeps,
                                  size_t count, size_t left_out)
{
    double squares = 0, times[2];
    size_t df = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; i != left_out && c < test->result.cases; c++) {
            run_times(&sweeps[i], c, times);
            squares += pow(times[1] - times[0], 2) / (2 * (double)test->result.cases);
        }
        df += i != left_out;
    }
    return (struct lb_spread){sqrt(squares / (double)df), df};
}

/* Compares the halves as runs, with what the other sweeps tell of the spread between runs. */
static enum lb_status judge_runs(struct self_test *test, const struct aa_sweep *sweeps,
                                 size_t count, size_t index, struct lb_error *err)
{
    double times[MAX_CASES][2];
    struct lb_contrast cases[MAX_CASES];
    const struct lb_spread spread = spread_of(test, sweeps, count, index);
    for (size_t c = 0; c < test->result.cases; c++) {
        run_times(&sweeps[index], c, times[c]);
        cases[c] = (struct lb_contrast){.base = &times[c][0],
                                        .now = &times[c][1],
                                        .base_count = 1,
                                        .now_count = 1,
                                        .spread = spread};
    }
    return count_findings(test, cases, test->result.cases, 0, &test->result.allowed_for, err);
}

static enum lb_status compare_with_itself(struct self_test *test, size_t sweeps,
                                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_self_result *result = &test->result;
    struct aa_sweep all[MAX_SWEEPS];
    for (size_t i = 0; i < sweeps; i++) {
        LB_TRY(measure_sweep(test, &all[i], err));
        LB_TRY(judge_halves(test, &all[i], false, &result->shuffled, err));
        LB_TRY(judge_halves(test, &all[i], true, &result->in_turn, err));
    }
    for (size_t i = 0; i < sweeps; i++)
        LB_TRY(judge_runs(test, all, sweeps, i, err));
    result->run_spread = spread_of(test, all, sweeps, sweeps).deviation;
done:
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
    for (int i = 0; i < 2 && st == LB_OK; i++) {
        struct lb_row row;
        st = lb_pool_run(test->session->pool, impl_entry, &job, &row, err);
        if (st == LB_OK && !lb_row_is_timed(&row))
            st = lb_fail(err, LB_FAILED, "planted: %.400s", row.reason);
        if (st == LB_OK && i == 0)
            c->problem.seq_len = (int64_t)fmax(1, round(50 * 1e6 / row.median_ns));
        test->result.planted_ns = row.median_ns;
        lb_row_free(&row);
    }
    return st;
}

/* Compares the case with its slowed-down version once, interleaved. */
static enum lb_status compare_planted(struct self_test *test, const struct lb_case *c,
                                      const struct lb_side sides[2], struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double logs[2][PAIRS];
    struct lb_row rows[2] = {{.verdict = LB_VERDICT_OK}, {.verdict = LB_VERDICT_OK}};
    struct lb_contrast contrast = {.base = logs[0], .now = logs[1], .paired = true};
    lb_pool_renew(test->session->pool);
    LB_TRY(lb_measure_pairs(test->session, c, sides, PAIRS, &test->random, rows, err));
    for (int s = 0; s < 2; s++) {
        if (lb_row_units(&rows[s]) != PAIRS)
            LB_TRY(lb_fail(err, LB_FAILED, "planted: %.400s", rows[s].reason));
        LB_TRY(lb_row_unit_times(&rows[s], logs[s], err));
        for (int i = 0; i < PAIRS; i++)
            logs[s][i] = log(logs[s][i]);
    }
    contrast.base_count = contrast.now_count = PAIRS;
    st = count_findings(test, &contrast, 1, log1p(PLANTED_PERCENT / 100.0), &test->result.planted,
                        err);
done:
    for (int s = 0; s < 2; s++)
        lb_row_free(&rows[s]);
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
        if (test->session->stop && *test->session->stop)
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
    size_t sweeps = quick ? 4 : MAX_SWEEPS, planted = quick ? 10 : 100;
    struct self_test *test = calloc(1, sizeof(*test));
    if (!test)
        return lb_fail(err, LB_OOM, "out of memory");
    test->session = session;
    test->random = session->options->seed ^ (uint64_t)time(NULL) << 20;
    test->judgement = lb_compare_defaults().judgement;
    test->judgement.margin = test->result.margin = session->options->margin;
    test->result.cases = quick ? MAX_CASES / 2 : MAX_CASES;
    test->result.quick = quick;
    test->result.side = SIDE;
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

/* --self-test: how reliable the program's verdicts are on this machine. */
#include "commands/self_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "commands/commands.h"
#include "report/compare.h"
#include "stats/order_stats.h"
#include "support/texts.h"

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
    double runs[MAX_CASES][2]; /* the medians of the first and of the last half: as of two runs */
};

struct self_test {
    const struct lb_session *session;
    struct lb_judgement judgement;
    struct lb_case cases[MAX_CASES + 1]; /* [result.cases] */
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
    lb_pool_renew(test->session->pool);
    return lb_pool_run(test->session->pool, impl_entry, &job, row, err);
}

/* Chooses the plan's cases that take the least time. */
static enum lb_status choose_cases(struct self_test *test, const struct lb_plan *plan, size_t most,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double costs_ns[MAX_CASES + 1]; /* of the chosen cases, ascending; then of one more */
    size_t count = 0;
    lb_progress_start(&test->progress, plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        struct lb_row row;
        lb_progress_case(&test->progress, LB_CASE_TEXT(&plan->cases[i]));
        LB_TRY(run_one(test, &plan->cases[i], &row, err));
        lb_progress_done(&test->progress, false, false);
        if (lb_row_is_timed(&row)) {
            size_t at = count < most ? count++ : most;
            for (; at > 0 && costs_ns[at - 1] > row.elapsed_ns; at--) {
                costs_ns[at] = costs_ns[at - 1];
                test->cases[at] = test->cases[at - 1];
            }
            costs_ns[at] = row.elapsed_ns;
            test->cases[at] = plan->cases[i];
        }
        lb_row_free(&row);
    }
    test->result.cases = count;
done:
    lb_progress_clear(&test->progress);
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
    for (size_t c = 0; c < test->result.cases; c++)
        for (int s = 0; s < 2; s++) {
            double scratch[SIDE];
            sweep->runs[c][s] = lb_median_of(sweep->logs[c] + s * SIDE, SIDE, scratch);
        }
    return st;
}

/* The smallest slowdown which, added to the times of now, would be called slower as the only one
 * among so many cases; infinite with too few units. */
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
        lb_judge_cases(&moved, 1, &judgement);
        bool slower = moved.outcome == LB_OUTCOME_SLOWER;
        if (!slower && middle == 1)
            return INFINITY;
        *(slower ? &high : &low) = middle;
    }
    return high;
}

/* planted: the shift that the cases have by intention. */
static void count_findings(const struct self_test *test, struct lb_contrast *cases, size_t count,
                           double planted, struct lb_self_rate *rate)
{
    bool significant = false;
    size_t named = 0;
    lb_judge_cases(cases, count, &test->judgement);
    for (size_t i = 0; i < count; i++) {
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
}

/* Compares the first half of each case's processes with the last, or halves drawn at random. */
static void judge_halves(struct self_test *test, const struct aa_sweep *sweep, bool shuffled,
                         struct lb_self_rate *rate)
{
    struct aa_sweep halves = *sweep;
    struct lb_contrast cases[MAX_CASES];
    for (size_t c = 0; c < test->result.cases; c++) {
        if (shuffled)
            lb_random_shuffle(halves.logs[c], ROUNDS, &test->random);
        cases[c] = (struct lb_contrast){halves.logs[c], halves.logs[c] + SIDE, SIDE, SIDE,
                                        .paired = false};
    }
    count_findings(test, cases, test->result.cases, 0, rate);
}

/* The spread between runs that follow each other, by all sweeps [count] but one; left_out may be
 * past the last. */
static struct lb_spread spread_of(const struct self_test *test, const struct aa_sweep *sweeps,
                                  size_t count, size_t left_out)
{
    double squares = 0;
    size_t df = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; i != left_out && c < test->result.cases; c++)
            squares += pow(sweeps[i].runs[c][1] - sweeps[i].runs[c][0], 2) / 2;
        df += i != left_out;
    }
    return (struct lb_spread){sqrt(squares / (double)(df * test->result.cases)), df};
}

static enum lb_status compare_with_itself(struct self_test *test, size_t sweeps,
                                          struct lb_error *err)
{
    struct lb_self_result *result = &test->result;
    struct aa_sweep all[MAX_SWEEPS];
    struct lb_contrast cases[MAX_CASES];
    for (size_t i = 0; i < sweeps; i++) {
        LB_CHECK(measure_sweep(test, &all[i], err));
        judge_halves(test, &all[i], true, &result->shuffled);
        judge_halves(test, &all[i], false, &result->in_turn);
    }
    /* Compares the halves as runs, with what the other sweeps tell of the spread between runs. */
    for (size_t i = 0; i < sweeps; i++) {
        const struct lb_spread spread = spread_of(test, all, sweeps, i);
        for (size_t c = 0; c < result->cases; c++)
            cases[c] = (struct lb_contrast){&all[i].runs[c][0], &all[i].runs[c][1], 1, 1,
                                            .spread = spread};
        count_findings(test, cases, result->cases, 0, &result->allowed_for);
    }
    result->run_spread = spread_of(test, all, sweeps, sweeps).deviation;
    return LB_OK;
}

static enum lb_status compare_planted(struct self_test *test, const struct lb_case *c,
                                      const struct lb_side sides[2], struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double logs[2][PAIRS];
    struct lb_row rows[2] = {{.verdict = LB_VERDICT_OK}, {.verdict = LB_VERDICT_OK}};
    struct lb_contrast contrast = {logs[0], logs[1], PAIRS, PAIRS, .paired = true};
    lb_pool_renew(test->session->pool);
    LB_TRY(lb_measure_pairs(test->session, c, sides, PAIRS, &test->random, rows, err));
    for (int s = 0; s < 2; s++) {
        if (lb_row_units(&rows[s]) != PAIRS)
            LB_TRY(lb_fail(err, LB_FAILED, "planted: %.400s", rows[s].reason));
        lb_row_unit_times(&rows[s], 0.5, logs[s]);
        for (int i = 0; i < PAIRS; i++)
            logs[s][i] = log(logs[s][i]);
    }
    test->result.planted_ns = rows[0].median_ns;
    count_findings(test, &contrast, 1, log1p(PLANTED_PERCENT / 100.0), &test->result.planted);
done:
    for (int s = 0; s < 2; s++)
        lb_row_free(&rows[s]);
    return st;
}

static enum lb_status find_planted(struct self_test *test, size_t comparisons, struct lb_error *err)
{
    struct lb_case c = lb_case_defaults();
    char name[] = LB_PLANTED_NAME;
    const struct lb_impl_entry impl_entry = {.name = name};
    const struct lb_side sides[2] = {{"planted", "", &impl_entry, NULL},
                                     {"planted:slower_3", "slower_3", &impl_entry, NULL}};
    const struct lb_job job = {.c = &c, .seed = 1, .sampler = lb_block_sampler()};
    struct lb_row row = {.verdict = LB_VERDICT_OK};
    snprintf(c.impl, sizeof(c.impl), "%s", name);
    c.problem.batch = 1;
    c.problem.input = c.problem.hidden = 64;
    c.problem.seq_len = 50;
    enum lb_status st = lb_pool_run(test->session->pool, &impl_entry, &job, &row, err);
    if (st == LB_OK && !lb_row_is_timed(&row))
        st = lb_fail(err, LB_FAILED, "planted: %.400s", row.reason);
    double calls_per_ms = 1e6 / row.median_ns;
    lb_row_free(&row);
    LB_CHECK(st);
    c.problem.seq_len = (int64_t)fmax(1, round(50 * calls_per_ms)); /* takes about 1 ms */
    for (size_t i = 0; i < comparisons; i++) {
        lb_progress_case(&test->progress, "a planted slowdown against none, interleaved");
        LB_CHECK(compare_planted(test, &c, sides, err));
        for (int block = 0; block < 2 * PAIRS; block++)
            lb_progress_done(&test->progress, false, false);
    }
    return LB_OK;
}

static double percent(size_t part, size_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : (double)NAN;
}

static void print_rate(FILE *out, const char *name, const struct lb_self_rate *rate)
{
    fprintf(out, "  %-26s %zu of %zu comparisons have p < 0.05: %.1f %%, 5 %% expected\n", name,
            rate->significant, rate->comparisons, percent(rate->significant, rate->comparisons));
    fprintf(out, "  %-26s after correction, %zu of %zu sweeps have a difference, %zu name a case\n",
            "", rate->sweeps_significant, rate->sweeps, rate->sweeps_named);
}

static void print_least(FILE *out, const char *name, struct lb_self_rate *rate, const char *more)
{
    double *const least[] = {rate->least_seen, rate->least_named};
    size_t count = rate->comparisons;
    fprintf(out, "  %-26s", name);
    for (int i = 0; i < 2; i++) {
        lb_sort(least[i], count);
        double value = count > 0 ? least[i][(95 * count + 99) / 100 - 1] : (double)INFINITY;
        if (isfinite(value))
            fprintf(out, " %10.2f %%", 100 * expm1(value));
        else
            fprintf(out, " %12s", "none");
    }
    fprintf(out, "%s\n", more);
}

static void print_verdicts(FILE *out, struct lb_self_result *result)
{
    char alone[64];
    struct lb_self_rate *planted = &result->planted;
    const char *s = result->cases == 1 ? "" : "s";
    fprintf(out, "\nfalse alarms: %zu case%s, each against itself, %d fresh processes per side\n",
            result->cases, s, SIDE);
    print_rate(out, "both sides mixed in time", &result->shuffled);
    print_rate(out, "one side after the other", &result->in_turn);
    print_rate(out, "its spread allowed for", &result->allowed_for);
    fprintf(out, "\nspread between runs that follow each other\n");
    fprintf(out, "  %-26s %.3g %%; --compare allows for it where it has several runs of the base\n",
            "standard deviation", 100 * result->run_spread);

    lb_sort(planted->estimates, planted->comparisons);
    fprintf(out, "\nplanted slowdown: 3 %% of a case of %s, interleaved\n",
            LB_NS_TEXT(result->planted_ns));
    fprintf(out, "  %-26s %zu of %zu comparisons: slower, and by more than %.3g %%\n", "found",
            planted->named, planted->comparisons, 100 * result->margin);
    fprintf(out, "  %-26s %.2f %% (median of the estimates)\n", "measured as",
            100 * expm1(lb_median(planted->estimates, planted->comparisons)));

    fprintf(out, "\nsmallest slowdown that 95 of 100 comparisons would\n");
    fprintf(out, "  %-26s %12s %12s\n", "", "tell from 0", "name slower");
    snprintf(alone, sizeof(alone), ", alone among %zu case%s", result->cases, s);
    print_least(out, "two runs, --processes 8", &result->shuffled, alone);
    print_least(out, "one after the other", &result->allowed_for, alone);
    print_least(out, "--ab", planted, "");
}

bool lb_self_report(struct lb_self_result *result, FILE *out)
{
    const struct lb_self_rate *shuffled = &result->shuffled, *in_turn = &result->in_turn;
    lb_noise_check_print(&result->noise, out);
    print_verdicts(out, result);
    fprintf(out, "\nadvice\n");
    bool noisy = lb_noise_check_advise(&result->noise, out) > 0;
    bool drifts = 20 * in_turn->sweeps_named > in_turn->sweeps ||
                  percent(in_turn->significant, in_turn->comparisons) > 8;
    if (drifts)
        fprintf(out,
                "  - Runs that follow each other differ here by more than their processes show. "
                "Use --ab\n    for small differences, and a wider --margin for --compare.\n");
    else if (!noisy)
        fprintf(out, "  - None: this machine is ready to measure.\n");
    double significant = percent(shuffled->significant, shuffled->comparisons);
    bool alarms = significant >= 2 && significant <= 8 &&
                  20 * shuffled->sweeps_significant <= shuffled->sweeps;
    bool found = percent(result->planted.named, result->planted.comparisons) >= 95;
    if (result->quick)
        fprintf(out, "\n--quick: too few comparisons to judge the rates.\n");
    else
        fprintf(out,
                "\nfalse alarms %s (2 to 8 %% and at most one sweep in 20 expected), planted "
                "slowdown %s (95 of 100 expected)\n",
                alarms ? "as expected" : "NOT AS EXPECTED",
                found ? "found" : "NOT FOUND OFTEN ENOUGH");
    fflush(out);
    return result->quick || (alarms && found);
}

enum lb_status lb_self_test(const struct lb_session *session, const struct lb_plan *plan,
                            int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool quick = session->options->quick;
    size_t sweeps = quick ? 4 : MAX_SWEEPS, planted = quick ? 10 : 100;
    struct self_test *test = lb_needed(calloc(1, sizeof(*test)));
    test->session = session;
    test->random = session->options->seed ^ (uint64_t)time(NULL) << 20;
    test->judgement = lb_compare_defaults().judgement;
    test->judgement.margin = test->result.margin = session->options->margin;
    test->result.quick = quick;
    fprintf(stderr, "checking the machine and the cost of the cases\n");
    lb_pool_renew(session->pool); /* else the check counts our own worker as another GPU process */
    lb_noise_check_run(1.0, &test->result.noise);
    LB_TRY(choose_cases(test, plan, quick ? MAX_CASES / 2 : MAX_CASES, err));
    if (test->result.cases == 0) {
        fprintf(stderr, "bench-lstm: no case runs here\n");
        *exit_code = LB_EXIT_NOTHING;
        goto done;
    }
    lb_progress_start(&test->progress, sweeps * ROUNDS * test->result.cases + planted * 2 * PAIRS);
    st = compare_with_itself(test, sweeps, err);
    if (st == LB_OK)
        st = find_planted(test, planted, err);
    lb_progress_clear(&test->progress);
    if (st == LB_OK)
        *exit_code = lb_self_report(&test->result, stdout) ? LB_EXIT_FINE : LB_EXIT_FAILED;
done:
    free(test);
    return st;
}

/* Tests of comparing two runs: verdicts, units, and what a reader must know. */
#include "report/compare.h"
#include "stats/anomalies.h"
#include "tests/helpers/random_draws.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

enum { MOST_RUNS = 8 };

static void print_case(int n, char id[LB_CASE_ID_SIZE])
{
    snprintf(id, LB_CASE_ID_SIZE, "cpu_ref/T%d_B1_I64_H64/f32/infer", n);
}

/* Appends case n: so many processes about the level, or ten blocks of one process; with 0 processes
 * a row of the verdict, and with less no row. */
static void add_case(struct lb_run *run, int n, double level, int processes,
                     enum lb_verdict verdict)
{
    char id[LB_CASE_ID_SIZE];
    static uint64_t seed;
    print_case(n, id);
    if (processes > 1)
        synthetic_add_processes(run, id, level, (size_t)processes, ++seed);
    else if (processes >= 0)
        synthetic_add(run,
                      synthetic_row(id, processes == 1 ? LB_VERDICT_OK : verdict, level, 10, 20));
}

/* A run of cases 1 to count of so many processes. */
static struct lb_run make_run(double level, int processes, int count)
{
    struct lb_run run = synthetic_empty();
    for (int n = 1; n <= count; n++)
        add_case(&run, n, level, processes, LB_VERDICT_OK);
    return run;
}

static const struct lb_pair *find(const struct lb_run_comparison *comparison, int n)
{
    char id[LB_CASE_ID_SIZE];
    print_case(n, id);
    for (size_t i = 0; i < comparison->count; i++)
        if (strcmp(comparison->pairs[i].id, id) == 0)
            return &comparison->pairs[i];
    fail_msg("%s is not there", id);
    return NULL;
}

/* Every kind of change, the worst first. */
TEST(every_change_has_its_name)
{
    static const struct {
        struct {
            double level;
            int processes;
            enum lb_verdict verdict;
        } base, now;
        enum lb_change change;
        const char *note;
    } known[] = {
        {{1000, 10, 0}, {1050, 10, 0}, LB_CHANGE_SLOWER, ""},
        {{1000, 10, 0}, {950, 10, 0}, LB_CHANGE_FASTER, ""},
        {{1000, 10, 0}, {1001, 10, 0}, LB_CHANGE_SAME, ""},
        {{1000, 10, 0}, {1020, 10, 0}, LB_CHANGE_INCONCLUSIVE, ""},
        {{1000, 10, 0}, {0, 0, LB_VERDICT_CRASH}, LB_CHANGE_BROKEN, "crash: made up"},
        {{1000, 10, 0}, {0, -1, 0}, LB_CHANGE_GONE, "no row in the new run"},
        {{0, -1, 0}, {1000, 10, 0}, LB_CHANGE_NEW, ""},
        {{0, 0, LB_VERDICT_WRONG}, {1000, 10, 0}, LB_CHANGE_MENDED, "before: wrong: made up"},
        {{0, 0, LB_VERDICT_WRONG}, {0, 0, LB_VERDICT_WRONG}, LB_CHANGE_STILL_FAILING, "wrong: "},
        {{0, 0, LB_VERDICT_UNSUPPORTED}, {0, 0, LB_VERDICT_UNSUPPORTED}, LB_CHANGE_NOT_RUN, ""},
        {{0, -1, 0}, {0, 0, LB_VERDICT_TIMEOUT}, LB_CHANGE_BROKEN, "timeout: made up"},
        /* However many samples: one process each shows large changes alone, and so does one against
         * many. */
        {{1000, 1, 0}, {1500, 1, 0}, LB_CHANGE_SLOWER, ""},
        {{1000, 1, 0}, {1100, 1, 0}, LB_CHANGE_INCONCLUSIVE, "chance can't be ruled out"},
        {{1000, 10, 0}, {1100, 1, 0}, LB_CHANGE_INCONCLUSIVE, "chance can't be ruled out"},
        {{1000, 1, 0}, {1000, 1, 0}, LB_CHANGE_INCONCLUSIVE, "reaches beyond the margin"},
    };
    enum { CASES = sizeof(known) / sizeof(known[0]) };
    struct lb_run base = synthetic_empty(), now = synthetic_empty();
    for (int i = 0; i < CASES; i++) {
        add_case(&base, i + 1, known[i].base.level, known[i].base.processes, known[i].base.verdict);
        add_case(&now, i + 1, known[i].now.level, known[i].now.processes, known[i].now.verdict);
    }
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.count, CASES);
    for (int i = 0; i < CASES; i++) {
        const struct lb_pair *pair = find(&comparison, i + 1);
        assert_int_equal(pair->change, known[i].change);
        if (!strstr(pair->note, known[i].note))
            fail_msg("'%s' is not in '%s'", known[i].note, pair->note);
        assert_int_equal(pair->compared, i < 4 || i > 10);
        assert_int_equal(isfinite(pair->shift.estimate), i < 4 || i > 10);
    }
    for (size_t i = 1; i < comparison.count; i++)
        assert_true(comparison.pairs[i - 1].change <= comparison.pairs[i].change);
    const struct lb_pair *slower = find(&comparison, 1);
    assert_true(fabs(slower->shift.estimate - log(1.05)) < 0.005);
    assert_true(slower->shift.lo95 < log(1.05) && log(1.05) < slower->shift.hi95);
    assert_int_equal(comparison.compared, 8);
    assert_non_null(strstr(comparison.notes, "4 cases have too few processes"));
    assert_non_null(strstr(comparison.notes, "Add --processes 15 to both sweeps"));
    synthetic_free(&comparison, &base, &now);
}

/* One slowdown of 5 against 5, whose p-value is 0.8 %, alone and among seven cases. */
TEST(correction_counts_all_cases_that_are_compared)
{
    for (int cases = 1; cases <= 7; cases += 6) {
        struct lb_run base = make_run(1000, 5, cases), now = synthetic_empty();
        for (int n = 1; n <= cases; n++)
            add_case(&now, n, n == 1 ? 1100 : 1000.5, 5, LB_VERDICT_OK);
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        const struct lb_pair *pair = find(&comparison, 1);
        assert_int_equal(comparison.compared, cases);
        assert_true(fabs(pair->shift.p - 2.0 / 252) < 1e-12);
        assert_true(fabs(pair->adjusted_p - cases * 2.0 / 252) < 1e-12);
        assert_int_equal(pair->change, cases == 1 ? LB_CHANGE_SLOWER : LB_CHANGE_INCONCLUSIVE);
        assert_int_equal(strstr(comparison.notes, "--processes 7 would do") != NULL, cases == 7);
        synthetic_free(&comparison, &base, &now);
    }
}

/* A suspect time is neither a regression nor an improvement, on whichever side it is. */
TEST(a_suspect_time_is_inconclusive)
{
    for (int side = 0; side < 2; side++) {
        struct lb_run runs[2] = {synthetic_empty(), synthetic_empty()};
        for (int i = 0; i < 2; i++)
            add_case(&runs[i], 1, i == side ? 1000 : 100, i == side ? 0 : 1, LB_VERDICT_SUSPECT);
        struct lb_run_comparison comparison = synthetic_compare(&runs[0], &runs[1]);
        assert_int_equal(comparison.pairs[0].change, LB_CHANGE_INCONCLUSIVE);
        assert_non_null(strstr(comparison.pairs[0].note, ": suspect: made up"));
        synthetic_free(&comparison, &runs[0], &runs[1]);
    }
}

/* The same difference that is found on a quiet machine is not, where the fixed loop shows that the
 * machine itself was slower, other programs used the CPUs, or the shortest call was as fast. */
TEST(a_disturbed_machine_is_not_taken_for_a_change)
{
    enum { QUIET, SLOW, SHARED, FAST_BEFORE, COUNT };
    for (int machine = 0; machine < COUNT; machine++) {
        struct lb_run base = make_run(1000, 1, 1), now = make_run(1500, 1, 1);
        struct lb_row *row = &now.rows[0];
        for (size_t b = 0; b < row->block_count; b++) {
            base.rows[0].reference_ns[b] = 100;
            row->reference_ns[b] = machine == SLOW ? 150 : 100;
        }
        row->others_share = machine == SHARED ? 0.4 : 0;
        row->min_ns = machine == FAST_BEFORE ? 1000 : 1480;
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        assert_int_equal(comparison.pairs[0].change,
                         machine == QUIET ? LB_CHANGE_SLOWER : LB_CHANGE_INCONCLUSIVE);
        synthetic_free(&comparison, &base, &now);
    }
}

TEST(second_sweep_must_show_a_slowdown_too)
{
    static const struct {
        double now, again; /* 0: no row */
        enum lb_change change;
    } known[] = {{1050, 1060, LB_CHANGE_SLOWER},
                 {1050, 1000, LB_CHANGE_INCONCLUSIVE},
                 {1050, 0, LB_CHANGE_INCONCLUSIVE},
                 {0, 1000, LB_CHANGE_BROKEN},
                 {1000, 0, LB_CHANGE_SAME}};
    struct lb_run base = make_run(1000, 10, 5), now = synthetic_empty(), again = synthetic_empty();
    for (int i = 0; i < 5; i++) {
        add_case(&now, i + 1, known[i].now, known[i].now > 0 ? 10 : 0, LB_VERDICT_CRASH);
        add_case(&again, i + 1, known[i].again, known[i].again > 0 ? 10 : -1, LB_VERDICT_OK);
    }
    struct lb_compare_options options = lb_compare_defaults();
    struct lb_run_comparison comparison;
    options.again = &again;
    assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(find(&comparison, i + 1)->change, known[i].change);
    assert_non_null(strstr(find(&comparison, 2)->note, "in the other: same"));
    assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], 1);
    assert_int_equal(comparison.counts[LB_CHANGE_INCONCLUSIVE], 2);
    assert_ptr_equal(&comparison.pairs[0], find(&comparison, 4));
    assert_ptr_equal(&comparison.pairs[1], find(&comparison, 1));
    lb_run_free(&again);
    synthetic_free(&comparison, &base, &now);
}

static void set_gpu(struct lb_run *run, const char *uuid, const char *name)
{
    json_object_set_new(json_object_get(run->header, "environment"), "gpu",
                        json_pack("{s:s, s:s}", "uuid", uuid, "name", name));
}

TEST(what_a_reader_must_know_is_said)
{
    struct lb_run base = make_run(1000, 10, 2), now = synthetic_empty();
    static const char *const notes[] = {
        "DIFFERENT ENVIRONMENTS (cpu)", "The new run was cut short in the middle of a line",
        "nothing to compare", "Libraries differ: OpenBLAS 0.3.21 to 0.3.26."};
    json_object_set_new(json_object_get(base.header, "environment"), "libraries",
                        json_pack("{s:s, s:s}", "OpenBLAS", "0.3.21", "oneDNN", "2.6"));
    json_object_set_new(json_object_get(now.header, "environment"), "libraries",
                        json_pack("{s:s, s:s}", "OpenBLAS", "0.3.26", "oneDNN", "2.6"));
    json_object_set_new(json_object_get(now.header, "environment"), "cpu", json_string("another"));
    now.finished = false;
    now.torn = true;
    struct lb_run_comparison comparison = synthetic_compare(&base, &now);
    assert_int_equal(comparison.common, 0);
    for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++)
        assert_non_null(strstr(comparison.notes, notes[i]));
    synthetic_free(&comparison, &base, &now);

    base = make_run(1000, 10, 2), now = make_run(1000, 10, 2);
    set_gpu(&base, "GPU-1", "Made-up GPU");
    set_gpu(&now, "GPU-2", "Other GPU");
    comparison = synthetic_compare(&base, &now);
    assert_string_equal(comparison.environments, "gpu");
    synthetic_free(&comparison, &base, &now);

    base = make_run(1000, 10, 2), now = make_run(1000, 10, 2);
    set_gpu(&base, "GPU-1", "Made-up GPU");
    set_gpu(&now, "GPU-2", "Made-up GPU"); /* another GPU, but of the same kind */
    base.rows[0].flags = now.rows[0].flags = now.rows[1].flags = LB_ANOMALY_DRIFT;
    comparison = synthetic_compare(&base, &now);
    assert_string_equal(comparison.notes, "");
    assert_string_equal(find(&comparison, 1)->note, "times drift in both runs");
    assert_string_equal(find(&comparison, 2)->note, "times drift in the new run");
    synthetic_free(&comparison, &base, &now);
}

/* Two interleaved runs of two implementations, the new one 10 % slower in each pair: so many cases
 * of so many blocks, of which the new side has some more. */
static struct lb_run_comparison compare_in_turn(int cases, int blocks, int more, bool interleaved,
                                                struct lb_run *base, struct lb_run *now)
{
    *base = synthetic_empty(), *now = synthetic_empty();
    json_object_set_new(base->header, "interleaved", json_string("x"));
    json_object_set_new(base->header, "side", json_string("cpu_ref"));
    json_object_set_new(now->header, "interleaved", json_string(interleaved ? "x" : "y"));
    for (int i = 1; i <= cases; i++)
        for (int s = 0; s < 2; s++) {
            char id[LB_CASE_ID_SIZE];
            snprintf(id, sizeof(id), "%s/T%d_B1_H64/f32/infer", s == 0 ? "cpu_ref" : "cpu_simd", i);
            struct lb_row row = synthetic_row(id, LB_VERDICT_OK, 0, 0, 0);
            for (int b = 0; b < blocks + s * more; b++) {
                const double ns[] = {(1000 + 10 * b) * (1 + s * (0.1 + 1e-3 * b))};
                lb_row_add_block(&row, ns, 1);
            }
            lb_row_summarize(&row);
            synthetic_add(s == 0 ? base : now, row);
        }
    return synthetic_compare(base, now);
}

/* A run of one stream of 5,000 calls, of which one in 500 takes ten times as long if it stalls. */
static struct lb_run make_stream(bool stalls)
{
    struct lb_run run = synthetic_empty();
    struct lb_row row =
        synthetic_row("cpu_ref/T1_B1_I64_H64/f32/infer/stream", LB_VERDICT_OK, 1000, 20, 250);
    for (size_t i = 0; stalls && i < row.samples; i += 500)
        row.samples_ns[i] *= 10;
    lb_row_summarize(&row);
    synthetic_add(&run, row);
    return run;
}

TEST(rare_long_calls_of_a_stream_are_slower_in_the_tail_alone)
{
    for (int stalls = 0; stalls < 2; stalls++) {
        struct lb_run base = make_stream(false), now = make_stream(stalls);
        struct lb_run_comparison comparison = synthetic_compare(&base, &now);
        assert_int_equal(comparison.count, 3);
        assert_int_equal(comparison.counts[LB_CHANGE_SLOWER], stalls);
        for (size_t i = 0; i < 3; i++) {
            const struct lb_pair *pair = &comparison.pairs[i];
            bool rarest = strstr(pair->id, "/stream p99.9") != NULL;
            assert_int_equal(pair->change == LB_CHANGE_SLOWER, stalls && rarest);
            assert_int_equal(rarest, pair->percentile == LB_P999);
        }
        synthetic_free(&comparison, &base, &now);
    }
}

/* A run of the stream whose calls take a little longer or not, one in 20 much longer by chance. */
static struct lb_run make_unsteady_stream(double factor, uint64_t seed)
{
    struct lb_run run = make_stream(false);
    for (size_t i = 0; i < run.rows[0].samples; i++)
        run.rows[0].samples_ns[i] *= i % 20 ? factor : 1 + 20 * draws_uniform(&seed);
    lb_row_summarize(&run.rows[0]);
    return run;
}

/* How closely the medians of two runs agree says nothing about the rare calls. */
TEST(percentiles_of_unchanged_streams_are_not_held_against_the_spread_of_medians)
{
    for (uint64_t i = 1; i <= 20; i++) {
        struct lb_run base = make_unsteady_stream(1, i), now = make_unsteady_stream(1, i + 20);
        struct lb_run further = make_unsteady_stream(1.0001, i + 40);
        struct lb_compare_options options = lb_compare_defaults();
        struct lb_run_comparison comparison;
        options.bases = &further;
        options.base_count = 1;
        assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
        assert_int_equal(comparison.unit, LB_UNIT_RUN);
        assert_int_equal(comparison.counts[LB_CHANGE_SLOWER] + comparison.counts[LB_CHANGE_FASTER],
                         0);
        lb_run_free(&further);
        synthetic_free(&comparison, &base, &now);
    }
}

/* Interleaved runs are matched without the implementation. n pairs reach p = 2^(1-n) at best: 7 do
 * not reach 1 %, 8 do, for three cases 10. */
TEST(interleaved_runs_are_compared_pair_by_pair)
{
    static const struct {
        int cases, blocks, more;
        enum lb_change change;
        const char *word, *advice; /* in the pair's note and in the comparison's */
    } known[] = {
        {1, 5, 0, LB_CHANGE_INCONCLUSIVE, "too few to tell: 5 pairs of blocks, at least 6 are", ""},
        {1, 6, 0, LB_CHANGE_INCONCLUSIVE, "chance",
         "6 pairs, one slowdown alone can't be told from chance"},
        {1, 7, 0, LB_CHANGE_INCONCLUSIVE, "chance", "--benchmark_repetitions=8 would do"},
        {1, 8, 0, LB_CHANGE_SLOWER, "", ""},
        {3, 9, 0, LB_CHANGE_SLOWER, "", "--benchmark_repetitions=10 would do"},
        {3, 10, 0, LB_CHANGE_SLOWER, "", ""},
        {1, 20, 1, LB_CHANGE_INCONCLUSIVE, "20 blocks against 21", ""},
    };
    struct lb_run base, now;
    struct lb_run_comparison comparison;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        comparison =
            compare_in_turn(known[i].cases, known[i].blocks, known[i].more, true, &base, &now);
        assert_int_equal(comparison.count, known[i].cases);
        assert_true(comparison.pairs[0].id[0] == 'T');
        assert_int_equal(comparison.pairs[0].change, known[i].change);
        assert_non_null(strstr(comparison.pairs[0].note, known[i].word));
        assert_non_null(strstr(comparison.notes, known[i].advice));
        assert_int_equal(comparison.notes[0] == '\0', known[i].advice[0] == '\0');
        synthetic_free(&comparison, &base, &now);
    }
    comparison = compare_in_turn(1, 10, 0, false, &base, &now);
    assert_int_equal(comparison.count, 2); /* two implementations: two cases */
    synthetic_free(&comparison, &base, &now);
}

/* Further runs of the base that differ by 5 % make a difference of 5 % none; those that agree leave
 * it a slowdown, also of single processes. Runs of one process are judged only by runs like them: a
 * single process scatters more than the median of several. A case that only the base itself has is
 * held against the spread that the other cases show. */
TEST(runs_are_held_against_the_spread_between_runs)
{
    static const struct {
        int base_processes, now_processes, further, further_cases;
        double spread, level;
        enum lb_change change; /* of both cases */
        const char *said;
    } known[] = {
        {12, 12, 0, 0, 0, 1050, LB_CHANGE_SLOWER, "which is not allowed for"},
        {12, 12, 4, 2, 50, 1050, LB_CHANGE_INCONCLUSIVE, "from 5 runs of the base"},
        {12, 12, 4, 2, 1, 1050, LB_CHANGE_SLOWER, "from 5 runs of the base"},
        {12, 12, 4, 1, 50, 1050, LB_CHANGE_INCONCLUSIVE, "from 5 runs of the base"},
        {1, 1, 0, 0, 0, 1100, LB_CHANGE_INCONCLUSIVE, ""},
        {1, 1, 6, 2, 2, 1100, LB_CHANGE_SLOWER, "from 7 runs of the base"},
        {12, 1, 6, 2, 2, 1100, LB_CHANGE_INCONCLUSIVE, "from 7 runs of the base"},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct lb_run base = make_run(1000, known[i].base_processes, 2), further[MOST_RUNS];
        struct lb_run now = make_run(known[i].level, known[i].now_processes, 2);
        struct lb_compare_options options = lb_compare_defaults();
        struct lb_run_comparison comparison;
        for (int r = 0; r < known[i].further; r++)
            further[r] = make_run(1000 + (r % 2 == 0 ? 1 : -1) * known[i].spread,
                                  known[i].base_processes, known[i].further_cases);
        options.bases = further;
        options.base_count = (size_t)known[i].further;
        assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
        assert_int_equal(comparison.counts[known[i].change], 2);
        assert_non_null(strstr(comparison.basis, known[i].said));
        assert_int_equal(comparison.spread.df, known[i].further);
        for (int r = 0; r < known[i].further; r++)
            lb_run_free(&further[r]);
        synthetic_free(&comparison, &base, &now);
    }
}

/* A case whose own runs differ by more than those of the others is held against its own spread,
 * also where there are two. A row without a time tells nothing. */
TEST(a_noisy_case_is_held_against_its_own_spread)
{
    for (int runs = 1; runs <= 4; runs += 3) {
        struct lb_run base = make_run(1000, 12, 20), now = make_run(1050, 12, 20), further[4];
        struct lb_compare_options options = lb_compare_defaults();
        struct lb_run_comparison comparison;
        for (int r = 0; r < runs; r++) {
            further[r] = make_run(1000, 12, 19);
            add_case(&further[r], 20, r % 2 == 0 ? 1050 : 950, 12, LB_VERDICT_OK);
        }
        further[0].rows[0].verdict = LB_VERDICT_WRONG;
        lb_row_drop_samples(&further[0].rows[0]);
        options.bases = further;
        options.base_count = (size_t)runs;
        assert_int_equal(lb_compare_runs(&base, &now, &options, &comparison, NULL), LB_OK);
        assert_int_equal(find(&comparison, 20)->change, LB_CHANGE_INCONCLUSIVE);
        double p = find(&comparison, 20)->shift.p, others = find(&comparison, 2)->shift.p;
        assert_true(p > 4 * others);
        for (int r = 0; r < runs; r++)
            lb_run_free(&further[r]);
        synthetic_free(&comparison, &base, &now);
    }
}

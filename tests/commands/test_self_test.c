/* --self-test: its conclusions from counts, and its advice on a machine. */
#include "tests/helpers/test.h"
#include "commands/self_test.h"

/* A machine that needs no advice. */
static struct lb_noise_check ready_machine(void)
{
    return (struct lb_noise_check){.resolution_ns = 20,
                                   .overhead_ns = 25,
                                   .longest_gap_us = 4,
                                   .load = 0.1,
                                   .cpus = 8,
                                   .governor = "performance",
                                   .gpus = -1};
}

/* A rate of so many comparisons, all as expected. */
static void fill_rate(struct lb_self_rate *rate, size_t comparisons, double seen, double named)
{
    *rate = (struct lb_self_rate){.comparisons = comparisons, .sweeps = comparisons / 20};
    rate->significant = comparisons / 20;
    for (size_t i = 0; i < comparisons; i++) {
        rate->estimates[i] = log(1.03);
        rate->least_seen[i] = log(seen) + 1e-5 * (double)i;
        rate->least_named[i] = i < 300 ? log(named) : (double)INFINITY;
    }
}

/* 400 comparisons in 20 sweeps and 100 planted slowdowns, all as expected. */
static struct lb_self_result *good_result(void)
{
    struct lb_self_result *result = calloc(1, sizeof(*result));
    assert_non_null(result);
    *result = (struct lb_self_result){.cases = 20, .margin = 0.02, .planted_ns = 1e6};
    result->noise = ready_machine();
    fill_rate(&result->shuffled, 400, 1.01, 1.03);
    fill_rate(&result->in_turn, 400, 1.01, 1.03);
    fill_rate(&result->planted, 100, 1.004, 1.025);
    result->planted.named = 100;
    return result;
}

/* Returns the verdict; the caller frees *words. */
static bool report(struct lb_self_result *result, char **words)
{
    size_t size;
    FILE *out = open_memstream(words, &size);
    bool good = lb_self_report(result, out);
    fclose(out);
    free(result);
    return good;
}

static bool verdict_with(size_t significant, size_t sweeps, size_t found)
{
    char *words;
    struct lb_self_result *result = good_result();
    result->shuffled.significant = significant;
    result->shuffled.sweeps_significant = sweeps;
    result->planted.named = found;
    bool good = report(result, &words);
    assert_int_equal(good, !strstr(words, "NOT "));
    free(words);
    return good;
}

TEST(verdict_turns_where_the_rates_do)
{
    assert_true(verdict_with(20, 0, 100));
    assert_true(verdict_with(8, 1, 95));
    assert_true(verdict_with(32, 1, 95));
    assert_false(verdict_with(7, 0, 100));
    assert_false(verdict_with(33, 0, 100));
    assert_false(verdict_with(20, 2, 100));
    assert_false(verdict_with(20, 0, 94));
}

TEST(report_says_what_was_counted)
{
    static const char *const lines[] = {
        "20 of 400 comparisons have p < 0.05: 5.0 %, 5 % expected",
        "100 of 100 comparisons: slower, and by more than 2 %",
        "3.00 % (median of the estimates)",
        "two runs, --processes 8          1.38 %         none, alone among 20 cases",
        "--ab                             0.49 %       2.50 %",
        "None: this machine is ready to measure.",
    };
    char *words;
    assert_true(report(good_result(), &words));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (!strstr(words, lines[i]))
            fail_msg("'%s' is not in:\n%s", lines[i], words);
    free(words);
}

TEST(runs_that_differ_one_after_the_other_are_warned_of)
{
    char *words;
    struct lb_self_result *result = good_result();
    result->in_turn.significant = 60;
    assert_true(report(result, &words));
    assert_non_null(strstr(words, "Runs that follow each other differ here"));
    assert_null(strstr(words, "ready to measure"));
    free(words);
}

TEST(each_trouble_has_its_advice_and_a_ready_machine_none)
{
    enum { TROUBLES = 10 };
    static const char *const words[TROUBLES + 1] = {"load of 6.0 on 8 CPUs",
                                                    "lost 5.0 % of its time",
                                                    "hypervisor kept 2.0 %",
                                                    "governor is 'powersave'",
                                                    "Turbo clocks are on",
                                                    "control group was throttled in 10.0 %",
                                                    "throttled for heat 7 times",
                                                    "cases below 50 us need --timing batched",
                                                    "2 other processes compute",
                                                    "1 GPUs are held back",
                                                    ""};
    struct lb_noise_check machines[TROUBLES + 1]; /* the last one is ready */
    for (int i = 0; i <= TROUBLES; i++)
        machines[i] = ready_machine();
    machines[0].load = 6;
    machines[1].stolen = 0.05;
    machines[2].steal = 0.02;
    strcpy(machines[3].governor, "powersave");
    machines[4].turbo = true;
    machines[5].cgroup_throttled = 0.1;
    machines[6].thermal_throttles = 7;
    machines[7].resolution_ns = 500;
    machines[8].gpu_tenants = 2;
    machines[9].gpus_throttled = 1;
    for (int i = 0; i <= TROUBLES; i++) {
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        assert_int_equal(lb_noise_check_advise(&machines[i], out), i < TROUBLES);
        fclose(out);
        if (!strstr(text, words[i]))
            fail_msg("'%s' does not say '%s'", text, words[i]);
        free(text);
    }
}

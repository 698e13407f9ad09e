/* The table of options: every row can be used, and is refused where it has no effect.
 * test_usage.py checks that --help has it. */
#include "cli/options.h"
#include "host/cpu_units.h"
#include "tests/helpers/test.h"

/* Whether the command line word of that name leads to the row called owner. */
static bool leads_to(const char *name, const char *owner)
{
    const char *value;
    const struct lb_option *found = lb_option_match(name, &value);
    return found && strcmp(found->name, owner) == 0;
}

/* What is wrong with a row; NULL: nothing. */
static const char *complaint(const struct lb_option *row)
{
    size_t length = row->help ? strlen(row->help) : 0;
    if (length == 0)
        return "no help";
    if (row->help[length - 1] != '.')
        return "help that is no sentence";
    if (!leads_to(row->name, row->name) ||
        (row->short_name && !leads_to(row->short_name, row->name)))
        return "another row takes its name";
    if (!row->set)
        return "no setter";
    if (!row->argument != !row->placeholder)
        return "argument and placeholder don't agree";
    if (!row->commands)
        return "a setting without a command";
    return NULL;
}

TEST(every_row_is_complete_and_reachable)
{
    for (size_t i = 0; i < lb_option_count; i++) {
        const char *wrong = complaint(&lb_option_table[i]);
        if (wrong)
            fail_msg("%s: %s", lb_option_table[i].name, wrong);
    }
}

TEST(every_command_has_one_row)
{
    for (int c = LB_CMD_HELP; c <= LB_CMD_HISTORY; c <<= 1) {
        size_t rows = 0;
        for (size_t i = 0; i < lb_option_count; i++)
            rows += (int)lb_option_command(&lb_option_table[i]) == c;
        assert_int_equal(rows, 1);
        assert_string_not_equal(lb_command_name((enum lb_command)c), "");
    }
}

/* On a command line, after and before the command, and in the message the commands to use. */
TEST(a_setting_is_refused_where_it_has_no_effect)
{
    for (size_t i = 0; i < lb_option_count; i++) {
        const struct lb_option *row = &lb_option_table[i];
        for (int c = LB_CMD_HELP; c <= LB_CMD_HISTORY; c <<= 1) {
            struct lb_error err = {""};
            const char *command = lb_command_name((enum lb_command)c);
            bool informs = c == LB_CMD_HELP || c == LB_CMD_VERSION;
            bool works =
                informs || row->group == LB_GROUP_COMMANDS || (row->commands & (unsigned)c);
            enum lb_status st = lb_check_effect(row, row->name, (enum lb_command)c, &err);
            assert_int_equal(st, works ? LB_OK : LB_INVALID);
            for (int other = LB_CMD_HELP; !works && other <= LB_CMD_HISTORY; other <<= 1)
                if (row->commands & (unsigned)other)
                    assert_non_null(strstr(err.text, lb_command_name((enum lb_command)other)));
            assert_true(works || (strstr(err.text, row->name) && strstr(err.text, command)));
        }
    }
}

static enum lb_status read_line(const char *line, struct lb_options *options, struct lb_error *err)
{
    static char words[512];
    static char *argv[32];
    int argc = 0;
    snprintf(words, sizeof(words), "bench-lstm %s", line);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return lb_command_line_read(argc, argv, options, err);
}

TEST(values_are_read_in_every_way_of_writing_them)
{
    static const char *const lines[] = {
        "--sweep -T64 -B 2 -H=4 --out here --hang-limit 0 --benchmark_repetitions=3",
        "-o here --hang-limit=0 -T 64 --benchmark_repetitions=3 -B2 -H4 --sweep",
        "-ohere --hang-limit 5 --hang-limit 0 -T64 -B2 -H4 --benchmark_repetitions=3 --sweep",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        struct lb_options options;
        struct lb_error err = {""};
        if (read_line(lines[i], &options, &err) != LB_OK)
            fail_msg("%s: %s", lines[i], err.text);
        assert_int_equal(options.command, LB_CMD_SWEEP);
        assert_string_equal(options.out, "here");
        assert_int_equal(options.hang_limit, 0);
        assert_int_equal(options.repetitions, 3);
        assert_int_equal(options.selection.axes[LB_AXIS_SEQ_LEN].values[0], 64);
        assert_int_equal(options.selection.axes[LB_AXIS_BATCH].values[0], 2);
        assert_int_equal(options.selection.axes[LB_AXIS_HIDDEN].values[0], 4);
        assert_true(lb_option_given(&options, "--out"));
        assert_false(lb_option_given(&options, "--memory"));
        assert_false(options.quick);
        lb_options_free(&options);
    }
}

static enum lb_cpu_unit best_unit; /* that the machine is said to have */

bool __wrap_lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype);
bool __wrap_lb_cpu_has(enum lb_cpu_unit unit, enum lb_dtype dtype)
{
    (void)dtype;
    return unit <= best_unit;
}

/* How many dtypes the quick grid of that command line has on a machine with that unit; 0: the
 * default, f32 alone. */
static size_t quick_dtypes(const char *line, enum lb_cpu_unit unit)
{
    struct lb_options options;
    struct lb_error err = {""};
    best_unit = unit;
    if (read_line(line, &options, &err) != LB_OK)
        fail_msg("%s: %s", line, err.text);
    assert_true(options.quick);
    size_t count = options.selection.axes[LB_AXIS_DTYPE].count;
    lb_options_free(&options);
    return count;
}

/* Machines of a cluster would otherwise cut different plans into shards. */
TEST(the_quick_grid_of_a_shard_is_the_same_on_every_machine)
{
    assert_int_equal(quick_dtypes("--sweep", LB_CPU_AVX512BF16), 2);
    assert_int_equal(quick_dtypes("--sweep --shard 1/2", LB_CPU_AVX512BF16), 0);
    assert_int_equal(quick_dtypes("--sweep --shard 1/2", LB_CPU_AVX2), 0);
    assert_int_equal(quick_dtypes("--list --shard 1/2", LB_CPU_AVX512BF16), 0);
    assert_int_equal(quick_dtypes("--sweep --shard 1/2 --dtype f64,bf16,f16", LB_CPU_AVX2), 3);
}

/* Several options share a setter and differ in the field that it sets. */
TEST(every_plain_option_sets_its_own_field)
{
    struct lb_options o;
    struct lb_error err = {""};
    assert_int_equal(read_line("--sweep --out a --baseline b --tuned c --benchmark_out=d --quick "
                               "--case-time 1 --time-budget 2 --call-limit 3 --hang-limit 4 "
                               "--processes 5 --device 6 --benchmark_repetitions=7",
                               &o, &err),
                     LB_OK);
    assert_string_equal(o.out, "a");
    assert_string_equal(o.baseline, "b");
    assert_string_equal(o.given_files.tuned, "c");
    assert_string_equal(o.benchmark_out, "d");
    assert_true(o.quick && !o.kernels && !o.given_files.tune && !o.strict);
    assert_true(o.case_time_s == 1 && o.time_budget_s == 2 && o.call_limit_s == 3);
    assert_int_equal(o.hang_limit, 4);
    assert_int_equal(o.processes, 5);
    assert_int_equal(o.device, 6);
    assert_int_equal(o.repetitions, 7);
    lb_options_free(&o);
    assert_int_equal(read_line("--profile x --kernels --profile-calls 8", &o, &err), LB_OK);
    assert_true(!o.quick && o.kernels && !o.given_files.tune && !o.strict);
    assert_int_equal(o.profile_calls, 8);
    lb_options_free(&o);
    assert_int_equal(read_line("--compare x y --strict --confirm z", &o, &err), LB_OK);
    assert_string_equal(o.confirm, "z");
    assert_true(!o.quick && !o.kernels && !o.given_files.tune && o.strict);
    lb_options_free(&o);
    assert_int_equal(read_line("--list --device-model h100 --tune", &o, &err), LB_OK);
    assert_string_equal(o.device_model, "h100");
    assert_true(!o.kernels && o.given_files.tune && !o.strict);
    lb_options_free(&o);
}

/* What the program has a row for is read as any option; --resume and --ab take what they heed. */
TEST(settings_of_google_benchmark_go_where_they_are_heeded)
{
    static const struct {
        const char *line;
        enum lb_status st;
        bool json;
        size_t handed_on;
    } cases[] = {
        {"--sweep --benchmark_format=json", LB_OK, true, 0},
        {"--sweep --benchmark_format=console", LB_OK, false, 0},
        {"--sweep --benchmark_out_format=json", LB_OK, false, 0},
        {"--sweep --benchmark_format=json --benchmark_out_format=json", LB_OK, true, 0},
        {"--sweep --benchmark_out_format=console", LB_INVALID, false, 0},
        {"--sweep --benchmark_filter=x --benchmark_repetitions=2", LB_OK, false, 0},
        {"--sweep --benchmark_enable_random_interleaving=true", LB_OK, false, 1},
        {"--sweep --benchmark_enable_random_interleaving=off", LB_OK, false, 1},
        {"--resume x --benchmark_format=json", LB_OK, true, 0},
        {"--resume x --benchmark_filter=x", LB_INVALID, false, 0},
        {"--ab x y --benchmark_repetitions=2", LB_OK, false, 0},
        {"--ab x y --benchmark_enable_random_interleaving=true", LB_INVALID, false, 0},
        {"--ab x y --benchmark_filter=x", LB_INVALID, false, 0},
        {"--ab x y --benchmark_out=x", LB_INVALID, false, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_options options;
        struct lb_error err = {""};
        assert_int_equal(read_line(cases[i].line, &options, &err), cases[i].st);
        assert_int_equal(options.benchmark_json, cases[i].json);
        assert_int_equal(options.benchmark_count, cases[i].handed_on);
        assert_int_equal(options.shuffled,
                         options.benchmark_count > 0 && strstr(cases[i].line, "=true"));
        lb_options_free(&options);
    }
}

TEST(words_behind_the_first_go_to_their_command)
{
    struct lb_options options;
    struct lb_error err = {""};
    assert_int_equal(read_line("--report base old new -o page.html", &options, &err), LB_OK);
    assert_int_equal(options.word_count, 3);
    assert_string_equal(options.words[0], "base");
    assert_string_equal(options.words[2], "new");
    lb_options_free(&options);
    assert_int_equal(read_line("--compare=base new --strict", &options, &err), LB_OK);
    assert_int_equal(options.word_count, 2);
    assert_string_equal(options.words[0], "base");
    assert_string_equal(options.words[1], "new");
    assert_true(options.strict);
    lb_options_free(&options);
    assert_int_equal(read_line("--compare base --strict", &options, &err), LB_INVALID);
    assert_int_equal(read_line("--strict=yes --compare a b", &options, &err), LB_INVALID);
}

/* The words of an axis are listed twice, where they are parsed and in the help: they must agree. */
TEST(the_help_of_an_axis_lists_its_words)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        const char *value, *const *words = lb_axis_table[i].words;
        const struct lb_option *row = lb_option_match(lb_axis_table[i].flag, &value);
        assert_non_null(row);
        for (size_t k = 0; words && words[k]; k++)
            assert_non_null(strstr(row->help, words[k]));
    }
}

/* The options of the command line: their setters, and below them the table. */
#include "cli/options.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/builtin_cases.h"
#include "cli/shard.h"
#include "record/record.h"
#include "reference/loss_scale.h"
#include "support/framework_plugins.h"

/* The whole of text as a number; NaN when it is none. */
static double number_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return end == text || *end ? (double)NAN : value;
}

/* A number between the option's min and max. */
static enum lb_status parse_count(const struct lb_option *option, const char *text, int64_t *count,
                                  struct lb_error *err)
{
    if (lb_parse_int(text, strlen(text), option->min, count, NULL) != LB_OK || *count > option->max)
        return lb_fail(err, LB_INVALID, "%s%s%.40s: allowed are %d to %d", option->name,
                       option->joined ? "" : " ", text, option->min, option->max);
    return LB_OK;
}

/* Appends to an array of strings. LB_OOM leaves it as it is. */
static enum lb_status append(const char ***array, size_t *count, const char *text,
                             struct lb_error *err)
{
    const char **grown = realloc(*array, (*count + 1) * sizeof(*grown));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    *array = grown;
    grown[(*count)++] = text;
    return LB_OK;
}

/* The field of *options that a plain option sets. */
static void *field_of(struct lb_options *options, const struct lb_option *option)
{
    return (char *)options + option->field;
}

/* Sets a const char *. */
static enum lb_status set_text(struct lb_options *options, const struct lb_option *option,
                               const struct lb_option_words *words, struct lb_error *err)
{
    const char **text = field_of(options, option);
    (void)err;
    *text = words->value;
    return LB_OK;
}

/* Sets a bool. */
static enum lb_status set_true(struct lb_options *options, const struct lb_option *option,
                               const struct lb_option_words *words, struct lb_error *err)
{
    bool *flag = field_of(options, option);
    (void)words, (void)err;
    *flag = true;
    return LB_OK;
}

/* Sets a double. */
static enum lb_status set_seconds(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    double *seconds = field_of(options, option), value = number_of(words->value);
    if (!(value > 0 && value <= 1e8))
        return lb_fail(err, LB_INVALID, "%s %s: must be a number of seconds above 0, up to 1e8",
                       option->name, words->value);
    *seconds = value;
    return LB_OK;
}

/* Sets an int between min and max. */
static enum lb_status set_int(struct lb_options *options, const struct lb_option *option,
                              const struct lb_option_words *words, struct lb_error *err)
{
    int *number = field_of(options, option);
    int64_t value;
    enum lb_status st = parse_count(option, words->value, &value, err);
    if (st == LB_OK)
        *number = (int)value;
    return st;
}

/* --help and --version win over other commands, wherever they stand on the command line. */
static enum lb_status set_command(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    bool informs = option->command == LB_CMD_HELP || option->command == LB_CMD_VERSION;
    bool informed = options->command == LB_CMD_HELP || options->command == LB_CMD_VERSION;
    (void)words;
    if (options->command == LB_CMD_NONE || informs)
        options->command = option->command;
    else if (options->command != option->command && !informed)
        return lb_fail(err, LB_INVALID, "%s: another command was given already; give one at a time",
                       option->name);
    else if (option->argument && !informed)
        return lb_fail(err, LB_INVALID, "%s: given twice; give it once", option->name);
    return LB_OK;
}

static enum lb_status set_subject(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    options->subject = words->value;
    if (words->more_count > 0)
        options->run = words->more[0];
    return set_command(options, option, words, err);
}

/* A case, or the name of criteria and a layer. */
static enum lb_status set_explain(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    if (words->more_count > 1)
        return lb_fail(err, LB_INVALID,
                       "%s %s: at most %s: '%s' is one word too many; put a layer "
                       "into quotes",
                       option->name, words->value, option->argument, words->more[1]);
    return set_subject(options, option, words, err);
}

static enum lb_status set_compare(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    size_t last = words->more_count - 1;
    if (words->more_count == 0)
        return lb_fail(err, LB_INVALID, "%s: it takes %s", option->name, option->argument);
    for (size_t i = 0; i < words->more_count; i++)
        if (!words->more[i][0])
            return lb_fail(err, LB_INVALID, "%s: a run has an empty name", option->name);
    options->subject = words->value;
    options->runs = words->more;
    options->run_count = last;
    options->run = words->more[last];
    return set_command(options, option, words, err);
}

static enum lb_status set_report(struct lb_options *options, const struct lb_option *option,
                                 const struct lb_option_words *words, struct lb_error *err)
{
    options->run = words->value;
    options->runs = words->more;
    options->run_count = words->more_count;
    return set_command(options, option, words, err);
}

static enum lb_status set_shard(struct lb_options *options, const struct lb_option *option,
                                const struct lb_option_words *words, struct lb_error *err)
{
    int index, count;
    (void)option;
    options->shard = words->value;
    return lb_shard_parse(words->value, &index, &count, err);
}

static enum lb_status set_devices(struct lb_options *options, const struct lb_option *option,
                                  const struct lb_option_words *words, struct lb_error *err)
{
    int devices[LB_MAX_DEVICES] = {0};
    size_t count;
    (void)option;
    options->devices = words->value;
    enum lb_status st = lb_devices_parse(words->value, devices, &count, err);
    if (st == LB_OK)
        options->device = devices[0];
    return st;
}

static enum lb_status set_by(struct lb_options *options, const struct lb_option *option,
                             const struct lb_option_words *words, struct lb_error *err)
{
    return lb_by_parse(words->value, &options->by)
               ? LB_OK
               : lb_fail(err, LB_INVALID, "%s %s: it takes %s", option->name, words->value,
                         option->argument);
}

static enum lb_status set_merge(struct lb_options *options, const struct lb_option *option,
                                const struct lb_option_words *words, struct lb_error *err)
{
    if (words->more_count == 0)
        return lb_fail(err, LB_INVALID, "%s: it takes %s", option->name, option->argument);
    options->subject = words->value;
    options->runs = words->more;
    options->run_count = words->more_count;
    return set_command(options, option, words, err);
}

/* What lb_selection_take knows: axes, implementations, expressions. */
static enum lb_status set_selection(struct lb_options *options, const struct lb_option *option,
                                    const struct lb_option_words *words, struct lb_error *err)
{
    return lb_selection_take(&options->selection, option->name, words->value, err);
}

/* The same, for options that say which sizes to run. */
static enum lb_status set_sizes(struct lb_options *options, const struct lb_option *option,
                                const struct lb_option_words *words, struct lb_error *err)
{
    options->sized = true;
    return set_selection(options, option, words, err);
}

static enum lb_status set_cases(struct lb_options *options, const struct lb_option *option,
                                const struct lb_option_words *words, struct lb_error *err)
{
    (void)option;
    options->sized = true;
    return lb_take_cases(&options->selection, words->value, false, err);
}

static enum lb_status set_profile_calls(struct lb_options *options, const struct lb_option *option,
                                        const struct lb_option_words *words, struct lb_error *err)
{
    int64_t calls;
    enum lb_status st = parse_count(option, words->value, &calls, err);
    if (st == LB_OK)
        options->profile_calls = (size_t)calls;
    return st;
}

static enum lb_status set_seed(struct lb_options *options, const struct lb_option *option,
                               const struct lb_option_words *words, struct lb_error *err)
{
    int64_t seed;
    struct lb_error why;
    if (lb_parse_int(words->value, strlen(words->value), 0, &seed, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "%s: %.300s", option->name, why.text);
    options->seed = (uint64_t)seed;
    return LB_OK;
}

static enum lb_status set_memory(struct lb_options *options, const struct lb_option *option,
                                 const struct lb_option_words *words, struct lb_error *err)
{
    static const char units[] = "KMGT";
    const char *text = words->value;
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool whole = end != text && (!*end || (unit && !end[1]));
    double bytes = unit ? ldexp(value, 10 * (int)(unit - units + 1)) : value;
    if (!whole || !(bytes >= 1 && bytes <= 0x1p60))
        return lb_fail(err, LB_INVALID, "%s %s: must be a number of bytes, such as 512M or 4G",
                       option->name, text);
    options->memory_bytes = bytes;
    return LB_OK;
}

static enum lb_status set_plugin(struct lb_options *options, const struct lb_option *option,
                                 const struct lb_option_words *words, struct lb_error *err)
{
    (void)option;
    return append(&options->plugins, &options->plugin_count, words->value, err);
}

/* The plug-in of one framework, or its name among those that have none. */
static enum lb_status add_framework(struct lb_options *options, const char *name,
                                    struct lb_error *err)
{
    char path[4400];
    if (!lb_framework_plugin(name, path, sizeof(path)))
        return append(&options->absent, &options->absent_count, name, err);
    char *copy = strdup(path);
    enum lb_status st = copy ? append(&options->paths, &options->path_count, copy, err)
                             : lb_fail(err, LB_OOM, "out of memory");
    if (st != LB_OK) {
        free(copy);
        return st;
    }
    return append(&options->plugins, &options->plugin_count, copy, err);
}

static enum lb_status set_framework(struct lb_options *options, const struct lb_option *option,
                                    const struct lb_option_words *words, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    (void)option;
    for (const char *at = words->value; st == LB_OK; at++) {
        const char *name;
        size_t length = strcspn(at, ",");
        st = lb_framework_find(at, length, &name, err);
        if (st == LB_OK)
            st = add_framework(options, name, err);
        at += length;
        if (!*at)
            break;
    }
    return st;
}

static enum lb_status set_loss_scale(struct lb_options *options, const struct lb_option *option,
                                     const struct lb_option_words *words, struct lb_error *err)
{
    static const char dynamic[] = "dynamic";
    size_t length = strlen(dynamic);
    bool is_dynamic = strncmp(words->value, dynamic, length) == 0;
    const char *start = is_dynamic ? words->value + length : words->value;
    double scale = is_dynamic && !*start ? LB_LOSS_SCALE_START
                                         : number_of(start + (is_dynamic && *start == ':'));
    bool malformed = is_dynamic && *start && *start != ':';
    if (malformed || !(scale >= (is_dynamic ? 1 : 0)) || !(scale > 0) || !(scale < 0x1p128))
        return lb_fail(err, LB_INVALID,
                       "%s %s: must be a number above 0, dynamic, or dynamic:START with a START of "
                       "1 or more",
                       option->name, words->value);
    options->loss_scale = scale;
    options->dynamic_loss_scale = is_dynamic;
    return LB_OK;
}

/* Verdicts with commas between them, as bits. */
static enum lb_status set_verdicts(struct lb_options *options, const struct lb_option *option,
                                   const struct lb_option_words *words, struct lb_error *err)
{
    unsigned *verdicts = field_of(options, option);
    for (const char *at = words->value;; at++) {
        size_t length = strcspn(at, ",");
        int verdict = LB_VERDICT_OK + 1;
        while (verdict < LB_VERDICT_COUNT &&
               (strlen(lb_verdict_name((enum lb_verdict)verdict)) != length ||
                strncmp(lb_verdict_name((enum lb_verdict)verdict), at, length) != 0))
            verdict++;
        if (verdict == LB_VERDICT_COUNT)
            return lb_fail(err, LB_INVALID,
                           "%s %.*s: the verdicts are wrong, unsupported, absent, oom, timeout, "
                           "crash, error and skipped",
                           option->name, (int)length, at);
        *verdicts |= 1U << verdict;
        at += length;
        if (!*at)
            return LB_OK;
    }
}

static enum lb_status set_margin(struct lb_options *options, const struct lb_option *option,
                                 const struct lb_option_words *words, struct lb_error *err)
{
    char *end;
    double percent = strtod(words->value, &end);
    if (end == words->value || (*end && strcmp(end, "%") != 0) || !(percent > 0 && percent <= 500))
        return lb_fail(err, LB_INVALID, "%s %s: must be a percentage above 0, up to 500",
                       option->name, words->value);
    options->margin = percent / 100;
    return LB_OK;
}

static enum lb_status set_format(struct lb_options *options, const struct lb_option *option,
                                 const struct lb_option_words *words, struct lb_error *err)
{
    static const char *const formats[] = {"table", "markdown", "junit", "json", NULL};
    options->format = words->value;
    for (size_t i = 0; formats[i]; i++)
        if (strcmp(formats[i], words->value) == 0)
            return LB_OK;
    return lb_fail(err, LB_INVALID, "%s %s: allowed are %s", option->name, words->value,
                   option->argument);
}

/* Whether a format of Google Benchmark is JSON; LB_INVALID when it is neither that nor console. */
static enum lb_status parse_benchmark_format(const struct lb_option_words *words, bool *json,
                                             struct lb_error *err)
{
    *json = strcmp(words->value, "json") == 0;
    if (!*json && strcmp(words->value, "console") != 0)
        return lb_fail(err, LB_INVALID, "%s: allowed are json and console; for CSV see --export",
                       words->word);
    return LB_OK;
}

static enum lb_status set_benchmark_format(struct lb_options *options,
                                           const struct lb_option *option,
                                           const struct lb_option_words *words,
                                           struct lb_error *err)
{
    (void)option;
    return parse_benchmark_format(words, &options->benchmark_json, err);
}

/* The file of --benchmark_out is always JSON, so this one is checked and changes nothing. */
static enum lb_status set_benchmark_out_format(struct lb_options *options,
                                               const struct lb_option *option,
                                               const struct lb_option_words *words,
                                               struct lb_error *err)
{
    bool json;
    (void)options, (void)option;
    return parse_benchmark_format(words, &json, err);
}

/* Hands the whole word on. Options whose work the program does itself are refused: it takes the
 * samples, and warms up before them; to Google Benchmark a case is one iteration. */
static enum lb_status set_benchmark(struct lb_options *options, const struct lb_option *option,
                                    const struct lb_option_words *words, struct lb_error *err)
{
    static const struct {
        const char *name, *instead;
    } refused[] = {
        {"--benchmark_list_tests", "use --list"},
        {"--benchmark_min_time", "use --case-time, the longest time that a case is sampled"},
        {"--benchmark_min_warmup_time", "each case is warmed up until its calls get no faster"},
    };
    (void)option;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (strlen(refused[i].name) == strcspn(words->word, "=") &&
            strncmp(words->word, refused[i].name, strlen(refused[i].name)) == 0)
            return lb_fail(err, LB_INVALID, "%s: %s", words->word, refused[i].instead);
    return append(&options->benchmark, &options->benchmark_count, words->word, err);
}

static enum lb_status set_benchmark_repetitions(struct lb_options *options,
                                                const struct lb_option *option,
                                                const struct lb_option_words *words,
                                                struct lb_error *err)
{
    int64_t repetitions;
    enum lb_status st = parse_count(option, words->value, &repetitions, err);
    if (st != LB_OK)
        return st;
    options->repetitions = (int)repetitions;
    return set_benchmark(options, option, words, err);
}

static enum lb_status set_benchmark_filter(struct lb_options *options,
                                           const struct lb_option *option,
                                           const struct lb_option_words *words,
                                           struct lb_error *err)
{
    options->benchmark_filter = true;
    return set_benchmark(options, option, words, err);
}

/* Commands, and groups of them that options have an effect on. */
enum {
    SWEEP = 1 << LB_CMD_SWEEP,
    RESUME = 1 << LB_CMD_RESUME,
    LIST = 1 << LB_CMD_LIST,
    PLAN = 1 << LB_CMD_PLAN,
    EXPLAIN = 1 << LB_CMD_EXPLAIN,
    PROFILE = 1 << LB_CMD_PROFILE,
    CEILINGS = 1 << LB_CMD_CEILINGS,
    EXPORT = 1 << LB_CMD_EXPORT,
    PLOT = 1 << LB_CMD_PLOT,
    REPORT = 1 << LB_CMD_REPORT,
    COMPARE = 1 << LB_CMD_COMPARE,
    AB = 1 << LB_CMD_AB,
    SELF_TEST = 1 << LB_CMD_SELF_TEST,
    CROSS_CHECK = 1 << LB_CMD_CROSS_CHECK,
    HISTORY = 1 << LB_CMD_HISTORY,

    SWEEPS = SWEEP | PLAN, /* --plan takes the command line of the sweep that it plans */
    GRIDS = SWEEPS | LIST | AB | SELF_TEST | CROSS_CHECK,
    GIVES = SWEEPS | LIST | AB | CROSS_CHECK, /* run on weights and inputs from files */
    WORKERS = GRIDS | RESUME | EXPLAIN | CEILINGS,
    LOADS = GRIDS | RESUME | EXPLAIN | PROFILE
};

/* Joined options come after the longer ones that begin like them: the first match counts. */
const struct lb_option lb_option_table[] = {
    {.name = "--sweep",
     .command = LB_CMD_SWEEP,
     .set = set_command,
     .help = "Runs the cases; without sizes, those of the quick grid."},
    {.name = "--resume",
     .argument = "the folder of a run",
     .placeholder = "DIR",
     .command = LB_CMD_RESUME,
     .set = set_subject,
     .help = "Continues a sweep that was interrupted, with the settings it began with; only "
             "--time-budget, --hang-limit and --plugin have to be given again, and --tuned when "
             "the sweep tunes into a file."},
    {.name = "--list",
     .command = LB_CMD_LIST,
     .set = set_command,
     .help = "Lists the implementations and the cases, and says which of them can run here."},
    {.name = "--plan",
     .command = LB_CMD_PLAN,
     .set = set_command,
     .help = "Says what --sweep would run with the same settings: how many cases, how much memory "
             "they need and about how long they take."},
    {.name = "--explain",
     .argument = "a case such as T25_B16_I512_H512/f32/train, or a framework and a layer",
     .placeholder = "CASE",
     .extra_words = LB_WORDS_MANY,
     .command = LB_CMD_EXPLAIN,
     .set = set_explain,
     .help = "Says why a case can or can't run, and how much it computes, moves and needs. Given "
             "keras 'units=512, activation=relu' (also keras2, tensorflow1, pytorch, pytorch_cpu), "
             "says whether the framework runs its fast kernel for that layer."},
    {.name = "--export",
     .argument = "a format and a run",
     .placeholder = "FORMAT[,...] RUN",
     .extra_words = 1,
     .command = LB_CMD_EXPORT,
     .set = set_subject,
     .help = "Prints a run in another format: gbench, gbench-repetitions, csv, bmf, github, "
             "hyperfine, junit, markdown. Several are written into the run's folder."},
    {.name = "--profile",
     .argument = "a case",
     .placeholder = "CASE",
     .command = LB_CMD_PROFILE,
     .set = set_subject,
     .help = "Checks one case in this process and calls it a few times, for a profiler."},
    {.name = "--plot",
     .argument = "a kind of picture and a run",
     .placeholder = "KIND RUN",
     .extra_words = 1,
     .command = LB_CMD_PLOT,
     .set = set_subject,
     .help = "Draws one kind of picture of a run: speedup-b, speedup-t, time-h, time-b, time-t, "
             "roofline, training, precision, error, memory."},
    {.name = "--report",
     .argument = "a run",
     .placeholder = "[BASE...] RUN -o FILE.html",
     .extra_words = LB_WORDS_MANY,
     .command = LB_CMD_REPORT,
     .set = set_report,
     .help =
         "Writes one HTML page: which implementation wins where, what changed, pictures and all "
         "cases."},
    {.name = "--compare",
     .argument = "two runs, the base first",
     .placeholder = "BASE [BASE...] NEW",
     .extra_words = LB_WORDS_MANY,
     .command = LB_CMD_COMPARE,
     .set = set_compare,
     .help = "Says of each case whether it is slower, faster, the same or inconclusive, the worst "
             "first. Several runs of the base show how much runs differ by chance, and the "
             "verdicts allow for that."},
    {.name = "--merge",
     .argument = "a folder for the result and the runs to merge",
     .placeholder = "OUT RUN...",
     .extra_words = LB_WORDS_MANY,
     .command = LB_CMD_MERGE,
     .set = set_merge,
     .help = "Merges runs, such as the shards of a sweep, into one run in the folder OUT; RUN may "
             "also be a folder that holds runs. Names the nodes that were slow."},
    {.name = "--ab",
     .argument = "two implementations or plug-ins",
     .placeholder = "A B",
     .extra_words = 1,
     .command = LB_CMD_AB,
     .set = set_subject,
     .help = "Compares two implementations or plug-ins in one process, in turn."},
    {.name = "--history",
     .argument = "a folder of runs",
     .placeholder = "DIR",
     .command = LB_CMD_HISTORY,
     .set = set_subject,
     .help = "Finds change points over all runs in the folder."},
    {.name = "--self-test",
     .command = LB_CMD_SELF_TEST,
     .set = set_command,
     .help = "Measures how far the verdicts of a comparison can be trusted on this machine, and "
             "whether the machine is quiet enough, and keeps how much runs differ for --compare; "
             "takes about 20 minutes."},
    {.name = "--cross-check",
     .command = LB_CMD_CROSS_CHECK,
     .set = set_command,
     .help = "Runs each problem once on every implementation and precision, and prints the largest "
             "difference between any two of them; with --weights and --inputs, on a trained layer "
             "and its data."},
    {.name = "--ceilings",
     .command = LB_CMD_CEILINGS,
     .set = set_command,
     .help = "Measures the highest rates and lowest latencies that the CPUs reach, and the GPU "
             "where there is one; later runs take their lower bounds from them."},
    {.name = "--help",
     .short_name = "-h",
     .command = LB_CMD_HELP,
     .set = set_command,
     .help = "Prints this text."},
    {.name = "--version",
     .command = LB_CMD_VERSION,
     .set = set_command,
     .help = "Prints the versions of the program and of its libraries."},

    {.name = "-T",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_sizes,
     .help = "Sequence lengths."},
    {.name = "-B",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_sizes,
     .help = "Batch sizes."},
    {.name = "-I",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Input sizes (default: the hidden size)."},
    {.name = "-H",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_sizes,
     .help = "Hidden sizes."},
    {.name = "-L",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Numbers of layers (1)."},
    {.name = "-D",
     .argument = "1, 2 or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Numbers of directions: 1, 2 (1)."},
    {.name = "--dtype",
     .argument = "dtypes",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Number formats of the tensors: f64, f32, f16, bf16 (f32)."},
    {.name = "--pass",
     .argument = "passes",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "What is timed: infer, forward, backward, train (infer)."},
    {.name = "--math",
     .argument = "math modes",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Arithmetic of the matrix products: ieee, tf32, half (ieee)."},
    {.name = "--ragged",
     .argument = "full, ragged or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Whether all sequences of a batch have length T: full, ragged (full)."},
    {.name = "--act",
     .argument = "tanh, relu or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Activation of the cell: tanh, relu (tanh)."},
    {.name = "--cell",
     .argument = "cells",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Cells: standard, layernorm, recurrent-dropout, projection, peephole, residual "
             "(standard); harness/api/problem.h has their equations."},
    {.name = "-P",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Sizes of h in the cell projection (a quarter of the hidden size)."},
    {.name = "--launch",
     .argument = "stream, graph or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "How GPU work is submitted: stream, graph (stream)."},
    {.name = "--cache",
     .argument = "hot, cold or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "State of the caches before each call: hot, cold (hot)."},
    {.name = "--timing",
     .argument = "isolated, batched or both",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "One call per sample, or many calls in a row: isolated, batched (isolated)."},
    {.name = "--threads",
     .argument = "numbers",
     .placeholder = "LIST",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Numbers of CPU threads (1)."},
    {.name = "--impl",
     .argument = "implementations",
     .placeholder = "NAME[:VARIANT],...",
     .group = LB_GROUP_CASES,
     .commands = SWEEPS | LIST | SELF_TEST | CROSS_CHECK,
     .set = set_selection,
     .help = "Implementations, with all their variants where none is named (default: all)."},
    {.name = "--where",
     .argument = "an expression",
     .placeholder = "EXPR",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_selection,
     .help = "Keeps the cases for which the expression over T B I H P L D holds: 'T*B<=65536'."},
    {.name = "--case",
     .argument = "a case",
     .placeholder = "TEXT",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_sizes,
     .help = "One case: T25_B16_I512_H512/f32/train, with or without an implementation before "
             "it."},
    {.name = "--shard",
     .argument = "I/N, part I of N",
     .placeholder = "I/N",
     .group = LB_GROUP_CASES,
     .commands = SWEEPS | LIST,
     .set = set_shard,
     .help =
         "Runs part I of N of the cases, I from 1 to N. All implementations of a problem are in "
         "one part, and the parts take about the same time (results/README.md)."},
    {.name = "--weights",
     .argument = "a safetensors file",
     .placeholder = "FILE",
     .group = LB_GROUP_CASES,
     .commands = GIVES,
     .set = set_text,
     .field = offsetof(struct lb_options, weights),
     .help = "Takes the weights of a trained LSTM, and its sizes, in place of random ones; the "
             "names are those of a PyTorch state dict (bench/frameworks/README.md)."},
    {.name = "--prefix",
     .argument = "the beginning of tensor names",
     .placeholder = "TEXT",
     .group = LB_GROUP_CASES,
     .commands = GIVES,
     .set = set_text,
     .field = offsetof(struct lb_options, prefix),
     .help = "Beginning of the names of the tensors of --weights, such as encoder.lstm."},
    {.name = "--inputs",
     .argument = "a .npy file",
     .placeholder = "FILE",
     .group = LB_GROUP_CASES,
     .commands = GIVES,
     .set = set_text,
     .field = offsetof(struct lb_options, inputs),
     .help = "Takes x, an array [T, B, I] of f64, f32 or f16, and its sizes, in place of a "
             "random one; the layer then begins with states of zero."},
    {.name = "--outputs",
     .argument = "a .npy file",
     .placeholder = "FILE",
     .group = LB_GROUP_CASES,
     .commands = CROSS_CHECK,
     .set = set_text,
     .field = offsetof(struct lb_options, outputs),
     .help = "Compares y, an array [T, B, D*H] that was computed elsewhere from --weights and "
             "--inputs, too: by a framework on a GPU, for example."},
    {.name = "--batch-first",
     .group = LB_GROUP_CASES,
     .commands = GIVES,
     .set = set_true,
     .field = offsetof(struct lb_options, batch_first),
     .help = "The arrays of --inputs and --outputs are [B, T, ...], as Keras has them."},
    {.name = "--cases",
     .argument = "a file of cases",
     .placeholder = "FILE",
     .group = LB_GROUP_CASES,
     .commands = GRIDS,
     .set = set_cases,
     .help = "A file with one case per line, or the name of a builtin one: quick deepbench "
             "frameworks cliffs criteria recurrent cpu gpu."},

    {.name = "--out",
     .short_name = "-o",
     .argument = "a folder (with --report, a file)",
     .placeholder = "DIR",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | AB | REPORT,
     .set = set_text,
     .field = offsetof(struct lb_options, out),
     .help = "Folder of the run (default: bench-lstm-runs/TIME); with --report, the file of the "
             "page."},
    {.name = "--quick",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | SELF_TEST | LIST,
     .set = set_true,
     .field = offsetof(struct lb_options, quick),
     .help = "Samples each case for at most 1 s, as on the quick grid. With --self-test: 4 sweeps "
             "instead of 20 and 10 planted slowdowns instead of 100, which are too few to judge "
             "rates by."},
    {.name = "--case-time",
     .argument = "seconds",
     .placeholder = "S",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | LIST, /* there it decides how a shard is cut */
     .set = set_seconds,
     .field = offsetof(struct lb_options, case_time_s),
     .help = "Samples each case for at most S seconds (10)."},
    {.name = "--time-budget",
     .argument = "seconds",
     .placeholder = "S",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_seconds,
     .field = offsetof(struct lb_options, time_budget_s),
     .help = "Starts no new case, and no new process of a case, after S seconds. Cases without a "
             "time are recorded as 'skipped', and --resume runs them."},
    {.name = "--retry-noisy",
     .group = LB_GROUP_SETTINGS,
     .commands = RESUME,
     .set = set_true,
     .field = offsetof(struct lb_options, retry_noisy),
     .help = "Measures again the cases during which other programs used more than 5 % of the "
             "case's CPUs, or the machine was more than 15 % slower than in most of the run."},
    {.name = "--retry",
     .argument = "verdicts with commas between",
     .placeholder = "VERDICT,...",
     .group = LB_GROUP_SETTINGS,
     .commands = RESUME,
     .set = set_verdicts,
     .field = offsetof(struct lb_options, retry),
     .help = "Runs the cases again that ended with one of these verdicts, such as "
             "timeout,oom,crash."},
    {.name = "--quiet",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_true,
     .field = offsetof(struct lb_options, quiet),
     .help = "Prints nothing on stderr but warnings and errors."},
    {.name = "--verbose",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_true,
     .field = offsetof(struct lb_options, verbose),
     .help = "Prints a line on stderr for each case that ends: its verdict, and its time or the "
             "reason."},
    {.name = "--call-limit",
     .argument = "seconds",
     .placeholder = "S",
     .group = LB_GROUP_SETTINGS,
     .commands = WORKERS | PROFILE,
     .set = set_seconds,
     .field = offsetof(struct lb_options, call_limit_s),
     .help = "Ends a case as hung after S seconds without a sign of progress (120; with --profile "
             "none, since profilers make calls longer)."},
    {.name = "--hang-limit",
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_int,
     .field = offsetof(struct lb_options, hang_limit),
     .min = 0,
     .max = 1000,
     .help = "Skips the remaining cases of a variant once N of them have hung (0: never)."},
    {.name = "--memory",
     .argument = "a size such as 512M or 4G",
     .placeholder = "SIZE",
     .group = LB_GROUP_SETTINGS,
     .commands = WORKERS | PROFILE,
     .set = set_memory,
     .help = "Limits the memory of a worker process, such as 4G."},
    {.name = "--baseline",
     .argument = "an implementation",
     .placeholder = "NAME",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | PLOT | REPORT,
     .set = set_text,
     .field = offsetof(struct lb_options, baseline),
     .help = "Implementation that speed-ups refer to."},
    {.name = "--plots",
     .argument = "none, or kinds of pictures with commas between",
     .placeholder = "none|KIND,...",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME | REPORT,
     .set = set_text,
     .field = offsetof(struct lb_options, plots),
     .help = "Draws only these kinds of pictures, or none; --plot lists the kinds."},
    {.name = "--plugin",
     .argument = "a shared object",
     .placeholder = "FILE.so",
     .group = LB_GROUP_SETTINGS,
     .commands = LOADS,
     .set = set_plugin,
     .help = "Adds an implementation from a shared object (impls/README.md)."},
    {.name = "--framework",
     .argument = "frameworks",
     .placeholder = "LIST",
     .group = LB_GROUP_SETTINGS,
     .commands = LOADS,
     .set = set_framework,
     .help = "Adds frameworks as implementations: pytorch, keras, onnxruntime, jax; on a GPU "
             "pytorch_cuda and so on (bench/frameworks/README.md)."},
    {.name = "--from",
     .argument = "a run",
     .placeholder = "RUN",
     .group = LB_GROUP_SETTINGS,
     .commands = EXPLAIN,
     .set = set_text,
     .field = offsetof(struct lb_options, measured),
     .help =
         "Run from which --explain takes the measured price of a framework's layer, or of a cell "
         "other than the standard one."},
    {.name = "--kernels",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | EXPLAIN | PROFILE,
     .set = set_true,
     .field = offsetof(struct lb_options, kernels),
     .help = "Records the GPU kernels of one more, untimed call of each case."},
    {.name = "--profile-calls",
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = PROFILE,
     .set = set_profile_calls,
     .min = 1,
     .max = 1000000,
     .help = "Makes N calls in the range that --profile times (10)."},
    {.name = "--perf-control",
     .argument = "one or two named pipes",
     .placeholder = "C,A",
     .group = LB_GROUP_SETTINGS,
     .commands = PROFILE,
     .set = set_text,
     .field = offsetof(struct lb_options, perf_control),
     .help = "Switches perf on and off through the pipes of perf record --control=fifo:C,A "
             "(harness/trace/PROFILING.md)."},
    {.name = "--seed",
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | EXPLAIN | PROFILE | AB | SELF_TEST | CROSS_CHECK,
     .set = set_seed,
     .help = "Seed of the random inputs and weights (1)."},
    {.name = "--processes",
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS,
     .set = set_int,
     .field = offsetof(struct lb_options, processes),
     .min = 1,
     .max = 1000,
     .help = "Repeats each case in N fresh processes; use 15 for runs that --compare reads."},
    {.name = "--by",
     .argument = "device, node or none",
     .placeholder = "device|node|none",
     .group = LB_GROUP_SETTINGS,
     .commands = REPORT | PLOT | COMPARE | EXPORT,
     .set = set_by,
     .help =
         "How results of several devices in one run are told apart: side by side on one page by "
         "device or by node, or none: not at all. Without it each device has pages of its own."},
    {.name = "--margin",
     .argument = "percent",
     .placeholder = "P",
     .group = LB_GROUP_SETTINGS,
     .commands = COMPARE | AB | REPORT | SELF_TEST | HISTORY,
     .set = set_margin,
     .help = "Smallest difference, in percent, that matters to a comparison (2)."},
    {.name = "--strict",
     .group = LB_GROUP_SETTINGS,
     .commands = COMPARE | AB,
     .set = set_true,
     .field = offsetof(struct lb_options, strict),
     .help = "Makes an inconclusive comparison a failure."},
    {.name = "--confirm",
     .argument = "a run",
     .placeholder = "RUN",
     .group = LB_GROUP_SETTINGS,
     .commands = COMPARE,
     .set = set_text,
     .field = offsetof(struct lb_options, confirm),
     .help = "A second run of NEW: a case is only called slower when it is slower there too."},
    {.name = "--format",
     .argument = "table, markdown, junit or json",
     .placeholder = "F",
     .group = LB_GROUP_SETTINGS,
     .commands = COMPARE | AB | LIST,
     .set = set_format,
     .help = "Format of a comparison: table, markdown, junit, json (table); of --list: table, "
             "json."},
    {.name = "--loss-scale",
     .argument = "a factor",
     .placeholder = "S",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | PROFILE,
     .set = set_loss_scale,
     .help = "Multiplies incoming gradients by S and reports overflow (1). dynamic[:START]: in f16 "
             "the scale begins at START (65536), halves at each overflow and doubles after 2000 "
             "steps without one; other dtypes are not scaled."},
    {.name = "--device",
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = WORKERS | PROFILE,
     .set = set_int,
     .field = offsetof(struct lb_options, device),
     .min = 0,
     .max = 1023,
     .help = "Uses GPU number N, counted from 0 (0)."},
    {.name = "--devices",
     .argument = "all, or numbers of GPUs with commas between",
     .placeholder = "all|N,...",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_devices,
     .help = "Runs on several GPUs of this machine at once, each of which takes the longest "
             "problem that is left, and measures whether they disturb each other "
             "(bench/cluster/README.md)."},
    {.name = "--tune",
     .group = LB_GROUP_SETTINGS,
     .commands = WORKERS | PROFILE,
     .set = set_true,
     .field = offsetof(struct lb_options, tune),
     .help =
         "Measures the kernel families of the implementation fused for each problem that has no "
         "stored choice yet; later runs use the fastest."},
    {.name = "--tuned",
     .argument = "a file",
     .placeholder = "FILE",
     .group = LB_GROUP_SETTINGS,
     .commands = WORKERS | PROFILE,
     .set = set_text,
     .field = offsetof(struct lb_options, tuned),
     .help = "File that keeps tuned choices (default: one in the cache folder)."},
    {.name = "--device-model",
     .argument = "the name of a GPU or a CPU, or a file",
     .placeholder = "NAME|FILE",
     .group = LB_GROUP_SETTINGS,
     .commands = LIST | PLAN | EXPLAIN,
     .set = set_text,
     .field = offsetof(struct lb_options, device_model),
     .help = "Plans for a GPU or a CPU that this machine does not have: by a name such as h100 or "
             "epyc9654, or by the path of a file that describes it "
             "(harness/device/DEVICE_MODELS.md, harness/host/CPU_MODELS.md)."},
    {.name = "--benchmark_filter=",
     .joined = true,
     .argument = "a regular expression",
     .placeholder = "REGEX",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS,
     .set = set_benchmark_filter,
     .help = "Runs only the cases whose name matches, as Google Benchmark does."},
    {.name = "--benchmark_repetitions=",
     .joined = true,
     .argument = "a number",
     .placeholder = "N",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | AB,
     .set = set_benchmark_repetitions,
     .min = 1,
     .max = 10000,
     .help = "Measures N blocks of samples of each case (1)."},
    {.name = "--benchmark_out=",
     .joined = true,
     .argument = "a file",
     .placeholder = "FILE",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_text,
     .field = offsetof(struct lb_options, benchmark_out),
     .help = "Also writes Google Benchmark's JSON to a file."},
    {.name = "--benchmark_out_format=",
     .joined = true,
     .argument = "json or console",
     .placeholder = "F",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_benchmark_out_format,
     .help = "Accepted for compatibility: the file is always JSON."},
    {.name = "--benchmark_format=",
     .joined = true,
     .argument = "json or console",
     .placeholder = "F",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS | RESUME,
     .set = set_benchmark_format,
     .help = "With json, prints Google Benchmark's JSON instead of the table."},
    {.name = "--benchmark_",
     .joined = true,
     .argument = "a setting",
     .placeholder = "*",
     .group = LB_GROUP_SETTINGS,
     .commands = SWEEPS,
     .set = set_benchmark,
     .help = "Hands every other setting to Google Benchmark, such as "
             "--benchmark_enable_random_interleaving=true."},
};

const size_t lb_option_count = sizeof(lb_option_table) / sizeof(lb_option_table[0]);

/* Whether the word is the name, alone or with "=value". */
static bool is_named(const char *word, const char *name, const char **value)
{
    size_t length = name ? strlen(name) : 0;
    if (!name || strncmp(word, name, length) != 0 || (word[length] && word[length] != '='))
        return false;
    *value = word[length] ? word + length + 1 : NULL;
    return true;
}

/* Whether the word is a one-letter name with its value behind it. */
static bool is_glued(const char *word, const struct lb_option *option, const char **value)
{
    const char *name = option->short_name ? option->short_name : option->name;
    *value = word + 2;
    return option->argument && strlen(name) == 2 && strncmp(word, name, 2) == 0;
}

const struct lb_option *lb_option_match(const char *word, const char **value)
{
    for (size_t i = 0; i < lb_option_count; i++) {
        const struct lb_option *option = &lb_option_table[i];
        size_t length = strlen(option->name), behind = strlen(word);
        if (option->joined && strncmp(word, option->name, length) == 0) {
            *value = word + length;
            return option;
        }
        if (option->joined && behind + 1 == length && option->name[behind] == '=' &&
            strncmp(word, option->name, behind) == 0) {
            *value = NULL;
            return option;
        }
        if (!option->joined &&
            (is_named(word, option->name, value) || is_named(word, option->short_name, value)))
            return option;
    }
    for (size_t i = 0; i < lb_option_count && word[0] == '-' && word[1]; i++)
        if (is_glued(word, &lb_option_table[i], value))
            return &lb_option_table[i];
    return NULL;
}

bool lb_option_given(const struct lb_options *options, const char *name)
{
    for (size_t i = 0; i < lb_option_count; i++)
        if (strcmp(lb_option_table[i].name, name) == 0)
            return options->given && options->given[i];
    return false;
}

const char *lb_command_name(enum lb_command command)
{
    for (size_t i = 0; i < lb_option_count && command != LB_CMD_NONE; i++)
        if (lb_option_table[i].command == command)
            return lb_option_table[i].name;
    return "";
}

struct lb_options lb_options_defaults(void)
{
    return (struct lb_options){
        .repetitions = 1,
        .time_budget_s = (double)INFINITY,
        .case_time_s = (double)NAN,
        .call_limit_s = 120,
        .profile_calls = 10,
        .loss_scale = 1,
        .margin = 0.02,
        .format = "table",
        .seed = 1,
    };
}

void lb_options_free(struct lb_options *options)
{
    lb_selection_free(&options->selection);
    free(options->given);
    free(options->plugins);
    free(options->absent);
    for (size_t i = 0; i < options->path_count; i++)
        free((char *)(uintptr_t)options->paths[i]);
    free(options->paths);
    free(options->benchmark);
    *options = (struct lb_options){0};
}

struct lb_sampler_options lb_options_sampler(const struct lb_options *options)
{
    struct lb_sampler_options sampler = lb_sampler_defaults();
    double seconds = options->quick ? 1 : sampler.max_ns / 1e9;
    if (!isnan(options->case_time_s))
        seconds = options->case_time_s;
    sampler.max_ns = seconds * 1e9;
    return sampler;
}

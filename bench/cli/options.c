/* The options of the command line: their setters, the table, and the text of --help. */
#include "cli/options.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/text.h"
#include "record/record.h"
#include "reference/loss_scale.h"
#include "support/share_path.h"
#include "support/texts.h"

/* LB_INVALID: the option, its value, and what the value must be. */
static enum lb_status refuse(const struct lb_option_use *use, const char *rule,
                             struct lb_error *err)
{
    return lb_fail(err, LB_INVALID, "%s %.200s: %s", use->option->name, use->value, rule);
}

/* NaN when not the whole text is a number. */
static double number_of(const char *text)
{
    char *end;
    double value = strtod(text, &end);
    return end == text || *end ? (double)NAN : value;
}

static void append(char ***array, size_t *count, const char *text)
{
    *array = lb_room(*array, *count, sizeof(**array));
    (*array)[(*count)++] = lb_needed(strdup(text));
}

static void free_texts(char **array, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(array[i]);
    free(array);
}

static void *field_of(const struct lb_option_use *use)
{
    return (char *)use->options + use->option->field;
}

static enum lb_status set_text(const struct lb_option_use *use, struct lb_error *err)
{
    const char **text = field_of(use);
    (void)err;
    *text = use->value;
    return LB_OK;
}

/* Sets a const char * that workers are told, and that records keep, both as JSON. */
static enum lb_status set_utf8(const struct lb_option_use *use, struct lb_error *err)
{
    return lb_is_utf8(use->value) ? set_text(use, err) : refuse(use, "it must be UTF-8", err);
}

static enum lb_status set_true(const struct lb_option_use *use, struct lb_error *err)
{
    bool *flag = field_of(use);
    (void)err;
    *flag = true;
    return LB_OK;
}

static enum lb_status set_seconds(const struct lb_option_use *use, struct lb_error *err)
{
    double *seconds = field_of(use), value = number_of(use->value);
    if (!(value > 0 && value <= 1e8))
        return refuse(use, "must be a number of seconds above 0, up to 1e8", err);
    *seconds = value;
    return LB_OK;
}

static enum lb_status set_int(const struct lb_option_use *use, struct lb_error *err)
{
    const struct lb_option *option = use->option;
    int *number = field_of(use);
    int64_t value;
    if (lb_parse_int(use->value, strlen(use->value), option->min, &value, NULL) != LB_OK ||
        value > option->max)
        return lb_fail(err, LB_INVALID, "%s %.40s: allowed are %d to %d", option->name, use->value,
                       option->min, option->max);
    *number = (int)value;
    return LB_OK;
}

/* --help and --version win over other commands, wherever they stand on the command line. */
static enum lb_status set_command(const struct lb_option_use *use, struct lb_error *err)
{
    const struct lb_option *option = use->option;
    enum lb_command *command = &use->options->command, own = lb_option_command(option);
    bool informs = own == LB_CMD_HELP || own == LB_CMD_VERSION;
    bool informed = *command == LB_CMD_HELP || *command == LB_CMD_VERSION;
    if (*command == LB_CMD_NONE || informs)
        *command = own;
    else if (*command != own && !informed)
        return lb_fail(err, LB_INVALID, "%s: another command was given already; give one at a time",
                       option->name);
    else if (option->argument && !informed)
        return lb_fail(err, LB_INVALID, "%s: given twice; give it once", option->name);
    use->options->words = use->words;
    use->options->word_count = use->word_count;
    return LB_OK;
}

static enum lb_status set_shard(const struct lb_option_use *use, struct lb_error *err)
{
    int index, count;
    use->options->shard = use->value;
    return lb_shard_parse(use->value, &index, &count, err);
}

static enum lb_status set_devices(const struct lb_option_use *use, struct lb_error *err)
{
    int devices[LB_MAX_DEVICES] = {0};
    size_t count;
    use->options->devices = use->value;
    enum lb_status st = lb_devices_parse(use->value, devices, &count, err);
    if (st == LB_OK)
        use->options->device = devices[0];
    return st;
}

static enum lb_status set_by(const struct lb_option_use *use, struct lb_error *err)
{
    static const char *const words[] = {
        [LB_BY_DEVICE] = "device", [LB_BY_NODE] = "node", [LB_BY_NONE] = "none"};
    for (int by = LB_BY_DEVICE; by <= LB_BY_NONE; by++)
        if (strcmp(use->value, words[by]) == 0) {
            use->options->by = (enum lb_by)by;
            return LB_OK;
        }
    return lb_fail(err, LB_INVALID, "%s %s: it takes %s", use->option->name, use->value,
                   use->option->argument);
}

static enum lb_status set_selection(const struct lb_option_use *use, struct lb_error *err)
{
    return lb_selection_take(&use->options->selection, use->option->name, use->value, err);
}

static enum lb_status set_seed(const struct lb_option_use *use, struct lb_error *err)
{
    int64_t seed;
    struct lb_error why;
    if (lb_parse_int(use->value, strlen(use->value), 0, &seed, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "%s: %.300s", use->option->name, why.text);
    use->options->seed = (uint64_t)seed;
    return LB_OK;
}

static enum lb_status set_memory(const struct lb_option_use *use, struct lb_error *err)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(use->value, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool whole = end != use->value && (!*end || (unit && !end[1]));
    double bytes = unit ? ldexp(value, 10 * (int)(unit - units + 1)) : value;
    if (!whole || !(bytes >= 1 && bytes <= 0x1p60))
        return refuse(use, "must be a number of bytes, such as 512M or 4G", err);
    use->options->memory_bytes = bytes;
    return LB_OK;
}

static enum lb_status set_plugin(const struct lb_option_use *use, struct lb_error *err)
{
    (void)err;
    append(&use->options->plugins, &use->options->plugin_count, use->value);
    return LB_OK;
}

static enum lb_status set_framework(const struct lb_option_use *use, struct lb_error *err)
{
    char word[64], path[4400];
    for (const char *list = use->value; lb_next_item(&list, word, sizeof(word));) {
        enum lb_status st = lb_framework_find(word, path, sizeof(path), err);
        if (st == LB_OK)
            append(&use->options->plugins, &use->options->plugin_count, path);
        else if (st == LB_ABSENT)
            append(&use->options->absent, &use->options->absent_count, word);
        else
            return st;
    }
    return LB_OK;
}

static enum lb_status set_loss_scale(const struct lb_option_use *use, struct lb_error *err)
{
    const char *text = use->value;
    bool starts = strncmp(text, "dynamic:", 8) == 0;
    bool is_dynamic = starts || strcmp(text, "dynamic") == 0;
    double scale = is_dynamic && !starts ? LB_LOSS_SCALE_START : number_of(text + (starts ? 8 : 0));
    if (!(scale >= (is_dynamic ? 1 : 0)) || !(scale > 0) || !(scale < 0x1p128))
        return refuse(use,
                      "must be a number above 0, dynamic, or dynamic:START with a START of 1 or "
                      "more",
                      err);
    use->options->loss_scale = scale;
    use->options->dynamic_loss_scale = is_dynamic;
    return LB_OK;
}

static enum lb_status set_retry(const struct lb_option_use *use, struct lb_error *err)
{
    struct lb_options *options = use->options;
    char word[64];
    for (const char *list = use->value; lb_next_item(&list, word, sizeof(word));) {
        int verdict = LB_VERDICT_OK + 1;
        while (verdict < LB_VERDICT_COUNT &&
               strcmp(word, lb_verdict_name((enum lb_verdict)verdict)) != 0)
            verdict++;
        if (verdict < LB_VERDICT_COUNT)
            options->retry |= 1U << verdict;
        else if (strcmp(word, "noisy") == 0)
            options->retry_noisy = true;
        else
            return lb_fail(
                err, LB_INVALID,
                "%s %s: the verdicts are suspect, wrong, unsupported, absent, oom, timeout, "
                "crash, error and skipped; noisy is allowed too",
                use->option->name, word);
    }
    return LB_OK;
}

static enum lb_status set_margin(const struct lb_option_use *use, struct lb_error *err)
{
    char *end;
    double percent = strtod(use->value, &end);
    if (end == use->value || (*end && strcmp(end, "%") != 0) || !(percent > 0 && percent <= 500))
        return refuse(use, "must be a percentage above 0, up to 500", err);
    use->options->margin = percent / 100;
    return LB_OK;
}

static enum lb_status set_format(const struct lb_option_use *use, struct lb_error *err)
{
    static const char *const formats[] = {"table", "markdown", "junit", "json", NULL};
    use->options->format = use->value;
    for (size_t i = 0; formats[i]; i++)
        if (strcmp(formats[i], use->value) == 0)
            return LB_OK;
    return lb_fail(err, LB_INVALID, "%s %s: allowed are %s", use->option->name, use->value,
                   use->option->argument);
}

static enum lb_status set_benchmark_format(const struct lb_option_use *use, struct lb_error *err)
{
    bool json = strcmp(use->value, "json") == 0;
    if (!json && strcmp(use->value, "console") != 0)
        return refuse(use, "allowed are json and console; for CSV see --export", err);
    *(bool *)field_of(use) = json;
    return LB_OK;
}

/* Whether the word is the name, alone or with "=value". */
static bool is_named(const char *word, const char *name, const char **value)
{
    size_t length = name ? strlen(name) : 0;
    if (!name || strncmp(word, name, length) != 0 || (word[length] && word[length] != '='))
        return false;
    *value = word[length] ? word + length + 1 : NULL;
    return true;
}

/* Refuses what the program does itself: it takes the samples, and warms up before them; to Google
 * Benchmark a case is one iteration. */
static enum lb_status set_benchmark(const struct lb_option_use *use, struct lb_error *err)
{
    static const struct {
        const char *name, *instead;
    } refused[] = {
        {"list_tests", "use --list"},
        {"out_format", "--benchmark_out writes JSON; for CSV see --export"},
        {"min_time", "use --case-time, the longest time that a case is sampled"},
        {"min_warmup_time", "each case is warmed up until its calls get no faster"},
    };
    const char *value;
    if (strcmp(use->value, "out_format=json") == 0)
        return LB_OK; /* that is how --benchmark_out writes */
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        if (is_named(use->value, refused[i].name, &value))
            return lb_fail(err, LB_INVALID, "%s: %s", use->word, refused[i].instead);
    /* Its value is read as Google Benchmark does. */
    if (is_named(use->value, "enable_random_interleaving", &value))
        use->options->shuffled =
            !value || !(strchr("0fFnN", value[0]) || strcasecmp(value, "off") == 0);
    append(&use->options->benchmark, &use->options->benchmark_count, use->word);
    return LB_OK;
}

/* Groups of commands that options have an effect on. */
enum {
    SWEEPS = LB_CMD_SWEEP | LB_CMD_PLAN, /* --plan takes the command line of the sweep */
    GIVES = SWEEPS | LB_CMD_LIST | LB_CMD_AB | LB_CMD_CROSS_CHECK, /* take --weights, --inputs */
    GRIDS = GIVES | LB_CMD_SELF_TEST,
    WORKERS = GRIDS | LB_CMD_RESUME | LB_CMD_EXPLAIN | LB_CMD_CEILINGS,
    LOADS = GRIDS | LB_CMD_RESUME | LB_CMD_EXPLAIN | LB_CMD_PROFILE
};

/* Words in the columns of the table, and the row of an axis. */
#define COMMAND(name) LB_GROUP_COMMANDS, LB_CMD_##name, set_command, 0
#define CASES         LB_GROUP_CASES
#define SETTINGS      LB_GROUP_SETTINGS
#define FIELD(name)   offsetof(struct lb_options, name)
#define AXIS(name, argument, help)                                   \
    {                                                                \
        name, argument, "LIST", CASES, GRIDS, set_selection, 0, help \
    }

/* What a row leaves out is zero. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
const struct lb_option lb_option_table[] = {
    {"--sweep", NULL, NULL, COMMAND(SWEEP),
     "Runs the cases; without sizes, those of the quick grid, in inference and training, and also "
     "in bf16 where the machine has a unit for it."},
    {"--resume", "the folder of a run", "DIR", COMMAND(RESUME),
     "Continues a sweep that was interrupted, with the settings it began with. Not kept, so that "
     "they have to be given again, are --time-budget, --hang-limit, --plots, --benchmark_out, "
     "--benchmark_format, --quiet, --verbose, --plugin and --framework, and --tuned when the sweep "
     "tunes into a file."},
    {"--list", NULL, NULL, COMMAND(LIST),
     "Lists the implementations and the cases, and says which of them can run here."},
    {"--plan", NULL, NULL, COMMAND(PLAN),
     "Says what --sweep would run with the same settings: how many cases, how much memory they "
     "need and about how long they take."},
    {"--explain", "a case such as T25_B16_I512_H512/f32/train, or a framework and a layer", "CASE",
     COMMAND(EXPLAIN),
     "Says why a case can or can't run, and how much it computes, moves and needs. Given keras "
     "'units=512, activation=relu' (also keras2, tensorflow1, pytorch, pytorch_cpu), says whether "
     "the framework runs its fast kernel for that layer.",
     .most = 2},
    {"--export", "a format and a run", "FORMAT[,...] RUN", COMMAND(EXPORT),
     "Prints a run in another format: gbench, gbench-repetitions, csv, bmf, github, hyperfine, "
     "junit, markdown. Several are written into the run's folder.",
     .least = 2},
    {"--profile", "a case", "CASE", COMMAND(PROFILE),
     "Checks one case in this process and calls it a few times, for a profiler."},
    {"--plot", "a kind of picture and a run", "KIND RUN", COMMAND(PLOT),
     "Draws one kind of picture of a run: speedup-b, speedup-t, time-h, time-b, time-t, roofline, "
     "training, precision, error, memory, scaling, latency, throughput.",
     .least = 2},
    {"--report", "a run", "[BASE...] RUN -o FILE.html", COMMAND(REPORT),
     "Writes one HTML page: which implementation wins where, what changed, pictures and all cases.",
     .most = LB_WORDS_MANY},
    {"--compare", "two runs, the base first", "BASE [BASE...] NEW", COMMAND(COMPARE),
     "Says of each case whether it is slower, faster, the same or inconclusive, the worst first. "
     "Several runs of the base show how much runs differ by chance, and the verdicts allow for "
     "that.",
     .least = 2, .most = LB_WORDS_MANY},
    {"--merge", "a folder for the result and the runs to merge", "OUT RUN...", COMMAND(MERGE),
     "Merges runs, such as the shards of a sweep, into one run in the folder OUT; RUN may also be "
     "a folder that holds runs. Names the nodes that were slow.",
     .least = 2, .most = LB_WORDS_MANY},
    {"--ab", "two implementations or plug-ins", "A B", COMMAND(AB),
     "Compares two implementations or plug-ins in one process, in turn.", .least = 2},
    {"--history", "a folder of runs", "DIR", COMMAND(HISTORY),
     "Finds change points over all runs in the folder."},
    {"--self-test", NULL, NULL, COMMAND(SELF_TEST),
     "Measures how far the verdicts of a comparison can be trusted on this machine, and whether "
     "the machine is quiet enough; takes about 20 minutes."},
    {"--cross-check", NULL, NULL, COMMAND(CROSS_CHECK),
     "Runs each problem once on every implementation and precision, and prints the largest "
     "difference between any two of them; with --weights and --inputs, on a trained layer and its "
     "data."},
    {"--ceilings", NULL, NULL, COMMAND(CEILINGS),
     "Measures the highest rates and lowest latencies that the CPUs reach, and the GPU where there "
     "is one. A sweep does so for a shorter time, for its lower bounds."},
    {"--help", NULL, NULL, COMMAND(HELP), "Prints this text.", .short_name = "-h"},
    {"--version", NULL, NULL, COMMAND(VERSION),
     "Prints the versions of the program and of its libraries."},

    AXIS("-T", "numbers", "Sequence lengths."),
    AXIS("-B", "numbers", "Batch sizes."),
    AXIS("-I", "numbers", "Input sizes (default: the hidden size)."),
    AXIS("-H", "numbers", "Hidden sizes."),
    AXIS("-L", "numbers", "Numbers of layers (1)."),
    AXIS("-D", "1, 2 or both", "Numbers of directions: 1, 2 (1)."),
    AXIS("--dtype", "dtypes", "Precisions: f64, f32, f16, bf16, int8 (f32)."),
    AXIS("--pass", "passes", "What is timed: infer, forward, backward, train (infer)."),
    AXIS("--math", "math modes", "Arithmetic of the matrix products: ieee, tf32, half (ieee)."),
    AXIS("--ragged", "full, ragged or both",
         "Whether all sequences of a batch have length T: full, ragged (full)."),
    AXIS("--act", "tanh, relu or both", "Activation of the cell: tanh, relu (tanh)."),
    AXIS("--cell", "cells",
         "Cells: standard, layernorm, recurrent-dropout, projection, peephole, residual "
         "(standard); harness/api/problem.h has their equations."),
    AXIS("-P", "numbers", "Sizes of h in the cell projection (a quarter of the hidden size)."),
    AXIS("--launch", "stream, graph or both", "How GPU work is submitted: stream, graph (stream)."),
    AXIS("--cache", "hot, cold or both", "State of the caches before each call: hot, cold (hot)."),
    AXIS("--timing", "isolated, batched or stream",
         "One call per sample, many calls in a row, or a stream of calls of T steps that carry "
         "their state: isolated, batched, stream (isolated)."),
    AXIS("--rate", "numbers",
         "Calls per second of a stream; the time of a call that has to wait for the one before "
         "counts from when it was due (default: each call begins when the one before has ended)."),
    AXIS("--instances", "numbers",
         "Numbers of streams that run at once, each on its share of --threads (1)."),
    AXIS("--threads", "numbers", "Numbers of CPU threads (1)."),
    {"--impl", "implementations", "NAME[:VARIANT],...", CASES,
     SWEEPS | LB_CMD_LIST | LB_CMD_SELF_TEST | LB_CMD_CROSS_CHECK, set_selection, 0,
     "Implementations, with all their variants where none is named (default: all)."},
    {"--where", "an expression", "EXPR", CASES, GRIDS, set_selection, 0,
     "Keeps the cases for which the expression over T B I H P L D holds: 'T*B<=65536'."},
    {"--case", "a case", "TEXT", CASES, GRIDS, set_selection, 0,
     "One case: T25_B16_I512_H512/f32/train, with or without an implementation before it."},
    {"--shard", "I/N, part I of N", "I/N", CASES, SWEEPS | LB_CMD_LIST, set_shard, 0,
     "Runs part I of N of the cases, I from 1 to N. All implementations of a problem are in one "
     "part, and the parts take about the same time (results/README.md)."},
    {"--weights", "a safetensors file", "FILE", CASES, GIVES, set_utf8, FIELD(given_files.weights),
     "Takes the weights of a trained LSTM, and its sizes, in place of random ones; the names are "
     "those of a PyTorch state dict (bench/frameworks/README.md)."},
    {"--prefix", "the beginning of tensor names", "TEXT", CASES, GIVES, set_utf8,
     FIELD(given_files.prefix),
     "Beginning of the names of the tensors of --weights, such as encoder.lstm."},
    {"--inputs", "a .npy file", "FILE", CASES, GIVES, set_utf8, FIELD(given_files.inputs),
     "Takes x, an array [T, B, I] of f64, f32 or f16, and its sizes, in place of a random one; the "
     "layer then begins with states of zero."},
    {"--outputs", "a .npy file", "FILE", CASES, LB_CMD_CROSS_CHECK, set_text, FIELD(outputs),
     "Compares y, an array [T, B, D*H] that was computed elsewhere from --weights and --inputs, "
     "too: by a framework on a GPU, for example."},
    {"--batch-first", NULL, NULL, CASES, GIVES, set_true, FIELD(given_files.batch_first),
     "The arrays of --inputs and --outputs are [B, T, ...], as Keras has them."},
    {"--cases", "a file of cases", "FILE", CASES, GRIDS, set_selection, 0,
     "A file with one case per line, or the name of a builtin one: quick deepbench frameworks "
     "cliffs criteria recurrent cpu gpu stac streaming models."},

    {"--out", "a folder (with --report, a file)", "DIR", SETTINGS,
     SWEEPS | LB_CMD_AB | LB_CMD_REPORT, set_text, FIELD(out),
     "Folder of the run (default: bench-lstm-runs/TIME); with --report, the file of the page.",
     .short_name = "-o"},
    {"--quick", NULL, NULL, SETTINGS, SWEEPS | LB_CMD_SELF_TEST | LB_CMD_LIST, set_true,
     FIELD(quick),
     "Samples each case for at most 1 s, as on the quick grid. With --self-test: 4 sweeps instead "
     "of 20 and 10 planted slowdowns instead of 100, which are too few to judge rates by."},
    {"--case-time", "seconds", "S", SETTINGS, SWEEPS | LB_CMD_LIST, set_seconds, FIELD(case_time_s),
     "Samples each case for at most S seconds (10)."}, /* with --list: cuts its shard */
    {"--deadline", "seconds", "S", SETTINGS, SWEEPS | LB_CMD_RESUME, set_seconds, FIELD(deadline_s),
     "Counts the calls of streams that take longer than S seconds (default: longer than --rate "
     "allows)."},
    {"--time-budget", "seconds", "S", SETTINGS, SWEEPS | LB_CMD_RESUME, set_seconds,
     FIELD(time_budget_s),
     "Starts no new case, and no new process of a case, after S seconds. Cases without a time are "
     "recorded as 'skipped', and --resume runs them."},
    {"--retry", "verdicts with commas between", "VERDICT,...", SETTINGS, LB_CMD_RESUME, set_retry,
     0,
     "Runs the cases again that ended with one of these verdicts, such as timeout,oom,crash. "
     "noisy: measures those again during which other programs used more than 5 % of the case's "
     "CPUs, or the machine was more than 15 % slower than in most of the run."},
    {"--quiet", NULL, NULL, SETTINGS, SWEEPS | LB_CMD_RESUME, set_true, FIELD(quiet),
     "Prints nothing on stderr but warnings, errors and the list of noisy cases."},
    {"--verbose", NULL, NULL, SETTINGS, SWEEPS | LB_CMD_RESUME, set_true, FIELD(verbose),
     "Prints a line on stderr for each case that ends: its verdict, and its time or the reason."},
    {"--call-limit", "seconds", "S", SETTINGS, WORKERS | LB_CMD_PROFILE, set_seconds,
     FIELD(call_limit_s),
     "Ends a case as hung after S seconds without a sign of progress (120; with --profile none, "
     "since profilers make calls longer)."},
    {"--hang-limit", "a number", "N", SETTINGS, SWEEPS | LB_CMD_RESUME, set_int, FIELD(hang_limit),
     "Skips the remaining cases of a variant once N of them have hung (0: never).", .min = 0,
     .max = 1000},
    {"--memory", "a size such as 512M or 4G", "SIZE", SETTINGS, WORKERS | LB_CMD_PROFILE,
     set_memory, 0, "Limits the memory of a worker process, such as 4G."},
    {"--baseline", "an implementation", "NAME", SETTINGS, SWEEPS | LB_CMD_PLOT | LB_CMD_REPORT,
     set_text, FIELD(baseline), "Implementation that speed-ups refer to."},
    {"--plots", "none, or kinds of pictures with commas between", "none|KIND,...", SETTINGS,
     SWEEPS | LB_CMD_RESUME, set_text, FIELD(plots),
     "Draws only these kinds of pictures (see --plot), or none."},
    {"--plugin", "a shared object", "FILE.so", SETTINGS, LOADS, set_plugin, 0,
     "Adds an implementation from a shared object (impls/README.md)."},
    {"--framework", "frameworks", "LIST", SETTINGS, LOADS, set_framework, 0,
     "Adds frameworks as implementations: pytorch, keras, keras_torch, keras_jax, jax, "
     "onnxruntime, openvino; on a GPU pytorch_cuda and so on (bench/frameworks/README.md)."},
    {"--from", "a run", "RUN", SETTINGS, LB_CMD_EXPLAIN, set_text, FIELD(measured),
     "Run from which --explain takes the measured price of a framework's layer or of a cell other "
     "than the standard one, what precisions gain over f32 at which error, and what this machine "
     "reaches at best, if the run has the same CPU or GPU."},
    {"--kernels", NULL, NULL, SETTINGS, SWEEPS | LB_CMD_EXPLAIN | LB_CMD_PROFILE, set_true,
     FIELD(kernels), "Records the GPU kernels of one more, untimed call of each case."},
    {"--profile-calls", "a number", "N", SETTINGS, LB_CMD_PROFILE, set_int, FIELD(profile_calls),
     "Makes N calls in the range that --profile times (10).", .min = 1, .max = 1000000},
    {"--seed", "a number", "N", SETTINGS,
     SWEEPS | LB_CMD_EXPLAIN | LB_CMD_PROFILE | LB_CMD_AB | LB_CMD_SELF_TEST | LB_CMD_CROSS_CHECK,
     set_seed, 0, "Seed of the random inputs and weights (1)."},
    {"--processes", "a number", "N", SETTINGS, SWEEPS, set_int, FIELD(processes),
     "Repeats each case in N fresh processes; use 15 for runs that --compare reads.", .min = 1,
     .max = 1000},
    {"--against", "another build of this program", "PROGRAM", SETTINGS, SWEEPS, set_text,
     FIELD(against),
     "Measures each case with this program and PROGRAM, the base, in turns: pairs of fresh "
     "processes (15, or as --processes says), compared as --compare does. This finds changes of 3 "
     "%, which two sweeps one after the other do not."},
    {"--by", "device, node or none", "device|node|none", SETTINGS,
     LB_CMD_REPORT | LB_CMD_PLOT | LB_CMD_COMPARE | LB_CMD_EXPORT, set_by, 0,
     "How results of several devices in one run are told apart: side by side on one page by device "
     "or by node, or none: not at all. Without it each device has pages of its own."},
    {"--margin", "percent", "P", SETTINGS,
     LB_CMD_COMPARE | LB_CMD_AB | LB_CMD_SWEEP | LB_CMD_REPORT | LB_CMD_SELF_TEST | LB_CMD_HISTORY,
     set_margin, 0, "Smallest difference, in percent, that matters to a comparison (2)."},
    {"--strict", NULL, NULL, SETTINGS, LB_CMD_COMPARE | LB_CMD_AB | LB_CMD_SWEEP, set_true,
     FIELD(strict), "Makes an inconclusive comparison a failure."},
    {"--confirm", "a run", "RUN", SETTINGS, LB_CMD_COMPARE, set_text, FIELD(confirm),
     "A second run of NEW: a case is only called slower when it is slower there too."},
    {"--format", "table, markdown, junit or json", "F", SETTINGS,
     LB_CMD_COMPARE | LB_CMD_AB | LB_CMD_SWEEP | LB_CMD_LIST, set_format, 0,
     "Format of a comparison: table, markdown, junit, json (table); of --list: table, json."},
    {"--loss-scale", "a factor", "S", SETTINGS, SWEEPS | LB_CMD_PROFILE, set_loss_scale, 0,
     "Multiplies incoming gradients by S and reports overflow (1). dynamic[:START]: in f16 the "
     "scale begins at START (65536), halves at each overflow and doubles after 2000 steps without "
     "one; other dtypes are not scaled."},
    {"--device", "a number", "N", SETTINGS, WORKERS | LB_CMD_PROFILE, set_int, FIELD(device),
     "Uses GPU number N, counted from 0 (0).", .min = 0, .max = LB_MAX_DEVICE},
    {"--devices", "all, or numbers of GPUs with commas between", "all|N,...", SETTINGS, SWEEPS,
     set_devices, 0,
     "Runs on several GPUs of this machine at once: one process for each, with a shard of the "
     "cases, and their runs are merged (bench/cluster/README.md)."},
    {"--tune", NULL, NULL, SETTINGS, WORKERS | LB_CMD_PROFILE, set_true, FIELD(given_files.tune),
     "Measures the kernel families of the implementation fused for each problem that has no stored "
     "choice yet; later runs use the fastest."},
    {"--tuned", "a file", "FILE", SETTINGS, WORKERS | LB_CMD_PROFILE, set_utf8,
     FIELD(given_files.tuned), "File that keeps tuned choices (default: one in the cache folder)."},
    {"--device-model", "the name of a GPU or a CPU, or a file", "NAME|FILE", SETTINGS,
     LB_CMD_LIST | LB_CMD_PLAN | LB_CMD_EXPLAIN, set_text, FIELD(device_model),
     "Plans for a GPU or a CPU that this machine does not have: by a name such as h100 or "
     "epyc9654, or by the path of a file that describes it (harness/machine/MACHINES.md)."},
    {"--benchmark_filter", "a regular expression", "REGEX", SETTINGS, SWEEPS, set_text,
     FIELD(benchmark_filter), "Runs only the cases whose name matches, as Google Benchmark does."},
    {"--benchmark_repetitions", "a number", "N", SETTINGS, SWEEPS | LB_CMD_AB, set_int,
     FIELD(repetitions), "Measures N blocks of samples of each case (1).", .min = 1, .max = 10000},
    {"--benchmark_format", "json or console", "F", SETTINGS, SWEEPS | LB_CMD_RESUME,
     set_benchmark_format, FIELD(benchmark_json),
     "json prints Google Benchmark's JSON instead of the table."},
    {"--benchmark_out", "a file", "FILE", SETTINGS, SWEEPS | LB_CMD_RESUME, set_text,
     FIELD(benchmark_out), "Writes Google Benchmark's JSON to a file."},
    {"--benchmark_", "a setting", "*", SETTINGS, SWEEPS, set_benchmark, 0,
     "Other settings of Google Benchmark are handed on, such as "
     "--benchmark_enable_random_interleaving=true.",
     .joined = true},
};
#pragma GCC diagnostic pop

const size_t lb_option_count = sizeof(lb_option_table) / sizeof(lb_option_table[0]);

const struct lb_option *lb_option_match(const char *word, const char **value)
{
    for (size_t i = 0; i < lb_option_count; i++) {
        const struct lb_option *option = &lb_option_table[i];
        if (option->joined && strncmp(word, option->name, strlen(option->name)) == 0) {
            *value = word + strlen(option->name);
            return option;
        }
        if (!option->joined &&
            (is_named(word, option->name, value) || is_named(word, option->short_name, value)))
            return option;
    }
    for (size_t i = 0; i < lb_option_count && word[0] == '-' && word[1]; i++) {
        const struct lb_option *option = &lb_option_table[i];
        const char *name = option->short_name ? option->short_name : option->name;
        *value = word + 2; /* behind a one-letter name */
        if (option->argument && strlen(name) == 2 && strncmp(word, name, 2) == 0)
            return option;
    }
    return NULL;
}

bool lb_option_given(const struct lb_options *options, const char *name)
{
    for (size_t i = 0; i < lb_option_count; i++)
        if (strcmp(lb_option_table[i].name, name) == 0)
            return options->given && options->given[i] != NULL;
    return false;
}

enum lb_command lb_option_command(const struct lb_option *option)
{
    return option->group == LB_GROUP_COMMANDS ? (enum lb_command)option->commands : LB_CMD_NONE;
}

const char *lb_command_name(enum lb_command command)
{
    for (size_t i = 0; i < lb_option_count; i++)
        if (lb_option_command(&lb_option_table[i]) & command)
            return lb_option_table[i].name;
    return "";
}

struct lb_options lb_options_defaults(void)
{
    return (struct lb_options){
        .repetitions = 1,
        .processes = 1,
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
    free(options->word_pool);
    free_texts(options->plugins, options->plugin_count);
    free_texts(options->absent, options->absent_count);
    free_texts(options->benchmark, options->benchmark_count);
    *options = (struct lb_options){0};
}

enum lb_status lb_options_add_absent(const struct lb_options *options, struct lb_registry *registry,
                                     struct lb_error *err)
{
    static char unbuilt[] =
        "its plug-in was not built: that needs the headers and the library of Python 3";
    for (size_t i = 0; i < options->absent_count; i++) {
        const struct lb_impl_entry absent = {
            .name = options->absent[i], .summary = unbuilt, .absent = unbuilt};
        LB_CHECK(lb_registry_add(registry, &absent, err));
    }
    return LB_OK;
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

/* ---- --help ---- */

enum { COLUMNS = 80, TEXT_COLUMN = 23 /* where the sentences of an option begin */ };

static const char before_options[] =
    "usage: bench-lstm COMMAND [CASES] [SETTINGS]\n"
    "\n"
    "Runs implementations of the same LSTM, checks each against a double-precision\n"
    "oracle, times them, and writes records, tables and pictures.\n";

static const char *const headings[LB_GROUP_COUNT] = {
    [LB_GROUP_COMMANDS] = "commands",
    [LB_GROUP_CASES] = "cases: an axis takes lists and ranges (1,8,64  64:512:+64  64:1024:x2);\n"
                       "an option that is repeated adds to what it was given before",
    [LB_GROUP_SETTINGS] = "settings",
};

const char lb_help_epilogue[] =
    "exit codes: 0 all is well, 1 a case is wrong or failed, 2 the command line is\n"
    "wrong or a file can't be read or written, 3 a regression was found, 4 a\n"
    "comparison could judge no case or, with --strict, left one open, 5 nothing ran\n"
    "or can be compared or drawn, 6 a merged run lacks shards or rows, 130 the\n"
    "program was interrupted\n"
    "\n"
    "examples\n"
    "  bench-lstm --sweep\n"
    "  bench-lstm --sweep -T 128 -B 1,8,64 -H 128:1024:x2 --pass infer,train\n"
    "  bench-lstm --sweep --cases deepbench --impl cpu_simd --time-budget 600\n"
    "  bench-lstm --list --impl cpu_ref --where 'T*B<=4096' -T 1:1024:x2 -B 1:64:x2 \\\n"
    "             -H 64,256\n"
    "  bench-lstm --explain cpu_simd/T25_B16_I512_H512/f16/train\n";

void lb_help_print(FILE *stream)
{
    fputs(before_options, stream);
    for (int group = 0; group < LB_GROUP_COUNT; group++) {
        fprintf(stream, "\n%s\n", headings[group]);
        for (size_t i = 0; i < lb_option_count; i++) {
            const struct lb_option *option = &lb_option_table[i];
            char names[COLUMNS];
            if ((int)option->group != group)
                continue;
            snprintf(names, sizeof(names), "  %s%s%s%s%s", option->name,
                     option->short_name ? ", " : "", option->short_name ? option->short_name : "",
                     option->placeholder && !option->joined ? " " : "",
                     option->placeholder ? option->placeholder : "");
            if (strlen(names) + 2 > TEXT_COLUMN)
                fprintf(stream, "%s\n%*s", names, TEXT_COLUMN, "");
            else
                fprintf(stream, "%-*s", TEXT_COLUMN, names);
            lb_print_lines(stream, TEXT_COLUMN, COLUMNS, option->help);
            fputc('\n', stream);
        }
    }
    fprintf(stream, "\n%s", lb_help_epilogue);
}

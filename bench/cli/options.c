/* Reading the command line. */
#include "cli/options.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/builtin_cases.h"
#include "cli/flags.h"

static enum lb_status parse_seconds(const char *flag, const char *text, double *seconds,
                                    struct lb_error *err)
{
    char *end;
    *seconds = strtod(text, &end);
    if (end == text || *end || !(*seconds > 0 && *seconds <= 1e8))
        return lb_fail(err, LB_INVALID, "%s %s: must be a number of seconds above 0, up to 1e8",
                       flag, text);
    return LB_OK;
}

static enum lb_status parse_size(const char *text, double *bytes, struct lb_error *err)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool whole = end != text && (!*end || (unit && !end[1]));
    *bytes = unit ? ldexp(value, 10 * (int)(unit - units + 1)) : value;
    if (!whole || !(*bytes >= 1 && *bytes <= 0x1p60))
        return lb_fail(err, LB_INVALID, "--memory %s: must be bytes, or a size such as 512M or 4G",
                       text);
    return LB_OK;
}

static enum lb_status parse_seed(const char *text, uint64_t *seed, struct lb_error *err)
{
    int64_t value;
    struct lb_error why;
    if (lb_parse_int(text, strlen(text), 0, &value, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--seed %.400s", why.text);
    *seed = (uint64_t)value;
    return LB_OK;
}

static enum lb_status parse_calls(const char *text, size_t *calls, struct lb_error *err)
{
    int64_t value;
    struct lb_error why;
    if (lb_parse_int(text, strlen(text), 1, &value, &why) != LB_OK || value > 1000000)
        return lb_fail(err, LB_INVALID, "--profile-calls %.40s: allowed are 1 to 1000000", text);
    *calls = (size_t)value;
    return LB_OK;
}

static enum lb_status parse_loss_scale(const char *text, double *scale, struct lb_error *err)
{
    char *end;
    *scale = strtod(text, &end);
    if (end == text || *end || !(*scale > 0) || !isfinite(*scale))
        return lb_fail(err, LB_INVALID, "--loss-scale %s: must be a number above 0", text);
    return LB_OK;
}

static enum lb_status parse_device(const char *text, int *device, struct lb_error *err)
{
    int64_t value;
    struct lb_error why;
    if (lb_parse_int(text, strlen(text), 0, &value, &why) != LB_OK || value > 1023)
        return lb_fail(err, LB_INVALID, "--device %s: allowed are 0 to 1023", text);
    *device = (int)value;
    return LB_OK;
}

static enum lb_status parse_margin(const char *text, double *margin, struct lb_error *err)
{
    char *end;
    double percent = strtod(text, &end);
    if (end == text || (*end && strcmp(end, "%") != 0) || !(percent > 0 && percent <= 500))
        return lb_fail(err, LB_INVALID, "--margin %s: must be a percentage above 0, up to 500",
                       text);
    *margin = percent / 100;
    return LB_OK;
}

static enum lb_status parse_count(const char *name, const char *text, int *count,
                                  struct lb_error *err)
{
    int64_t value;
    if (lb_parse_int(text, strlen(text), 1, &value, NULL) != LB_OK || value > 1000)
        return lb_fail(err, LB_INVALID, "%s %s: allowed are 1 to 1000", name, text);
    *count = (int)value;
    return LB_OK;
}

static enum lb_status set_command(struct lb_options *options, const struct lb_flag *flag,
                                  struct lb_error *err)
{
    enum lb_command command = (enum lb_command)flag->value;
    bool looks = command == LB_CMD_HELP || command == LB_CMD_VERSION;
    bool looked = options->command == LB_CMD_HELP || options->command == LB_CMD_VERSION;
    if (options->command == LB_CMD_NONE || looks)
        options->command = command;
    else if (options->command != command && !looked)
        return lb_fail(err, LB_INVALID, "%s: another command was given already; one at a time",
                       flag->name);
    else if (flag->action != LB_FLAG_COMMAND && !looked)
        return lb_fail(err, LB_INVALID, "%s: given twice; one at a time", flag->name);
    return LB_OK;
}

/* What Google Benchmark would do with these is the program's own: it takes the samples, and warms
 * up before them. To Google Benchmark a case is one iteration. */
static enum lb_status refuse_benchmark(const char *text, struct lb_error *err)
{
    static const struct {
        const char *name, *instead;
    } refused[] = {
        {"--benchmark_list_tests", "use --list"},
        {"--benchmark_min_time", "use --case-time, the most seconds of a case"},
        {"--benchmark_min_warmup_time", "each case is warmed up until its calls get no faster"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        size_t length = strlen(refused[i].name);
        if (strncmp(text, refused[i].name, length) == 0 && (!text[length] || text[length] == '='))
            return lb_fail(err, LB_INVALID, "%s: %s", text, refused[i].instead);
    }
    return LB_OK;
}

/* --benchmark_* go to Google Benchmark, but for those about output, which is the program's own, and
 * those that are refused. */
static enum lb_status take_benchmark(struct lb_options *options, char *text, struct lb_error *err)
{
    static const char out[] = "--benchmark_out=", format[] = "--benchmark_format=",
                      out_format[] = "--benchmark_out_format=",
                      repetitions[] = "--benchmark_repetitions=", filter[] = "--benchmark_filter=";
    int64_t n;
    struct lb_error why;
    if (strncmp(text, out, strlen(out)) == 0) {
        options->benchmark_out = text + strlen(out);
        return LB_OK;
    }
    if (strncmp(text, format, strlen(format)) == 0 ||
        strncmp(text, out_format, strlen(out_format)) == 0) {
        const char *name = strchr(text, '=') + 1;
        bool json = strcmp(name, "json") == 0;
        if (!json && strcmp(name, "console") != 0)
            return lb_fail(err, LB_INVALID,
                           "%s: allowed are json and console; for CSV see --export", text);
        if (text[strlen("--benchmark_")] == 'f')
            options->benchmark_json = json;
        return LB_OK;
    }
    if (refuse_benchmark(text, err) != LB_OK)
        return LB_INVALID;
    if (strncmp(text, repetitions, strlen(repetitions)) == 0) {
        const char *value = text + strlen(repetitions);
        if (lb_parse_int(value, strlen(value), 1, &n, &why) != LB_OK || n > 10000)
            return lb_fail(err, LB_INVALID, "%s: allowed are 1 to 10000", text);
        options->repetitions = (int)n;
    }
    if (strncmp(text, filter, strlen(filter)) == 0)
        options->benchmark_filter = true;
    char **grown =
        realloc(options->benchmark, (options->benchmark_count + 1) * sizeof(*options->benchmark));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    options->benchmark = grown;
    options->benchmark[options->benchmark_count++] = text;
    return LB_OK;
}

static enum lb_status take_plugin(struct lb_options *options, const char *path,
                                  struct lb_error *err)
{
    const char **grown =
        realloc(options->plugins, (options->plugin_count + 1) * sizeof(*options->plugins));
    if (!grown)
        return lb_fail(err, LB_OOM, "out of memory");
    options->plugins = grown;
    options->plugins[options->plugin_count++] = path;
    return LB_OK;
}

/* The formats that --compare can print. */
static enum lb_status check_format(const char *format, struct lb_error *err)
{
    static const char *const formats[] = {"table", "markdown", "junit", "json", NULL};
    for (size_t i = 0; formats[i]; i++)
        if (strcmp(formats[i], format) == 0)
            return LB_OK;
    return lb_fail(err, LB_INVALID, "--format %s: allowed are table, markdown, junit and json",
                   format);
}

static enum lb_status apply(struct lb_options *options, const struct lb_flag *flag,
                            const char *value, struct lb_error *err)
{
    bool taken;
    switch (flag->action) {
    case LB_FLAG_COMMAND: return set_command(options, flag, err);
    case LB_FLAG_SUBJECT:
    case LB_FLAG_TWO: options->subject = value; return set_command(options, flag, err);
    case LB_FLAG_RUNS: options->run = value; return set_command(options, flag, err);
    case LB_FLAG_SELECTION:
        options->sized |= flag->value == LB_FLAG_SIZES;
        return lb_selection_take(&options->selection, flag->name, value, &taken, err);
    case LB_FLAG_CASES:
        options->sized = true;
        return lb_take_cases(&options->selection, value, false, err);
    case LB_FLAG_OUT: options->out = value; return LB_OK;
    case LB_FLAG_QUICK: options->quick = true; return LB_OK;
    case LB_FLAG_KERNELS: options->kernels = true; return LB_OK;
    case LB_FLAG_PROFILE_CALLS: return parse_calls(value, &options->profile_calls, err);
    case LB_FLAG_PERF_CONTROL: options->perf_control = value; return LB_OK;
    case LB_FLAG_CASE_TIME: return parse_seconds(flag->name, value, &options->case_time_s, err);
    case LB_FLAG_TIME_BUDGET: return parse_seconds(flag->name, value, &options->time_budget_s, err);
    case LB_FLAG_CALL_LIMIT: return parse_seconds(flag->name, value, &options->call_limit_s, err);
    case LB_FLAG_HANG_LIMIT: return parse_count(flag->name, value, &options->hang_limit, err);
    case LB_FLAG_MEMORY: return parse_size(value, &options->memory_bytes, err);
    case LB_FLAG_BASELINE: options->baseline = value; return LB_OK;
    case LB_FLAG_PLUGIN: return take_plugin(options, value, err);
    case LB_FLAG_SEED: return parse_seed(value, &options->seed, err);
    case LB_FLAG_LOSS_SCALE: return parse_loss_scale(value, &options->loss_scale, err);
    case LB_FLAG_DEVICE: return parse_device(value, &options->device, err);
    case LB_FLAG_DEVICE_MODEL: options->device_model = value; return LB_OK;
    case LB_FLAG_PROCESSES: return parse_count(flag->name, value, &options->processes, err);
    case LB_FLAG_MARGIN: return parse_margin(value, &options->margin, err);
    case LB_FLAG_STRICT: options->strict = true; return LB_OK;
    case LB_FLAG_CONFIRM: options->confirm = value; return LB_OK;
    case LB_FLAG_TUNE: options->tune = true; return LB_OK;
    case LB_FLAG_TUNED: options->tuned = value; return LB_OK;
    case LB_FLAG_FORMAT: options->format = value; return check_format(value, err);
    }
    return LB_OK;
}

/* The command line while it is read: flags come before and after the command that heeds them. */
struct reader {
    char **argv; /* [argc] */
    int argc, at;
    struct given {
        const char *name;
        unsigned commands; /* as of lb_flag */
    } * given;             /* [count] */
    size_t count;
};

static enum lb_status fail_empty(const struct lb_flag *flag, struct lb_error *err)
{
    return lb_fail(err, LB_INVALID, "%s: it takes %s, and was given nothing", flag->name,
                   flag->argument);
}

static enum lb_status take(struct reader *reader, struct lb_options *options,
                           const struct lb_flag *flag, const char *value, struct lb_error *err)
{
    reader->given[reader->count++] = (struct given){flag->name, flag->commands};
    _Static_assert(LB_FLAG_TUNED < 32, "given has a bit an action");
    options->given |= 1U << flag->action;
    if (flag->argument && !value[0])
        return fail_empty(flag, err);
    return apply(options, flag, value, err);
}

/* Whether there is no word, or the next flag: its value was forgotten. A folder that is called like
 * a flag can be given behind '='. */
static bool no_value(const struct reader *reader, int at)
{
    const char *word = at < reader->argc ? reader->argv[at] : NULL;
    return !word || lb_flag_find(word, strlen(word));
}

/* Reads the flag at argv[at] and its argument, behind '=' or in the next word. */
static enum lb_status take_flag(struct reader *reader, struct lb_options *options,
                                struct lb_error *err)
{
    char **argv = reader->argv;
    int argc = reader->argc, *i = &reader->at;
    const char *text = argv[*i], *equals = strchr(text, '=');
    const struct lb_flag *flag =
        lb_flag_find(text, equals ? (size_t)(equals - text) : strlen(text));
    if (!flag && text[0] == '-' && text[1] && text[1] != '-' && text[2]) {
        flag = lb_flag_find(text, 2); /* -T64 */
        if (flag && flag->argument)
            return take(reader, options, flag, text + 2, err);
        flag = NULL;
    }
    if (!flag)
        return lb_flag_unknown(text, err);
    if (!flag->argument)
        return equals ? lb_fail(err, LB_INVALID, "%s: it takes no value", flag->name)
                      : take(reader, options, flag, "", err);
    if (!equals && no_value(reader, *i + 1))
        return lb_fail(err, LB_INVALID, "%s: it takes %s", flag->name, flag->argument);
    enum lb_status st = take(reader, options, flag, equals ? equals + 1 : argv[++*i], err);
    if (st == LB_OK && flag->action == LB_FLAG_RUNS) {
        options->runs = &argv[*i + 1];
        for (options->run_count = 0; *i + 1 < argc && argv[*i + 1][0] != '-'; ++*i)
            options->run_count++;
    }
    if (st != LB_OK || flag->action != LB_FLAG_TWO)
        return st;
    if (no_value(reader, *i + 1))
        return lb_fail(err, LB_INVALID, "%s: it takes %s", flag->name, flag->argument);
    options->run = argv[++*i];
    return options->run[0] ? LB_OK : fail_empty(flag, err);
}

/* Reads all words into the options and the list of what was given. */
static enum lb_status take_words(struct reader *reader, struct lb_options *options,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (reader->at = 1; reader->at < reader->argc && st == LB_OK; reader->at++) {
        char *word = reader->argv[reader->at];
        if (strncmp(word, "--benchmark_", 12) != 0) {
            st = take_flag(reader, options, err);
            continue;
        }
        reader->given[reader->count++] = (struct given){word, lb_flag_benchmark_commands(word)};
        st = take_benchmark(options, word, err);
    }
    return st;
}

/* Every flag must say something to the command. */
static enum lb_status check_words(const struct reader *reader, const struct lb_options *options,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool looks = options->command == LB_CMD_HELP || options->command == LB_CMD_VERSION;
    if (options->command == LB_CMD_NONE)
        return lb_fail(err, LB_INVALID, "no command: --sweep, --list, --plan, ...; see --help");
    for (size_t i = 0; i < reader->count && st == LB_OK && !looks; i++)
        st = lb_flag_check(reader->given[i].name, reader->given[i].commands, options->command, err);
    if (st == LB_OK && options->command == LB_CMD_REPORT && !options->out)
        st = lb_fail(err, LB_INVALID, "--report: the page's file is missing: -o report.html");
    return st;
}

/* What a command on cases means without sizes: the quick grid, inference and training; for the
 * self-test inference alone. */
static enum lb_status choose_quick(struct lb_options *options, struct lb_error *err)
{
    bool tests = options->command == LB_CMD_SELF_TEST;
    bool plans = options->command == LB_CMD_SWEEP || options->command == LB_CMD_LIST ||
                 options->command == LB_CMD_PLAN || options->command == LB_CMD_AB;
    enum lb_status st = LB_OK;
    bool taken;
    if ((!plans && !tests) || options->sized)
        return LB_OK;
    options->quick |= plans;
    LB_TRY(lb_take_cases(&options->selection, "quick", true, err));
    if (plans && options->selection.axes[LB_AXIS_PASS].count == 0)
        LB_TRY(lb_selection_take(&options->selection, "--pass", "infer,train", &taken, err));
done:
    return st;
}

enum lb_status lb_options_parse(int argc, char **argv, struct lb_options *options,
                                struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *options = (struct lb_options){
        .argv = argv,
        .argc = argc,
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
    struct reader reader = {.argv = argv, .argc = argc};
    reader.given = calloc((size_t)argc + 1, sizeof(*reader.given));
    if (!reader.given)
        return lb_fail(err, LB_OOM, "out of memory");
    LB_TRY(take_words(&reader, options, err));
    LB_TRY(check_words(&reader, options, err));
    LB_TRY(choose_quick(options, err));
done:
    free(reader.given);
    if (st != LB_OK)
        lb_options_free(options);
    return st;
}

void lb_options_free(struct lb_options *options)
{
    lb_selection_free(&options->selection);
    free(options->plugins);
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

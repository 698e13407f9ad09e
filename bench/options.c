/* Reading the command line. */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare_cmd.h"
#include "nearest.h"
#include "share.h"
#include "tuned.h"

enum action {
    COMMAND, /* sets command to value, takes no argument */
    SUBJECT, /* sets command to value, the argument is its subject */
    EXPORT,  /* as SUBJECT, and the word after it is the run */
    REPORT,  /* sets command to value, the argument and the words after it are runs */
    SELECTION,
    CASES,
    OUT,
    QUICK,
    KERNELS,
    PROFILE_CALLS,
    PERF_CONTROL,
    CASE_TIME,
    TIME_BUDGET,
    CALL_LIMIT,
    MEMORY,
    BASELINE,
    PLUGIN,
    SEED,
    LOSS_SCALE,
    DEVICE,
    DEVICE_MODEL,
    PROCESSES,
    MARGIN,
    STRICT,
    CONFIRM,
    FORMAT,
    TUNE,
    TUNED
};

enum { SIZES = 1 /* value of the selections that say which sizes to run */ };

static const struct flag {
    const char *name;
    enum action action;
    int value;
    const char *argument; /* what it takes; NULL: nothing */
} flags[] = {
    {"--sweep", COMMAND, LB_CMD_SWEEP, NULL},
    {"--list", COMMAND, LB_CMD_LIST, NULL},
    {"--plan", COMMAND, LB_CMD_PLAN, NULL},
    {"--help", COMMAND, LB_CMD_HELP, NULL},
    {"-h", COMMAND, LB_CMD_HELP, NULL},
    {"--version", COMMAND, LB_CMD_VERSION, NULL},
    {"--resume", SUBJECT, LB_CMD_RESUME, "the folder of a run"},
    {"--explain", SUBJECT, LB_CMD_EXPLAIN, "a case"},
    {"--profile", SUBJECT, LB_CMD_PROFILE, "a case"},
    {"--export", EXPORT, LB_CMD_EXPORT, "a format and a run"},
    {"--plot", EXPORT, LB_CMD_PLOT, "a kind of picture and a run"},
    {"--report", REPORT, LB_CMD_REPORT, "a run"},
    {"-o", OUT, 0, "a file or a folder"},
    {"--compare", EXPORT, LB_CMD_COMPARE, "two runs, the base first"},
    {"--ab", EXPORT, LB_CMD_AB, "two implementations or plug-ins"},
    {"--self-test", COMMAND, LB_CMD_SELF_TEST, NULL},
    {"--history", SUBJECT, LB_CMD_HISTORY, "a folder of runs"},
    {"--margin", MARGIN, 0, "percent"},
    {"--strict", STRICT, 0, NULL},
    {"--confirm", CONFIRM, 0, "a run"},
    {"--format", FORMAT, 0, "table, markdown, junit or json"},
    {"--processes", PROCESSES, 0, "a number"},
    {"--cases", CASES, 0, "a file of cases"},
    {"--out", OUT, 0, "a folder"},
    {"--quick", QUICK, 0, NULL},
    {"--kernels", KERNELS, 0, NULL},
    {"--profile-calls", PROFILE_CALLS, 0, "a number"},
    {"--perf-control", PERF_CONTROL, 0, "one or two named pipes"},
    {"--case-time", CASE_TIME, 0, "seconds"},
    {"--time-budget", TIME_BUDGET, 0, "seconds"},
    {"--call-limit", CALL_LIMIT, 0, "seconds"},
    {"--memory", MEMORY, 0, "a size such as 512M or 4G"},
    {"--baseline", BASELINE, 0, "an implementation"},
    {"--plugin", PLUGIN, 0, "a shared object"},
    {"--seed", SEED, 0, "a number"},
    {"--loss-scale", LOSS_SCALE, 0, "a factor"},
    {"--device", DEVICE, 0, "a number"},
    {"--device-model", DEVICE_MODEL, 0, "a GPU's name"},
    {"--tune", TUNE, 0, NULL},
    {"--tuned", TUNED, 0, "a file"},
    {"--ceilings", COMMAND, LB_CMD_CEILINGS, NULL},
    {"-T", SELECTION, SIZES, "numbers"},
    {"-B", SELECTION, SIZES, "numbers"},
    {"-I", SELECTION, 0, "numbers"},
    {"-H", SELECTION, SIZES, "numbers"},
    {"-L", SELECTION, 0, "numbers"},
    {"-D", SELECTION, 0, "1, 2 or both"},
    {"--dtype", SELECTION, 0, "dtypes"},
    {"--pass", SELECTION, 0, "passes"},
    {"--math", SELECTION, 0, "math modes"},
    {"--ragged", SELECTION, 0, "full, ragged or both"},
    {"--act", SELECTION, 0, "tanh, relu or both"},
    {"--launch", SELECTION, 0, "stream, graph or both"},
    {"--cache", SELECTION, 0, "hot, cold or both"},
    {"--timing", SELECTION, 0, "isolated, batched or both"},
    {"--threads", SELECTION, 0, "numbers"},
    {"--impl", SELECTION, 0, "implementations"},
    {"--where", SELECTION, 0, "an expression"},
    {"--case", SELECTION, SIZES, "a case"},
};

enum { FLAG_COUNT = sizeof(flags) / sizeof(flags[0]) };

static const struct flag *find_flag(const char *name, size_t length)
{
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (strlen(flags[i].name) == length && memcmp(flags[i].name, name, length) == 0)
            return &flags[i];
    return NULL;
}

static enum lb_status unknown_flag(const char *text, struct lb_error *err)
{
    const char *names[FLAG_COUNT + 1] = {NULL};
    for (size_t i = 0; i < FLAG_COUNT; i++)
        names[i] = flags[i].name;
    const char *nearest = lb_nearest(text, names);
    if (text[0] != '-')
        return lb_fail(err, LB_INVALID, "'%s': a flag was expected; see --help", text);
    return lb_fail(err, LB_INVALID, "%s: there is no such flag%s%s%s", text,
                   nearest ? "; did you mean " : "; see --help", nearest ? nearest : "",
                   nearest ? "?" : "");
}

static enum lb_status parse_seconds(const char *flag, const char *text, double *seconds,
                                    struct lb_error *err)
{
    char *end;
    *seconds = strtod(text, &end);
    if (end == text || *end || !(*seconds > 0) || !isfinite(*seconds))
        return lb_fail(err, LB_INVALID, "%s %s: must be a number of seconds above 0", flag, text);
    return LB_OK;
}

static enum lb_status parse_size(const char *text, double *bytes, struct lb_error *err)
{
    static const char units[] = "KMGT";
    char *end;
    double value = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    bool whole = end != text && (!*end || (unit && !end[1]));
    if (!whole || !(value > 0) || !isfinite(value))
        return lb_fail(err, LB_INVALID, "--memory %s: must be bytes, or a size such as 512M or 4G",
                       text);
    *bytes = unit ? ldexp(value, 10 * (int)(unit - units + 1)) : value;
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

static enum lb_status parse_processes(const char *text, int *processes, struct lb_error *err)
{
    int64_t value;
    if (lb_parse_int(text, strlen(text), 1, &value, NULL) != LB_OK || value > 1000)
        return lb_fail(err, LB_INVALID, "--processes %s: allowed are 1 to 1000", text);
    *processes = (int)value;
    return LB_OK;
}

/* The path of --cases: as given, or that of a shipped file when there is no such path. */
static enum lb_status take_cases(struct lb_options *options, const char *name, struct lb_error *err)
{
    char folder[4096], path[4300];
    bool taken;
    if (!strchr(name, '/') && access(name, F_OK) != 0 &&
        lb_share_path("cases", folder, sizeof(folder), err) == LB_OK) {
        snprintf(path, sizeof(path), "%s/%s.txt", folder, name);
        if (access(path, F_OK) == 0)
            name = path;
    }
    return lb_selection_take(&options->selection, "--cases", name, &taken, err);
}

static enum lb_status set_command(struct lb_options *options, const struct flag *flag,
                                  struct lb_error *err)
{
    enum lb_command command = (enum lb_command)flag->value;
    bool looks = command == LB_CMD_HELP || command == LB_CMD_VERSION;
    if (options->command == LB_CMD_NONE || looks)
        options->command = command;
    else if (options->command != command)
        return lb_fail(err, LB_INVALID, "%s: another command was given already; one at a time",
                       flag->name);
    return LB_OK;
}

/* --benchmark_* go to Google Benchmark, but for the three whose meaning is about output: that
 * is the program's own. */
static enum lb_status take_benchmark(struct lb_options *options, char *text, struct lb_error *err)
{
    static const char out[] = "--benchmark_out=", format[] = "--benchmark_format=",
                      out_format[] = "--benchmark_out_format=", list[] = "--benchmark_list_tests",
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
    if (strncmp(text, list, strlen(list)) == 0)
        return lb_fail(err, LB_INVALID, "%s: use --list", text);
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

/* For this process and its workers. */
static enum lb_status set_variable(const char *name, const char *value, struct lb_error *err)
{
    if (setenv(name, value, 1) != 0)
        return lb_fail(err, LB_OOM, "%s: %s", name, strerror(errno));
    return LB_OK;
}

static enum lb_status apply(struct lb_options *options, const struct flag *flag, const char *value,
                            struct lb_error *err)
{
    bool taken;
    switch (flag->action) {
    case COMMAND: return set_command(options, flag, err);
    case SUBJECT:
    case EXPORT: options->subject = value; return set_command(options, flag, err);
    case REPORT: options->run = value; return set_command(options, flag, err);
    case SELECTION:
        options->sized |= flag->value == SIZES;
        options->narrowed |= flag->value != SIZES;
        return lb_selection_take(&options->selection, flag->name, value, &taken, err);
    case CASES: options->sized = true; return take_cases(options, value, err);
    case OUT: options->out = value; return LB_OK;
    case QUICK: options->quick = true; return LB_OK;
    case KERNELS: options->kernels = true; return LB_OK;
    case PROFILE_CALLS: return parse_calls(value, &options->profile_calls, err);
    case PERF_CONTROL: options->perf_control = value; return LB_OK;
    case CASE_TIME: return parse_seconds(flag->name, value, &options->case_time_s, err);
    case TIME_BUDGET: return parse_seconds(flag->name, value, &options->time_budget_s, err);
    case CALL_LIMIT: return parse_seconds(flag->name, value, &options->call_limit_s, err);
    case MEMORY: return parse_size(value, &options->memory_bytes, err);
    case BASELINE: options->baseline = value; return LB_OK;
    case PLUGIN: return take_plugin(options, value, err);
    case SEED: return parse_seed(value, &options->seed, err);
    case LOSS_SCALE: return parse_loss_scale(value, &options->loss_scale, err);
    case DEVICE: return parse_device(value, &options->device, err);
    case DEVICE_MODEL: options->device_model = value; return LB_OK;
    case PROCESSES: return parse_processes(value, &options->processes, err);
    case MARGIN: return parse_margin(value, &options->margin, err);
    case STRICT: options->strict = true; return LB_OK;
    case TUNE: return set_variable(LB_TUNE_VARIABLE, "1", err);
    case TUNED: return set_variable(LB_TUNED_VARIABLE, value, err);
    case CONFIRM: options->confirm = value; return LB_OK;
    case FORMAT: options->format = value; return lb_compare_format_check(value, err);
    }
    return LB_OK;
}

/* Reads the flag at argv[*i] and its argument, behind '=' or in the next word. */
static enum lb_status take_flag(struct lb_options *options, int argc, char **argv, int *i,
                                struct lb_error *err)
{
    const char *text = argv[*i], *equals = strchr(text, '=');
    const struct flag *flag = find_flag(text, equals ? (size_t)(equals - text) : strlen(text));
    if (!flag && text[0] == '-' && text[1] && text[1] != '-' && text[2]) {
        flag = find_flag(text, 2); /* -T64 */
        if (flag && flag->argument)
            return apply(options, flag, text + 2, err);
        flag = NULL;
    }
    if (!flag)
        return unknown_flag(text, err);
    if (!flag->argument)
        return equals ? lb_fail(err, LB_INVALID, "%s: it takes no value", flag->name)
                      : apply(options, flag, "", err);
    if (!equals && *i + 1 >= argc)
        return lb_fail(err, LB_INVALID, "%s: it takes %s", flag->name, flag->argument);
    enum lb_status st = apply(options, flag, equals ? equals + 1 : argv[++*i], err);
    if (st == LB_OK && flag->action == REPORT) {
        options->runs = &argv[*i + 1];
        for (options->run_count = 0; *i + 1 < argc && argv[*i + 1][0] != '-'; ++*i)
            options->run_count++;
    }
    if (st != LB_OK || flag->action != EXPORT)
        return st;
    if (*i + 1 >= argc)
        return lb_fail(err, LB_INVALID, "%s: it takes %s", flag->name, flag->argument);
    options->run = argv[++*i];
    return LB_OK;
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
    LB_TRY(take_cases(options, "quick", err));
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
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--benchmark_", 12) == 0)
            LB_TRY(take_benchmark(options, argv[i], err));
        else
            LB_TRY(take_flag(options, argc, argv, &i, err));
    }
    if (options->command == LB_CMD_NONE)
        st = lb_fail(err, LB_INVALID, "no command: --sweep, --list, --plan, ...; see --help");
    else if (options->command == LB_CMD_REPORT && !options->out)
        st = lb_fail(err, LB_INVALID, "--report: the page's file is missing: -o report.html");
    else if (options->command == LB_CMD_RESUME &&
             (options->sized || options->narrowed || options->out))
        st = lb_fail(err, LB_INVALID,
                     "--resume: the run's own cases and folder are used; "
                     "give none");
    else if (options->device_model &&
             (options->command == LB_CMD_SWEEP || options->command == LB_CMD_RESUME ||
              options->command == LB_CMD_CEILINGS))
        st = lb_fail(err, LB_INVALID,
                     "--device-model: it answers questions, nothing can run on it; use it with "
                     "--list, --plan or --explain");
    else if (options->confirm && options->command != LB_CMD_COMPARE)
        st = lb_fail(err, LB_INVALID, "--confirm: it belongs to --compare");
    else
        st = choose_quick(options, err);
done:
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

/* The flags: what each takes, what becomes of it, and which commands it says something to. */
#include "cli/flags.h"

#include <stdio.h>
#include <string.h>

#include "base/suggest.h"

enum {
    SWEEP = 1 << LB_CMD_SWEEP,
    RESUME = 1 << LB_CMD_RESUME,
    LIST = 1 << LB_CMD_LIST,
    PLAN = 1 << LB_CMD_PLAN,
    EXPLAIN = 1 << LB_CMD_EXPLAIN,
    PROFILE = 1 << LB_CMD_PROFILE,
    CEILINGS = 1 << LB_CMD_CEILINGS,
    PLOT = 1 << LB_CMD_PLOT,
    REPORT = 1 << LB_CMD_REPORT,
    COMPARE = 1 << LB_CMD_COMPARE,
    AB = 1 << LB_CMD_AB,
    SELF_TEST = 1 << LB_CMD_SELF_TEST,
    HISTORY = 1 << LB_CMD_HISTORY,

    SWEEPS = SWEEP | PLAN, /* a plan is asked for with the line of the sweep itself */
    GRIDS = SWEEPS | LIST | AB | SELF_TEST,
    WORKERS = GRIDS | RESUME | EXPLAIN | CEILINGS,
    LOADS = GRIDS | EXPLAIN | PROFILE
};

static const struct lb_flag flags[] = {
    {"--sweep", LB_FLAG_COMMAND, LB_CMD_SWEEP, NULL, 0},
    {"--list", LB_FLAG_COMMAND, LB_CMD_LIST, NULL, 0},
    {"--plan", LB_FLAG_COMMAND, LB_CMD_PLAN, NULL, 0},
    {"--help", LB_FLAG_COMMAND, LB_CMD_HELP, NULL, 0},
    {"-h", LB_FLAG_COMMAND, LB_CMD_HELP, NULL, 0},
    {"--version", LB_FLAG_COMMAND, LB_CMD_VERSION, NULL, 0},
    {"--resume", LB_FLAG_SUBJECT, LB_CMD_RESUME, "the folder of a run", 0},
    {"--explain", LB_FLAG_SUBJECT, LB_CMD_EXPLAIN, "a case", 0},
    {"--profile", LB_FLAG_SUBJECT, LB_CMD_PROFILE, "a case", 0},
    {"--export", LB_FLAG_TWO, LB_CMD_EXPORT, "a format and a run", 0},
    {"--plot", LB_FLAG_TWO, LB_CMD_PLOT, "a kind of picture and a run", 0},
    {"--report", LB_FLAG_RUNS, LB_CMD_REPORT, "a run", 0},
    {"-o", LB_FLAG_OUT, 0, "a file or a folder", SWEEPS | AB | REPORT},
    {"--compare", LB_FLAG_TWO, LB_CMD_COMPARE, "two runs, the base first", 0},
    {"--ab", LB_FLAG_TWO, LB_CMD_AB, "two implementations or plug-ins", 0},
    {"--self-test", LB_FLAG_COMMAND, LB_CMD_SELF_TEST, NULL, 0},
    {"--history", LB_FLAG_SUBJECT, LB_CMD_HISTORY, "a folder of runs", 0},
    {"--margin", LB_FLAG_MARGIN, 0, "percent", COMPARE | AB | REPORT | SELF_TEST | HISTORY},
    {"--strict", LB_FLAG_STRICT, 0, NULL, COMPARE | AB},
    {"--confirm", LB_FLAG_CONFIRM, 0, "a run", COMPARE},
    {"--format", LB_FLAG_FORMAT, 0, "table, markdown, junit or json", COMPARE | AB},
    {"--processes", LB_FLAG_PROCESSES, 0, "a number", SWEEPS},
    {"--cases", LB_FLAG_CASES, 0, "a file of cases", GRIDS},
    {"--out", LB_FLAG_OUT, 0, "a folder", SWEEPS | AB | REPORT},
    {"--quick", LB_FLAG_QUICK, 0, NULL, SWEEPS | SELF_TEST},
    {"--kernels", LB_FLAG_KERNELS, 0, NULL, SWEEPS | EXPLAIN | PROFILE},
    {"--profile-calls", LB_FLAG_PROFILE_CALLS, 0, "a number", PROFILE},
    {"--perf-control", LB_FLAG_PERF_CONTROL, 0, "one or two named pipes", PROFILE},
    {"--case-time", LB_FLAG_CASE_TIME, 0, "seconds", SWEEPS},
    {"--time-budget", LB_FLAG_TIME_BUDGET, 0, "seconds", SWEEPS | RESUME},
    {"--call-limit", LB_FLAG_CALL_LIMIT, 0, "seconds", WORKERS},
    {"--hang-limit", LB_FLAG_HANG_LIMIT, 0, "a number", SWEEPS | RESUME},
    {"--memory", LB_FLAG_MEMORY, 0, "a size such as 512M or 4G", WORKERS | PROFILE},
    {"--baseline", LB_FLAG_BASELINE, 0, "an implementation", SWEEPS | PLOT | REPORT},
    {"--plugin", LB_FLAG_PLUGIN, 0, "a shared object", LOADS},
    {"--seed", LB_FLAG_SEED, 0, "a number", SWEEPS | EXPLAIN | PROFILE | AB | SELF_TEST},
    {"--loss-scale", LB_FLAG_LOSS_SCALE, 0, "a factor", SWEEPS | PROFILE},
    {"--device", LB_FLAG_DEVICE, 0, "a number", WORKERS | PROFILE},
    {"--device-model", LB_FLAG_DEVICE_MODEL, 0, "a GPU's name", LIST | PLAN | EXPLAIN},
    {"--tune", LB_FLAG_TUNE, 0, NULL, WORKERS | PROFILE},
    {"--tuned", LB_FLAG_TUNED, 0, "a file", WORKERS | PROFILE},
    {"--ceilings", LB_FLAG_COMMAND, LB_CMD_CEILINGS, NULL, 0},
    {"-T", LB_FLAG_SELECTION, LB_FLAG_SIZES, "numbers", GRIDS},
    {"-B", LB_FLAG_SELECTION, LB_FLAG_SIZES, "numbers", GRIDS},
    {"-I", LB_FLAG_SELECTION, 0, "numbers", GRIDS},
    {"-H", LB_FLAG_SELECTION, LB_FLAG_SIZES, "numbers", GRIDS},
    {"-L", LB_FLAG_SELECTION, 0, "numbers", GRIDS},
    {"-D", LB_FLAG_SELECTION, 0, "1, 2 or both", GRIDS},
    {"--dtype", LB_FLAG_SELECTION, 0, "dtypes", GRIDS},
    {"--pass", LB_FLAG_SELECTION, 0, "passes", GRIDS},
    {"--math", LB_FLAG_SELECTION, 0, "math modes", GRIDS},
    {"--ragged", LB_FLAG_SELECTION, 0, "full, ragged or both", GRIDS},
    {"--act", LB_FLAG_SELECTION, 0, "tanh, relu or both", GRIDS},
    {"--launch", LB_FLAG_SELECTION, 0, "stream, graph or both", GRIDS},
    {"--cache", LB_FLAG_SELECTION, 0, "hot, cold or both", GRIDS},
    {"--timing", LB_FLAG_SELECTION, 0, "isolated, batched or both", GRIDS},
    {"--threads", LB_FLAG_SELECTION, 0, "numbers", GRIDS},
    {"--impl", LB_FLAG_SELECTION, 0, "implementations", SWEEPS | LIST | SELF_TEST},
    {"--where", LB_FLAG_SELECTION, 0, "an expression", GRIDS},
    {"--case", LB_FLAG_SELECTION, LB_FLAG_SIZES, "a case", GRIDS},
};

enum { FLAG_COUNT = sizeof(flags) / sizeof(flags[0]) };

const struct lb_flag *lb_flag_find(const char *name, size_t length)
{
    for (size_t i = 0; i < FLAG_COUNT; i++)
        if (strlen(flags[i].name) == length && memcmp(flags[i].name, name, length) == 0)
            return &flags[i];
    return NULL;
}

enum lb_status lb_flag_unknown(const char *text, struct lb_error *err)
{
    const char *names[FLAG_COUNT + 1] = {NULL};
    for (size_t i = 0; i < FLAG_COUNT; i++)
        names[i] = flags[i].name;
    const char *nearest = lb_suggest(text, names);
    if (text[0] != '-')
        return lb_fail(err, LB_INVALID, "'%s': a flag was expected; see --help", text);
    return lb_fail(err, LB_INVALID, "%s: there is no such flag%s%s%s", text,
                   nearest ? "; did you mean " : "; see --help", nearest ? nearest : "",
                   nearest ? "?" : "");
}

unsigned lb_flag_benchmark_commands(const char *text)
{
    static const struct {
        const char *start;
        unsigned commands;
    } starts[] = {
        {"--benchmark_out", SWEEPS | RESUME},
        {"--benchmark_format", SWEEPS | RESUME},
        {"--benchmark_repetitions", SWEEPS | AB},
        {"--benchmark_", SWEEPS},
    };
    size_t i = 0;
    while (strncmp(text, starts[i].start, strlen(starts[i].start)) != 0)
        i++;
    return starts[i].commands;
}

/* The name of the flag that is the command. */
static const char *command_name(enum lb_command command)
{
    size_t i = 0;
    while (flags[i].commands != 0 || flags[i].value != (int)command)
        i++;
    return flags[i].name;
}

enum lb_status lb_flag_check(const char *name, unsigned commands, enum lb_command command,
                             struct lb_error *err)
{
    char heed[256] = "";
    if (commands == 0 || commands & 1U << command)
        return LB_OK;
    for (int c = LB_CMD_NONE; c <= LB_CMD_LAST; c++) {
        size_t used = strlen(heed);
        if (commands & 1U << c)
            snprintf(heed + used, sizeof(heed) - used, "%s%s", used ? ", " : "",
                     command_name((enum lb_command)c));
    }
    return lb_fail(err, LB_INVALID, "%s: %s does not heed it%s; it is for %s", name,
                   command_name(command),
                   command == LB_CMD_RESUME ? ", for a run goes on as it began" : "", heed);
}

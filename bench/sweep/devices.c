/* --devices: one process of this program per GPU, whose runs are merged. */
#define _GNU_SOURCE /* pipe2 */

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "host/cpu_affinity.h"
#include "record/environment.h"
#include "support/subprocess.h"
#include "sweep/sweep.h"

enum { POLL_MS = 200, LINE_SIZE = 1024 };

/* A process of this program, and the run that it writes. */
struct part {
    int device; /* number of its GPU */
    struct lb_device_info gpu;
    char folder[4200];           /* of its run */
    char cpus[LB_CPU_LIST_SIZE]; /* that it may use; "": all of the program's */
    pid_t pid;
    int output; /* reads its stderr; -1: it has ended */
    char line[LINE_SIZE];
    size_t used; /* bytes of the line that it has written so far */
};

/* A run on several devices. */
struct launch {
    struct lb_session *session;
    char folder[4096];
    struct part parts[LB_MAX_DEVICES]; /* [count] */
    size_t count;
    bool failed; /* one of the processes */
    double start_ns;
};

/* ---- Processes ---- */

/* The options of the user that have an effect on the command, but for those that each process gets
 * anew or that name a file to write. There is room for 17 more words. The caller frees the array.
 */
static const char **begin_words(const struct lb_options *options, enum lb_command command,
                                size_t *count)
{
    static const char *const dropped[] = {"--devices", "--device", "--time-budget", "--verbose",
                                          "--benchmark_out"};
    const char **words = lb_needed(calloc((size_t)options->argc + 18, sizeof(*words)));
    *count = 0;
    words[(*count)++] = "bench-lstm";
    for (int i = 1, next; i < options->argc; i = next) {
        const char *value;
        const struct lb_option *option = lb_option_match(options->argv[i], &value);
        bool kept = option && option->group != LB_GROUP_COMMANDS && option->commands & command;
        next = i + 1 + (option && option->argument && !value);
        for (size_t k = 0; k < sizeof(dropped) / sizeof(dropped[0]); k++)
            kept = kept && strcmp(option->name, dropped[k]) != 0;
        for (; kept && i < next; i++)
            words[(*count)++] = options->argv[i];
    }
    return words;
}

static enum lb_status start(struct part *part, const char **words, struct lb_error *err)
{
    char all[LB_CPU_LIST_SIZE];
    int ends[2];
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return lb_fail(err, LB_FAILED, "--devices: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    lb_allowed_cpus(all);
    if (part->cpus[0])
        lb_bind_cpus(part->cpus); /* which the process inherits */
    int failed = lb_spawn("/proc/self/exe", &actions, (char **)(uintptr_t)words, &part->pid);
    if (part->cpus[0])
        lb_bind_cpus(all);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    part->output = failed ? -1 : ends[0];
    if (failed)
        close(ends[0]);
    return failed ? lb_fail(err, LB_FAILED, "--devices: starting a process: %s", strerror(failed))
                  : LB_OK;
}

static void show_line(struct part *part)
{
    part->line[part->used] = '\0';
    lb_clean_text(part->line);
    if (part->used > 0)
        fprintf(stderr, "device %d  %s\n", part->device, part->line);
    part->used = 0;
}

static void take_output(struct part *part)
{
    char text[4096];
    ssize_t n = read(part->output, text, sizeof(text));
    for (ssize_t i = 0; i < n; i++) {
        if (text[i] != '\n')
            part->line[part->used++] = text[i];
        if (text[i] == '\n' || part->used == LINE_SIZE - 1)
            show_line(part);
    }
    if (n > 0 || (n < 0 && errno == EINTR))
        return;
    show_line(part);
    close(part->output);
    part->output = -1;
}

/* Waits until all processes have ended, and passes an interruption on. stops: they are interrupted
 * at once, because one could not be started. That one has no output. */
static void wait_for_parts(struct launch *launch, bool stops)
{
    struct pollfd polled[LB_MAX_DEVICES];
    bool told = false;
    int status;
    for (size_t open = launch->count; open > 0;) {
        open = 0;
        for (size_t i = 0; i < launch->count; i++) {
            polled[i] = (struct pollfd){.fd = launch->parts[i].output, .events = POLLIN};
            open += launch->parts[i].output >= 0;
        }
        if (open > 0 && poll(polled, launch->count, POLL_MS) > 0)
            for (size_t i = 0; i < launch->count; i++)
                if (polled[i].revents)
                    take_output(&launch->parts[i]);
        stops |= lb_sweep_interrupted(launch->session);
        for (size_t i = 0; i < launch->count && stops && !told; i++)
            if (launch->parts[i].pid > 0)
                kill(launch->parts[i].pid, SIGINT);
        told = stops;
    }
    for (size_t i = 0; i < launch->count; i++) {
        if (launch->parts[i].pid <= 0)
            continue;
        while (waitpid(launch->parts[i].pid, &status, 0) < 0 && errno == EINTR)
            ;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : LB_EXIT_FAILED;
        launch->failed |=
            code != LB_EXIT_FINE && code != LB_EXIT_NOTHING && code != LB_EXIT_INTERRUPTED;
        launch->parts[i].pid = 0;
    }
}

/* plans: the process plans the run of a shard and records all cases as skipped, so that a resume
 * finds the run whatever happens. Otherwise it continues the run for the time that is left. */
static enum lb_status start_part(struct launch *launch, struct part *part, bool plans,
                                 struct lb_error *err)
{
    const struct lb_options *options = launch->session->options;
    size_t count;
    char shard[48], device[16], budget[32];
    double left = plans ? 0 : options->time_budget_s - (lb_now_ns() - launch->start_ns) / 1e9;
    snprintf(shard, sizeof(shard), "%zu/%zu", (size_t)(part - launch->parts) + 1, launch->count);
    snprintf(device, sizeof(device), "%d", part->device);
    snprintf(budget, sizeof(budget), "%g", fmax(left, 1e-9));
    bool quick_dtypes = options->selection.axes[LB_AXIS_DTYPE].count > 0 &&
                        !lb_option_given(options, "--dtype"); /* else a shard has f32 alone */
    const struct {
        bool given;
        const char *option, *value;
    } own[] = {
        {plans, "--sweep", "--quiet"},
        {plans, "--shard", shard},
        {plans && quick_dtypes, "--dtype", LB_QUICK_DTYPES},
        {plans, "--device", device},
        {true, plans ? "--out" : "--resume", part->folder},
        {true, "--plots", "none"},
        {isfinite(left), "--time-budget", budget},
        {!plans && options->verbose, "--verbose", NULL},
    };
    const char **words = begin_words(options, plans ? LB_CMD_SWEEP : LB_CMD_RESUME, &count);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        if (own[i].given) {
            words[count++] = own[i].option;
            words[count++] = own[i].value;
        }
    enum lb_status st = start(part, words, err);
    free(words);
    return st;
}

static enum lb_status start_parts(struct launch *launch, bool plans, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < launch->count && st == LB_OK; i++)
        st = start_part(launch, &launch->parts[i], plans, err);
    wait_for_parts(launch, st != LB_OK);
    return st;
}

/* ---- Devices ---- */

/* A process of its own looks at the GPU. LB_INVALID: it can't be used. */
static enum lb_status add_gpu(struct launch *launch, int device, struct lb_error *err)
{
    struct lb_options options = *launch->session->options;
    struct part *part = &launch->parts[launch->count++];
    struct lb_error why = {""};
    *part = (struct part){.device = device, .output = -1};
    options.device = device;
    struct lb_pool *pool = lb_pool_create(&options, NULL, launch->session->stop);
    json_t *gpu;
    enum lb_status st = lb_pool_find_device(pool, &gpu, &why);
    lb_device_from_json(gpu, &part->gpu);
    json_decref(gpu);
    lb_pool_destroy(pool);
    return st == LB_OK || st == LB_INTERRUPTED
               ? st
               : lb_fail(err, LB_INVALID, "--devices: %.480s", why.text);
}

static enum lb_status divide_cpus(struct launch *launch, struct lb_error *err)
{
    const char *addresses[LB_MAX_DEVICES];
    struct lb_device_cpus cpus[LB_MAX_DEVICES];
    char allowed[LB_CPU_LIST_SIZE];
    for (size_t i = 0; i < launch->count; i++)
        addresses[i] = launch->parts[i].gpu.pci;
    lb_allowed_cpus(allowed);
    enum lb_status st = lb_divide_cpus("", allowed, addresses, launch->count, cpus, err);
    for (size_t i = 0; i < launch->count && st == LB_OK; i++) {
        struct part *part = &launch->parts[i];
        memcpy(part->cpus, cpus[i].list, sizeof(part->cpus));
        if (cpus[i].shared || !launch->session->options->quiet)
            fprintf(stderr, "%sdevice %d  %s, %s: CPUs %s%s\n", cpus[i].shared ? "warning: " : "",
                    part->device, part->gpu.name, part->gpu.uuid, cpus[i].list,
                    cpus[i].shared ? ", which it shares, because there are fewer cores than devices"
                                   : "");
    }
    return st;
}

static void name_folders(struct launch *launch)
{
    for (size_t i = 0; i < launch->count; i++)
        snprintf(launch->parts[i].folder, sizeof(launch->parts[i].folder), "%s/devices/%d",
                 launch->folder, launch->parts[i].device);
}

static bool holds_devices(const char *folder)
{
    char path[4200];
    struct stat status;
    snprintf(path, sizeof(path), "%.4000s/devices", folder);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

bool lb_is_devices_run(const char *name)
{
    char folder[4096];
    lb_run_folder(name, folder, sizeof(folder));
    return holds_devices(folder);
}

static enum lb_status plan_parts(struct launch *launch, struct lb_error *err)
{
    const struct lb_options *options = launch->session->options;
    int devices[LB_MAX_DEVICES] = {0};
    size_t count;
    LB_CHECK(lb_devices_parse(options->devices, devices, &count, err));
    LB_CHECK(add_gpu(launch, devices[0], err));
    bool all = count == 0;
    if (all)
        count = (size_t)launch->parts[0].gpu.visible;
    for (size_t i = 1; i < count && i < LB_MAX_DEVICES; i++)
        LB_CHECK(add_gpu(launch, all ? (int)i : devices[i], err));
    LB_CHECK(lb_name_folder(options->out, launch->folder, sizeof(launch->folder), err));
    name_folders(launch);
    if (holds_devices(launch->folder))
        return lb_fail(err, LB_INVALID,
                       "%s: this run exists already: resume it with --resume, or choose another "
                       "folder with --out",
                       launch->folder);
    return start_parts(launch, true, err);
}

static enum lb_status find_parts(struct launch *launch, struct lb_error *err)
{
    char path[4200];
    lb_run_folder(launch->session->options->words[0], launch->folder, sizeof(launch->folder));
    for (int device = 0; device <= LB_MAX_DEVICE && launch->count < LB_MAX_DEVICES; device++) {
        snprintf(path, sizeof(path), "%s/devices/%d", launch->folder, device);
        if (access(path, F_OK) == 0)
            LB_CHECK(add_gpu(launch, device, err));
    }
    name_folders(launch);
    return LB_OK;
}

enum lb_status lb_devices_sweep(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *runs[LB_MAX_DEVICES];
    int merged; /* what is incomplete shows in the rows */
    struct launch *launch = lb_needed(calloc(1, sizeof(*launch)));
    launch->session = session;
    launch->start_ns = lb_now_ns();
    lb_pool_renew(session->pool); /* a worker there may hold a device */
    LB_TRY(session->options->command == LB_CMD_RESUME ? find_parts(launch, err)
                                                      : plan_parts(launch, err));
    LB_TRY(divide_cpus(launch, err));
    LB_TRY(start_parts(launch, false, err));
    for (size_t i = 0; i < launch->count; i++)
        runs[i] = launch->parts[i].folder;
    LB_TRY(lb_merge_runs(runs, launch->count, launch->folder, stderr, &merged, err));
    LB_TRY(lb_sweep_finish(session, launch->folder, false, exit_code, err));
    if (launch->failed && *exit_code != LB_EXIT_INTERRUPTED)
        *exit_code = LB_EXIT_FAILED;
done:
    free(launch);
    return st;
}

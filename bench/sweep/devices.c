/* --devices: one process of this program per GPU, whose runs are merged. */
#define _GNU_SOURCE /* pipe2 */
#include "sweep/devices.h"

#include <dirent.h>
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
#include "base/text.h"
#include "cli/shard.h"
#include "host/numa_cpus.h"
#include "support/subprocess.h"
#include "sweep/merge.h"
#include "sweep/sweep.h"
#include "sweep/sweep_steps.h"

enum { HOST = -1, POLL_MS = 200, LINE_SIZE = 1024, IMPLS_SIZE = 8192 };

/* A process of this program, and the run that it writes. */
struct part {
    int device;                  /* number of its GPU, or HOST */
    json_t *gpu;                 /* its record; owned */
    char folder[4200];           /* of its run */
    char cpus[LB_CPU_LIST_SIZE]; /* that it may use; "": all of the program's */
    pid_t pid;
    int output; /* reads its stderr; -1: it has ended */
    char line[LINE_SIZE];
    size_t used; /* bytes of the line that it has written so far */
};

/* A run on several devices. Its last part is the host, where that has cases. */
struct launch {
    struct lb_session *session;
    char folder[4096];
    struct part parts[LB_MAX_DEVICES + 1]; /* [gpus + has_host] */
    size_t gpus;
    bool has_host, failed; /* failed: one of the processes */
    double start_ns;
};

/* ---- Processes ---- */

/* The command line of a process. The words are borrowed, but for the array. */
struct words {
    const char **items;
    size_t count;
};

/* Begins a command line: the options of the user that have an effect on the command, but for those
 * that each process gets anew or that name a file to write. There is room for 16 more words. */
static enum lb_status begin_words(const struct lb_options *options, enum lb_command command,
                                  struct words *words, struct lb_error *err)
{
    static const char *const dropped[] = {"--devices", "--device", "--impl", "--time-budget",
                                          "--verbose"};
    words->count = 0;
    words->items = calloc((size_t)options->argc + 18, sizeof(*words->items));
    if (!words->items)
        return lb_fail(err, LB_OOM, "out of memory for a command line");
    words->items[words->count++] = "bench-lstm";
    for (int i = 1, next; i < options->argc; i = next) {
        const char *value;
        const struct lb_option *option = lb_option_match(options->argv[i], &value);
        bool kept = option && option->group != LB_GROUP_COMMANDS &&
                    option->commands & 1U << command &&
                    strncmp(options->argv[i], "--benchmark_out", 15) != 0;
        next = i + 1 + (option && option->argument && !value);
        for (size_t k = 0; k < sizeof(dropped) / sizeof(dropped[0]); k++)
            kept = kept && strcmp(option->name, dropped[k]) != 0;
        for (; kept && i < next; i++)
            words->items[words->count++] = options->argv[i];
    }
    return LB_OK;
}

static void add_words(struct words *words, const char *option, const char *value)
{
    words->items[words->count++] = option;
    words->items[words->count++] = value;
}

/* Starts the program with the words on the CPUs of the part. */
static enum lb_status start(struct part *part, struct words *words, struct lb_error *err)
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
    int failed = lb_spawn("/proc/self/exe", &actions, (char **)(uintptr_t)words->items, &part->pid);
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

/* Shows a line of the part's stderr with the part's name before it. */
static void show_line(struct part *part)
{
    char name[32] = "host";
    part->line[part->used] = '\0';
    lb_clean_text(part->line);
    if (part->device != HOST)
        snprintf(name, sizeof(name), "device %d", part->device);
    if (part->used > 0)
        fprintf(stderr, "%-8s  %s\n", name, part->line);
    part->used = 0;
}

/* Reads what the part has written. Closes its output when it has ended. */
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

/* Waits for the processes of some parts [count], and passes an interruption on. Those that could
 * not be started have no output. */
static void wait_for(struct launch *launch, struct part *parts, size_t count)
{
    struct pollfd polled[LB_MAX_DEVICES + 1];
    bool told = false;
    int status;
    for (size_t open = count; open > 0;) {
        open = 0;
        for (size_t i = 0; i < count; i++) {
            polled[i] = (struct pollfd){.fd = parts[i].output, .events = POLLIN};
            open += parts[i].output >= 0;
        }
        if (open > 0 && poll(polled, count, POLL_MS) > 0)
            for (size_t i = 0; i < count; i++)
                if (polled[i].revents)
                    take_output(&parts[i]);
        bool stops = lb_sweep_interrupted(launch->session);
        for (size_t i = 0; i < count && stops && !told; i++)
            if (parts[i].pid > 0)
                kill(parts[i].pid, SIGINT);
        told = stops;
    }
    for (size_t i = 0; i < count; i++) {
        if (parts[i].pid <= 0)
            continue;
        while (waitpid(parts[i].pid, &status, 0) < 0 && errno == EINTR)
            ;
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : LB_EXIT_FAILED;
        launch->failed |=
            code != LB_EXIT_FINE && code != LB_EXIT_NOTHING && code != LB_EXIT_INTERRUPTED;
        parts[i].pid = 0;
    }
}

/* ---- What the processes do ---- */

/* Lists implementations with variants for --impl: those of the plan that run on GPUs, or the
 * others. Each name stands between commas, ",a:auto,b:auto,"; "": there is none. */
static void list_impls(const struct lb_registry *registry, const struct lb_plan *plan, bool on_gpus,
                       char list[IMPLS_SIZE])
{
    list[0] = '\0';
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case *c = &plan->cases[i];
        const struct lb_impl_entry *impl_entry = lb_registry_find(registry, c->impl);
        bool gpu = impl_entry && !impl_entry->absent && impl_entry->memory == LB_DEVICE;
        char name[2 * LB_NAME_SIZE + 4];
        snprintf(name, sizeof(name), ",%s:%s,", c->impl, c->variant[0] ? c->variant : "auto");
        if (gpu == on_gpus && !strstr(list, name))
            lb_append(list, IMPLS_SIZE, "%s", list[0] ? name + 1 : name);
    }
}

/* The precisions that the plan took because the user named no sizes; "" when he did. */
static void default_dtypes(const struct lb_options *options, char *list, size_t size)
{
    const struct lb_axis *dtypes = &options->selection.axes[LB_AXIS_DTYPE];
    list[0] = '\0';
    for (size_t i = 0; !options->sized && !lb_option_given(options, "--dtype") && i < dtypes->count;
         i++)
        lb_append(list, size, "%s%s", i > 0 ? "," : "",
                  lb_dtype_name((enum lb_dtype)dtypes->values[i]));
}

/* Starts a process that plans the run of a part, a shard of the GPUs' cases or those of the host,
 * and records all as skipped: whatever happens later, a resume finds the run. */
static enum lb_status start_plan(struct launch *launch, struct part *part, const char *impls,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_options *options = launch->session->options;
    struct words words = {NULL, 0};
    char shard[48], device[16], dtypes[64], list[IMPLS_SIZE];
    bool host = part->device == HOST;
    snprintf(list, sizeof(list), "%.*s", (int)strlen(impls) - 2, impls + 1);
    snprintf(shard, sizeof(shard), "%zu/%zu", (size_t)(part - launch->parts) + 1, launch->gpus);
    snprintf(device, sizeof(device), "%d", host ? launch->parts[0].device : part->device);
    default_dtypes(options, dtypes, sizeof(dtypes));
    LB_TRY(begin_words(options, LB_CMD_SWEEP, &words, err));
    add_words(&words, "--sweep", "--quiet");
    add_words(&words, "--impl", list);
    add_words(&words, "--device", device);
    add_words(&words, "--out", part->folder);
    add_words(&words, "--plots", "none");
    add_words(&words, "--time-budget", "1e-9");
    if (dtypes[0])
        add_words(&words, "--dtype", dtypes);
    if (!host)
        add_words(&words, "--shard", shard);
    st = start(part, &words, err);
done:
    free(words.items);
    return st;
}

/* Starts a process that continues the run of a part, for the time that is left. */
static enum lb_status start_run(struct launch *launch, struct part *part, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_options *options = launch->session->options;
    struct words words = {NULL, 0};
    char budget[32];
    double left = options->time_budget_s - (lb_now_ns() - launch->start_ns) / 1e9;
    snprintf(budget, sizeof(budget), "%g", fmax(left, 1e-9));
    LB_TRY(begin_words(options, LB_CMD_RESUME, &words, err));
    add_words(&words, "--resume", part->folder);
    add_words(&words, "--plots", "none");
    if (options->verbose)
        words.items[words.count++] = "--verbose";
    if (isfinite(left))
        add_words(&words, "--time-budget", budget);
    st = start(part, &words, err);
done:
    free(words.items);
    return st;
}

/* Runs the cases of all GPUs at once, then those of the host, merges what was written, and finishes
 * as any sweep does. */
static enum lb_status run_parts(struct launch *launch, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *runs[LB_MAX_DEVICES + 1];
    size_t count = launch->gpus + launch->has_host, rows;
    for (size_t i = 0; i < launch->gpus && st == LB_OK; i++)
        st = start_run(launch, &launch->parts[i], err);
    wait_for(launch, launch->parts, launch->gpus);
    LB_TRY(st);
    if (launch->has_host && !lb_sweep_interrupted(launch->session)) {
        LB_TRY(start_run(launch, &launch->parts[launch->gpus], err));
        wait_for(launch, &launch->parts[launch->gpus], 1);
    }
    for (size_t i = 0; i < count; i++)
        runs[i] = launch->parts[i].folder;
    LB_TRY(lb_merge_runs(runs, count, launch->folder, stderr, &rows, err));
    LB_TRY(lb_sweep_finish(launch->session, launch->folder, exit_code, err));
    if (launch->failed && *exit_code != LB_EXIT_INTERRUPTED)
        *exit_code = LB_EXIT_FAILED;
done:
    return st;
}

/* ---- Devices ---- */

/* Adds a GPU, which a process of its own looks at. LB_INVALID: it can't be used. */
static enum lb_status add_gpu(struct launch *launch, int device, struct lb_error *err)
{
    const struct lb_options *options = launch->session->options;
    const struct lb_worker_limits limits = {options->call_limit_s, options->memory_bytes, device};
    struct part *part = &launch->parts[launch->gpus++];
    struct lb_pool *pool = NULL;
    struct lb_error why = {""};
    enum lb_status st = LB_OK;
    *part = (struct part){.device = device, .output = -1};
    LB_TRY(lb_pool_create(&limits, launch->session->stop, &pool, err));
    st = lb_pool_find_device(pool, &part->gpu, &why);
    if (st != LB_OK && st != LB_INTERRUPTED)
        st = lb_fail(err, LB_INVALID, "--devices: %.480s", why.text);
done:
    lb_pool_destroy(pool);
    return st;
}

static void add_host(struct launch *launch)
{
    launch->parts[launch->gpus] = (struct part){.device = HOST, .output = -1};
    launch->has_host = true;
}

/* Adds the GPUs of the command line; all: as many as there are. */
static enum lb_status add_gpus(struct launch *launch, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int devices[LB_MAX_DEVICES] = {0};
    size_t count;
    LB_TRY(lb_devices_parse(launch->session->options->devices, devices, &count, err));
    LB_TRY(add_gpu(launch, devices[0], err));
    bool all = count == 0;
    if (all)
        count = (size_t)json_integer_value(json_object_get(launch->parts[0].gpu, "visible"));
    for (size_t i = 1; i < count && i < LB_MAX_DEVICES; i++)
        LB_TRY(add_gpu(launch, all ? (int)i : devices[i], err));
done:
    return st;
}

static const char *text_of(const json_t *gpu, const char *key)
{
    const char *text = json_string_value(json_object_get(gpu, key));
    return text ? text : "";
}

/* Gives each GPU CPUs of its own, and says which. */
static enum lb_status divide_cpus(struct launch *launch, struct lb_error *err)
{
    const char *addresses[LB_MAX_DEVICES];
    struct lb_device_cpus cpus[LB_MAX_DEVICES];
    char allowed[LB_CPU_LIST_SIZE];
    for (size_t i = 0; i < launch->gpus; i++)
        addresses[i] = text_of(launch->parts[i].gpu, "pci");
    lb_allowed_cpus(allowed);
    enum lb_status st = lb_divide_cpus("", allowed, addresses, launch->gpus, cpus, err);
    for (size_t i = 0; i < launch->gpus && st == LB_OK; i++) {
        struct part *part = &launch->parts[i];
        memcpy(part->cpus, cpus[i].list, sizeof(part->cpus));
        if (cpus[i].shared || !launch->session->options->quiet)
            fprintf(stderr, "%sdevice %d  %s, %s: CPUs %s%s\n", cpus[i].shared ? "warning: " : "",
                    part->device, text_of(part->gpu, "name"), text_of(part->gpu, "uuid"),
                    cpus[i].list,
                    cpus[i].shared ? ", which it shares, because there are fewer cores than devices"
                                   : "");
    }
    return st;
}

/* Names the folders of all parts. */
static void name_folders(struct launch *launch)
{
    for (size_t i = 0; i < launch->gpus; i++)
        snprintf(launch->parts[i].folder, sizeof(launch->parts[i].folder), "%s/devices/%d",
                 launch->folder, launch->parts[i].device);
    snprintf(launch->parts[launch->gpus].folder, sizeof(launch->parts[0].folder), "%s/devices/host",
             launch->folder);
}

bool lb_is_devices_run(const char *folder)
{
    char path[4200];
    struct stat status;
    snprintf(path, sizeof(path), "%.4000s/devices", folder);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Plans the runs of all parts. LB_INVALID: one of the GPUs can't be used, no case runs on a GPU, or
 * the folder has a run. */
static enum lb_status plan_parts(struct launch *launch, const struct lb_plan *plan,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char on_gpus[IMPLS_SIZE], others[IMPLS_SIZE];
    const struct lb_options *options = launch->session->options;
    LB_TRY(add_gpus(launch, err));
    list_impls(launch->session->registry, plan, true, on_gpus);
    list_impls(launch->session->registry, plan, false, others);
    if (!on_gpus[0])
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--devices: no case runs on a GPU: leave it out, or choose implementations "
                       "that do with --impl"));
    if (others[0])
        add_host(launch);
    LB_TRY(lb_name_folder(options->out, launch->folder, sizeof(launch->folder), err));
    name_folders(launch);
    if (lb_is_devices_run(launch->folder))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "%s: this run exists already: resume it with --resume, or choose another "
                       "folder with --out",
                       launch->folder));
    for (size_t i = 0; i < launch->gpus + launch->has_host && st == LB_OK; i++)
        st = start_plan(launch, &launch->parts[i], i < launch->gpus ? on_gpus : others, err);
    wait_for(launch, launch->parts, launch->gpus + launch->has_host);
done:
    return st;
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
    return atoi((*a)->d_name) - atoi((*b)->d_name);
}

/* Finds the parts of a run that is continued. */
static enum lb_status find_parts(struct launch *launch, struct lb_error *err)
{
    char path[4200];
    struct dirent **entries;
    enum lb_status st = LB_OK;
    bool has_host = false;
    snprintf(launch->folder, sizeof(launch->folder), "%s", launch->session->options->subject);
    snprintf(path, sizeof(path), "%s/devices", launch->folder);
    int count = scandir(path, &entries, NULL, by_number);
    if (count < 0)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        has_host |= strcmp(name, "host") == 0;
        if (strspn(name, "0123456789") == strlen(name) && launch->gpus < LB_MAX_DEVICES &&
            st == LB_OK)
            st = add_gpu(launch, atoi(name), err);
        free(entries[i]);
    }
    free(entries);
    if (has_host)
        add_host(launch);
    name_folders(launch);
    return st;
}

/* Runs a sweep on several devices; plan: NULL to continue one. */
static enum lb_status carry_out(struct lb_session *session, const struct lb_plan *plan,
                                int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct launch *launch = calloc(1, sizeof(*launch));
    if (!launch)
        return lb_fail(err, LB_OOM, "out of memory for the devices");
    launch->session = session;
    launch->start_ns = lb_now_ns();
    lb_pool_renew(session->pool); /* a worker there may hold a device */
    LB_TRY(plan ? plan_parts(launch, plan, err) : find_parts(launch, err));
    LB_TRY(divide_cpus(launch, err));
    st = run_parts(launch, exit_code, err);
done:
    for (size_t i = 0; i < launch->gpus; i++)
        json_decref(launch->parts[i].gpu);
    free(launch);
    return st;
}

enum lb_status lb_devices_sweep(struct lb_session *session, const struct lb_plan *plan,
                                int *exit_code, struct lb_error *err)
{
    return carry_out(session, plan, exit_code, err);
}

enum lb_status lb_devices_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    return carry_out(session, NULL, exit_code, err);
}

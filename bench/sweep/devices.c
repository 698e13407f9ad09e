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

enum { HOST = -1, POLL_MS = 200, LINE_SIZE = 1024 };

/* A process of this program, and the run that it writes. */
struct part {
    int device;                  /* number of its GPU, or HOST */
    char folder[4200];           /* of its run */
    char cpus[LB_CPU_LIST_SIZE]; /* that it may use; "": all of the program's */
    pid_t pid;
    int output; /* reads its stderr; -1: it has ended */
    char line[LINE_SIZE];
    size_t used; /* bytes of the line that it has written so far */
};

struct launch {
    struct lb_session *session;
    char folder[4096];
    struct part parts[LB_MAX_DEVICES]; /* [count] of the GPUs */
    size_t count;
    struct part host;
    bool has_host, failed; /* one of the processes failed */
    double start_ns;
};

/* ---- Processes ---- */

/* A command line that grows. The words are borrowed. */
struct words {
    char **items; /* [count], owned */
    size_t count;
};

static void add(struct words *words, const char *word)
{
    words->items[words->count++] = (char *)(uintptr_t)word;
}

/* Begins a command line: that of the user but for options that each process gets anew or that name
 * a file to write. There is room for 32 more words. */
static enum lb_status copy_command(const struct lb_options *options, struct words *words,
                                   struct lb_error *err)
{
    static const char *const dropped[] = {"--devices", "--impl", "--resume"};
    words->items = calloc((size_t)options->argc + 33, sizeof(*words->items));
    if (!words->items)
        return lb_fail(err, LB_OOM, "out of memory for a command line");
    add(words, "bench-lstm");
    for (int i = 1, next; i < options->argc; i = next) {
        const char *value;
        const struct lb_option *option = lb_option_match(options->argv[i], &value);
        bool keep = strncmp(options->argv[i], "--benchmark_out=", 16) != 0;
        next = i + 1 + (option && option->argument && !value);
        for (size_t k = 0; option && k < sizeof(dropped) / sizeof(dropped[0]); k++)
            keep = keep && strcmp(option->name, dropped[k]) != 0;
        for (; keep && i < next; i++)
            add(words, options->argv[i]);
    }
    return LB_OK;
}

/* Starts the program with the words, which end with NULL, on the CPUs of the part. */
static enum lb_status start(struct part *part, const struct words *words, struct lb_error *err)
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
    int failed = lb_spawn("/proc/self/exe", &actions, words->items, &part->pid);
    if (part->cpus[0])
        lb_bind_cpus(all);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    part->output = ends[0];
    if (failed)
        close(ends[0]);
    return failed ? lb_fail(err, LB_FAILED, "--devices: starting a process: %s", strerror(failed))
                  : LB_OK;
}

/* Shows a line of the part's stderr with the part's name before it. */
static void show_line(struct part *part)
{
    part->line[part->used] = '\0';
    lb_clean_text(part->line);
    if (part->used == 0)
        return;
    if (part->device == HOST)
        fprintf(stderr, "host      %s\n", part->line);
    else
        fprintf(stderr, "device %d  %s\n", part->device, part->line);
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
    if (part->used > 0)
        show_line(part);
    close(part->output);
    part->output = -1;
}

/* Notes how the process ended. The run says which of its cases failed. */
static void take_status(struct launch *launch, struct part *part)
{
    int status;
    while (waitpid(part->pid, &status, 0) < 0 && errno == EINTR)
        ;
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    launch->failed |=
        code != LB_EXIT_FINE && code != LB_EXIT_NOTHING && code != LB_EXIT_INTERRUPTED;
    if (code == LB_EXIT_USAGE || code >= 128 + 3)
        fprintf(stderr, "warning: the process that writes %s ended with exit code %d\n",
                part->folder, code);
}

/* Waits for the processes [count], which have been started, and passes an interruption on. */
static void wait_for(struct launch *launch, struct part *parts, size_t count)
{
    struct pollfd polled[LB_MAX_DEVICES];
    bool told = false;
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
        for (size_t i = 0; i < count && !told && lb_sweep_interrupted(launch->session); i++)
            kill(parts[i].pid, SIGINT);
        told = told || lb_sweep_interrupted(launch->session);
    }
    for (size_t i = 0; i < count; i++)
        take_status(launch, &parts[i]);
}

/* ---- What the processes do ---- */

/* The names of implementations with variants, for --impl: those of the plan that run on GPUs, or
 * the others. */
static enum lb_status join_impls(const struct launch *launch, const struct lb_plan *plan,
                                 bool on_gpus, char **list, struct lb_error *err)
{
    size_t size = plan->count * 2 * (LB_NAME_SIZE + 1) + 1, used = 0;
    *list = calloc(1, size);
    if (!*list)
        return lb_fail(err, LB_OOM, "out of memory for %zu implementations", plan->count);
    for (size_t i = 0; i < plan->count; i++) {
        const struct lb_case *c = &plan->cases[i];
        const struct lb_impl_entry *impl_entry =
            lb_registry_find(launch->session->registry, c->impl);
        bool gpu = impl_entry && !impl_entry->absent && impl_entry->memory == LB_DEVICE;
        char name[2 * LB_NAME_SIZE + 4];
        snprintf(name, sizeof(name), ",%s:%s,", c->impl, c->variant[0] ? c->variant : "auto");
        if (gpu != on_gpus || (used > 0 && strstr(*list, name)))
            continue;
        /* ",a:auto,b:auto,": each name stands between commas */
        used += (size_t)snprintf(*list + used, size - used, "%s", used > 0 ? name + 1 : name);
    }
    if (used > 0) /* "a:auto,b:auto" */
        memmove(*list, *list + 1, used - 1);
    if (used > 0)
        (*list)[used - 2] = '\0';
    return LB_OK;
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

/* Starts the sweep of a part: its shard on its GPU, or the cases of the host, for which no time is
 * left before the GPUs are done. */
static enum lb_status start_sweep(struct launch *launch, struct part *part, const char *impls,
                                  struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct words words = {NULL, 0};
    char shard[48], device[16], dtypes[64];
    LB_TRY(copy_command(launch->session->options, &words, err));
    default_dtypes(launch->session->options, dtypes, sizeof(dtypes));
    snprintf(shard, sizeof(shard), "%zu/%zu", (size_t)(part - launch->parts) + 1, launch->count);
    snprintf(device, sizeof(device), "%d",
             part->device == HOST ? launch->parts[0].device : part->device);
    const char *const more[] = {"--impl", impls,        "--device", device,
                                "--out",  part->folder, "--plots",  "none"};
    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        add(&words, more[i]);
    if (dtypes[0]) {
        add(&words, "--dtype");
        add(&words, dtypes);
    }
    add(&words, part->device == HOST ? "--time-budget" : "--shard");
    add(&words, part->device == HOST ? "1e-9" : shard);
    st = start(part, &words, err);
done:
    free(words.items);
    return st;
}

/* Starts the program that continues the run of a part. */
static enum lb_status start_resume(struct launch *launch, struct part *part, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_options *options = launch->session->options;
    struct words words = {NULL, 0};
    char budget[32];
    double left = options->time_budget_s - (lb_now_ns() - launch->start_ns) / 1e9;
    snprintf(budget, sizeof(budget), "%g", fmax(left, 1e-9));
    if (options->command == LB_CMD_RESUME)
        LB_TRY(copy_command(options, &words, err));
    else
        words.items = calloc(2 * options->plugin_count + 16, sizeof(*words.items));
    if (!words.items)
        LB_TRY(lb_fail(err, LB_OOM, "out of memory for a command line"));
    if (words.count == 0) {
        add(&words, "bench-lstm");
        for (size_t i = 0; i < options->plugin_count; i++) {
            add(&words, "--plugin");
            add(&words, options->plugins[i]);
        }
    }
    add(&words, "--resume");
    add(&words, part->folder);
    add(&words, "--plots");
    add(&words, "none");
    if (isfinite(left)) {
        add(&words, "--time-budget");
        add(&words, budget);
    }
    st = start(part, &words, err);
done:
    free(words.items);
    return st;
}

/* Merges what the parts have written, and finishes as any sweep does. */
static enum lb_status finish(struct launch *launch, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const char *runs[LB_MAX_DEVICES + 1];
    size_t count = 0, rows;
    for (size_t i = 0; i <= launch->count; i++) {
        const struct part *part = i < launch->count ? &launch->parts[i] : &launch->host;
        char path[4300];
        snprintf(path, sizeof(path), "%s/%s", part->folder, LB_RUN_FILE_NAME);
        if ((i < launch->count || launch->has_host) && access(path, R_OK) == 0)
            runs[count++] = part->folder;
    }
    if (count == 0)
        return lb_fail(err, LB_FAILED, "%s: no process has begun a run", launch->folder);
    LB_TRY(lb_merge_runs(runs, count, launch->folder, stderr, &rows, err));
    LB_TRY(lb_sweep_finish(launch->session, launch->folder, exit_code, err));
    if (launch->failed && *exit_code != LB_EXIT_INTERRUPTED)
        *exit_code = LB_EXIT_FAILED;
done:
    return st;
}

/* Waits for the processes of the GPUs, of which so many were started; st: whether all were. Then
 * measures the cases of the host, and finishes. */
static enum lb_status follow(struct launch *launch, size_t started, enum lb_status st,
                             int *exit_code, struct lb_error *err)
{
    wait_for(launch, launch->parts, started);
    LB_TRY(st);
    if (launch->has_host && !lb_sweep_interrupted(launch->session)) {
        LB_TRY(start_resume(launch, &launch->host, err));
        wait_for(launch, &launch->host, 1);
    }
    st = finish(launch, exit_code, err);
done:
    return st;
}

/* ---- Devices ---- */

static void add_part(struct launch *launch, int device)
{
    struct part *part = device == HOST ? &launch->host : &launch->parts[launch->count++];
    *part = (struct part){.device = device, .output = -1};
    if (device == HOST)
        snprintf(part->folder, sizeof(part->folder), "%s/devices/host", launch->folder);
    else
        snprintf(part->folder, sizeof(part->folder), "%s/devices/%d", launch->folder, device);
    launch->has_host |= device == HOST;
}

/* Describes the GPU: *gpu, a new reference. A process of its own looks for it. */
static enum lb_status look_at(const struct launch *launch, int device, json_t **gpu,
                              struct lb_error *err)
{
    const struct lb_options *options = launch->session->options;
    const struct lb_worker_limits limits = {options->call_limit_s, options->memory_bytes, device};
    struct lb_pool *pool = NULL;
    struct lb_error why = {""};
    enum lb_status st = LB_OK;
    LB_TRY(lb_pool_create(&limits, launch->session->stop, &pool, err));
    st = lb_pool_find_device(pool, gpu, &why);
    if (st != LB_OK && st != LB_INTERRUPTED)
        st = lb_fail(err, LB_INVALID, "--devices: %.480s", why.text);
done:
    lb_pool_destroy(pool);
    return st;
}

/* Takes the devices of the command line, and says which they are. gpus [LB_MAX_DEVICES] receives
 * their records. LB_INVALID: one of them can't be used. */
static enum lb_status take_devices(struct launch *launch, json_t **gpus, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    int devices[LB_MAX_DEVICES] = {0};
    size_t count;
    LB_TRY(lb_devices_parse(launch->session->options->devices, devices, &count, err));
    LB_TRY(look_at(launch, devices[0], &gpus[0], err));
    if (count == 0) {
        json_int_t visible = json_integer_value(json_object_get(gpus[0], "visible"));
        while (count < LB_MAX_DEVICES && (json_int_t)count < visible) {
            devices[count] = (int)count;
            count++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            LB_TRY(look_at(launch, devices[i], &gpus[i], err));
        add_part(launch, devices[i]);
    }
done:
    return st;
}

static const char *text_of(const json_t *gpu, const char *key)
{
    const char *text = json_string_value(json_object_get(gpu, key));
    return text ? text : "";
}

/* Gives each device CPUs of its own, and says which. */
static void divide_cpus(struct launch *launch, json_t *const *gpus)
{
    const char *addresses[LB_MAX_DEVICES];
    struct lb_device_cpus cpus[LB_MAX_DEVICES];
    char allowed[LB_CPU_LIST_SIZE];
    struct lb_error why = {""};
    for (size_t i = 0; i < launch->count; i++)
        addresses[i] = text_of(gpus[i], "pci");
    lb_allowed_cpus(allowed);
    if (lb_divide_cpus("", allowed, addresses, launch->count, cpus, &why) != LB_OK) {
        fprintf(stderr, "warning: the devices share all CPUs: %s\n", why.text);
        return;
    }
    for (size_t i = 0; i < launch->count; i++) {
        memcpy(launch->parts[i].cpus, cpus[i].list, sizeof(cpus[i].list));
        if (cpus[i].shared || !launch->session->options->quiet)
            fprintf(stderr, "%sdevice %d  %s, %s: CPUs %s%s\n", cpus[i].shared ? "warning: " : "",
                    launch->parts[i].device, text_of(gpus[i], "name"), text_of(gpus[i], "uuid"),
                    cpus[i].list,
                    cpus[i].shared ? ", which it shares, because there are fewer cores than devices"
                                   : "");
    }
}

/* Creates DIR/devices, and plans the cases of the host: their run begins with all of them skipped,
 * so that whatever happens to the GPUs a resume finds it. */
static enum lb_status prepare(struct launch *launch, const char *host_impls, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char path[4200];
    struct stat status;
    LB_TRY(
        lb_name_folder(launch->session->options->out, launch->folder, sizeof(launch->folder), err));
    snprintf(path, sizeof(path), "%s/devices", launch->folder);
    if (stat(path, &status) == 0)
        LB_TRY(lb_fail(err, LB_INVALID,
                       "%s: this run exists already: resume it with --resume, or choose another "
                       "folder with --out",
                       launch->folder));
    for (size_t i = 0; i < launch->count; i++) /* the folder is known only now */
        snprintf(launch->parts[i].folder, sizeof(launch->parts[i].folder), "%.4100s/%d", path,
                 launch->parts[i].device);
    if (host_impls[0]) {
        add_part(launch, HOST);
        LB_TRY(start_sweep(launch, &launch->host, host_impls, err));
        wait_for(launch, &launch->host, 1);
    }
done:
    return st;
}

enum lb_status lb_devices_sweep(struct lb_session *session, const struct lb_plan *plan,
                                int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct launch *launch = calloc(1, sizeof(*launch));
    json_t *gpus[LB_MAX_DEVICES] = {NULL};
    char *gpu_impls = NULL, *host_impls = NULL;
    size_t started = 0;
    if (!launch)
        return lb_fail(err, LB_OOM, "out of memory for the devices");
    launch->session = session;
    launch->start_ns = lb_now_ns();
    lb_pool_renew(session->pool); /* a worker there may hold a device */
    LB_TRY(take_devices(launch, gpus, err));
    LB_TRY(join_impls(launch, plan, true, &gpu_impls, err));
    LB_TRY(join_impls(launch, plan, false, &host_impls, err));
    if (!gpu_impls[0])
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--devices: no case runs on a GPU: leave it out, or choose implementations "
                       "that do with --impl"));
    LB_TRY(prepare(launch, host_impls, err));
    divide_cpus(launch, gpus);
    while (st == LB_OK && started < launch->count) {
        st = start_sweep(launch, &launch->parts[started], gpu_impls, err);
        started += st == LB_OK;
    }
    st = follow(launch, started, st, exit_code, err);
done:
    for (size_t i = 0; i < LB_MAX_DEVICES; i++)
        json_decref(gpus[i]);
    free(gpu_impls);
    free(host_impls);
    free(launch);
    return st;
}

bool lb_is_devices_run(const char *folder)
{
    char path[4200];
    struct stat status;
    snprintf(path, sizeof(path), "%s/devices", folder);
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
    return atoi((*a)->d_name) - atoi((*b)->d_name);
}

/* Takes the runs in DIR/devices. */
static enum lb_status find_parts(struct launch *launch, struct lb_error *err)
{
    char path[4200];
    struct dirent **entries;
    snprintf(path, sizeof(path), "%s/devices", launch->folder);
    int count = scandir(path, &entries, NULL, by_number);
    if (count < 0)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (strcmp(name, "host") == 0)
            add_part(launch, HOST);
        else if (name[0] != '.' && strspn(name, "0123456789") == strlen(name) &&
                 launch->count < LB_MAX_DEVICES)
            add_part(launch, atoi(name));
        free(entries[i]);
    }
    free(entries);
    return LB_OK;
}

enum lb_status lb_devices_resume(struct lb_session *session, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct launch *launch = calloc(1, sizeof(*launch));
    json_t *gpus[LB_MAX_DEVICES] = {NULL};
    size_t started = 0;
    if (!launch)
        return lb_fail(err, LB_OOM, "out of memory for the devices");
    launch->session = session;
    launch->start_ns = lb_now_ns();
    snprintf(launch->folder, sizeof(launch->folder), "%s", session->options->subject);
    LB_TRY(find_parts(launch, err));
    for (size_t i = 0; i < launch->count; i++)
        LB_TRY(look_at(launch, launch->parts[i].device, &gpus[i], err));
    divide_cpus(launch, gpus);
    while (st == LB_OK && started < launch->count) {
        st = start_resume(launch, &launch->parts[started], err);
        started += st == LB_OK;
    }
    st = follow(launch, started, st, exit_code, err);
done:
    for (size_t i = 0; i < LB_MAX_DEVICES; i++)
        json_decref(gpus[i]);
    free(launch);
    return st;
}

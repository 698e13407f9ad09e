/* What an implementation leaves behind in its worker process. */
#define _GNU_SOURCE /* cpu_set_t, mallinfo2, RLIMIT_* */
#include "support/process_state.h"

#include <ctype.h>
#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/memory.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SIGNALS = 65, LIMITS = 16, FILE_NAME = 128, MOST_ROUNDS = 100 };

struct lb_process_state {
    size_t threads;
    double bytes;                          /* of memory that is in use */
    char files[LB_STATE_FILES][FILE_NAME]; /* what each descriptor is open for; "": closed */
    cpu_set_t affinity;
    int priority;
    int rounding;       /* as fegetround */
    bool flush_to_zero; /* of results or of operands */
    struct {
        uintptr_t handler;
        int flags;
    } signals[SIGNALS];
    sigset_t blocked;
    char folder[512], locale[512];
    mode_t umask;
    struct rlimit limits[LIMITS];
};

static const struct limit_name {
    int limit;
    const char *name;
} limit_names[] = {
    {RLIMIT_AS, "address space"},  {RLIMIT_CORE, "core files"},  {RLIMIT_CPU, "CPU time"},
    {RLIMIT_DATA, "data"},         {RLIMIT_FSIZE, "file sizes"}, {RLIMIT_MEMLOCK, "locked memory"},
    {RLIMIT_NOFILE, "open files"}, {RLIMIT_NPROC, "processes"},  {RLIMIT_STACK, "the stack"},
    {RLIMIT_NICE, "the priority"}, {RLIMIT_RTPRIO, "real time"},
};

enum { LIMIT_NAMES = sizeof(limit_names) / sizeof(limit_names[0]) };
_Static_assert((int)LIMIT_NAMES <= (int)LIMITS, "struct lb_process_state has room for all limits");

struct lb_process_state *lb_process_state_create(void)
{
    return calloc(1, sizeof(struct lb_process_state));
}

static bool flushes_to_zero(void)
{
#if defined(__x86_64__)
    return (_mm_getcsr() & 0x8040) != 0; /* FTZ, DAZ */
#elif defined(__aarch64__)
    uint64_t fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return (fpcr >> 24 & 1) != 0;
#else
    return false;
#endif
}

/* Reads a stat file of /proc into line [size]. Returns what follows the name, which may hold
 * anything: " S 1 ...", the state and the parent first; NULL when there is no such file. */
static const char *read_stat(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(line, 1, size - 1, file) : 0;
    line[length] = '\0';
    if (file)
        fclose(file);
    const char *end = strrchr(line, ')');
    return end ? end + 1 : NULL;
}

/* Whether the thread is about to end: pthread_join returns a moment before /proc forgets a thread.
 * PF_EXITING is in the kernel's include/linux/sched.h; the flags are the ninth field of stat. */
static bool is_ending(const char *thread)
{
    enum { PF_EXITING = 0x4 };
    char path[300], line[512];
    unsigned flags;
    snprintf(path, sizeof(path), "/proc/self/task/%.255s/stat", thread);
    const char *stat = read_stat(path, line, sizeof(line));
    return !stat ||
           (sscanf(stat, " %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & PF_EXITING);
}

static size_t count_threads(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/task");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        count += isdigit((unsigned char)entry->d_name[0]) && !is_ending(entry->d_name);
    if (folder)
        closedir(folder);
    return count > 0 ? count : 1;
}

#ifdef __SANITIZE_ADDRESS__

/* The sanitizer keeps freed memory for a while, and finds what leaks by itself. */
static double count_bytes(void)
{
    return 0;
}

#else

/* Memory that is in use: what malloc has handed out, or what the process has touched without what
 * malloc keeps for later, whichever is more. */
static double count_bytes(void)
{
    struct mallinfo2 info = mallinfo2();
    char line[128];
    double touched = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, "RssAnon:", 8) == 0)
            touched = strtod(line + 8, NULL) * 1024;
    if (file)
        fclose(file);
    return fmax((double)info.uordblks + (double)info.hblkhd, touched - (double)info.fordblks);
}

#endif

static void read_files(struct lb_process_state *state)
{
    memset(state->files, 0, sizeof(state->files));
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || fd >= LB_STATE_FILES || fd == dirfd(folder))
            continue;
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, state->files[fd], FILE_NAME - 1);
        snprintf(state->files[fd] + (length > 0 ? length : 0), 2, "%s", length > 0 ? "" : "?");
    }
    if (folder)
        closedir(folder);
}

/* The C library sets this flag of the kernel's own whenever it sets an action, so that one which
 * was put back as it was has it too. */
enum { RESTORER = 0x04000000 };

void lb_process_state_read_settings(struct lb_process_state *state)
{
    CPU_ZERO(&state->affinity);
    sched_getaffinity(0, sizeof(state->affinity), &state->affinity);
    state->priority = getpriority(PRIO_PROCESS, 0);
    state->rounding = fegetround();
    state->flush_to_zero = flushes_to_zero();
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        sigaction(i, NULL, &action);
        state->signals[i].handler = (uintptr_t)action.sa_handler;
        state->signals[i].flags = action.sa_flags & ~RESTORER;
    }
    sigprocmask(SIG_SETMASK, NULL, &state->blocked);
    if (!getcwd(state->folder, sizeof(state->folder)))
        state->folder[0] = '\0';
    const char *locale = setlocale(LC_ALL, NULL);
    snprintf(state->locale, sizeof(state->locale), "%s", locale ? locale : "");
    state->umask = umask(0);
    umask(state->umask);
    for (size_t i = 0; i < LIMIT_NAMES; i++)
        getrlimit(limit_names[i].limit, &state->limits[i]);
}

void lb_process_state_read_resources(struct lb_process_state *state)
{
    state->threads = count_threads();
    state->bytes = count_bytes();
    read_files(state);
}

void lb_process_state_read(struct lb_process_state *state)
{
    lb_process_state_read_resources(state);
    lb_process_state_read_settings(state);
}

/* A list of differences that is being written. */
struct list {
    char *text;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(struct list *list, const char *format, ...)
{
    size_t used = strlen(list->text);
    va_list arguments;
    if (used > 0)
        used += (size_t)snprintf(list->text + used, list->size - used, ", ");
    va_start(arguments, format);
    if (used < list->size)
        vsnprintf(list->text + used, list->size - used, format, arguments);
    va_end(arguments);
}

static bool is_of_a_library(const char *name)
{
    static const char *const kinds[] = {"anon_inode:", "pipe:", "socket:", "/dev/", "/memfd:"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

static void compare_files(const struct lb_process_state *before,
                          const struct lb_process_state *after,
                          const struct lb_state_allowance *allowance, struct list *list)
{
    size_t opened = 0;
    int first = -1;
    for (int fd = 0; fd < LB_STATE_FILES; fd++) {
        const char *was = before->files[fd], *is = after->files[fd];
        if (was[0] && !is[0]) {
            add(list, "file descriptor %d closed", fd);
        } else if (strcmp(was, is) != 0 && !(allowance->descriptors && is_of_a_library(is)) &&
                   !allowance->all_descriptors) {
            first = opened++ == 0 ? fd : first;
        }
    }
    if (opened == 1)
        add(list, "an open file (descriptor %d, %.40s)", first, after->files[first]);
    else if (opened > 1)
        add(list, "%zu open files (the first is descriptor %d, %.40s)", opened, first,
            after->files[first]);
}

static const char *rounding_name(int rounding)
{
    switch (rounding) {
    case FE_TONEAREST: return "to nearest";
    case FE_UPWARD: return "upward";
    case FE_DOWNWARD: return "downward";
    default: return "towards zero";
    }
}

static void compare_signals(const struct lb_process_state *before,
                            const struct lb_process_state *after, struct list *list)
{
    for (int i = 1; i < SIGNALS; i++) {
        if (before->signals[i].handler != after->signals[i].handler ||
            before->signals[i].flags != after->signals[i].flags)
            add(list, "another handler of signal %d", i);
        if (sigismember(&before->blocked, i) != sigismember(&after->blocked, i))
            add(list, "signal %d %s", i, sigismember(&after->blocked, i) ? "blocked" : "unblocked");
    }
}

static void compare_settings(const struct lb_process_state *before,
                             const struct lb_process_state *after, struct list *list)
{
    if (!CPU_EQUAL(&before->affinity, &after->affinity))
        add(list, "another CPU affinity");
    if (before->priority != after->priority)
        add(list, "priority %d instead of %d", after->priority, before->priority);
    if (before->rounding != after->rounding)
        add(list, "rounding %s", rounding_name(after->rounding));
    if (before->flush_to_zero != after->flush_to_zero)
        add(list, "flush-to-zero %s", after->flush_to_zero ? "on" : "off");
    compare_signals(before, after, list);
    if (strcmp(before->folder, after->folder) != 0)
        add(list, "the working directory %.40s", after->folder);
    if (strcmp(before->locale, after->locale) != 0)
        add(list, "the locale %.40s", after->locale);
    if (before->umask != after->umask)
        add(list, "umask %03o instead of %03o", (unsigned)after->umask, (unsigned)before->umask);
    for (size_t i = 0; i < LIMIT_NAMES; i++)
        if (before->limits[i].rlim_cur != after->limits[i].rlim_cur ||
            before->limits[i].rlim_max != after->limits[i].rlim_max)
            add(list, "another limit on %s", limit_names[i].name);
}

size_t lb_process_state_threads(const struct lb_process_state *state)
{
    return state->threads;
}

void lb_process_state_compare(const struct lb_process_state *before,
                              const struct lb_process_state *after,
                              const struct lb_state_allowance *allowance, char *text, size_t size)
{
    struct list list = {text, size};
    double bytes = after->bytes - before->bytes;
    char amount[32];
    text[0] = '\0';
    if (after->threads > before->threads + allowance->threads)
        add(&list, "%zu more thread%s", after->threads - before->threads,
            after->threads - before->threads > 1 ? "s" : "");
    if (bytes > allowance->bytes) {
        lb_format_bytes(bytes, amount);
        add(&list, "%s of memory", amount);
    }
    compare_files(before, after, allowance, &list);
    compare_settings(before, after, &list);
}

static double cpu_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return 1e9 * (double)time.tv_sec + (double)time.tv_nsec;
}

/* Whether the thread runs or waits for a CPU, rather than for an event. */
static bool runs(const char *folder, const char *thread)
{
    char path[400], line[512];
    snprintf(path, sizeof(path), "%.100s/%.255s/stat", folder, thread);
    const char *stat = read_stat(path, line, sizeof(line));
    return stat && stat[0] == ' ' && stat[1] == 'R';
}

bool lb_threads_run(long pid)
{
    char path[64];
    bool any = false;
    snprintf(path, sizeof(path), "/proc/%ld/task", pid);
    DIR *folder = opendir(path);
    for (struct dirent *entry; !any && folder && (entry = readdir(folder));)
        any = isdigit((unsigned char)entry->d_name[0]) &&
              strtol(entry->d_name, NULL, 10) != syscall(SYS_gettid) && runs(path, entry->d_name);
    if (folder)
        closedir(folder);
    return any;
}

double lb_await_idle_threads(double limit_s)
{
    double start = lb_now_ns();
    double all = cpu_ns(CLOCK_PROCESS_CPUTIME_ID), own = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    while (lb_threads_run(getpid())) {
        double elapsed = lb_now_ns() - start;
        if (elapsed > limit_s * 1e9)
            return (cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - all -
                    (cpu_ns(CLOCK_THREAD_CPUTIME_ID) - own)) /
                   elapsed;
        usleep(1000);
    }
    return 0;
}

/* The parent of a process; 0 when there is no such process. */
static long parent_of(const char *pid)
{
    char path[300], line[512];
    snprintf(path, sizeof(path), "/proc/%.255s/stat", pid);
    const char *stat = read_stat(path, line, sizeof(line));
    return stat && strlen(stat) > 3 ? strtol(stat + 3, NULL, 10) : 0;
}

static void kill_children(void)
{
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (isdigit((unsigned char)entry->d_name[0]) && parent_of(entry->d_name) == getpid())
            kill((pid_t)strtol(entry->d_name, NULL, 10), SIGKILL);
    if (folder)
        closedir(folder);
}

int lb_end_children(double limit_s)
{
    double end = lb_now_ns() + limit_s * 1e9;
    int rounds = 0, killed = 0;
    for (;;) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);
        if (ended < 0)
            return killed; /* there are none */
        if (ended > 0) {
            killed += rounds > 0;
        } else if (lb_now_ns() < end) {
            usleep(1000);
        } else if (rounds++ < MOST_ROUNDS) {
            kill_children();
            end = lb_now_ns() + 20e6; /* for them to end, and for their children to become ours */
        } else {
            return killed + 1; /* at least one does not end */
        }
    }
}

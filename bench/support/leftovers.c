/* What an implementation leaves behind in its worker process. */
#define _GNU_SOURCE /* cpu_set_t, mallinfo2 */
#include "support/leftovers.h"

#include <dirent.h>
#include <fenv.h>
#include <inttypes.h>
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
#include <unistd.h>

#include "base/hash.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "host/process.h"
#include "support/texts.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { SIGNALS = 65 };

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

/* Whether the thread is not about to end: pthread_join returns a moment before /proc forgets a
 * thread. PF_EXITING is in the kernel's include/linux/sched.h; the flags are the ninth field of
 * stat. */
static double stays(const char *thread)
{
    enum { PF_EXITING = 0x4 };
    char text[LB_PROC_STAT_SIZE];
    unsigned flags = 0;
    const char *stat = lb_proc_stat(thread, text);
    return stat &&
           (sscanf(stat, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1 || !(flags & PF_EXITING));
}

/* Memory that is in use: what malloc has handed out, or what the process has touched without what
 * malloc keeps for later, whichever is more. */
static double count_bytes(void)
{
#ifdef __SANITIZE_ADDRESS__ /* it keeps freed memory, and finds what leaks by itself */
    return 0;
#else
    struct mallinfo2 info = mallinfo2();
    double touched = fmax(0, 1024 * lb_read_number("/proc/self/status", "RssAnon:"));
    return fmax((double)info.uordblks + (double)info.hblkhd, touched - (double)info.fordblks);
#endif
}

static void read_files(struct lb_process_reading *reading)
{
    memset(reading->files, 0, sizeof(reading->files));
    DIR *folder = opendir("/proc/self/fd");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char *end;
        long fd = strtol(entry->d_name, &end, 10);
        if (end == entry->d_name || fd >= LB_PROCESS_FILES || fd == dirfd(folder))
            continue;
        char *file = reading->files[fd];
        ssize_t length =
            readlinkat(dirfd(folder), entry->d_name, file, sizeof(reading->files[0]) - 1);
        snprintf(file + (length > 0 ? length : 0), 2, "%s", length > 0 ? "" : "?");
    }
    if (folder)
        closedir(folder);
}

static void __attribute__((format(printf, 3, 4)))
add_setting(struct lb_process_reading *reading, const char *name, const char *format, ...)
{
    struct lb_process_setting *setting = &reading->settings[reading->setting_count++];
    va_list values;
    snprintf(setting->name, sizeof(setting->name), "%s", name);
    va_start(values, format);
    vsnprintf(setting->value, sizeof(setting->value), format, values);
    va_end(values);
}

/* The C library sets this flag of the kernel's own whenever it sets an action, so that one which
 * was put back as it was has it too. */
enum { RESTORER = 0x04000000 };

static void read_signals(struct lb_process_reading *reading)
{
    sigset_t blocked;
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = SIG_DFL};
        char name[40], handler[40];
        snprintf(name, sizeof(name), "signal %d", i);
        snprintf(handler, sizeof(handler), "another handler of signal %d", i);
        sigaction(i, NULL, &action);
        add_setting(reading, handler, "%" PRIxPTR " %x", (uintptr_t)action.sa_handler,
                    (unsigned)(action.sa_flags & ~RESTORER));
        add_setting(reading, name, "%s", sigismember(&blocked, i) ? "blocked" : "unblocked");
    }
}

/* Reads lines such as "Max open files            1024                 524288               files".
 */
static void read_limits(struct lb_process_reading *reading)
{
    char line[256];
    FILE *file = fopen("/proc/self/limits", "r");
    while (file && fgets(line, sizeof(line), file)) {
        char name[40], *end = strstr(line, "  ");
        if (strncmp(line, "Max ", 4) != 0 || !end)
            continue;
        *end = '\0';
        snprintf(name, sizeof(name), "another limit on %.20s", line + 4);
        add_setting(reading, name, "%s", end + 1);
    }
    if (file)
        fclose(file);
}

void lb_process_read_settings(struct lb_process_reading *reading)
{
    cpu_set_t affinity;
    char folder[512];
    const char *locale = setlocale(LC_ALL, NULL);
    const int rounding = fegetround();
    mode_t mask = umask(0);
    umask(mask);
    CPU_ZERO(&affinity);
    sched_getaffinity(0, sizeof(affinity), &affinity);
    reading->setting_count = 0;
    add_setting(reading, "another CPU affinity", "%" PRIx64,
                lb_hash_bytes(0, &affinity, sizeof(affinity)));
    add_setting(reading, "priority", "%d", getpriority(PRIO_PROCESS, 0));
    add_setting(reading, "scheduling policy", "%d", sched_getscheduler(0));
    add_setting(reading, "rounding", "%s",
                rounding == FE_TONEAREST  ? "to nearest"
                : rounding == FE_UPWARD   ? "upward"
                : rounding == FE_DOWNWARD ? "downward"
                                          : "towards zero");
    add_setting(reading, "flush-to-zero", "%s", flushes_to_zero() ? "on" : "off");
    add_setting(reading, "the working directory", "%s",
                getcwd(folder, sizeof(folder)) ? folder : "?");
    add_setting(reading, "the locale", "%.400s", locale ? locale : "");
    add_setting(reading, "umask", "%03o", (unsigned)mask);
    read_signals(reading);
    read_limits(reading);
}

void lb_process_read_resources(struct lb_process_reading *reading)
{
    size_t threads = (size_t)lb_proc_sum("/proc/self/task", stays), own = lb_thread_pool_started();
    reading->threads = threads > own ? threads - own : 1; /* the oracle's stay */
    reading->bytes = count_bytes();
    read_files(reading);
}

/* Appends an item to a list. */
#define ADD(text, size, ...)                                \
    do {                                                    \
        lb_append(text, size, "%s", (text)[0] ? ", " : ""); \
        lb_append(text, size, __VA_ARGS__);                 \
    } while (0)

static bool is_of_a_library(const char *name)
{
    static const char *const kinds[] = {"anon_inode:", "pipe:", "socket:", "/dev/", "/memfd:"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(name, kinds[i], strlen(kinds[i])) == 0)
            return true;
    return false;
}

static void compare_files(const struct lb_process_reading *before,
                          const struct lb_process_reading *after,
                          const struct lb_leftovers_allowed *allowed, char *text, size_t size)
{
    size_t opened = 0;
    int first = -1;
    for (int fd = 0; fd < LB_PROCESS_FILES; fd++) {
        const char *was = before->files[fd], *is = after->files[fd];
        if (was[0] && !is[0]) {
            ADD(text, size, "file descriptor %d closed", fd);
        } else if (strcmp(was, is) != 0 && !(allowed->descriptors && is_of_a_library(is)) &&
                   !allowed->all_descriptors) {
            first = opened++ == 0 ? fd : first;
        }
    }
    if (opened == 1)
        ADD(text, size, "an open file (descriptor %d, %.40s)", first, after->files[first]);
    else if (opened > 1)
        ADD(text, size, "%zu open files (the first is descriptor %d, %.40s)", opened, first,
            after->files[first]);
}

void lb_leftovers_append(const struct lb_process_reading *before,
                         const struct lb_process_reading *after,
                         const struct lb_leftovers_allowed *allowed, char *text, size_t size)
{
    double bytes = after->bytes - before->bytes;
    if (after->threads > before->threads + allowed->threads)
        ADD(text, size, "%zu more thread%s", after->threads - before->threads,
            after->threads - before->threads > 1 ? "s" : "");
    if (bytes > allowed->bytes)
        ADD(text, size, "%s of memory", LB_BYTES_TEXT(bytes));
    compare_files(before, after, allowed, text, size);
    for (size_t i = 0; i < after->setting_count; i++) {
        const struct lb_process_setting *was = &before->settings[i], *is = &after->settings[i];
        if (strcmp(was->value, is->value) != 0)
            ADD(text, size, strncmp(is->name, "another", 7) == 0 ? "%s" : "%s %.40s", is->name,
                is->value);
    }
}

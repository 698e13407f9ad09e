/* The host's memory space, and how much memory the host has. */
#include "device/host_memory.h"

#include <dirent.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "host/cgroup.h"

void lb_poison(void *memory, size_t bytes)
{
    if (memory)
        memset(memory, 0xff, bytes); /* all bits set: NaN in every dtype */
}

const unsigned char *lb_guard_band(void)
{
    static unsigned char band[LB_GUARD_BEHIND];
    for (size_t i = 0; band[0] == 0 && i < LB_GUARD_BEHIND; i++)
        band[LB_GUARD_BEHIND - 1 - i] = (unsigned char)((0xa5 ^ (i * 7)) | 1);
    return band;
}

enum { ALIGNMENT = 256, HUGE_PAGE = 2 << 20, LARGE = 2 * HUGE_PAGE };

#ifdef __SANITIZE_ADDRESS__

enum { BEFORE = 0, BEHIND = 0 };
#define HOST_OVERRUN NULL

static void write_guards(char *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

#else

enum { BEFORE = LB_GUARD_BEFORE, BEHIND = LB_GUARD_BEHIND };
#define HOST_OVERRUN host_overrun

/* The band before a block begins with the size of the block and, as a check, the inverted size. */
static void write_guards(char *memory, size_t bytes)
{
    const size_t twice[2] = {bytes, ~bytes};
    memcpy(memory - BEFORE, lb_guard_band(), BEFORE);
    memcpy(memory - BEFORE, twice, sizeof(twice));
    memcpy(memory + bytes, lb_guard_band(), BEHIND);
}

static const char *host_overrun(const void *memory)
{
    const char *start = memory;
    size_t twice[2];
    if (!memory)
        return NULL;
    memcpy(twice, start - BEFORE, sizeof(twice));
    if (twice[0] != ~twice[1] ||
        memcmp(start - BEFORE + sizeof(twice), lb_guard_band() + sizeof(twice),
               BEFORE - sizeof(twice)) != 0)
        return "before its start";
    return memcmp(start + twice[0], lb_guard_band(), BEHIND) != 0 ? "past its end" : NULL;
}

#endif

/* Asks for huge pages, so that neither the physical place of small pages nor walks of page tables
 * decide how fast a case is: an LSTM of one row that reads 16 MiB of weights per step was 3 to 9 %
 * faster on huge pages. `whole` is aligned to HUGE_PAGE. Where the system has no such pages, or
 * none left, nothing changes. */
static void ask_for_huge_pages(void *whole, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    size_t pages = bytes - bytes % (size_t)sysconf(_SC_PAGESIZE);
    /* Memory that the heap used before may still be in small pages, which are given back first. */
    (void)madvise(whole, pages, MADV_DONTNEED);
    (void)madvise(whole, pages, MADV_HUGEPAGE);
#else
    (void)whole, (void)bytes;
#endif
}

static enum lb_status host_allocate(size_t bytes, void **out, struct lb_error *err)
{
    void *whole;
    *out = NULL;
    if (bytes == 0)
        return LB_OK;
    if (bytes > SIZE_MAX - BEFORE - BEHIND ||
        posix_memalign(&whole, bytes < LARGE ? ALIGNMENT : HUGE_PAGE, BEFORE + bytes + BEHIND) !=
            0) {
        char size[32];
        lb_format_bytes((double)bytes, size);
        return lb_fail(err, LB_OOM, "allocating %s of host memory failed", size);
    }
    if (bytes >= LARGE)
        ask_for_huge_pages(whole, BEFORE + bytes + BEHIND);
    *out = (char *)whole + BEFORE;
    write_guards(*out, bytes);
    return LB_OK;
}

static void host_release(void *memory)
{
    if (memory)
        free((char *)memory - BEFORE);
}

static enum lb_status host_copy(void *to, const void *from, size_t bytes, struct lb_error *err)
{
    (void)err;
    if (bytes > 0)
        memcpy(to, from, bytes);
    return LB_OK;
}

static enum lb_status host_poison(void *to, size_t bytes, struct lb_error *err)
{
    (void)err;
    lb_poison(to, bytes);
    return LB_OK;
}

static enum lb_status host_hash(const void *memory, size_t bytes, uint64_t *hash,
                                struct lb_error *err)
{
    (void)err;
    *hash = lb_hash_bytes(*hash, memory, bytes);
    return LB_OK;
}

static enum lb_status host_synchronize(struct lb_error *err)
{
    (void)err;
    return LB_OK;
}

const struct lb_space lb_host_space = {
    .name = "host",
    .allocate = host_allocate,
    .release = host_release,
    .upload = host_copy,
    .download = host_copy,
    .poison = host_poison,
    .hash = host_hash,
    .synchronize = host_synchronize,
    .available = lb_host_available,
    .overrun = HOST_OVERRUN,
};

/* A "Name:   123 kB" line of /proc/meminfo in bytes; 0 when it is not there. */
static double meminfo(const char *name)
{
    return fmax(0, 1024 * lb_read_number("/proc/meminfo", name)); /* fmax passes over NaN */
}

double lb_proc_sum(const char *folder, double (*figure)(const char *path))
{
    char path[400];
    double sum = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries));) {
        snprintf(path, sizeof(path), "%.100s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            sum += figure ? figure(path) : 1;
    }
    if (entries)
        closedir(entries);
    return sum;
}

const char *lb_proc_stat(const char *folder, char text[LB_PROC_STAT_SIZE])
{
    char path[400];
    snprintf(path, sizeof(path), "%.300s/stat", folder);
    FILE *file = fopen(path, "r");
    size_t length = file ? fread(text, 1, LB_PROC_STAT_SIZE - 1, file) : 0;
    text[length] = '\0';
    if (file)
        fclose(file);
    return strrchr(text, ')');
}

double lb_resident_bytes(long pid)
{
    char path[64], line[128];
    snprintf(path, sizeof(path), "/proc/%ld/statm", pid);
    lb_read_line(path, line, sizeof(line));
    const char *second = strchr(line, ' '); /* size resident ... in pages */
    return second ? strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

double lb_peak_resident_bytes(void)
{
    return fmax(0, 1024 * lb_read_number("/proc/self/status", "VmHWM:")); /* passes over NaN */
}

void lb_restart_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (!file)
        return;
    fputs("5", file);
    fclose(file);
}

/* CPU time of the children of one thread that still run. thread: its folder in /proc. */
static double running_children_ns(const char *thread)
{
    char path[400], line[1024], *next = line;
    double ticks = 0;
    snprintf(path, sizeof(path), "%.300s/children", thread);
    lb_read_line(path, line, sizeof(line));
    for (long child; (child = strtol(next, &next, 10)) > 0;) {
        double user, system;
        char text[LB_PROC_STAT_SIZE];
        snprintf(path, sizeof(path), "/proc/%ld", child);
        const char *stat = lb_proc_stat(path, text);
        if (stat && sscanf(stat, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lf %lf", &user,
                           &system) == 2)
            ticks += user + system;
    }
    return ticks * 1e9 / (double)sysconf(_SC_CLK_TCK);
}

double lb_children_cpu_ns(void)
{
    struct rusage ended;
    double ns = lb_proc_sum("/proc/self/task", running_children_ns);
    if (getrusage(RUSAGE_CHILDREN, &ended) == 0)
        ns += 1e9 * (double)(ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) +
              1e3 * (double)(ended.ru_utime.tv_usec + ended.ru_stime.tv_usec);
    return ns;
}

static double is_running(const char *thread)
{
    char text[LB_PROC_STAT_SIZE];
    const char *stat = lb_proc_stat(thread, text);
    return stat && strncmp(stat, ") R", 3) == 0;
}

double lb_threads_running(long pid)
{
    char threads[64];
    snprintf(threads, sizeof(threads), "/proc/%ld/task", pid);
    return lb_proc_sum(threads, is_running);
}

double lb_await_idle_threads(int most, double limit_s)
{
    double start = lb_now_ns();
    double others = lb_process_cpu_ns() - lb_thread_cpu_ns();
    while (lb_threads_running(getpid()) > most) {
        double elapsed = lb_now_ns() - start;
        if (elapsed > limit_s * 1e9)
            return (lb_process_cpu_ns() - lb_thread_cpu_ns() - others) / elapsed;
        usleep(1000);
    }
    return 0;
}

static double limit_bytes; /* of this process; 0: none */

void lb_host_limit(double bytes)
{
    limit_bytes = bytes;
}

double lb_host_available(void)
{
    double available = fmin(meminfo("MemAvailable:"), lb_cgroup_room(""));
    if (limit_bytes > 0)
        available = fmin(available, fmax(limit_bytes - lb_resident_bytes(getpid()), 0));
    return available;
}

double lb_host_total(void)
{
    return meminfo("MemTotal:");
}

size_t lb_host_cache_bytes(void)
{
    static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                 _SC_LEVEL2_CACHE_SIZE};
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        long bytes = sysconf(levels[i]);
        if (bytes > 0)
            return (size_t)bytes;
    }
    return (size_t)32 << 20;
}

void lb_format_bytes(double bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t unit = 0;
    while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%.*f %s", unit == 0 || bytes >= 100 ? 0 : 1, bytes, units[unit]);
}

struct lb_holdings lb_holdings_read(void)
{
    return (struct lb_holdings){.memory_bytes = lb_resident_bytes(getpid()),
                                .descriptors = lb_proc_sum("/proc/self/fd", NULL),
                                .threads = lb_proc_sum("/proc/self/task", NULL)};
}

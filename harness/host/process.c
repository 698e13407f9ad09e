/* What /proc says of processes and their threads. */
#include "host/process.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"

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
    lb_read_line(path, "", line, sizeof(line));
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
    lb_read_line(path, "", line, sizeof(line));
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

struct lb_holdings lb_holdings_read(void)
{
    return (struct lb_holdings){.memory_bytes = lb_resident_bytes(getpid()),
                                .descriptors = lb_proc_sum("/proc/self/fd", NULL),
                                .threads = lb_proc_sum("/proc/self/task", NULL)};
}

/* What an implementation's calls leave behind in this process. */
#include "measure/leaks.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/memory.h"

/* Number of entries of a folder of /proc. */
static double count_entries(const char *path)
{
    double count = 0;
    DIR *folder = opendir(path);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

struct lb_holdings lb_holdings_read(void)
{
    return (struct lb_holdings){.memory_bytes = lb_resident_bytes(getpid()),
                                .descriptors = count_entries("/proc/self/fd"),
                                .threads = count_entries("/proc/self/task")};
}

bool lb_leaks_text(const struct lb_holdings *before, const struct lb_holdings *after, size_t calls,
                   char *text, size_t size)
{
    const double least_bytes = 16 << 20, least_bytes_call = 1024, least = 8;
    const struct {
        const char *name;
        double grown, least_call;
    } counted[] = {{"file descriptors", after->descriptors - before->descriptors, 0.1},
                   {"threads", after->threads - before->threads, 0}};
    double bytes = after->memory_bytes - before->memory_bytes, n = (double)calls;
    size_t used = 0;
    text[0] = '\0';
    if (bytes >= least_bytes && bytes >= least_bytes_call * n) {
        char each[32], all[32];
        lb_format_bytes(bytes / n, each);
        lb_format_bytes(bytes, all);
        snprintf(text, size, "its calls leak memory: %s each, %s in all", each, all);
    }
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        used = strlen(text);
        if (counted[i].grown >= least && counted[i].grown >= counted[i].least_call * n)
            snprintf(text + used, size - used,
                     "%sits calls leave %s behind: %.3g each, %.0f in all", used ? "; " : "",
                     counted[i].name, counted[i].grown / n, counted[i].grown);
    }
    return text[0] != '\0';
}

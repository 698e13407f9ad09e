/* The limits that control groups set on this process's memory and CPU time, and the number of kills
 * for lack of memory. */
#include "host/cgroup.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Where each version of control groups is mounted, and what its files on memory are called. Those
 * on CPU time have the same names in both, but the first version has them in a mount of their own,
 * which has none on memory. */
struct version {
    const char *controller; /* in /proc/self/cgroup */
    const char *mount, *limit, *used;
    const char *unused_cache; /* its name in memory.stat, for the group and all below it */
    const char *events;       /* the file with the number of processes killed for memory */
};

static const struct version versions[] = {
    {"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "memory.events"},
    {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file", "memory.oom_control"},
    {"cpu", "/sys/fs/cgroup/cpu", "", "", "", ""},
};

/* The number that follows the word and a space on a line of the file, "" for the start of the file.
 * NaN when there is none, as for "max". */
static double read_number(const char *folder, const char *name, const char *word)
{
    char path[4400], begin[64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    snprintf(begin, sizeof(begin), "%s%s", word, word[0] ? " " : "");
    return lb_read_number(path, begin);
}

/* Writes the process's group as a path below the mount of that version; "" where it is in none. */
static void find_group(const char *root, const struct version *version, char *group, size_t size)
{
    char path[4096], line[4096], list[4200], word[32];
    group[0] = '\0';
    snprintf(word, sizeof(word), ",%s,", version->controller);
    snprintf(path, sizeof(path), "%.4000s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof(line), file)) { /* number:controllers:path */
        char *from = strchr(line, ':'), *to = from ? strchr(from + 1, ':') : NULL;
        if (!to)
            continue;
        snprintf(list, sizeof(list), ",%.*s,", (int)(to - from - 1), from + 1);
        if (strstr(list, word))
            snprintf(group, size, "%.*s", (int)strcspn(to + 1, "\n"), to + 1);
        if (strcmp(group, "/") == 0) /* the mount itself */
            group[0] = '\0';
    }
    if (file)
        fclose(file);
}

/* Visits the process's group, and all groups above it up to the mount, as folders, in both
 * versions. In a container the group may have the path that it has on the host, whose folders do
 * not exist; the mount is then the container's own group. */
static void visit_groups(const char *root,
                         void (*visit)(const struct version *, const char *folder, double *result),
                         double *result)
{
    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        char group[2048], folder[4200];
        find_group(root, &versions[i], group, sizeof(group));
        for (char *last = group; last;) {
            snprintf(folder, sizeof(folder), "%.2000s%s%s", root, versions[i].mount, group);
            visit(&versions[i], folder, result);
            last = strrchr(group, '/');
            if (last)
                *last = '\0';
        }
    }
}

static void lower_to_room(const struct version *version, const char *folder, double *room)
{
    double limit = read_number(folder, version->limit, "");
    double used = read_number(folder, version->used, "");
    double cache = read_number(folder, "memory.stat", version->unused_cache);
    if (!isnan(limit) && !isnan(used))
        *room = fmin(*room, fmax(limit - (used - (isnan(cache) ? 0 : cache)), 0));
}

double lb_cgroup_room(const char *root)
{
    double room = (double)INFINITY;
    visit_groups(root, lower_to_room, &room);
    return room;
}

static void add_kills(const struct version *version, const char *folder, double *kills)
{
    double here = read_number(folder, version->events, "oom_kill");
    if (!isnan(here))
        *kills = (isnan(*kills) ? 0 : *kills) + here;
}

double lb_oom_kills(const char *root)
{
    char folder[4200];
    snprintf(folder, sizeof(folder), "%.4000s/proc", root);
    double kills = read_number(folder, "vmstat", "oom_kill");
    visit_groups(root, add_kills, &kills);
    return kills;
}

static void raise_to_throttled(const struct version *version, const char *folder, double *share)
{
    double periods = read_number(folder, "cpu.stat", "nr_periods");
    double throttled = read_number(folder, "cpu.stat", "nr_throttled");
    (void)version;
    if (periods > 0)
        *share = fmax(*share, throttled / periods);
}

double lb_cgroup_throttled(const char *root)
{
    double share = (double)NAN;
    visit_groups(root, raise_to_throttled, &share);
    return share;
}

/* A folder for files that are needed while a command runs: $TMPDIR/bench-lstm-PID-XXXXXX. */
#include "html/scratch_folder.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char start[] = "bench-lstm-";

enum {
    RANDOM_LETTERS = 6, /* that mkdtemp puts in place of the X's */
    ORPHAN_S = 60       /* age at which a folder without a process is removed */
};

void lb_scratch_folder_remove(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* Whether the name is that of a folder whose process does not exist. */
static bool is_orphan(const char *name)
{
    char *end;
    if (strncmp(name, start, strlen(start)) != 0)
        return false;
    long pid = strtol(name + strlen(start), &end, 10);
    return pid > 0 && pid <= INT_MAX && end[0] == '-' && strlen(end + 1) == RANDOM_LETTERS &&
           kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes the folders of processes that no longer exist. A folder that was written within the last
 * minute is kept, because it may belong to a process in a container, whose number means nothing
 * here. */
static void remove_orphans(const char *parent)
{
    DIR *dir = opendir(parent);
    struct stat there;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[4400];
        int length = snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
        if ((size_t)length < sizeof(path) && is_orphan(entry->d_name) && lstat(path, &there) == 0 &&
            S_ISDIR(there.st_mode) && there.st_uid == geteuid() &&
            there.st_mtime + ORPHAN_S < time(NULL))
            lb_scratch_folder_remove(path);
    }
    if (dir)
        closedir(dir);
}

enum lb_status lb_scratch_folder_create(char *path, size_t size, struct lb_error *err)
{
    const char *named = getenv("TMPDIR"), *parent = named && named[0] ? named : "/tmp";
    remove_orphans(parent);
    int length = snprintf(path, size, "%s/%s%ld-XXXXXX", parent, start, (long)getpid());
    if ((size_t)length >= size)
        return lb_fail(err, LB_IO, "TMPDIR %.200s...: its path is too long", parent);
    return mkdtemp(path)
               ? LB_OK
               : lb_fail(err, LB_IO,
                         "%s: can't make a folder for temporary files: %s; set TMPDIR to a folder "
                         "that can be written",
                         path, strerror(errno));
}

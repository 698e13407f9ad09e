/* Files that are replaced as a whole. */
#include "base/atomic_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ORPHAN_S = 60 /* age from which a draft of a process that is not there is removed */ };

/* The regular file that path leads to through links, and its mode (0: it does not exist yet). NULL
 * when it can't be renamed over: a device, a pipe, or the missing target of a link. The caller
 * frees the path. */
static char *replaceable(const char *path, mode_t *mode)
{
    struct stat there;
    *mode = 0;
    if (stat(path, &there) == 0) {
        *mode = there.st_mode & 07777;
        return S_ISREG(there.st_mode) ? realpath(path, NULL) : NULL;
    }
    return lstat(path, &there) == 0 ? NULL : strdup(path);
}

/* Gives a regular file the mode, unless that is 0; returns whether that worked. */
static bool set_mode(FILE *out, mode_t mode)
{
    struct stat there;
    return mode == 0 || (fstat(fileno(out), &there) == 0 &&
                         (!S_ISREG(there.st_mode) || fchmod(fileno(out), mode) == 0));
}

/* Opens path and writes it. Error messages call it name. */
static enum lb_status write_to(const char *path, const char *name, mode_t mode,
                               lb_file_writer *write, const void *user, struct lb_error *err)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return lb_fail(err, LB_IO, "%s: %s", name, strerror(errno));
    bool failed = !set_mode(out, mode);
    enum lb_status st = write(out, user, err);
    failed = ferror(out) || failed;
    failed = fclose(out) != 0 || failed;
    return st == LB_OK && failed ? lb_fail(err, LB_IO, "%s: %s", name, strerror(errno)) : st;
}

/* Whether name is "base.PID.new" of a process that does not exist. */
static bool is_orphan(const char *name, const char *base)
{
    size_t length = strlen(base);
    char *end;
    if (strncmp(name, base, length) != 0 || name[length] != '.' || name[length + 1] < '1' ||
        name[length + 1] > '9')
        return false;
    long pid = strtol(name + length + 1, &end, 10);
    return strcmp(end, ".new") == 0 && pid <= INT_MAX && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Removes drafts of the file that processes left behind when they were killed. One that was written
 * within the last minute may belong to a process of another machine. */
static void remove_orphans(const char *target)
{
    const char *slash = strrchr(target, '/');
    char *folder = slash ? strndup(target, (size_t)(slash - target) + 1) : strdup(".");
    DIR *dir = folder ? opendir(folder) : NULL;
    struct stat there;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (is_orphan(entry->d_name, slash ? slash + 1 : target) &&
            fstatat(dirfd(dir), entry->d_name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(there.st_mode) && there.st_mtime + ORPHAN_S < time(NULL))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    free(folder);
}

enum lb_status lb_write_file_atomically(const char *path, lb_file_writer *write, const void *user,
                                        struct lb_error *err)
{
    mode_t mode;
    char *target = replaceable(path, &mode);
    if (!target)
        return write_to(path, path, 0, write, user, err);
    size_t size = strlen(target) + sizeof(".-9223372036854775808.new");
    char *draft = malloc(size);
    enum lb_status st = LB_OK;
    if (!draft) {
        st = lb_fail(err, LB_OOM, "%s: out of memory", path);
        goto done;
    }
    snprintf(draft, size, "%s.%ld.new", target, (long)getpid());
    remove_orphans(target);
    st = write_to(draft, path, mode, write, user, err);
    if (st == LB_OK && rename(draft, target) != 0)
        st = lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    if (st != LB_OK)
        unlink(draft);
done:
    free(draft);
    free(target);
    return st;
}

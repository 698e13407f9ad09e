/* Files that are replaced as a whole. */
#include "base/atomic_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

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

/* Opens path and writes it. Error messages call it name. */
static enum lb_status write_to(const char *path, const char *name, mode_t mode,
                               lb_file_writer *write, const void *user, struct lb_error *err)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return lb_fail(err, LB_IO, "%s: %s", name, strerror(errno));
    bool failed = mode != 0 && fchmod(fileno(out), mode) != 0;
    enum lb_status st = write(out, user, err);
    failed = ferror(out) || failed;
    failed = fclose(out) != 0 || failed;
    return st == LB_OK && failed ? lb_fail(err, LB_IO, "%s: %s", name, strerror(errno)) : st;
}

enum lb_status lb_write_file_atomically(const char *path, lb_file_writer *write, const void *user,
                                        struct lb_error *err)
{
    mode_t mode;
    char *target = replaceable(path, &mode);
    if (!target)
        return write_to(path, path, 0, write, user, err);
    size_t size = strlen(target) + sizeof(".-9223372036854775808.new");
    char *draft = lb_needed(malloc(size));
    snprintf(draft, size, "%s.%ld.new", target, (long)getpid());
    enum lb_status st = write_to(draft, path, mode, write, user, err);
    if (st == LB_OK && rename(draft, target) != 0)
        st = lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    if (st != LB_OK)
        unlink(draft);
    free(draft);
    free(target);
    return st;
}

/* Files that are there whole or not at all. */
#include "whole_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum lb_status lb_write_whole_file(const char *path, lb_file_writer *write, const void *user,
                                   struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t size = strlen(path) + sizeof(".new");
    char *draft = malloc(size);
    if (!draft)
        return lb_fail(err, LB_OOM, "%s: out of memory", path);
    snprintf(draft, size, "%s.new", path);
    FILE *out = fopen(draft, "w");
    if (!out) {
        st = lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
        goto done;
    }
    LB_TRY(write(out, user, err));
    bool failed = ferror(out) != 0;
    failed = fclose(out) != 0 || failed;
    out = NULL;
    if (failed || rename(draft, path) != 0)
        st = lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
done:
    if (out)
        fclose(out);
    if (st != LB_OK)
        unlink(draft);
    free(draft);
    return st;
}

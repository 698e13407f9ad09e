/* A whole file in memory. */
#include "model/file_bytes.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum lb_status lb_file_bytes(const char *path, unsigned char **bytes, size_t *size,
                             struct lb_error *err)
{
    enum lb_status st = LB_OK;
    long length = -1;
    FILE *file = fopen(path, "rb");
    *bytes = NULL;
    *size = 0;
    if (!file)
        return lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    if (fseek(file, 0, SEEK_END) == 0)
        length = ftell(file);
    rewind(file);
    if (length >= 0 && length < PTRDIFF_MAX) /* for a folder, ftell gives the largest number */
        *bytes = malloc((size_t)length + 1);
    if (length < 0 || length == PTRDIFF_MAX)
        st = lb_fail(err, LB_IO, "%s: this is not a file that can be read to its end", path);
    else if (!*bytes)
        st = lb_fail(err, LB_OOM, "%s: out of memory for its %ld bytes", path, length);
    else if (fread(*bytes, 1, (size_t)length, file) != (size_t)length)
        st = lb_fail(err, LB_IO, "%s: reading failed", path);
    else
        *size = (size_t)length;
    fclose(file);
    return st;
}

/* How bytes become strings and files for fuzz targets. */
#include "tests/fuzz/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    fuzz_require(text != NULL, "memory ran out");
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static int file = -1;
    static char path[64];
    if (file < 0)
        file = memfd_create("fuzz", MFD_CLOEXEC);
    fuzz_require(file >= 0 && ftruncate(file, 0) == 0, "no file in memory");
    for (size_t at = 0; at < size;) {
        ssize_t written = pwrite(file, data + at, size - at, (off_t)at);
        fuzz_require(written > 0, "the file in memory can't be written");
        at += (size_t)written;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    return path;
}

void fuzz_require(int holds, const char *message)
{
    if (holds)
        return;
    fprintf(stderr, "%s\n", message);
    abort();
}

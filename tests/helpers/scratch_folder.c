/* A folder and environment variables for one test. */
#define _XOPEN_SOURCE 700 /* nftw */

#include "scratch_folder.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { VARIABLES_MAX = 8 };

static char folder[64];

static struct {
    const char *name;
    char *value; /* NULL: it was not set */
} before[VARIABLES_MAX];
static int before_count;

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *at)
{
    (void)stat, (void)type, (void)at;
    return remove(path);
}

int scratch_setup(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/lb_test_XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

int scratch_teardown(void **state)
{
    (void)state;
    while (before_count > 0) {
        before_count--;
        if (before[before_count].value)
            setenv(before[before_count].name, before[before_count].value, 1);
        else
            unsetenv(before[before_count].name);
        free(before[before_count].value);
    }
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_folder(void)
{
    return folder;
}

const char *scratch_path(const char *name)
{
    static char paths[8][512];
    static int next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    return path;
}

static FILE *opened(const char *path, const char *mode)
{
    FILE *file = fopen(path, mode);
    if (!file) {
        perror(path);
        abort();
    }
    return file;
}

const char *scratch_write_bytes(const char *name, const void *bytes, size_t size)
{
    char *path = (char *)scratch_path(name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0777);
        *at = '/';
    }
    FILE *file = opened(path, "wb");
    if (fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        abort();
    return path;
}

const char *scratch_write(const char *name, const char *text)
{
    return scratch_write_bytes(name, text, strlen(text));
}

char *scratch_read(const char *path, size_t *size)
{
    FILE *file = opened(path, "rb");
    fseek(file, 0, SEEK_END);
    size_t length = (size_t)ftell(file);
    char *text = calloc(1, length + 1);
    rewind(file);
    if (!text || fread(text, 1, length, file) != length)
        abort();
    fclose(file);
    if (size)
        *size = length;
    return text;
}

/* Remembers the value that a name had before the test; later calls for the name change nothing. */
static void remember(const char *name)
{
    const char *value = getenv(name);
    for (int i = 0; i < before_count; i++)
        if (strcmp(before[i].name, name) == 0)
            return;
    if (before_count == VARIABLES_MAX) {
        fprintf(stderr, "scratch_setenv: more than %d names\n", VARIABLES_MAX);
        abort();
    }
    before[before_count].name = name;
    before[before_count++].value = value ? strdup(value) : NULL;
}

void scratch_setenv(const char *name, const char *value)
{
    remember(name);
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* Tuned choices: one text file, replaced as a whole. */
#include "base/tuned_choices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/given_files.h"
#include "base/hash.h"
#include "base/text.h"

static const char first_line[] = "bench-lstm tuned choices 1\n";

/* Writes the path of the file: the given one, else tuned.txt in $XDG_CACHE_HOME/bench-lstm or
 * ~/.cache/bench-lstm. make: create the last two folders; a failure to do so shows when the caller
 * opens the file. */
static void file_path(bool make, char path[4096])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[3900];
    if (lb_given_files()->tuned) {
        snprintf(path, 4096, "%.4000s", lb_given_files()->tuned);
        return;
    }
    if (cache && cache[0])
        snprintf(folder, sizeof(folder), "%.3800s", cache);
    else
        snprintf(folder, sizeof(folder), "%.3800s/.cache", home ? home : ".");
    snprintf(path, 4096, "%s/bench-lstm", folder);
    if (make) {
        mkdir(folder, 0777);
        mkdir(path, 0777);
    }
    lb_append(path, 4096, "/tuned.txt");
}

/* Reads the file, of which one that does not exist has no lines. value [size] becomes that of the
 * key, and *found whether there is one; the lines of other keys are written to others (NULL: they
 * are not). */
static enum lb_status read_lines(const char *path, const char *key, char *value, size_t size,
                                 bool *found, FILE *others, struct lb_error *err)
{
    char line[1024];
    enum lb_status st = LB_OK;
    FILE *file = fopen(path, "r");
    *found = false;
    if (!file)
        return errno == ENOENT ? LB_OK : lb_fail(err, LB_IO, "%.400s: %s", path, strerror(errno));
    if (!fgets(line, sizeof(line), file) || strcmp(line, first_line) != 0)
        st = lb_fail(err, LB_INVALID, "%.400s: not a file of tuned choices", path);
    for (int number = 2; st == LB_OK && fgets(line, sizeof(line), file); number++) {
        char *tab = strchr(line, '\t'), *end = strchr(line, '\n');
        bool whole = tab && tab > line && end;
        if (whole)
            *tab = *end = '\0';
        if (!whole) {
            st = lb_fail(err, LB_INVALID, "%.400s:%d: the line is not a key, a tab and a value",
                         path, number);
        } else if (strcmp(line, key) == 0) {
            snprintf(value, size, "%s", tab + 1);
            *found = true;
        } else if (others) {
            fprintf(others, "%s\t%s\n", line, tab + 1);
        }
    }
    fclose(file);
    return st;
}

enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why)
{
    char path[4096];
    bool found;
    file_path(false, path);
    enum lb_status st = read_lines(path, key, value, size, &found, NULL, why);
    if (st == LB_OK && !found)
        st = lb_fail(why, LB_ABSENT, "%.400s: it has no choice for %.80s", path, key);
    return st;
}

struct change {
    const char *path, *key, *value;
};

static enum lb_status write_changed(FILE *out, const void *user, struct lb_error *err)
{
    const struct change *change = user;
    char old[64];
    bool found;
    fputs(first_line, out);
    enum lb_status st = read_lines(change->path, change->key, old, sizeof(old), &found, out, err);
    fprintf(out, "%s\t%s\n", change->key, change->value);
    return st;
}

enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err)
{
    char path[4096];
    const struct change change = {path, key, value};
    file_path(true, path);
    return lb_write_file_atomically(path, write_changed, &change, err);
}

bool lb_tuned_file(char path[4096], int64_t *changed_s, uint64_t *hash)
{
    char bytes[4096];
    struct stat found;
    file_path(false, path);
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    *changed_s = fstat(fileno(file), &found) == 0 ? (int64_t)found.st_mtime : 0;
    *hash = 0;
    for (size_t n; (n = fread(bytes, 1, sizeof(bytes), file)) > 0;)
        *hash = lb_hash_bytes(*hash, bytes, n);
    fclose(file);
    return true;
}

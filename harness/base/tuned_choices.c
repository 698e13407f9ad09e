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

static const char first_line[] = "bench-lstm tuned choices 1\n";

bool lb_tuning(void)
{
    return lb_given_files()->tune;
}

/* Writes the path of the file: the given one, else tuned.txt in $XDG_CACHE_HOME/bench-lstm or
 * ~/.cache/bench-lstm. With make, the last two folders are created when they are missing; a failure
 * to do so shows when the caller opens the file. */
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
    if (make)
        mkdir(folder, 0777);
    snprintf(path, 4096, "%s/bench-lstm", folder);
    if (make)
        mkdir(path, 0777);
    snprintf(path, 4096, "%s/bench-lstm/tuned.txt", folder);
}

/* A pass over the file, for one key. */
struct pass {
    const char *path, *key;
    char *value; /* [size] receives the key's value, cut where it does not fit; NULL: not wanted */
    size_t size;
    const char *new_value; /* takes the place of an older one in the copy */
    FILE *copy;            /* receives the file with the new value; NULL: none */
    bool found;
};

/* A file that does not exist has no lines. */
static enum lb_status read_lines(struct pass *pass, struct lb_error *err)
{
    char line[1024];
    enum lb_status st = LB_OK;
    const char *path = pass->path;
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? LB_OK : lb_fail(err, LB_IO, "%.400s: %s", path, strerror(errno));
    if (!fgets(line, sizeof(line), file) || strcmp(line, first_line) != 0)
        st = lb_fail(err, LB_INVALID, "%.400s: not a file of tuned choices", path);
    for (int number = 2; st == LB_OK && fgets(line, sizeof(line), file); number++) {
        char *tab = strchr(line, '\t'), *end = strchr(line, '\n');
        if (!tab || tab == line || !end) {
            st = lb_fail(err, LB_INVALID, "%.400s:%d: the line is not a key, a tab and a value",
                         path, number);
            break;
        }
        *tab = *end = '\0';
        bool is_key = strcmp(line, pass->key) == 0;
        pass->found |= is_key;
        if (is_key && pass->value)
            snprintf(pass->value, pass->size, "%s", tab + 1);
        if (!is_key && pass->copy)
            fprintf(pass->copy, "%s\t%s\n", line, tab + 1);
    }
    fclose(file);
    return st;
}

enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why)
{
    char path[4096];
    struct pass pass = {.path = path, .key = key, .value = value, .size = size};
    file_path(false, path);
    enum lb_status st = read_lines(&pass, why);
    if (st == LB_OK && !pass.found)
        st = lb_fail(why, LB_ABSENT, "%.400s: it has no choice for %.80s", path, key);
    return st;
}

static enum lb_status write_changed(FILE *out, const void *user, struct lb_error *err)
{
    struct pass pass = *(const struct pass *)user;
    pass.copy = out;
    fputs(first_line, out);
    enum lb_status st = read_lines(&pass, err);
    fprintf(out, "%s\t%s\n", pass.key, pass.new_value);
    return st;
}

enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err)
{
    char path[4096];
    const struct pass pass = {.path = path, .key = key, .new_value = value};
    file_path(true, path);
    return lb_write_file_atomically(path, write_changed, &pass, err);
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

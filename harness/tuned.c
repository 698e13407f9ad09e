/* Tuned choices: one text file, replaced as a whole. */
#include "tuned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char first_line[] = "bench-lstm tuned choices 1\n";

bool lb_tuning(void)
{
    const char *value = getenv(LB_TUNE_VARIABLE);
    return value && value[0];
}

/* Makes the folders of the cache when they are to be written to. */
static void file_path(bool make, char path[4096])
{
    const char *given = getenv(LB_TUNED_VARIABLE);
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[3900];
    if (given && given[0]) {
        snprintf(path, 4096, "%.4000s", given);
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

/* What is done with each line that was read: the key and its value. */
typedef void line_taker(void *user, const char *key, const char *value);

/* All lines of the file; a file that does not exist has none. */
static enum lb_status read_lines(const char *path, line_taker *take, void *user,
                                 struct lb_error *err)
{
    char line[1024];
    enum lb_status st = LB_OK;
    FILE *file = fopen(path, "r");
    if (!file)
        return errno == ENOENT ? LB_OK : lb_fail(err, LB_IO, "%.400s: %s", path, strerror(errno));
    if (!fgets(line, sizeof(line), file) || strcmp(line, first_line) != 0)
        st = lb_fail(err, LB_INVALID, "%.400s: not a file of tuned choices", path);
    for (int number = 2; st == LB_OK && fgets(line, sizeof(line), file); number++) {
        char *tab = strchr(line, '\t'), *end = strchr(line, '\n');
        if (!tab || tab == line || !end) {
            st = lb_fail(err, LB_INVALID, "%.400s:%d: not a key, a tab and a value", path, number);
            break;
        }
        *tab = *end = '\0';
        take(user, line, tab + 1);
    }
    fclose(file);
    return st;
}

struct search {
    const char *key;
    char *value;
    size_t size;
    bool found;
};

static void take_found(void *user, const char *key, const char *value)
{
    struct search *s = user;
    if (strcmp(key, s->key) != 0)
        return;
    snprintf(s->value, s->size, "%s", value);
    s->found = true;
}

enum lb_status lb_tuned_find(const char *key, char *value, size_t size, struct lb_error *why)
{
    char path[4096];
    struct search s = {key, value, size, false};
    file_path(false, path);
    enum lb_status st = read_lines(path, take_found, &s, why);
    if (st == LB_OK && !s.found)
        st = lb_fail(why, LB_ABSENT, "%.400s: nothing is known of %.80s", path, key);
    return st;
}

struct copy {
    FILE *to;
    const char *key; /* left out */
};

static void take_copy(void *user, const char *key, const char *value)
{
    const struct copy *c = user;
    if (strcmp(key, c->key) != 0)
        fprintf(c->to, "%s\t%s\n", key, value);
}

enum lb_status lb_tuned_store(const char *key, const char *value, struct lb_error *err)
{
    char path[4096], draft[4200];
    enum lb_status st = LB_OK;
    file_path(true, path);
    snprintf(draft, sizeof(draft), "%s.%ld", path, (long)getpid());
    struct copy c = {fopen(draft, "w"), key};
    if (!c.to)
        return lb_fail(err, LB_IO, "%.400s: %s", draft, strerror(errno));
    fputs(first_line, c.to);
    st = read_lines(path, take_copy, &c, err);
    fprintf(c.to, "%s\t%s\n", key, value);
    bool failed = ferror(c.to) != 0;
    failed |= fclose(c.to) != 0;
    if (st == LB_OK && (failed || rename(draft, path) != 0))
        st = lb_fail(err, LB_IO, "%.400s: %s", path, strerror(errno));
    if (st != LB_OK)
        remove(draft);
    return st;
}

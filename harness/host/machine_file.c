/* Files that describe a GPU or a CPU that is not there. */
#include "host/machine_file.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"

enum { MAX_KEYS = 64, NUMBER_MAX = 1 << 20 };

/* A file while it is read. */
struct reading {
    const char *path;
    const struct lb_machine_kind *kind;
    void *description;
    int line, like_line, lines[MAX_KEYS]; /* the line of each key; 0: not given yet */
};

/* Removes blanks from both ends of the text, in place. */
static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--)
        text[n - 1] = '\0';
    return text;
}

static enum lb_status unknown_key(const struct reading *r, const char *name, struct lb_error *err)
{
    size_t distance = SIZE_MAX;
    const char *nearest = lb_is_closer(name, "like", &distance) ? "like" : NULL;
    for (size_t i = 0; i < r->kind->key_count; i++)
        if (lb_is_closer(name, r->kind->keys[i].name, &distance))
            nearest = r->kind->keys[i].name;
    return lb_fail(err, LB_INVALID, "%.300s:%d: '%.60s' is not a key of a %s's description%s%s%s",
                   r->path, r->line, name, r->kind->noun, nearest ? "; did you mean " : "",
                   nearest ? nearest : "", nearest ? "?" : "");
}

static bool read_number(const char *value, enum lb_machine_value type, void *to)
{
    char *end;
    double number = strtod(value, &end);
    bool zero = type == LB_REAL_OR_ZERO || type == LB_WHOLE_OR_ZERO;
    bool whole = type == LB_WHOLE || type == LB_WHOLE_OR_ZERO;
    if (end == value || *end || !isfinite(number) || number < 0 || (number == 0 && !zero) ||
        (whole && (number != floor(number) || number > NUMBER_MAX)))
        return false;
    if (whole)
        *(int *)to = (int)number;
    else
        *(double *)to = number;
    return true;
}

static bool read_name(const char *value, char to[64])
{
    if (!value[0] || strlen(value) >= 64)
        return false;
    strcpy(to, value);
    return true;
}

static enum lb_status take_like(struct reading *r, const char *value, struct lb_error *err)
{
    for (size_t i = 0; i < r->kind->key_count; i++)
        if (r->lines[i])
            return lb_fail(err, LB_INVALID, "%.300s:%d: like must come before %s, in line %d",
                           r->path, r->line, r->kind->keys[i].name, r->lines[i]);
    if (!r->kind->like(value, r->description))
        return lb_fail(err, LB_INVALID,
                       "%.300s:%d: like = %.60s: no such %s is known; there are %s", r->path,
                       r->line, value, r->kind->noun, r->kind->known);
    return LB_OK;
}

static enum lb_status take_value(struct reading *r, const struct lb_machine_key *key,
                                 const char *value, struct lb_error *err)
{
    static const char *const wanted[] = {
        [LB_REAL] = "a number above 0",
        [LB_WHOLE] = "a whole number above 0",
        [LB_REAL_OR_ZERO] = "a number, 0 or above",
        [LB_WHOLE_OR_ZERO] = "a whole number, 0 or above",
        [LB_NAME] = "a name of 1 to 63 bytes",
    };
    void *to = (char *)r->description + key->offset;
    bool right = key->type == LB_NAME    ? read_name(value, to)
                 : key->type == LB_OTHER ? key->read(value, to)
                                         : read_number(value, key->type, to);
    return right
               ? LB_OK
               : lb_fail(err, LB_INVALID, "%.300s:%d: %s = %.60s: it must be %s", r->path, r->line,
                         key->name, value, key->type == LB_OTHER ? key->wanted : wanted[key->type]);
}

/* The line that a key was given in, which is set when it comes; NULL: there is no such key. */
static int *line_of(struct reading *r, const char *name, const struct lb_machine_key **key)
{
    *key = NULL;
    if (strcmp(name, "like") == 0)
        return &r->like_line;
    for (size_t i = 0; i < r->kind->key_count; i++)
        if (strcmp(r->kind->keys[i].name, name) == 0) {
            *key = &r->kind->keys[i];
            return &r->lines[i];
        }
    return NULL;
}

/* Reads one line: "key = value", a comment that begins with '#', or an empty line. */
static enum lb_status take_line(struct reading *r, char *line, struct lb_error *err)
{
    char *name = trim(line), *equals = strchr(name, '=');
    const struct lb_machine_key *key;
    if (!*name || *name == '#')
        return LB_OK;
    if (!equals)
        return lb_fail(err, LB_INVALID, "%.300s:%d: '%.60s': a line must be a key, = and a value",
                       r->path, r->line, name);
    *equals = '\0';
    name = trim(name);
    int *given = line_of(r, name, &key);
    if (!given)
        return unknown_key(r, name, err);
    if (*given)
        return lb_fail(err, LB_INVALID, "%.300s:%d: %s was given in line %d already", r->path,
                       r->line, name, *given);
    *given = r->line;
    char *value = trim(equals + 1);
    return key ? take_value(r, key, value, err) : take_like(r, value, err);
}

static enum lb_status check_complete(const struct reading *r, struct lb_error *err)
{
    for (size_t i = 0; i < r->kind->key_count; i++)
        if (!r->lines[i] && (!r->like_line || r->kind->keys[i].type == LB_NAME))
            return lb_fail(
                err, LB_INVALID, "%.300s: %s is missing%s%s%s", r->path, r->kind->keys[i].name,
                r->like_line ? "" : "; a first line such as 'like = ",
                r->like_line ? "" : r->kind->example, r->like_line ? "" : "' fills in the rest");
    return LB_OK;
}

enum lb_status lb_machine_file_read(const char *path, const struct lb_machine_kind *kind,
                                    void *description, struct lb_error *err)
{
    char line[512];
    enum lb_status st = LB_OK;
    struct reading r = {.path = path, .kind = kind, .description = description};
    FILE *file = fopen(path, "r");
    if (!file)
        return lb_fail(err, LB_IO, "%.300s: %s", path, strerror(errno));
    while (st == LB_OK && fgets(line, sizeof(line), file)) {
        r.line++;
        if (!strchr(line, '\n') && !feof(file))
            st = lb_fail(err, LB_INVALID, "%.300s:%d: the line has more than %zu bytes", path,
                         r.line, sizeof(line) - 2);
        else
            st = take_line(&r, line, err);
    }
    if (st == LB_OK && ferror(file))
        st = lb_fail(err, LB_IO, "%.300s: %s", path, strerror(errno));
    fclose(file);
    return st == LB_OK ? check_complete(&r, err) : st;
}

bool lb_machine_file_has(const char *path, const char *key, const char *value)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file && !found && fgets(line, sizeof(line), file)) {
        char *equals = strchr(line, '=');
        if (!equals)
            continue;
        *equals = '\0';
        found = strcmp(trim(line), key) == 0 && (!value || strcmp(trim(equals + 1), value) == 0);
    }
    if (file)
        fclose(file);
    return found;
}

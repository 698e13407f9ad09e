/* The name that a misspelt word probably stands for: edit distance over short names. */
#include "base/suggest.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

enum { MAX_LENGTH = 63 }; /* no name is longer, so a longer word is not a misspelt name */

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Optimal string alignment distance of a [m] and b [n], both at most MAX_LENGTH long.
 * d[i][j] is the distance between a's first i letters and b's first j letters. */
static size_t edit_distance(const char *a, size_t m, const char *b, size_t n)
{
    size_t d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            d[i][j] = i + j;
            if (i == 0 || j == 0)
                continue;
            size_t cost = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
            d[i][j] = least(d[i - 1][j - 1] + cost, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) &&
                same_letter(a[i - 2], b[j - 1]))
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[m][n];
}

bool lb_is_closer(const char *word, const char *name, size_t *distance)
{
    size_t m = strlen(word), n = strlen(name);
    if (m == 0 || m > MAX_LENGTH || n > MAX_LENGTH)
        return false;
    size_t mine = edit_distance(word, m, name, n);
    if (mine > 1 && m > 1 && m < n && strncasecmp(word, name, m) == 0)
        mine = 1;
    if (mine > 1 + m / 3 || mine >= m || mine >= *distance)
        return false;
    *distance = mine;
    return true;
}

void lb_hint_add(struct lb_hint *hint, const char *word, const char *name)
{
    size_t distance = hint->distance - 1; /* SIZE_MAX where no name is similar so far */
    if (lb_is_closer(word, name, &distance)) {
        snprintf(hint->text, sizeof(hint->text), "did you mean %.380s?", name);
        hint->distance = distance + 1;
    } else if (hint->distance == 0)
        lb_append(hint->text, sizeof(hint->text), "%s%s", hint->text[0] ? ", " : "there are ",
                  name);
}

void lb_hint_add_files(struct lb_hint *hint, const char *word, const char *folder,
                       const char *suffix)
{
    char pattern[4500];
    glob_t files = {.gl_pathc = 0};
    snprintf(pattern, sizeof(pattern), "%s/*%s", folder, suffix);
    glob(pattern, 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *name = strrchr(files.gl_pathv[i], '/') + 1;
        name[strlen(name) - strlen(suffix)] = '\0';
        lb_hint_add(hint, word, name);
    }
    globfree(&files);
}

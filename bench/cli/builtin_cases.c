/* Sets of cases by name: files, and the builtin ones that come with the program. */
#include "cli/builtin_cases.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/suggest.h"
#include "support/share_path.h"

/* For scandir(): whether the file is called NAME.txt. */
static int is_set(const struct dirent *file)
{
    size_t length = strlen(file->d_name);
    return length > 4 && strcmp(file->d_name + length - 4, ".txt") == 0;
}

/* LB_INVALID for a name that is neither a file nor a builtin set: suggests one, or lists all. */
static enum lb_status fail_no_set(const char *folder, const char *name, struct lb_error *err)
{
    struct dirent **files = NULL;
    char suggestion[256] = "", known[256] = "";
    size_t distance = SIZE_MAX;
    int count = scandir(folder, &files, is_set, alphasort);
    for (int i = 0; i < count; i++) {
        char *set = files[i]->d_name;
        size_t used = strlen(known);
        set[strlen(set) - 4] = '\0';
        snprintf(known + used, sizeof(known) - used, " %s", set);
        if (lb_is_closer(name, set, &distance))
            snprintf(suggestion, sizeof(suggestion), "%s", set);
        free(files[i]);
    }
    free(files);
    if (suggestion[0])
        return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; did you mean %s?",
                       name, suggestion);
    return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; the sets are%s", name,
                   known);
}

enum lb_status lb_take_cases(struct lb_selection *selection, const char *name, bool builtin,
                             struct lb_error *err)
{
    char folder[4096], path[4500];
    struct stat found;
    bool there = stat(name, &found) == 0;
    bool is_file = !builtin && there && !S_ISDIR(found.st_mode);
    if (!is_file && !strchr(name, '/') &&
        lb_share_path("cases", folder, sizeof(folder), NULL) == LB_OK) {
        snprintf(path, sizeof(path), "%s/%.255s.txt", folder, name);
        if (access(path, F_OK) == 0)
            name = path;
        else if (!there)
            return fail_no_set(folder, name, err);
    }
    return lb_selection_take(selection, "--cases", name, err);
}

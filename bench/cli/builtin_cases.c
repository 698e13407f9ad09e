/* Sets of cases by name: files, and those that come with the program. */
#include "cli/builtin_cases.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/suggest.h"
#include "support/share_path.h"

/* Of scandir(): NAME.txt. */
static int is_set(const struct dirent *file)
{
    size_t length = strlen(file->d_name);
    return length > 4 && strcmp(file->d_name + length - 4, ".txt") == 0;
}

/* There is neither a file nor a set of that name. */
static enum lb_status fail_no_set(const char *folder, const char *name, struct lb_error *err)
{
    struct dirent **files = NULL;
    char nearest[256] = "", known[256] = "";
    size_t distance = SIZE_MAX;
    int count = scandir(folder, &files, is_set, alphasort);
    for (int i = 0; i < count; i++) {
        char *set = files[i]->d_name;
        size_t used = strlen(known);
        set[strlen(set) - 4] = '\0';
        snprintf(known + used, sizeof(known) - used, " %s", set);
        if (lb_is_nearer(name, set, &distance))
            snprintf(nearest, sizeof(nearest), "%s", set);
        free(files[i]);
    }
    free(files);
    if (nearest[0])
        return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; did you mean %s?",
                       name, nearest);
    return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; the sets are%s", name,
                   known);
}

enum lb_status lb_take_cases(struct lb_selection *selection, const char *name, bool shipped,
                             struct lb_error *err)
{
    char folder[4096], path[4500];
    struct stat found;
    bool taken, there = stat(name, &found) == 0;
    bool is_file = !shipped && there && !S_ISDIR(found.st_mode);
    if (!is_file && !strchr(name, '/') &&
        lb_share_path("cases", folder, sizeof(folder), NULL) == LB_OK) {
        snprintf(path, sizeof(path), "%s/%.255s.txt", folder, name);
        if (access(path, F_OK) == 0)
            name = path;
        else if (!there)
            return fail_no_set(folder, name, err);
    }
    return lb_selection_take(selection, "--cases", name, &taken, err);
}

/* Which cases a command line chose: axes, implementations, --where expressions, case texts and
 * files. */
#include "cli/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "support/share_path.h"

void lb_selection_free(struct lb_selection *selection)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        lb_axis_free(&selection->axes[i]);
    free(selection->impls);
    free(selection->filters);
    lb_case_list_free(&selection->cases);
    *selection = (struct lb_selection){0};
}

/* Adds the cases of a file or, where there is no such file, those of the builtin set of that name.
 * builtin: looks for the set alone. A folder does not count as a file, because runs may have the
 * name of a set. */
static enum lb_status take_cases(struct lb_selection *s, const char *name, bool builtin,
                                 struct lb_error *err)
{
    char folder[4096], path[4500];
    struct lb_hint hint = {0};
    struct stat found;
    bool there = stat(name, &found) == 0;
    bool is_file = !builtin && there && !S_ISDIR(found.st_mode);
    if (!is_file && !strchr(name, '/') &&
        lb_share_path("cases", folder, sizeof(folder), NULL) == LB_OK) {
        snprintf(path, sizeof(path), "%s/%.255s.txt", folder, name);
        if (access(path, F_OK) == 0) {
            name = path;
        } else if (!there) {
            lb_hint_add_files(&hint, name, folder, ".txt");
            return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; %s", name,
                           hint.text);
        }
    }
    return lb_case_list_read(&s->cases, name, err);
}

enum lb_status lb_selection_take_quick(struct lb_selection *s, struct lb_error *err)
{
    return take_cases(s, "quick", true, err);
}

enum lb_status lb_selection_take(struct lb_selection *s, const char *flag, const char *value,
                                 struct lb_error *err)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++) {
        if (strcmp(flag, lb_axis_table[i].flag) == 0)
            return lb_axis_add(&s->axes[i], &lb_axis_table[i], value, err);
    }
    if (strcmp(flag, "--impl") == 0) { /* plug-ins that it names may come later */
        s->impls = lb_room(s->impls, s->impl_count, sizeof(*s->impls));
        s->impls[s->impl_count++] = value;
        return LB_OK;
    }
    if (strcmp(flag, "--where") == 0) {
        s->filters = lb_room(s->filters, s->filter_count, sizeof(*s->filters));
        s->filters[s->filter_count++] = value;
        return lb_filter_check(value, err);
    }
    if (strcmp(flag, "--case") == 0)
        return lb_case_list_add(&s->cases, flag, value, err);
    if (strcmp(flag, "--cases") == 0)
        return take_cases(s, value, false, err);
    return lb_fail(err, LB_INVALID, "%s: it selects no cases", flag);
}

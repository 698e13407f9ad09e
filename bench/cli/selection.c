/* Which cases a command line chose: axes, implementations, --where expressions, case texts and
 * files. */
#include "cli/selection.h"

#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/suggest.h"
#include "support/share_path.h"

static const char *const dtypes[] = {"f64", "f32", "f16", "bf16", "int8", NULL};
static const char *const passes[] = {"infer", "forward", "backward", "train", NULL};
static const char *const maths[] = {"ieee", "tf32", "half", NULL};
static const char *const raggeds[] = {"full", "ragged", NULL};
static const char *const acts[] = {"tanh", "relu", NULL};
static const char *const cells[] = {
    "standard", "layernorm", "recurrent-dropout", "projection", "peephole", "residual", NULL};
static const char *const launches[] = {"stream", "graph", NULL};
static const char *const caches[] = {"hot", "cold", NULL};
static const char *const timings[] = {"isolated", "batched", "stream", NULL};

/* Where an axis has its field in a case: offset and size in bytes. */
#define FIELD(name) \
    .offset = offsetof(struct lb_case, name), .size = sizeof(((struct lb_case *)0)->name)

const struct lb_axis_info lb_axis_table[LB_AXIS_COUNT] = {
    [LB_AXIS_SEQ_LEN] = {"-T", "sequence length", NULL, INT64_MAX, 0, FIELD(problem.seq_len)},
    [LB_AXIS_INPUT] = {"-I", "input", NULL, INT64_MAX, LB_GIVEN_INPUT, FIELD(problem.input)},
    [LB_AXIS_HIDDEN] = {"-H", "hidden", NULL, INT64_MAX, 0, FIELD(problem.hidden)},
    [LB_AXIS_LAYERS] = {"-L", "layers", NULL, INT64_MAX, LB_GIVEN_LAYERS, FIELD(problem.layers)},
    [LB_AXIS_DIRECTIONS] = {"-D", "directions", NULL, 2, LB_GIVEN_DIRECTIONS,
                            FIELD(problem.directions)},
    [LB_AXIS_BATCH] = {"-B", "batch", NULL, INT64_MAX, 0, FIELD(problem.batch)},
    [LB_AXIS_DTYPE] = {"--dtype", "dtype", dtypes, 0, LB_GIVEN_DTYPE, FIELD(problem.dtype)},
    [LB_AXIS_PASS] = {"--pass", "pass", passes, 0, LB_GIVEN_PASS, FIELD(problem.pass)},
    [LB_AXIS_MATH] = {"--math", "math", maths, 0, LB_GIVEN_MATH, FIELD(problem.math)},
    [LB_AXIS_RAGGED] = {"--ragged", "ragged", raggeds, 0, LB_GIVEN_RAGGED, FIELD(problem.ragged)},
    [LB_AXIS_ACT] = {"--act", "act", acts, 0, LB_GIVEN_ACT, FIELD(problem.act)},
    [LB_AXIS_CELL] = {"--cell", "cell", cells, 0, LB_GIVEN_CELL, FIELD(problem.cell)},
    [LB_AXIS_PROJECTION] = {"-P", "projection", NULL, INT32_MAX, LB_GIVEN_CELL,
                            FIELD(problem.projection)},
    [LB_AXIS_LAUNCH] = {"--launch", "launch", launches, 0, LB_GIVEN_LAUNCH, FIELD(launch)},
    [LB_AXIS_CACHE] = {"--cache", "cache", caches, 0, LB_GIVEN_CACHE, FIELD(cache)},
    [LB_AXIS_TIMING] = {"--timing", "timing", timings, 0, LB_GIVEN_TIMING, FIELD(timing)},
    [LB_AXIS_THREADS] = {"--threads", "threads", NULL, LB_MAX_THREADS, LB_GIVEN_THREADS,
                         FIELD(threads)},
    [LB_AXIS_RATE] = {"--rate", "calls per second", NULL, LB_MAX_RATE, LB_GIVEN_RATE, FIELD(rate)},
    [LB_AXIS_INSTANCES] = {"--instances", "instances", NULL, LB_MAX_THREADS, LB_GIVEN_INSTANCES,
                           FIELD(instances)},
};

void lb_axis_set(struct lb_case *c, enum lb_axis_id axis, int64_t value)
{
    void *field = (char *)c + lb_axis_table[axis].offset;
    size_t size = lb_axis_table[axis].size;
    int32_t word = (int32_t)value;
    uint8_t byte = (uint8_t)value;
    memcpy(field, size == 8 ? (void *)&value : size == 4 ? (void *)&word : (void *)&byte, size);
}

int64_t lb_axis_get(const struct lb_case *c, enum lb_axis_id axis)
{
    const void *field = (const char *)c + lb_axis_table[axis].offset;
    size_t size = lb_axis_table[axis].size;
    int64_t value;
    int32_t word;
    uint8_t byte;
    memcpy(size == 8 ? (void *)&value : size == 4 ? (void *)&word : (void *)&byte, field, size);
    return size == 8 ? value : size == 4 ? word : byte;
}

void lb_selection_free(struct lb_selection *selection)
{
    for (size_t i = 0; i < LB_AXIS_COUNT; i++)
        lb_axis_free(&selection->axes[i]);
    free(selection->impls);
    free(selection->filters);
    lb_case_list_free(&selection->cases);
    *selection = (struct lb_selection){0};
}

static enum lb_status take_filter(struct lb_selection *s, const char *value, struct lb_error *err)
{
    s->filters = lb_room(s->filters, s->filter_count, sizeof(*s->filters));
    enum lb_status st = lb_filter_check(value, &s->filters[s->filter_count], err);
    if (st == LB_OK)
        s->filter_count++;
    return st;
}

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
    struct lb_hint hint = {0};
    int count = scandir(folder, &files, is_set, alphasort);
    for (int i = 0; i < count; i++) {
        char *set = files[i]->d_name;
        set[strlen(set) - 4] = '\0';
        lb_hint_add(&hint, name, set);
        free(files[i]);
    }
    free(files);
    return lb_fail(err, LB_INVALID, "--cases %.200s: no such file or set; %s", name, hint.text);
}

/* Adds the cases of a file or, where there is no such file, those of the builtin set of that name.
 * builtin: looks for the set alone. A folder does not count as a file, because runs may have the
 * name of a set. */
static enum lb_status take_cases(struct lb_selection *s, const char *name, bool builtin,
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
        const struct lb_axis_info *info = &lb_axis_table[i];
        if (strcmp(flag, info->flag) != 0)
            continue;
        if (info->words)
            return lb_axis_add_words(&s->axes[i], flag, info->words, value, err);
        struct lb_axis_numbers allowed = {flag, info->what, info->max};
        return lb_axis_add_numbers(&s->axes[i], &allowed, value, err);
    }
    if (strcmp(flag, "--impl") == 0) { /* plug-ins that it names may come later */
        s->impls = lb_room(s->impls, s->impl_count, sizeof(*s->impls));
        s->impls[s->impl_count++] = value;
        return LB_OK;
    }
    if (strcmp(flag, "--where") == 0)
        return take_filter(s, value, err);
    if (strcmp(flag, "--case") == 0)
        return lb_case_list_add(&s->cases, flag, value, err);
    if (strcmp(flag, "--cases") == 0)
        return take_cases(s, value, false, err);
    return lb_fail(err, LB_INVALID, "%s: it selects no cases", flag);
}

/* Merging the runs of several machines into one run. */
#include "sweep/run_merge.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "cli/shard.h"
#include "support/terminal.h"

static enum lb_status no_memory(struct lb_error *err)
{
    return lb_fail(err, LB_OOM, "--merge: out of memory");
}

static void close_files(struct lb_merge *merge)
{
    for (size_t i = 0; i < merge->files; i++) {
        if (merge->fds[i] >= 0)
            close(merge->fds[i]);
        merge->fds[i] = -1;
    }
}

void lb_merge_free(struct lb_merge *merge)
{
    close_files(merge);
    for (size_t i = 0; i < merge->files; i++)
        free(merge->paths[i]);
    for (size_t i = 0; i < merge->count; i++) {
        free(merge->lines[i].id);
        json_decref(merge->lines[i].started);
    }
    free(merge->paths);
    free(merge->fds);
    free(merge->lines);
    json_decref(merge->environments);
    json_decref(merge->warnings);
    json_decref(merge->header);
    json_decref(merge->shards);
}

/* ---- Reading ---- */

/* lb_run_visitor: adds a line to the index. Its environment is still a number of its own run. */
static enum lb_status add_line(void *user, const struct lb_run_line *line, struct lb_error *err)
{
    struct lb_merge *merge = user;
    char id[LB_CASE_ID_SIZE];
    if (merge->count == merge->capacity) {
        size_t capacity = merge->capacity ? merge->capacity + merge->capacity / 2 : 1024;
        struct lb_merge_line *grown = realloc(merge->lines, capacity * sizeof(*grown));
        if (!grown)
            return no_memory(err);
        merge->lines = grown;
        merge->capacity = capacity;
    }
    lb_case_print(&line->row->c, id);
    struct lb_merge_line *added = &merge->lines[merge->count];
    *added = (struct lb_merge_line){
        .id = strdup(id),
        .started = json_is_string(line->started) ? json_incref(line->started) : NULL,
        .median_ns = lb_row_is_timed(line->row) ? line->row->median_ns : (double)NAN,
        .offset = line->offset,
        .length = (uint32_t)line->length,
        .file = (uint32_t)(merge->files - 1),
        .environment = (uint32_t)line->row->environment,
        .canary = line->canary,
        .ran = line->row->verdict != LB_VERDICT_SKIPPED,
    };
    merge->count++;
    return added->id && line->length < UINT32_MAX ? LB_OK : no_memory(err);
}

/* Gives the lines from `first` on the numbers that their environments have in the result. */
static enum lb_status number_environments(struct lb_merge *merge, const struct lb_run *run,
                                          size_t first, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = json_array_size(run->environments);
    size_t *numbers = calloc(count + 1, sizeof(*numbers));
    if (!numbers)
        return no_memory(err);
    for (size_t i = 0; i < count; i++)
        LB_TRY(lb_run_find_environment(merge->environments, json_array_get(run->environments, i),
                                       &numbers[i], err));
    for (size_t i = first; i < merge->count; i++)
        merge->lines[i].environment = (uint32_t)numbers[merge->lines[i].environment];
done:
    free(numbers);
    return st;
}

/* Notes that the runs have a shard of the plan. */
static enum lb_status take_shard(struct lb_merge *merge, json_t *shard, struct lb_error *err)
{
    const char *plan = json_string_value(json_object_get(shard, "plan"));
    json_int_t index = json_integer_value(json_object_get(shard, "index")),
               count = json_integer_value(json_object_get(shard, "count"));
    if (!plan || index < 1 || index > count || count > LB_SHARD_MAX_COUNT)
        return lb_fail(err, LB_INVALID, "the header's shard has no plan, index or count");
    if (!merge->plan[0]) {
        snprintf(merge->plan, sizeof(merge->plan), "%s", plan);
        for (json_int_t i = 0; i < count; i++)
            json_array_append_new(merge->shards, json_null());
    }
    if (strcmp(plan, merge->plan) != 0 || (size_t)count != json_array_size(merge->shards))
        return lb_fail(err, LB_INVALID,
                       "it is a shard of the plan %.16s in %d parts, but the runs before it are "
                       "shards of the plan %.16s in %d: they can't be one run",
                       plan, (int)count, merge->plan, (int)json_array_size(merge->shards));
    json_t *kept = json_pack("{s:I, s:I, s:s}", "index", index, "count", count, "plan", plan);
    return json_array_set_new(merge->shards, (size_t)index - 1, kept) == 0 ? LB_OK : no_memory(err);
}

/* Writes what the run's values come from: the seed, or the hash of a file of weights or inputs. */
static void print_source(const json_t *header, const char *key, char text[32])
{
    const json_t *value = json_object_get(header, key);
    const char *hash = json_string_value(json_object_get(value, "hash"));
    if (json_is_integer(value))
        snprintf(text, 32, "%lld", (long long)json_integer_value(value));
    else
        snprintf(text, 32, "%.20s", hash ? hash : "none");
}

/* Keeps the header of the first run, and when the earliest began. Runs whose inputs differ are not
 * one run. */
static enum lb_status take_header(struct lb_merge *merge, const json_t *header,
                                  struct lb_error *err)
{
    static const char *const keys[] = {"seed", "weights", "inputs"};
    if (merge->files == 1 && json_object_update(merge->header, (json_t *)(uintptr_t)header) != 0)
        return no_memory(err);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char is[32], was[32];
        print_source(header, keys[i], is);
        print_source(merge->header, keys[i], was);
        if (strcmp(is, was) != 0)
            return lb_fail(err, LB_INVALID,
                           "%s of its %s is %s, but that of %s is %s%s: they can't be one run",
                           i == 0 ? "the value" : "the hash", keys[i], is, merge->paths[0], was,
                           i == 0 ? "" : " (none: they were drawn)");
    }
    json_t *started = json_object_get(header, "started");
    const char *first = json_string_value(json_object_get(merge->header, "started"));
    if (json_is_string(started) && first && strcmp(json_string_value(started), first) < 0)
        json_object_set(merge->header, "started", started);
    return LB_OK;
}

/* Takes a run whose lines from `first` on are indexed. */
static enum lb_status take_run(struct lb_merge *merge, const struct lb_run *run, size_t first,
                               struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t i;
    json_t *shard = json_object_get(run->header, "shard");
    if (json_object_get(run->header, "interleaved"))
        return lb_fail(err, LB_INVALID,
                       "it is one side of --ab, measured in turn with the other side, and can't be "
                       "merged");
    LB_TRY(take_header(merge, run->header, err));
    LB_TRY(number_environments(merge, run, first, err));
    if (shard)
        LB_TRY(take_shard(merge, shard, err));
    json_array_foreach(json_object_get(run->header, "shards"), i, shard)
        LB_TRY(take_shard(merge, shard, err));
    merge->unfinished += !run->finished || run->interrupted;
    const char *finished = json_string_value(json_object_get(run->footer, "finished"));
    if (finished && strcmp(finished, merge->finished) > 0)
        snprintf(merge->finished, sizeof(merge->finished), "%s", finished);
done:
    return st;
}

static enum lb_status add_path(struct lb_merge *merge, const char *path, struct lb_error *err)
{
    char **paths = realloc(merge->paths, (merge->files + 1) * sizeof(*paths));
    merge->paths = paths ? paths : merge->paths;
    int *fds = realloc(merge->fds, (merge->files + 1) * sizeof(*fds));
    merge->fds = fds ? fds : merge->fds;
    char *copy = strdup(path);
    if (!merge->environments) {
        merge->environments = json_array();
        merge->header = json_object();
        merge->shards = json_array();
        merge->warnings = json_object();
    }
    if (!paths || !fds || !copy) {
        free(copy);
        return no_memory(err);
    }
    paths[merge->files] = copy;
    fds[merge->files++] = -1;
    return LB_OK;
}

enum lb_status lb_merge_add(struct lb_merge *merge, const char *path, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run run = {0};
    struct lb_error why;
    size_t first = merge->count;
    LB_TRY(add_path(merge, path, err));
    LB_TRY(lb_run_visit(path, add_line, merge, &run, err));
    st = take_run(merge, &run, first, &why);
    if (st != LB_OK)
        st = lb_fail(err, st, "--merge: %s: %.400s", path, why.text);
    else
        lb_warn(run.doubt);
done:
    lb_run_free(&run);
    return st;
}

/* ---- Sorting ---- */

/* Compares texts so that T2 comes before T10. */
static int compare_naturally(const char *a, const char *b)
{
    while (*a && *b) {
        size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
        if (n > 0 && m > 0) {
            int order = n != m ? (n < m ? -1 : 1) : memcmp(a, b, n);
            if (order)
                return order;
            a += n;
            b += m;
        } else if (*a == *b) {
            a++;
            b++;
        } else {
            break;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

/* Sorts canaries first, then rows by problem, implementation and environment; of one case and
 * environment, the row that counts comes last. */
static int compare_lines(const void *a, const void *b)
{
    const struct lb_merge_line *p = a, *q = b;
    const char *x = strchr(p->id, '/'), *y = strchr(q->id, '/');
    if (p->canary != q->canary)
        return p->canary ? -1 : 1;
    int order = compare_naturally(x ? x : "", y ? y : "");
    if (!order)
        order = strcmp(p->id, q->id);
    if (!order && p->environment != q->environment)
        order = p->environment < q->environment ? -1 : 1;
    if (!order)
        order = p->ran - q->ran;
    if (!order && p->started && q->started)
        order = strcmp(json_string_value(p->started), json_string_value(q->started));
    if (!order && p->canary)
        order = (p->median_ns > q->median_ns) - (p->median_ns < q->median_ns);
    if (!order && p->file != q->file)
        order = p->file < q->file ? -1 : 1;
    return order ? order : (p->offset > q->offset) - (p->offset < q->offset);
}

/* Drops the lines [from, end) of one case, but for the last one of each environment and, where one
 * of them ran, those that were skipped. */
static void drop_replaced(struct lb_merge *merge, size_t from, size_t end)
{
    bool ran = false;
    for (size_t i = from; i < end; i++)
        ran |= merge->lines[i].ran;
    for (size_t i = from, kept = 0; i < end; i++) {
        struct lb_merge_line *line = &merge->lines[i];
        bool replaced = i + 1 < end && line[1].environment == line->environment;
        bool skipped = !line->ran && (ran || kept > 0);
        line->dropped = replaced || skipped;
        merge->replaced += replaced && line->ran;
        merge->skipped += !replaced && skipped;
        kept += !line->dropped;
    }
}

/* Whether the canary is the one before it once more, from a run and the merged run that has it. */
static bool is_repeated(const struct lb_merge_line *canary)
{
    const struct lb_merge_line *before = canary - 1;
    return before->canary && before->environment == canary->environment &&
           strcmp(before->id, canary->id) == 0 && before->median_ns == canary->median_ns &&
           json_equal(before->started, canary->started);
}

void lb_merge_sort(struct lb_merge *merge)
{
    if (merge->count > 1)
        qsort(merge->lines, merge->count, sizeof(*merge->lines), compare_lines);
    for (size_t i = 0, end; i < merge->count; i = end) {
        struct lb_merge_line *line = &merge->lines[i];
        for (end = i + 1;
             end < merge->count && !line->canary && strcmp(merge->lines[end].id, line->id) == 0;)
            end++;
        if (line->canary)
            line->dropped = i > 0 && is_repeated(line);
        else
            drop_replaced(merge, i, end);
    }
    for (size_t i = 0; i < merge->count; i++)
        merge->rows += !merge->lines[i].canary && !merge->lines[i].dropped;
}

enum lb_status lb_merge_warn(struct lb_merge *merge, size_t environment, const char *warning,
                             struct lb_error *err)
{
    char key[32];
    snprintf(key, sizeof(key), "%zu", environment);
    return json_object_set_new(merge->warnings, key, json_string(warning)) == 0 ? LB_OK
                                                                                : no_memory(err);
}

/* ---- Writing ---- */

/* Reads an indexed line again; *object is a new reference. */
static enum lb_status read_again(struct lb_merge *merge, const struct lb_merge_line *line,
                                 json_t **object, struct lb_error *err)
{
    int *fd = &merge->fds[line->file];
    const char *path = merge->paths[line->file];
    char *text = malloc((size_t)line->length + 1);
    if (*fd < 0)
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*fd < 0 && errno == EMFILE) {
        close_files(merge);
        *fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    *object = NULL;
    if (text && *fd >= 0 && pread(*fd, text, line->length, line->offset) == (ssize_t)line->length)
        *object = json_loadb(text, line->length, 0, NULL);
    free(text);
    return *object ? LB_OK
                   : lb_fail(err, LB_IO, "--merge: %s: it can't be read again; merge again", path);
}

/* Writes the object as a line and drops the reference to it. */
static enum lb_status write_object(json_t *object, FILE *out, struct lb_error *err)
{
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    bool done = text && fputs(text, out) != EOF && fputc('\n', out) != EOF;
    free(text);
    json_decref(object);
    return done ? LB_OK : no_memory(err);
}

/* Writes an indexed line with the number of its environment, the time of its session, and the
 * warning about its node. */
static enum lb_status write_line(struct lb_merge *merge, const struct lb_merge_line *line,
                                 FILE *out, struct lb_error *err)
{
    char number[32];
    json_t *object;
    enum lb_status st = read_again(merge, line, &object, err);
    if (st != LB_OK)
        return st;
    snprintf(number, sizeof(number), "%u", (unsigned)line->environment);
    json_t *warning = line->canary ? NULL : json_object_get(merge->warnings, number);
    json_object_del(object, "node_warning");
    bool done = json_object_set_new(object, "environment", json_integer(line->environment)) == 0 &&
                (!line->started || json_object_set(object, "started", line->started) == 0) &&
                (!warning || json_object_set(object, "node_warning", warning) == 0);
    return done ? write_object(object, out, err) : no_memory(err);
}

static json_t *make_header(const struct lb_merge *merge)
{
    json_t *header = json_pack("{s:s}", "kind", "header"), *shards = json_array(), *shard;
    size_t i;
    json_array_foreach(merge->shards, i, shard)
    {
        if (json_is_object(shard))
            json_array_append(shards, shard);
    }
    json_object_update(header, merge->header);
    json_object_del(header, "cases");
    json_object_del(header, "shard");
    json_object_set_new(header, "command", json_pack("[ss]", "bench-lstm", "--merge"));
    json_object_set(header, "environment", json_array_get(merge->environments, 0));
    json_object_set(header, "environments", merge->environments);
    json_object_set_new(header, "shards", shards);
    return json_object_set_new(header, "merged", json_true()) == 0 ? header : NULL;
}

/* lb_file_writer */
static enum lb_status write_run(FILE *out, const void *user, struct lb_error *err)
{
    struct lb_merge *merge = (struct lb_merge *)(uintptr_t)user;
    enum lb_status st = LB_OK;
    LB_TRY(write_object(make_header(merge), out, err));
    for (size_t i = 0; i < merge->count; i++)
        if (!merge->lines[i].dropped)
            LB_TRY(write_line(merge, &merge->lines[i], out, err));
    st = write_object(
        json_pack("{s:s, s:s, s:I, s:b}", "kind", "footer", "finished",
                  merge->finished[0] ? merge->finished
                                     : json_string_value(json_object_get(merge->header, "started")),
                  "rows", (json_int_t)merge->rows, "interrupted", merge->unfinished > 0),
        out, err);
done:
    return st;
}

/* LB_INVALID when the file is a run that is not a result of merging, since it would be lost. */
static enum lb_status check_replaceable(const char *path, struct lb_error *err)
{
    char *line = NULL;
    size_t size = 0;
    FILE *stream = fopen(path, "r");
    if (!stream)
        return errno == ENOENT ? LB_OK : lb_fail(err, LB_IO, "%s: %s", path, strerror(errno));
    json_t *header = getline(&line, &size, stream) > 0 ? json_loads(line, 0, NULL) : NULL;
    bool merged = json_is_true(json_object_get(header, "merged"));
    fclose(stream);
    free(line);
    json_decref(header);
    return merged ? LB_OK
                  : lb_fail(err, LB_INVALID,
                            "--merge: %s is a run of its own, which the result would replace; name "
                            "another folder for the result",
                            path);
}

enum lb_status lb_merge_write(struct lb_merge *merge, const char *folder, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *path = lb_run_path(folder);
    if (!path)
        return no_memory(err);
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        LB_TRY(lb_fail(err, LB_IO, "--merge: %s: %s", folder, strerror(errno)));
    LB_TRY(check_replaceable(path, err));
    st = lb_write_file_atomically(path, write_run, merge, err);
done:
    free(path);
    return st;
}

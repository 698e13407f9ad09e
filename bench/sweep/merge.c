/* --merge: combines the runs of several machines into one, and reports the machines that differ
 * by their canaries. */
#define _GNU_SOURCE /* strverscmp */
#include "sweep/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/environment.h"
#include "report/canaries.h"
#include "support/texts.h"

enum { DEPTH_MAX = 4 /* how many levels below the named folder are searched for runs */ };

/* A row or a canary. */
struct line {
    json_t *object;   /* as it is written, with when its session began; owned */
    char *id;         /* the case's text; owned */
    double median_ns; /* infinite: it has no time, which sorts last */
    size_t environment;
    size_t number; /* in the order in which lines were read */
    bool canary;
    bool ran; /* false: its verdict is "skipped" */
    bool dropped;
};

struct merge {
    const char *out;    /* folder of the result */
    FILE *report;       /* takes what the user must know about it */
    struct line *lines; /* [count]; owned */
    size_t count;
    json_t *environments; /* array of objects */
    json_t *warnings;     /* array: the warning of each environment, or null */
    json_t *header;       /* of the first run, but for "started": that of the earliest */
    char *first;          /* path of that run; owned */
    char finished[32];    /* when the last of the runs ended; "": unknown */
    char plan[17];        /* hash of the plan that runs are shards of; "": none is a shard */
    size_t plan_cases;    /* cases of that plan; 0: the shards don't say */
    json_t *shards;       /* array, one per shard of the plan: the shard, or null while missing */
    size_t files;         /* runs that were read */
    size_t missing;       /* shards of the plan that no run is */
    size_t rows;          /* of the result */
    size_t cases;         /* of the result, each counted once for all environments */
    size_t replaced;      /* rows that a later row of the same case and environment replaced */
    size_t unfinished;    /* runs without a footer or interrupted, and merged ones of such */
    size_t doubtful;      /* runs that have a doubt */
    size_t empty;         /* files without a line, which are left out */
};

static bool is_cut_short(const struct merge *merge)
{
    return merge->unfinished + merge->doubtful + merge->empty > 0;
}

/* Whether a part of what was planned is not in the result. */
static bool is_incomplete(const struct merge *merge)
{
    return is_cut_short(merge) || merge->missing > 0 ||
           (merge->plan[0] && merge->cases < merge->plan_cases);
}

static void free_merge(struct merge *merge)
{
    for (size_t i = 0; i < merge->count; i++) {
        json_decref(merge->lines[i].object);
        free(merge->lines[i].id);
    }
    free(merge->lines);
    free(merge->first);
    json_decref(merge->environments);
    json_decref(merge->warnings);
    json_decref(merge->header);
    json_decref(merge->shards);
}

/* ---- Reading ---- */

/* lb_run_visitor: keeps a line. Its environment is still a number of its own run. */
static void add_line(void *user, const struct lb_row *row, json_t *object, bool canary)
{
    struct merge *merge = user;
    merge->lines = lb_room(merge->lines, merge->count, sizeof(*merge->lines));
    merge->lines[merge->count] = (struct line){
        .object = json_incref(object),
        .id = lb_needed(strdup(LB_CASE_TEXT(&row->c))),
        .median_ns = lb_row_is_timed(row) ? row->median_ns : (double)INFINITY,
        .environment = row->environment,
        .number = merge->count,
        .canary = canary,
        .ran = row->verdict != LB_VERDICT_SKIPPED,
    };
    merge->count++;
}

static const char *started(const struct line *line)
{
    return lb_json_text(line->object, "started", "");
}

static enum lb_status take_shard(struct merge *merge, json_t *shard, struct lb_error *err)
{
    const char *plan = json_string_value(json_object_get(shard, "plan"));
    json_int_t index = json_integer_value(json_object_get(shard, "index")),
               count = json_integer_value(json_object_get(shard, "count")),
               cases = json_integer_value(json_object_get(shard, "plan_cases"));
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
    merge->plan_cases = cases > 0 ? (size_t)cases : merge->plan_cases;
    json_array_set_new(merge->shards, (size_t)index - 1,
                       json_pack("{s:I, s:I, s:s, s:o*}", "index", index, "count", count, "plan",
                                 plan, "plan_cases", cases > 0 ? json_integer(cases) : NULL));
    return LB_OK;
}

/* Where the run's values come from: the seed, or the hash of a file. */
static void print_source(const json_t *header, const char *key, char text[32])
{
    const json_t *value = json_object_get(header, key);
    if (json_is_integer(value))
        snprintf(text, 32, "%lld", (long long)json_integer_value(value));
    else
        snprintf(text, 32, "%.20s", lb_json_text(value, "hash", "none"));
}

/* Runs whose inputs differ are not one run. */
static enum lb_status take_header(struct merge *merge, const json_t *header, struct lb_error *err)
{
    static const char *const keys[] = {"seed", "weights", "inputs"};
    if (merge->files == 0)
        json_object_update(merge->header, (json_t *)(uintptr_t)header);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        char is[32], was[32];
        print_source(header, keys[i], is);
        print_source(merge->header, keys[i], was);
        if (strcmp(is, was) != 0)
            return lb_fail(err, LB_INVALID,
                           "%s of its %s is %s, but that of %s is %s%s: they can't be one run",
                           i == 0 ? "the value" : "the hash", keys[i], is, merge->first, was,
                           i == 0 ? "" : " (none: they were drawn)");
    }
    json_t *started = json_object_get(header, "started");
    const char *first = json_string_value(json_object_get(merge->header, "started"));
    if (json_is_string(started) && first && strcmp(json_string_value(started), first) < 0)
        json_object_set(merge->header, "started", started);
    return LB_OK;
}

/* Takes a run whose lines from `first` on are indexed. */
static enum lb_status take_run(struct merge *merge, const struct lb_run *run, size_t first,
                               struct lb_error *err)
{
    size_t i;
    json_t *shard = json_object_get(run->header, "shard");
    if (json_object_get(run->header, "interleaved"))
        return lb_fail(err, LB_INVALID,
                       "it is one side of --ab or --against, measured in turn with the other side, "
                       "and can't be merged");
    LB_CHECK(take_header(merge, run->header, err));
    size_t count = json_array_size(run->environments); /* which have other numbers in the result */
    size_t *numbers = lb_needed(calloc(count + 1, sizeof(*numbers)));
    for (i = 0; i < count; i++)
        numbers[i] =
            lb_run_find_environment(merge->environments, json_array_get(run->environments, i));
    for (i = first; i < merge->count; i++) {
        struct line *line = &merge->lines[i];
        line->environment = numbers[line->environment];
        json_object_set_new(line->object, "environment",
                            json_integer((json_int_t)line->environment));
        json_object_del(line->object, "node_warning"); /* found anew */
    }
    free(numbers);
    json_t *shards = json_object_get(run->header, "shards");
    if (shard)
        LB_CHECK(take_shard(merge, shard, err));
    json_array_foreach(shards, i, shard) LB_CHECK(take_shard(merge, shard, err));
    merge->doubtful += run->doubt[0] != '\0';
    json_t *cut_short = json_object_get(run->footer, "cut_short"); /* of a merged run */
    merge->unfinished += !run->finished || (cut_short ? json_is_true(cut_short) : run->interrupted);
    const char *finished = json_string_value(json_object_get(run->footer, "finished"));
    if (finished && strcmp(finished, merge->finished) > 0)
        snprintf(merge->finished, sizeof(merge->finished), "%s", finished);
    return LB_OK;
}

/* Takes one run.jsonl, which may be a result of merging. LB_INVALID: its inputs or its plan are not
 * those of the runs before it, or it is one side of --ab or --against. A file without a line, such
 * as a sweep that was killed at its start leaves, is named and left out. */
static enum lb_status add_file(struct merge *merge, const char *path, struct lb_error *err)
{
    struct lb_run run = {0};
    struct lb_error why;
    size_t first = merge->count;
    enum lb_status st = lb_run_visit(path, add_line, merge, &run, &why);
    if (run.empty) {
        lb_warn(why.text);
        merge->empty++;
        return LB_OK;
    }
    if (st != LB_OK)
        return lb_fail(err, st, "%s", why.text);
    if (!merge->first)
        merge->first = lb_needed(strdup(path));
    st = take_run(merge, &run, first, &why);
    if (st != LB_OK)
        st = lb_fail(err, st, "--merge: %s: %.400s", path, why.text);
    else
        lb_warn(run.doubt);
    merge->files++;
    lb_run_free(&run);
    return st;
}

/* ---- Finding runs ---- */

/* Adds the run in the folder or, when it has none, the runs in the folders below it, except the
 * folder of the result. depth: levels below the named folder. */
static enum lb_status add_folder(struct merge *merge, const char *folder, int depth,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stat status, result;
    struct dirent **entries = NULL;
    char *path = lb_run_path(folder);
    int count = 0;
    if (access(path, F_OK) == 0) {
        st = add_file(merge, path, err);
        goto done;
    }
    if (depth == DEPTH_MAX)
        goto done;
    count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        LB_TRY(lb_fail(err, LB_IO, "--merge: %s: %s", folder, strerror(errno)));
    for (int i = 0; i < count; i++) {
        char below[4096];
        snprintf(below, sizeof(below), "%.3800s/%.255s", folder, entries[i]->d_name);
        bool hidden = entries[i]->d_name[0] == '.', fits = stat(below, &status) == 0;
        bool is_result = fits && stat(merge->out, &result) == 0 && status.st_dev == result.st_dev &&
                         status.st_ino == result.st_ino;
        if (!hidden && fits && S_ISDIR(status.st_mode) && !is_result)
            LB_TRY(add_folder(merge, below, depth + 1, err));
    }
done:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(path);
    return st;
}

/* ---- Sorting ---- */

/* Sorts canaries first, then rows by problem, implementation and environment; of one case and
 * environment, the row that counts comes last. */
static int compare_lines(const void *a, const void *b)
{
    const struct line *p = a, *q = b;
    const char *x = strchr(p->id, '/'), *y = strchr(q->id, '/');
    if (p->canary != q->canary)
        return p->canary ? -1 : 1;
    int order = strverscmp(x ? x : "", y ? y : ""); /* T2 before T10 */
    if (!order)
        order = strcmp(p->id, q->id);
    if (!order && p->environment != q->environment)
        order = p->environment < q->environment ? -1 : 1;
    if (!order)
        order = p->ran - q->ran;
    if (!order)
        order = strcmp(started(p), started(q));
    if (!order && p->canary)
        order = (p->median_ns > q->median_ns) - (p->median_ns < q->median_ns);
    return order ? order : (p->number > q->number) - (p->number < q->number);
}

/* Drops the lines [from, end) of one case, but for the last of each environment and, where one of
 * them ran, those that were skipped. */
static void drop_replaced(struct merge *merge, size_t from, size_t end)
{
    bool ran = false;
    for (size_t i = from; i < end; i++)
        ran |= merge->lines[i].ran;
    for (size_t i = from, kept = 0; i < end; i++) {
        struct line *line = &merge->lines[i];
        bool replaced = i + 1 < end && line[1].environment == line->environment;
        bool skipped = !line->ran && (ran || kept > 0);
        line->dropped = replaced || skipped;
        merge->replaced += replaced && line->ran && !json_equal(line->object, line[1].object);
        merge->rows += !line->dropped;
        merge->cases += !line->dropped && kept == 0;
        kept += !line->dropped;
    }
}

/* A row that ran replaces one that was skipped, and one of a later session replaces one of the same
 * case and environment. A canary that is there twice, from a run and the merged run that has it,
 * stays once. */
static void sort_lines(struct merge *merge)
{
    if (merge->count > 1)
        qsort(merge->lines, merge->count, sizeof(*merge->lines), compare_lines);
    for (size_t i = 0, end; i < merge->count; i = end) {
        struct line *line = &merge->lines[i], *before = &merge->lines[i > 0 ? i - 1 : 0];
        for (end = i + 1;
             end < merge->count && !line->canary && strcmp(merge->lines[end].id, line->id) == 0;)
            end++;
        if (!line->canary)
            drop_replaced(merge, i, end);
        else
            line->dropped = i > 0 && before->environment == line->environment &&
                            strcmp(before->id, line->id) == 0 &&
                            before->median_ns == line->median_ns &&
                            strcmp(started(before), started(line)) == 0;
    }
}

/* ---- Nodes ---- */

/* Equal devices (lb_environment_kind) get the same number in devices [size of environments]. */
static void number_devices(const json_t *environments, size_t *devices)
{
    json_t *kinds = json_array(), *environment;
    size_t i;
    json_array_foreach(environments, i, environment)
    {
        json_t *kind = lb_environment_kind(environment);
        devices[i] = 0;
        while (devices[i] < i && !json_equal(json_array_get(kinds, devices[i]), kind))
            devices[i]++;
        json_array_append_new(kinds, kind);
    }
    json_decref(kinds);
}

static void check_nodes(struct merge *merge)
{
    size_t count = 0, judged = 0, off = 0, nodes = json_array_size(merge->environments);
    struct lb_canary_time *times = lb_needed(calloc(merge->count + 1, sizeof(*times)));
    size_t *devices = lb_needed(calloc(nodes + 1, sizeof(*devices)));
    struct lb_canary_verdict *verdicts = lb_needed(calloc(nodes + 1, sizeof(*verdicts)));
    for (size_t i = 0; i < merge->count; i++) {
        const struct line *line = &merge->lines[i];
        if (line->canary && !line->dropped && isfinite(line->median_ns))
            times[count++] = (struct lb_canary_time){line->environment, line->id, line->median_ns};
    }
    number_devices(merge->environments, devices);
    lb_canaries_judge(times, count, devices, nodes, verdicts);
    for (size_t n = 0; n < nodes; n++) {
        const struct lb_canary_verdict *verdict = &verdicts[n];
        const json_t *environment = json_array_get(merge->environments, n);
        char node[256], device[256], words[128];
        judged += verdict->nodes >= LB_CANARY_NODES;
        off += verdict->off;
        lb_environment_node(environment, node, sizeof(node));
        lb_environment_device(environment, device, sizeof(device));
        snprintf(words, sizeof(words), "%.0f %% %s than the median of %zu nodes",
                 100 * fabs(expm1(verdict->shift)), verdict->shift > 0 ? "slower" : "faster",
                 verdict->nodes);
        if (verdict->off)
            fprintf(merge->report,
                    "node %s is %s of %s, by its canaries; their spread is %.1f %%\n", node, words,
                    device, 100 * expm1(verdict->spread));
        json_array_append_new(
            merge->warnings,
            verdict->off ? json_sprintf("its node %.100s is %s, by its canaries", node, words)
                         : json_null());
    }
    if (judged > 0 && off == 0)
        fprintf(merge->report, "no node is off by its canaries\n");
    else if (count > 0 && judged == 0)
        fprintf(merge->report,
                "canaries tell nothing: at least %d nodes of one device are needed\n",
                LB_CANARY_NODES);
    free(verdicts);
    free(devices);
    free(times);
}

/* ---- Writing ---- */

/* Writes the object as a line, and drops the reference to it. */
static void write_object(json_t *object, FILE *out)
{
    json_dumpf(object, out, JSON_COMPACT);
    fputc('\n', out);
    json_decref(object);
}

static json_t *make_header(const struct merge *merge)
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
    json_object_update_new(header, json_pack("{s:[ss], s:O*, s:O, s:o, s:b}", "command",
                                             "bench-lstm", "--merge", "environment",
                                             json_array_get(merge->environments, 0), "environments",
                                             merge->environments, "shards", shards, "merged", 1));
    return header;
}

/* lb_file_writer */
static enum lb_status write_run(FILE *out, const void *user, struct lb_error *err)
{
    const struct merge *merge = user;
    const char *started = json_string_value(json_object_get(merge->header, "started"));
    (void)err;
    write_object(make_header(merge), out);
    for (size_t i = 0; i < merge->count; i++) {
        const struct line *line = &merge->lines[i];
        json_t *warning = json_array_get(merge->warnings, line->environment);
        if (line->dropped)
            continue;
        if (!line->canary && json_is_string(warning))
            json_object_set(line->object, "node_warning", warning);
        write_object(json_incref(line->object), out);
    }
    write_object(json_pack("{s:s, s:s, s:I, s:b, s:b}", "kind", "footer", "finished",
                           merge->finished[0] ? merge->finished : started, "rows",
                           (json_int_t)merge->rows, "interrupted", is_incomplete(merge),
                           "cut_short", is_cut_short(merge)),
                 out);
    return LB_OK;
}

/* Writes the result into its folder, which is created if it is missing. An earlier result of
 * merging in it is replaced. LB_INVALID: the folder holds a run of its own, which would be lost. */
static enum lb_status write_merged(struct merge *merge, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    char *path = lb_run_path(merge->out);
    struct lb_run run = {0};
    if (mkdir(merge->out, 0777) != 0 && errno != EEXIST)
        LB_TRY(lb_fail(err, LB_IO, "--merge: %s: %s", merge->out, strerror(errno)));
    if (access(path, F_OK) == 0 && (lb_run_read(path, &run, NULL) != LB_OK ||
                                    !json_is_true(json_object_get(run.header, "merged"))))
        LB_TRY(lb_fail(err, LB_INVALID,
                       "--merge: %s is a run of its own, which the result would replace; name "
                       "another folder for the result",
                       path));
    st = lb_write_file_atomically(path, write_run, merge, err);
done:
    lb_run_free(&run);
    free(path);
    return st;
}

/* ---- Reports ---- */

static void report_missing(const struct merge *merge)
{
    const char *s = merge->missing > 1 ? "s" : "", *separator = " ";
    size_t i;
    json_t *shard;
    if (merge->missing == 0)
        return;
    fprintf(merge->report, "incomplete: shard%s", s);
    json_array_foreach(merge->shards, i, shard)
    {
        if (!json_is_null(shard))
            continue;
        fprintf(merge->report, "%s%zu", separator, i + 1);
        separator = ", ";
    }
    fprintf(merge->report, " of %zu %s missing\n", json_array_size(merge->shards),
            *s ? "are" : "is");
}

static void report_commits(const struct merge *merge)
{
    char names[512] = "";
    size_t i;
    json_t *environment, *seen = json_object();
    json_array_foreach(merge->environments, i, environment)
    {
        const char *commit = json_string_value(json_object_get(environment, "commit"));
        if (!commit || json_object_get(seen, commit))
            continue;
        json_object_set_new(seen, commit, json_true());
        lb_append(names, sizeof(names), "%s%s", names[0] ? ", " : "", commit);
    }
    if (json_object_size(seen) > 1)
        fprintf(merge->report, "warning: %zu commits of bench-lstm measured these runs: %s\n",
                json_object_size(seen), names);
    json_decref(seen);
}

static void report_counts(const struct merge *merge)
{
    const struct {
        size_t count;
        const char *what;
    } gaps[] = {
        {merge->unfinished, "runs did not end; --resume them, and merge again"},
        {merge->doubtful, "runs are doubtful, as the warnings say"},
        {merge->empty, "files hold no run and are left out"},
    };
    size_t environments = json_array_size(merge->environments);
    fprintf(merge->report, "%s/%s: %zu row%s of %zu run%s in %zu environment%s\n", merge->out,
            LB_RUN_FILE_NAME, merge->rows, merge->rows == 1 ? "" : "s", merge->files,
            merge->files == 1 ? "" : "s", environments, environments == 1 ? "" : "s");
    if (merge->replaced > 0)
        fprintf(merge->report,
                "%zu row%s replaced by later ones of the same case and environment\n",
                merge->replaced, merge->replaced == 1 ? " was" : "s were");
    report_missing(merge);
    if (merge->plan[0] && merge->missing == 0 && merge->cases < merge->plan_cases)
        fprintf(merge->report, "incomplete: %zu of the plan's %zu cases have no row\n",
                merge->plan_cases - merge->cases, merge->plan_cases);
    for (size_t i = 0; i < sizeof(gaps) / sizeof(gaps[0]); i++)
        if (gaps[i].count > 0)
            fprintf(merge->report, "incomplete: %zu of the %s\n", gaps[i].count, gaps[i].what);
    report_commits(merge);
}

enum lb_status lb_merge_runs(const char *const *runs, size_t count, const char *out, FILE *report,
                             int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct merge merge = {.out = out,
                          .report = report,
                          .environments = json_array(),
                          .warnings = json_array(),
                          .header = json_object(),
                          .shards = json_array()};
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        size_t before = merge.files + merge.empty;
        if (stat(runs[i], &status) != 0)
            LB_TRY(lb_fail(err, LB_IO, "--merge: %s: %s", runs[i], strerror(errno)));
        LB_TRY(S_ISDIR(status.st_mode) ? add_folder(&merge, runs[i], 0, err)
                                       : add_file(&merge, runs[i], err));
        if (merge.files + merge.empty == before)
            LB_TRY(lb_fail(err, LB_INVALID, "--merge: %s: neither it nor a folder in it holds a %s",
                           runs[i], LB_RUN_FILE_NAME));
    }
    if (merge.files == 0)
        LB_TRY(lb_fail(err, LB_INVALID, "--merge: none of the files holds a run"));
    for (size_t i = 0; i < json_array_size(merge.shards); i++)
        merge.missing += json_is_null(json_array_get(merge.shards, i));
    sort_lines(&merge);
    check_nodes(&merge);
    LB_TRY(write_merged(&merge, err));
    report_counts(&merge);
    *exit_code = is_incomplete(&merge) ? LB_EXIT_INCOMPLETE
                 : merge.rows == 0     ? LB_EXIT_NOTHING
                                       : LB_EXIT_FINE;
done:
    free_merge(&merge);
    return st;
}

/* --merge: combines the runs of several machines into one, and reports the machines that differ
 * by their canaries. */
#include "sweep/merge.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "record/environment.h"
#include "report/canaries.h"
#include "support/exit_code.h"
#include "sweep/run_merge.h"

enum { DEPTH_MAX = 4 /* how many levels below the named folder are searched for runs */ };

/* Whether the path names the folder of the result. */
static bool is_result(const char *path, const char *out)
{
    struct stat a, b;
    return stat(path, &a) == 0 && stat(out, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int leave_out_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* Adds the run in the folder or, when it has none, the runs in the folders below it, except the
 * folder `out` of the result. depth: levels below the named folder. Raises *found by the number of
 * runs that were added. */
static enum lb_status add_folder(struct lb_merge *merge, const char *folder, const char *out,
                                 int depth, size_t *found, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stat status;
    struct dirent **entries = NULL;
    char *path = lb_run_path(folder);
    int count = 0;
    if (!path)
        return lb_fail(err, LB_OOM, "--merge: out of memory");
    if (stat(path, &status) == 0) {
        st = lb_merge_add(merge, path, err);
        *found += 1;
        goto done;
    }
    if (depth == DEPTH_MAX)
        goto done;
    count = scandir(folder, &entries, leave_out_dots, alphasort);
    for (int i = 0; i < count; i++) {
        char below[4096];
        snprintf(below, sizeof(below), "%.3800s/%.255s", folder, entries[i]->d_name);
        if (stat(below, &status) == 0 && S_ISDIR(status.st_mode) && !is_result(below, out))
            LB_TRY(add_folder(merge, below, out, depth + 1, found, err));
    }
done:
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    free(path);
    return st;
}

static enum lb_status add_run(struct lb_merge *merge, const char *run, const char *out,
                              struct lb_error *err)
{
    struct stat status;
    size_t found = 0;
    if (stat(run, &status) != 0)
        return lb_fail(err, LB_IO, "--merge: %s: %s", run, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return lb_merge_add(merge, run, err);
    enum lb_status st = add_folder(merge, run, out, 0, &found, err);
    if (st == LB_OK && found == 0)
        return lb_fail(err, LB_INVALID, "--merge: %s: neither it nor a folder in it holds a %s",
                       run, LB_RUN_FILE_NAME);
    return st;
}

/* Writes a number for the device of each environment into devices [size of environments]. Equal
 * devices (lb_environment_kind) get the same number. LB_OOM. */
static enum lb_status number_devices(const json_t *environments, size_t *devices,
                                     struct lb_error *err)
{
    json_t *kinds = json_array(), *environment;
    bool done = kinds != NULL;
    size_t i;
    json_array_foreach(environments, i, environment)
    {
        json_t *kind = lb_environment_kind(environment);
        for (devices[i] = 0; devices[i] < i; devices[i]++)
            if (json_equal(json_array_get(kinds, devices[i]), kind))
                break;
        done = done && json_array_append_new(kinds, kind) == 0;
    }
    json_decref(kinds);
    return done ? LB_OK : lb_fail(err, LB_OOM, "--merge: out of memory");
}

/* Says that a node is slower or faster than the others, and adds a warning to its rows. */
static enum lb_status report_node(struct lb_merge *merge, size_t number,
                                  const struct lb_canary_verdict *verdict, FILE *report,
                                  struct lb_error *err)
{
    char node[256], device[256], words[128], warning[512];
    const json_t *environment = json_array_get(merge->environments, number);
    lb_environment_node(environment, node, sizeof(node));
    lb_environment_device(environment, device, sizeof(device));
    snprintf(words, sizeof(words), "%.0f %% %s than the median of %zu nodes",
             100 * fabs(expm1(verdict->shift)), verdict->shift > 0 ? "slower" : "faster",
             verdict->nodes);
    fprintf(report, "node %s is %s of %s, by its canaries; their spread is %.1f %%\n", node, words,
            device, 100 * expm1(verdict->spread));
    snprintf(warning, sizeof(warning), "its node %.100s is %s, by its canaries", node, words);
    return lb_merge_warn(merge, number, warning, err);
}

/* Compares the nodes by their canaries, and says which of them differ. */
static enum lb_status check_nodes(struct lb_merge *merge, FILE *report, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    size_t count = 0, judged = 0, off = 0, nodes = json_array_size(merge->environments);
    struct lb_canary_time *times = calloc(merge->count + 1, sizeof(*times));
    size_t *devices = calloc(nodes + 1, sizeof(*devices));
    struct lb_canary_verdict *verdicts = calloc(nodes + 1, sizeof(*verdicts));
    if (!times || !devices || !verdicts)
        LB_TRY(lb_fail(err, LB_OOM, "--merge: out of memory"));
    for (size_t i = 0; i < merge->count; i++) {
        const struct lb_merge_line *line = &merge->lines[i];
        if (line->canary && !line->dropped && isfinite(line->median_ns))
            times[count++] = (struct lb_canary_time){line->environment, line->id, line->median_ns};
    }
    LB_TRY(number_devices(merge->environments, devices, err));
    LB_TRY(lb_canaries_judge(times, count, devices, nodes, verdicts, err));
    for (size_t n = 0; n < nodes; n++) {
        judged += verdicts[n].nodes >= LB_CANARY_NODES;
        off += verdicts[n].off;
        if (verdicts[n].off)
            LB_TRY(report_node(merge, n, &verdicts[n], report, err));
    }
    if (judged > 0 && off == 0)
        fprintf(report, "no node is off by its canaries\n");
    else if (count > 0 && judged == 0)
        fprintf(report, "canaries tell nothing: at least %d nodes of one device are needed\n",
                LB_CANARY_NODES);
done:
    free(verdicts);
    free(devices);
    free(times);
    return st;
}

/* Says which shards of the plan are missing: "shards 3, 7 of 8 are missing". */
static void report_missing(const struct lb_merge *merge, FILE *report)
{
    enum { NAMED = 20 };
    char names[20 * NAMED] = "";
    size_t missing = 0, i;
    json_t *shard;
    json_array_foreach(merge->shards, i, shard)
    {
        if (!json_is_null(shard))
            continue;
        if (missing++ < NAMED)
            lb_append(names, sizeof(names), "%s %zu", names[0] ? "," : "", i + 1);
    }
    if (missing > NAMED)
        lb_append(names, sizeof(names), " and %zu more", missing - NAMED);
    if (missing > 0)
        fprintf(report, "incomplete: shard%s%s of %zu %s missing\n", missing > 1 ? "s" : "", names,
                json_array_size(merge->shards), missing > 1 ? "are" : "is");
}

static void report_counts(const struct lb_merge *merge, const char *out, FILE *report)
{
    size_t environments = json_array_size(merge->environments);
    fprintf(report, "%s/%s: %zu row%s of %zu run%s in %zu environment%s\n", out, LB_RUN_FILE_NAME,
            merge->rows, merge->rows == 1 ? "" : "s", merge->files, merge->files == 1 ? "" : "s",
            environments, environments == 1 ? "" : "s");
    if (merge->replaced > 0)
        fprintf(report, "%zu row%s replaced by later ones of the same case and environment\n",
                merge->replaced, merge->replaced == 1 ? " was" : "s were");
    if (merge->skipped > 0)
        fprintf(report, "%zu row%s of skipped cases dropped, because another row has the case\n",
                merge->skipped, merge->skipped == 1 ? "" : "s");
    report_missing(merge, report);
    if (merge->unfinished > 0)
        fprintf(report, "incomplete: %zu of the runs did not end; --resume them, and merge again\n",
                merge->unfinished);
}

enum lb_status lb_merge_runs(const char *const *runs, size_t count, const char *out, FILE *report,
                             size_t *rows, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_merge merge = {0};
    for (size_t i = 0; i < count; i++)
        LB_TRY(add_run(&merge, runs[i], out, err));
    lb_merge_sort(&merge);
    LB_TRY(check_nodes(&merge, report, err));
    LB_TRY(lb_merge_write(&merge, out, err));
    report_counts(&merge, out, report);
    *rows = merge.rows;
done:
    lb_merge_free(&merge);
    return st;
}

enum lb_status lb_merge_command(const struct lb_options *options, int *exit_code,
                                struct lb_error *err)
{
    size_t rows = 0;
    enum lb_status st = lb_merge_runs((const char *const *)options->runs, options->run_count,
                                      options->subject, stdout, &rows, err);
    *exit_code = rows > 0 ? LB_EXIT_FINE : LB_EXIT_NOTHING;
    return st;
}

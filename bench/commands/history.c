/* --history: many runs of one environment, and the change points of their times. */
#include "commands/commands.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "plot/pictures.h"
#include "record/environment.h"
#include "stats/change_point.h"
#include "stats/order_stats.h"
#include "support/texts.h"

enum {
    LEAST_RUNS = 2 * LB_CHANGE_MIN_SEGMENT,
    SHOWN_RUNS = 100,
    PANELS = 12,              /* cases per picture */
    MOST_CASES = 20 * PANELS, /* in pictures; more are left out, and a message says so */
    PAGE_TIME_LIMIT_S = 30
};

/* The times of one case over the runs, on one device where the runs have several. */
struct line {
    char id[LB_ROW_ID_SIZE]; /* lb_row_print_id */
    size_t *run;       /* [count] index of each run that has a time, ascending in time; owned */
    double *median_ns; /* [count], owned */
    size_t count;
    size_t *points; /* [point_count] indices into run where a new level begins; owned */
    size_t point_count;
};

static void format_commit(const struct lb_run *run, char text[64])
{
    const json_t *environment = json_object_get(run->header, "environment");
    snprintf(text, 64, "%.48s%s", lb_json_text(environment, "commit", "unknown"),
             json_is_true(json_object_get(environment, "dirty")) ? "+changes" : "");
}

/* Says on stderr which runs can't be read and how many have another schema version. */
static enum lb_status read_all(const char *folder, struct lb_run **runs, size_t *count,
                               struct lb_error *err)
{
    size_t old = 0;
    DIR *directory = opendir(folder);
    if (!directory)
        return lb_fail(err, LB_IO, "--history %s: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        char path[4200], inside[4400];
        struct lb_error why;
        size_t length = strlen(entry->d_name);
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        snprintf(inside, sizeof(inside), "%s/%s", path, LB_RUN_FILE_NAME);
        bool is_file = length > 5 && strcmp(entry->d_name + length - 6, ".jsonl") == 0;
        if (entry->d_name[0] == '.' || (!is_file && access(inside, F_OK) != 0))
            continue;
        *runs = lb_room(*runs, *count, sizeof(**runs));
        if (lb_run_read(path, &(*runs)[*count], &why) == LB_OK)
            ++*count;
        else if ((*runs)[*count].other_schema)
            old++;
        else
            fprintf(stderr, "skipped: %s\n", why.text);
    }
    if (old > 0)
        fprintf(stderr, "%zu run%s another schema version: left out\n", old,
                old == 1 ? " has" : "s have");
    closedir(directory);
    return LB_OK;
}

static int by_start(const void *a, const void *b)
{
    const struct lb_run *p = a, *q = b;
    return strcmp(lb_json_text(p->header, "started", ""), lb_json_text(q->header, "started", ""));
}

/* Removes runs whose environment is not the latest one's. */
static void keep_one_environment(struct lb_run *runs, size_t *count)
{
    size_t kept = 0, dropped = 0;
    char what[256], last[256] = "";
    if (*count == 0)
        return;
    json_t *latest = json_incref(json_object_get(runs[*count - 1].header, "environment"));
    for (size_t i = 0; i < *count; i++) {
        if (!lb_environment_differs(json_object_get(runs[i].header, "environment"), latest, what,
                                    sizeof(what))) {
            runs[kept++] = runs[i];
            continue;
        }
        memcpy(last, what, sizeof(last));
        lb_run_free(&runs[i]);
        dropped++;
    }
    if (dropped > 0)
        fprintf(stderr, "%zu run%s of another environment than the latest (%s): left out\n",
                dropped, dropped == 1 ? " is" : "s are", last);
    json_decref(latest);
    *count = kept;
}

/* The lines of all cases, in order of first appearance. */
static struct line *make_lines(const struct lb_run *runs, size_t count, double margin,
                               size_t *line_count)
{
    struct line *lines = NULL;
    json_t *index = json_object(); /* from the text of case and device to the index of their line */
    double *logs = lb_needed(calloc(count, sizeof(*logs)));
    *line_count = 0;
    for (size_t r = 0; r < count; r++)
        for (size_t i = 0; i < runs[r].count; i++) {
            const struct lb_row *row = &runs[r].rows[i];
            if (!lb_row_is_timed(row))
                continue;
            size_t number = lb_json_number(index, LB_ROW_ID(row), *line_count);
            if (number == *line_count) {
                lines = lb_room(lines, number, sizeof(*lines));
                lines[number] = (struct line){.run = lb_needed(calloc(count, sizeof(size_t))),
                                              .median_ns = lb_needed(calloc(count, sizeof(double))),
                                              .points = lb_needed(calloc(count, sizeof(size_t)))};
                lb_row_print_id(row, lines[(*line_count)++].id);
            }
            struct line *line = &lines[number];
            line->run[line->count] = r;
            line->median_ns[line->count++] = row->median_ns;
        }
    for (size_t i = 0; i < *line_count; i++) {
        struct line *line = &lines[i];
        for (size_t k = 0; k < line->count; k++)
            logs[k] = log(line->median_ns[k]);
        line->point_count = lb_change_points(logs, line->count, log1p(margin), line->points);
    }
    json_decref(index);
    free(logs);
    return lines;
}

static void print_line(const struct line *line)
{
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    size_t first = line->count > SHOWN_RUNS ? line->count - SHOWN_RUNS : 0, point = 0;
    double low = INFINITY, high = 0;
    for (size_t i = first; i < line->count; i++) {
        low = fmin(low, line->median_ns[i]);
        high = fmax(high, line->median_ns[i]);
    }
    for (size_t i = first; i < line->count; i++) {
        while (point < line->point_count && line->points[point] < i)
            point++;
        if (point < line->point_count && line->points[point] == i)
            fputs("|", stdout);
        /* A total range below 5 % is mostly noise, and is drawn small. */
        double range = fmax(high - low, 0.05 * low);
        fputs(bars[(int)fmin(7, 8 * (line->median_ns[i] - low) / range)], stdout);
    }
    printf("  %s  %s\n", LB_NS_TEXT(line->median_ns[line->count - 1]), line->id);
}

static void print_changes(const struct lb_run *runs, const struct line *line)
{
    double *scratch = lb_needed(calloc(line->count, sizeof(*scratch)));
    for (size_t p = 0; p < line->point_count; p++) {
        size_t at = line->points[p], from = p > 0 ? line->points[p - 1] : 0;
        size_t to = p + 1 < line->point_count ? line->points[p + 1] : line->count;
        double before = lb_median_of(line->median_ns + from, at - from, scratch);
        double after = lb_median_of(line->median_ns + at, to - at, scratch);
        const struct lb_run *run = &runs[line->run[at]], *last = &runs[line->run[at - 1]];
        char commit[64], last_commit[64];
        format_commit(run, commit);
        format_commit(last, last_commit);
        printf("%-7s %+.1f %%  %s to %s  at run %zu, %s, commit %s (last before: %s)  %s\n",
               after > before ? "slower" : "faster", 100 * (after / before - 1), LB_NS_TEXT(before),
               LB_NS_TEXT(after), line->run[at] + 1, lb_json_text(run->header, "started", ""),
               commit, last_commit, line->id);
    }
    free(scratch);
}

static enum lb_status write_picture(struct lb_drawing *drawing, const struct line *const *lines,
                                    size_t count, struct lb_error *err)
{
    char name[32] = "history";
    if (drawing->count > 0)
        snprintf(name, sizeof(name), "history-%zu", drawing->count + 1);
    LB_CHECK(lb_picture_open(drawing, name, err));
    lb_picture_text(drawing, "heading", "LSTM times over a history of runs");
    lb_picture_text(drawing, "reading",
                    "Lower is better. Median in us over the number of the run; vertical strokes "
                    "are change points.");
    lb_picture_text(drawing, "reading_more", "");
    fprintf(drawing->script,
            "panels = %zu\ncolumns = %d\narray panel_title[%zu]\n"
            "machine = ''\nprogram = ''\nlegend = ''\n",
            count, count > 1 ? 2 : 1, count);
    for (size_t i = 0; i < count; i++) { /* each panel has a data set */
        const struct line *line = lines[i];
        char setting[64];
        size_t point = 0;
        snprintf(setting, sizeof(setting), "panel_title[%zu]", i + 1);
        lb_picture_text(drawing, setting, line->id);
        fprintf(drawing->data, "# %s: number of the run, median in us, 1 at a change point\n",
                line->id);
        for (size_t r = 0; r < line->count; r++) {
            bool changes = point < line->point_count && line->points[point] == r;
            point += changes;
            fprintf(drawing->data, "%zu", line->run[r] + 1);
            lb_picture_number(drawing, line->median_ns[r] / 1e3);
            fprintf(drawing->data, " %d\n", changes);
        }
        fputs("\n\n", drawing->data);
    }
    return lb_picture_finish(drawing, "history.gp", err);
}

/* Writes folder/plots/history.dat and .gp, history-2.dat and .gp, ..., and draws each as .svg and
 * .png: one panel per case over the number of the run, cases with changes first. */
static enum lb_status draw(const char *folder, const struct line *lines, size_t line_count,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct line *selected[MOST_CASES];
    struct lb_drawing drawing = {.count = 0};
    size_t count = 0;
    for (int changed = 1; changed >= 0; changed--)
        for (size_t i = 0; i < line_count && count < MOST_CASES; i++)
            if ((lines[i].point_count > 0) == (changed == 1))
                selected[count++] = &lines[i];
    if (count == 0)
        return lb_fail(err, LB_INVALID, "no case has a time");
    LB_TRY(lb_drawing_begin(folder, &drawing, err));
    for (size_t first = 0; first < count; first += PANELS) {
        size_t left = count - first;
        LB_TRY(write_picture(&drawing, selected + first, left < PANELS ? left : PANELS, err));
    }
    LB_TRY(lb_drawing_draw(&drawing, PAGE_TIME_LIMIT_S * (double)drawing.count, err));
    fprintf(stderr, "%s/history.svg and .png", drawing.folder);
    if (drawing.count > 1)
        fprintf(stderr, "; on to history-%zu", drawing.count);
    if (line_count > count)
        fprintf(stderr, "; %zu cases are not drawn", line_count - count);
    fputc('\n', stderr);
done:
    lb_drawing_free(&drawing);
    return st;
}

enum lb_status lb_history(const struct lb_options *options, int *exit_code, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_run *runs = NULL;
    struct line *lines = NULL;
    size_t count = 0, line_count = 0, changes = 0;
    struct lb_error why;
    LB_TRY(read_all(options->words[0], &runs, &count, err));
    if (count > 1)
        qsort(runs, count, sizeof(*runs), by_start);
    keep_one_environment(runs, &count);
    if (count < LEAST_RUNS) {
        fprintf(
            stderr,
            "%s: it has only %zu run%s of one environment, and a change point needs %d or more\n",
            options->words[0], count, count == 1 ? "" : "s", LEAST_RUNS);
        *exit_code = LB_EXIT_NOTHING;
        goto done;
    }
    /* It combines the rows of one case and one device, so that a line has one time per run. */
    lb_run_arrange(runs, count, LB_BY_DEFAULT);
    lines = make_lines(runs, count, options->margin, &line_count);
    printf("%zu runs, %s to %s, %zu case%s; | is a change point\n\n", count,
           lb_json_text(runs[0].header, "started", ""),
           lb_json_text(runs[count - 1].header, "started", ""), line_count,
           line_count == 1 ? "" : "s");
    for (size_t i = 0; i < line_count; i++) {
        print_line(&lines[i]);
        changes += lines[i].point_count;
    }
    printf("\n");
    for (size_t i = 0; i < line_count; i++)
        print_changes(runs, &lines[i]);
    printf("%zu change point%s\n", changes, changes == 1 ? "" : "s");
    fflush(stdout);
    enum lb_status drawn = draw(options->words[0], lines, line_count, &why);
    if (drawn != LB_OK)
        fprintf(stderr, "no pictures: %s\n", why.text);
    if (drawn == LB_INTERRUPTED)
        st = lb_fail(err, drawn, "%s", why.text);
    if (line_count == 0)
        *exit_code = LB_EXIT_NOTHING;
done:
    for (size_t i = 0; i < line_count; i++) {
        free(lines[i].run);
        free(lines[i].median_ns);
        free(lines[i].points);
    }
    free(lines);
    for (size_t i = 0; i < count; i++)
        lb_run_free(&runs[i]);
    free(runs);
    return st;
}

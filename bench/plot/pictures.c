/* The kinds of pictures, and what all of them share. */
#include "plot/pictures.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "record/environment.h"
#include "record/run_file.h"

static const struct {
    const char *name; /* as in --plot KIND, and the first part of the files' names */
    enum lb_status (*write)(struct lb_picture_job *job, const char *kind, struct lb_error *err);
} kinds[] = {
    {"speedup-b", lb_heat_map_write}, {"speedup-t", lb_heat_map_write},
    {"time-h", lb_chart_write},       {"time-b", lb_chart_write},
    {"time-t", lb_chart_write},       {"roofline", lb_chart_write},
    {"training", lb_chart_write},     {"precision", lb_chart_write},
    {"error", lb_chart_write},        {"memory", lb_chart_write},
    {"scaling", lb_chart_write},      {"latency", lb_chart_write},
    {"throughput", lb_chart_write},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Sets wanted of the kinds in the list, of which NULL has all and "none" has none. */
static enum lb_status read_kinds(const char *flag, const char *list, bool wanted[KINDS],
                                 struct lb_error *err)
{
    char names[256] = "";
    for (size_t k = 0; k < KINDS; k++) {
        wanted[k] = !list;
        lb_append(names, sizeof(names), "%s%s", k > 0 ? ", " : "", kinds[k].name);
    }
    const char *at = list && strcmp(list, "none") != 0 ? list : NULL;
    for (; at; at = strchr(at, ',')) {
        at += *at == ',';
        size_t k = 0, length = strcspn(at, ",");
        while (k < KINDS && (strlen(kinds[k].name) != length || strncmp(kinds[k].name, at, length)))
            k++;
        if (k == KINDS)
            return lb_fail(err, LB_INVALID, "%s %s: the kinds are %s", flag, list, names);
        wanted[k] = true;
    }
    return LB_OK;
}

enum lb_status lb_pictures_check_kinds(const char *flag, const char *list, struct lb_error *err)
{
    bool wanted[KINDS];
    return read_kinds(flag, list, wanted, err);
}

/* The settings of the small print: the machine, the program, and the day of the run. */
static void write_source(struct lb_picture_job *job)
{
    const json_t *header = job->grouped->run->header;
    const json_t *environment = json_object_get(header, "environment");
    const char *version = json_string_value(json_object_get(environment, "version"));
    const char *commit = json_string_value(json_object_get(environment, "commit"));
    const char *started = json_string_value(json_object_get(header, "started"));
    char text[512];
    lb_run_machine_line(job->grouped->run, text, sizeof(text));
    lb_picture_text(&job->drawing, "machine", text);
    snprintf(text, sizeof(text), "bench-lstm %s", version ? version : "");
    if (commit)
        lb_append(text, sizeof(text), " (%s)", commit);
    if (started)
        lb_append(text, sizeof(text), ", run of %.10s", started);
    lb_picture_text(&job->drawing, "program", text);
}

enum lb_status lb_picture_begin(struct lb_picture_job *job, const struct lb_picture_words *words,
                                struct lb_error *err)
{
    char name[LB_PAGE_NAME_SIZE + 32], reading[512];
    size_t n = job->grouped->series_count;
    snprintf(name, sizeof(name), "%s_%s", words->kind, words->page);
    LB_CHECK(lb_picture_open(&job->drawing, name, err));
    FILE *script = job->drawing.script;
    write_source(job);
    lb_picture_text(&job->drawing, "heading", words->heading);
    snprintf(reading, sizeof(reading), "%s", words->reading);
    char *more = reading + strcspn(reading, "\n");
    lb_picture_text(&job->drawing, "reading_more", *more ? more + 1 : "");
    *more = '\0';
    lb_picture_text(&job->drawing, "reading", reading);
    fprintf(script,
            "panels = %zu\ncolumns = %zu\narray panel_title[%zu]\narray series_name[%zu]\n"
            "array series_color[%zu]\narray series_mark[%zu]\narray series_dash[%zu]\n",
            words->panels, words->columns, words->panels, n, n, n, n);
    for (size_t i = 0; i < n; i++) {
        const struct lb_series *series = &job->grouped->series[i];
        snprintf(name, sizeof(name), "series_name[%zu]", i + 1);
        lb_picture_text(&job->drawing, name, series->name);
        fprintf(script, "series_color[%zu] = %d; series_mark[%zu] = %d; series_dash[%zu] = %d\n",
                i + 1, series->color, i + 1, series->mark, i + 1, series->dash);
    }
    return LB_OK;
}

static bool has_times(const struct lb_run *run)
{
    for (size_t i = 0; i < run->count; i++)
        if (lb_row_is_timed(&run->rows[i]))
            return true;
    return false;
}

enum lb_status lb_pictures_draw(const struct lb_grouped_run *grouped, const char *run_folder,
                                const char *list, double time_limit_s,
                                struct lb_picture_report *report, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_picture_job job = {.grouped = grouped};
    bool wanted[KINDS], none = list && strcmp(list, "none") == 0;
    *report = (struct lb_picture_report){0};
    LB_TRY(read_kinds("--plot", list, wanted, err));
    if (none || !has_times(grouped->run)) {
        snprintf(report->notes, sizeof(report->notes), "no pictures: %s",
                 none ? "none were asked for" : "no row of the run has a time");
        goto done;
    }
    LB_TRY(lb_drawing_begin(run_folder, &job.drawing, err));
    for (size_t k = 0; k < KINDS; k++) {
        size_t before = job.drawing.count;
        if (!wanted[k])
            continue;
        LB_TRY(kinds[k].write(&job, kinds[k].name, err));
        if (job.drawing.count == before)
            lb_append(report->notes, sizeof(report->notes), "%s%s: not drawn: %s",
                      report->notes[0] ? "\n" : "", kinds[k].name, job.missing);
    }
    if (job.drawing.count > 0)
        LB_TRY(lb_drawing_draw(&job.drawing, time_limit_s, err));
    report->pictures = job.drawing.count;
done:
    lb_drawing_free(&job.drawing);
    return st;
}

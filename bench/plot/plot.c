/* Pictures of a run: the table of kinds, and drawing them with one run of gnuplot. */
#include "plot/plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plot/gnuplot.h"
#include "plot/plot_kinds.h"

const char *const lb_plot_kinds[] = {"speedup-b", "speedup-t", "time-h",   "time-b",
                                     "time-t",    "roofline",  "training", "precision",
                                     "error",     "memory",    NULL};

/* The files that a script draws, by lb_plot_options.for_page; see plots/style.gp. */
static const char *const file_endings[] = {".svg", ".png", NULL};
static const char *const page_endings[] = {".svg", "-narrow.svg", NULL};

/* How each of lb_plot_kinds is drawn. */
static const struct {
    enum lb_status (*draw)(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                           struct lb_error *err);
    enum lb_plot_axis axis;
} drawings[] = {
    {lb_plot_speedup, LB_PLOT_AXIS_B},     /* speedup-b */
    {lb_plot_speedup, LB_PLOT_AXIS_T},     /* speedup-t */
    {lb_plot_lines, LB_PLOT_AXIS_H},       /* time-h */
    {lb_plot_lines, LB_PLOT_AXIS_B},       /* time-b */
    {lb_plot_lines, LB_PLOT_AXIS_T},       /* time-t */
    {lb_plot_roofline, LB_PLOT_AXIS_H},    /* roofline */
    {lb_plot_lines, LB_PLOT_AXIS_H},       /* training */
    {lb_plot_lines, LB_PLOT_AXIS_H},       /* precision */
    {lb_plot_speed_error, LB_PLOT_AXIS_H}, /* error */
    {lb_plot_lines, LB_PLOT_AXIS_H},       /* memory */
};

_Static_assert(sizeof(drawings) / sizeof(drawings[0]) + 1 ==
                   sizeof(lb_plot_kinds) / sizeof(lb_plot_kinds[0]),
               "each kind of picture has its drawing");

/* Whether the list holds the kind; NULL holds all. */
static bool lists(const char *kinds, const char *kind)
{
    size_t length = strlen(kind);
    for (const char *at = kinds; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, kind, length) == 0 && (at[length] == ',' || at[length] == '\0'))
            return true;
    }
    return kinds == NULL;
}

static bool is_kind(const char *name, size_t length)
{
    for (const char *const *known = lb_plot_kinds; *known; known++)
        if (strlen(*known) == length && strncmp(*known, name, length) == 0)
            return true;
    return false;
}

enum lb_status lb_plot_check_kinds(const char *flag, const char *kinds, struct lb_error *err)
{
    char names[256] = "";
    if (!kinds || strcmp(kinds, "none") == 0)
        return LB_OK;
    for (const char *const *known = lb_plot_kinds; *known; known++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", *known);
    }
    for (const char *at = kinds; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (!is_kind(at, strcspn(at, ",")))
            return lb_fail(err, LB_INVALID, "%s %s: the kinds are %s", flag, kinds, names);
    }
    return LB_OK;
}

static size_t count_timed(const struct lb_run *run)
{
    size_t timed = 0;
    for (size_t i = 0; i < run->count; i++)
        timed += lb_row_is_timed(&run->rows[i]);
    return timed;
}

/* Writes the .dat and .gp files of every page of the requested kinds. */
static enum lb_status write_pages(struct lb_plot_job *job, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (size_t i = 0; lb_plot_kinds[i]; i++)
        if (lists(job->options->kinds, lb_plot_kinds[i]))
            LB_TRY(drawings[i].draw(job, lb_plot_kinds[i], drawings[i].axis, err));
done:
    return st;
}

enum lb_status lb_plot(const struct lb_run *run, const struct lb_plot_options *options,
                       struct lb_plot_report *report, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_plot_job job = {.run = run, .options = options, .report = report};
    *report = (struct lb_plot_report){0};
    LB_TRY(lb_plot_check_kinds("--plot", options->kinds, err));
    if (options->kinds && strcmp(options->kinds, "none") == 0) {
        lb_plot_note(&job, "no pictures: none were asked for");
        goto done;
    }
    if (count_timed(run) == 0) {
        lb_plot_note(&job, "no pictures: no row of the run has a time");
        goto done;
    }
    if (mkdir(options->folder, 0777) != 0 && errno != EEXIST) {
        st = lb_fail(err, LB_IO, "%s: the folder can't be created: %s", options->folder,
                     strerror(errno));
        goto done;
    }
    LB_TRY(lb_series_collect(run, &job.series, err));
    LB_TRY(write_pages(&job, err));
    if (job.script_count > 0)
        LB_TRY(lb_gnuplot_run(options->folder, job.scripts, job.script_count,
                              options->for_page ? page_endings : file_endings,
                              options->time_limit_s, err));
    report->pages = job.script_count;
done:
    for (size_t i = 0; i < job.script_count; i++)
        free(job.scripts[i]);
    free(job.scripts);
    lb_series_free(&job.series);
    return st;
}

/* What the kinds of pictures share: the job, and the two files that a page is written to. */
#ifndef LB_PLOT_PAGE_H
#define LB_PLOT_PAGE_H

#include <stdio.h>

#include "plot/data.h"
#include "plot/plot.h"

/* One call of lb_plot. */
struct lb_plot_job {
    const struct lb_run *run;
    const struct lb_plot_options *options;
    struct lb_series_list series;
    struct lb_plot_report *report;
    char **scripts; /* [script_count] names of the .gp files written */
    size_t script_count;
};

/* Adds a line to the report's notes, if there is room. */
void lb_plot_note(struct lb_plot_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The files of a page being written. Zero it before use. */
struct lb_page {
    struct lb_plot_page about;
    FILE *data, *script;
};

/* Creates KIND_SUFFIX.dat and .gp; the script's first settings say what it is and where its data
 * are. */
enum lb_status lb_page_open(struct lb_plot_job *job, const char *kind, const char *suffix,
                            struct lb_page *page, struct lb_error *err);

/* The settings heading, reading and reading_more: what it is, and how it is read in one line or
 * two.
 */
void lb_page_words(struct lb_page *page, const char *heading, const char *reading);

/* Ends the script with style.gp and the script of that file name, closes both files and adds the
 * page to the job. */
enum lb_status lb_page_finish(struct lb_plot_job *job, struct lb_page *page, const char *script,
                              struct lb_error *err);

void lb_page_close(struct lb_page *page); /* accepts a zeroed or finished one */

/* Writes an empty line and the folder's file of that name to out. LB_IO. */
enum lb_status lb_page_append(const char *folder, const char *name, FILE *out,
                              struct lb_error *err);

/* Text as gnuplot reads it back, quoted: nothing in it is special. */
void lb_page_quote(FILE *script, const char *text);

/* A setting: NAME = 'text'. */
void lb_page_text(struct lb_page *page, const char *name, const char *text);

/* A space and the number as it reads back, or nan, into a data file. */
void lb_page_number(FILE *data, double value);

/* The settings of all series: arrays series_name, series_color, series_mark, series_dash. */
void lb_page_series(struct lb_page *page, const struct lb_series_list *series);

/* The settings that place panels: panels and columns. */
void lb_page_panels(struct lb_page *page, size_t panels, size_t columns);

/* "T = 64, B = 8, I = 13": what a panel holds constant. letters [2] name panel[0] and panel[1],
 * either may be NULL; input is left out where it is 0. */
void lb_panel_title(const struct lb_point *point, const char *const *letters, char *title,
                    size_t size);

/* The settings of the legend: the series whose shown [series->count] is true, in columns that fit
 * their names and the width in pixels. */
void lb_page_legend(struct lb_page *page, const struct lb_series_list *series, const bool *shown,
                    size_t width);

/* Writes all pages of speed-up over the baseline, y by hidden size. */
enum lb_status lb_plot_speedup(struct lb_plot_job *job, const char *kind, enum lb_plot_axis y,
                               struct lb_error *err);

/* Writes all pages of rates over arithmetic intensity; the axis is not used. */
enum lb_status lb_plot_roofline(struct lb_plot_job *job, const char *kind, enum lb_plot_axis axis,
                                struct lb_error *err);

#endif

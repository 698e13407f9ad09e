/* Writing the two files of a page: its data, and its gnuplot script. */
#ifndef LB_PLOT_PAGE_H
#define LB_PLOT_PAGE_H

#include <stdio.h>

#include "plot/job.h"

/* The files of a page while they are written. Zero it before use. */
struct lb_page {
    struct lb_plot_page about;
    FILE *data, *script;
};

/* Creates KIND_SUFFIX.dat and KIND_SUFFIX.gp; the script begins with the page's name and the source
 * of its numbers. LB_IO, LB_OOM. */
enum lb_status lb_page_open(struct lb_plot_job *job, const char *kind, const char *suffix,
                            struct lb_page *page, struct lb_error *err);

/* Writes the settings heading, reading and reading_more: what the page shows and how to read it, in
 * one line or two. */
void lb_page_words(struct lb_page *page, const char *heading, const char *reading);

/* Ends the script with style.gp and the kind's script of that file name, closes both files and adds
 * the page to the job. LB_IO, LB_OOM. */
enum lb_status lb_page_finish(struct lb_plot_job *job, struct lb_page *page, const char *script,
                              struct lb_error *err);

void lb_page_close(struct lb_page *page); /* accepts a zeroed or finished one */

/* Writes an empty line and then the contents of folder/name to out. LB_IO. */
enum lb_status lb_page_append(const char *folder, const char *name, FILE *out,
                              struct lb_error *err);

/* Writes the text as a string in gnuplot's single quotes, where no character is special. */
void lb_page_quote(FILE *script, const char *text);

/* Writes the setting NAME = 'text'. */
void lb_page_text(struct lb_page *page, const char *name, const char *text);

/* Writes a space and the number to a data file, with all its digits; nan where it is not finite. */
void lb_page_number(FILE *data, double value);

/* Writes the look of all series: arrays series_name, series_color, series_mark, series_dash. */
void lb_page_series(struct lb_page *page, const struct lb_series_list *series);

/* Writes the settings that place the panels: panels and columns. */
void lb_page_panels(struct lb_page *page, size_t panels, size_t columns);

/* "T = 64, B = 8, I = 13": the sizes that are constant in a panel. letters [2] name panel[0] and
 * panel[1] of the point, and either may be NULL; I is left out where it is 0. */
void lb_panel_title(const struct lb_point *point, const char *const *letters, char *title,
                    size_t size);

/* Writes the legend's settings: the series whose shown [series->count] is true, in as many columns
 * of names as fit the width in pixels. */
void lb_page_legend(struct lb_page *page, const struct lb_series_list *series, const bool *shown,
                    size_t width);

#endif

/* What the parts of the report share. Each writes one part of the page, in the order of the page.
 */
#ifndef LB_HTML_SECTIONS_H
#define LB_HTML_SECTIONS_H

#include <stdio.h>

#include "plot/plot.h"
#include "plot/problem_groups.h"
#include "plot/table.h"

struct lb_html_view {
    const struct lb_run *run;
    const char *path;   /* the run, as it was named */
    const char *shared; /* folder of scripts, style and method */
    char baseline[2 * LB_NAME_SIZE];
    size_t baseline_series; /* series.count when the run has no such rows */
    struct lb_series_list series;
    struct lb_groups groups;
    size_t verdicts[LB_VERDICT_COUNT]; /* rows of each */
    char scratch[256];                 /* folder of the drawn pictures; "": none */
    struct lb_plot_pages pages;
    char notes[1536]; /* which pictures are missing and why, a line each */
};

/* Draws all pictures into a scratch folder. Where that can't be done there are no pages, and the
 * notes say why. LB_IO: there is no place for scratch. */
enum lb_status lb_html_draw(struct lb_html_view *view, struct lb_error *err);
void lb_html_clean(struct lb_html_view *view); /* removes the folder, frees the pages */

/* The line of the page's contents that is about the pictures. */
void lb_html_picture_links(FILE *out, const struct lb_html_view *view);

/* Which implementation is fastest where, in sentences. LB_OOM. */
enum lb_status lb_html_headline(FILE *out, const struct lb_html_view *view, struct lb_error *err);

/* What changed since the run at base_path, with the comparison's verdicts; margin as in
 * lb_compare_options. LB_IO, LB_INVALID, LB_OOM. */
enum lb_status lb_html_compare(FILE *out, const struct lb_html_view *view, const char *base_path,
                               double margin, struct lb_error *err);

/* Machine, versions, settings of the run. */
void lb_html_machine(FILE *out, const struct lb_html_view *view);

/* All drawn pictures, by kind; what is missing and why. LB_IO, LB_OOM. */
enum lb_status lb_html_pictures(FILE *out, const struct lb_html_view *view, struct lb_error *err);

/* All cases. LB_OOM. */
enum lb_status lb_html_cases(FILE *out, const struct lb_html_view *view, struct lb_error *err);

/* What did not run and why. LB_OOM. */
enum lb_status lb_html_missing(FILE *out, const struct lb_html_view *view, struct lb_error *err);

/* One SVG of gnuplot's for a page: without ids and what only a file of its own needs, colours of
 * ink and lines as the page's variables. */
void lb_html_svg(FILE *out, const char *svg, const char *title);

/* The strip of a row's samples: how many there are at which distance from the median. */
void lb_html_strip(FILE *out, const struct lb_row *row);

#endif

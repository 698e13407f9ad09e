/* What the parts of the report share, and the functions that write each part of the page. */
#ifndef LB_HTML_VIEW_H
#define LB_HTML_VIEW_H

#include <signal.h>
#include <stdio.h>

#include "plot/plot.h"
#include "plot/problem_groups.h"
#include "plot/table.h"
#include "record/run_devices.h"

struct lb_html_view {
    const struct lb_run *run;
    const char *path;                  /* of the run, as it was named */
    const volatile sig_atomic_t *stop; /* nonzero: the user interrupts */
    const char *shared;                /* folder of scripts and template */
    const char *kinds;                 /* of pictures, as in --plots; NULL: all */
    const char *const *bases;          /* [base_count] earlier runs to compare with */
    size_t base_count;
    enum lb_by by; /* how devices are told apart */
    double margin; /* of these comparisons, as in lb_compare_options */
    char baseline[2 * LB_NAME_SIZE];
    size_t baseline_series; /* series.count when the run has no such rows */
    struct lb_series_list series;
    struct lb_groups groups;
    size_t verdicts[LB_VERDICT_COUNT]; /* rows of each */
    char scratch[4096];                /* folder of the drawn pictures; "": none */
    struct lb_plot_pages pages;
    char notes[1536]; /* which pictures are missing and why, one per line */
};

/* Draws all pictures into a scratch folder. Where this fails there are no pages, and the notes say
 * why. LB_IO: no scratch folder can be made. LB_INTERRUPTED. */
enum lb_status lb_html_draw(struct lb_html_view *view, struct lb_error *err);
void lb_html_clean(struct lb_html_view *view); /* removes the folder and frees the pages */

/* LB_INTERRUPTED once the user asked the program to stop. */
enum lb_status lb_html_go_on(const struct lb_html_view *view, struct lb_error *err);

/* The parts of the page, as template.h calls them; user is the struct lb_html_view. */

/* Title, machine, verdicts and warnings. */
enum lb_status lb_html_header(FILE *out, const void *user, struct lb_error *err);

/* Which implementation is fastest where, in sentences. LB_OOM. */
enum lb_status lb_html_headline(FILE *out, const void *user, struct lb_error *err);

/* What changed since each of the earlier runs, with the verdicts of --compare; nothing without any.
 * LB_IO, LB_INVALID, LB_OOM. */
enum lb_status lb_html_changes(FILE *out, const void *user, struct lb_error *err);

/* The plain table of all cases that have a time, for readers without JavaScript. */
enum lb_status lb_html_plain_table(FILE *out, const void *user, struct lb_error *err);

/* What did not run: one line per reason. LB_OOM. */
enum lb_status lb_html_not_run(FILE *out, const void *user, struct lb_error *err);

/* gnuplot's pictures by kind, what is missing and why. LB_OOM. */
enum lb_status lb_html_pictures(FILE *out, const void *user, struct lb_error *err);

/* Machine, versions and settings of the run. */
enum lb_status lb_html_machine(FILE *out, const void *user, struct lb_error *err);

/* The run's records as JSON, for plots/report.js. LB_OOM. */
enum lb_status lb_html_data(FILE *out, const void *user, struct lb_error *err);

#endif

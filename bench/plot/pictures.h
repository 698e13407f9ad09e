/* The pictures of a run, in the files that gnuplot.h describes. */
#ifndef LB_PICTURES_H
#define LB_PICTURES_H

#include "plot/gnuplot.h"
#include "plot/grouped_run.h"

struct lb_picture_report {
    size_t pictures;  /* drawn, each as SVG and PNG */
    char notes[1536]; /* what is missing and why: lines without a final line end; or "" */
};

/* Checks a list of kinds with commas between, or "none": the argument of --plots or --plot. flag is
 * the option's name for the message. NULL is accepted. LB_INVALID lists the kinds. */
enum lb_status lb_pictures_check_kinds(const char *flag, const char *kinds, struct lb_error *err);

/* Draws every picture of these kinds (NULL: all) that has something to show into run_folder/plots:
 * an axis with at least two values. A run without such a picture, and the kinds "none", are no
 * error: report->notes says why there are none. LB_INVALID: there is no such kind. LB_ABSENT:
 * gnuplot is not installed; the .gp and .dat files are written. LB_IO, LB_OOM, LB_FAILED,
 * LB_INTERRUPTED: see gnuplot.h. */
enum lb_status lb_pictures_draw(const struct lb_grouped_run *grouped, const char *run_folder,
                                const char *kinds, double time_limit_s,
                                struct lb_picture_report *report, struct lb_error *err);

/* What the functions that write each kind share. */
struct lb_picture_job {
    const struct lb_grouped_run *grouped;
    struct lb_drawing drawing;
    char missing[256]; /* what the run lacks, where a kind has nothing to show */
};

/* Opens the picture KIND_PAGE and writes the settings that all kinds have: where the numbers come
 * from, its heading and how to read it, the looks of all series, and the number of panels and of
 * their columns. LB_IO, LB_OOM. */
struct lb_picture_words {
    const char *kind, *page, *heading;
    const char *reading; /* in one or two lines */
    size_t panels, columns;
};
enum lb_status lb_picture_begin(struct lb_picture_job *job, const struct lb_picture_words *words,
                                struct lb_error *err);

/* Each writes all pictures of its kind or, when it has none, job->missing. LB_IO, LB_OOM. */
enum lb_status lb_chart_write(struct lb_picture_job *job, const char *kind, struct lb_error *err);
enum lb_status lb_heat_map_write(struct lb_picture_job *job, const char *kind,
                                 struct lb_error *err);

#endif

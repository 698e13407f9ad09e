/* Pictures of a run, drawn by gnuplot.
 *
 * Every page is four files: NAME.dat with the records' numbers, NAME.gp with all that it takes to
 * draw them (`gnuplot NAME.gp` does it again), NAME.svg and NAME.png. */
#ifndef LB_PLOT_H
#define LB_PLOT_H

#include <signal.h>

#include "record/run_file.h"

/* All kinds, as in --plot KIND, and the first part of their files' names; the last is NULL. */
extern const char *const lb_plot_kinds[];

struct lb_plot_options {
    const char *folder;   /* where the files go; made when it is missing */
    const char *scripts;  /* folder of style.gp and the scripts of the kinds */
    const char *baseline; /* impl[:variant] that speed-ups are over */
    const char *kind;     /* one of lb_plot_kinds, or NULL for all */
    double time_limit_s;  /* for gnuplot altogether */
    bool for_page; /* only SVG, without words, in a wide and a narrow form: NAME-narrow.svg */
    struct lb_plot_pages *pages; /* (optional) gets a description of each page written */
};

/* A page, and the words that are in its picture, or belong beside it. */
struct lb_plot_page {
    char name[128]; /* of its files */
    char kind[32];  /* one of lb_plot_kinds */
    char heading[256], reading[512];
    size_t lines; /* implementations in its legend; 0: it has none */
};

struct lb_plot_pages {
    struct lb_plot_page *items; /* [count], owned, in the order of lb_plot_kinds */
    size_t count;
};

void lb_plot_pages_free(struct lb_plot_pages *pages); /* accepts a zeroed one */

struct lb_plot_report {
    size_t pages;     /* drawn, each as SVG and PNG */
    char notes[1536]; /* what is missing and why, a line each without the last line's end; or "" */
};

/* Draws every page that has something to show: an axis with two values or more. A run without any
 * is no error: there are no pages, and a note says why. The caller frees options->pages.
 * LB_INVALID: no such kind. LB_ABSENT: gnuplot is not there; .gp and .dat are. LB_IO: a file can't
 * be read or written. LB_FAILED: gnuplot failed, with its words, or ran into its time limit.
 * LB_INTERRUPTED: see lb_gnuplot_heed. */
enum lb_status lb_plot(const struct lb_run *run, const struct lb_plot_options *options,
                       struct lb_plot_report *report, struct lb_error *err);

/* Runs the folder's scripts by name in one gnuplot; scripts [count]. Errors as of lb_plot. Unless
 * all went well, none of their pictures is left: what is there is whole, and of this data. */
enum lb_status lb_gnuplot_run(const char *folder, char *const *scripts, size_t count,
                              double time_limit_s, struct lb_error *err);

/* From now on a gnuplot that runs is stopped, with LB_INTERRUPTED, once *stop is nonzero. */
void lb_gnuplot_heed(const volatile sig_atomic_t *stop);

#endif

/* What one drawing of pictures works on: its options, what it reports, and the data that every kind
 * of picture shares. */
#ifndef LB_PLOT_JOB_H
#define LB_PLOT_JOB_H

#include "plot/plot_data.h"

/* A page is one picture: some panels of the same kind, written to files of one name. The words are
 * inside the picture, or belong beside it. */
struct lb_plot_page {
    char name[LB_PAGE_NAME_SIZE + 32]; /* of its files, without an ending */
    char kind[32];                     /* one of lb_plot_kinds */
    char heading[256];
    char reading[512]; /* how to read it, in one line or two */
    size_t lines;      /* implementations in its legend; 0 when it has no legend */
};

struct lb_plot_pages {
    struct lb_plot_page *items; /* [count], owned, in the order of lb_plot_kinds */
    size_t count;
};

void lb_plot_pages_free(struct lb_plot_pages *pages); /* accepts a zeroed one */

struct lb_plot_options {
    const char *folder;   /* where the files go; it is made when it is missing */
    const char *scripts;  /* folder of style.gp and of each kind's script */
    const char *baseline; /* impl[:variant] that speed-ups are relative to */
    const char *kinds;    /* "none", or kinds with commas between; NULL: all of them */
    double time_limit_s;  /* for the one run of gnuplot that draws all pages */
    bool for_page; /* only SVG, without words, in a wide and a narrow form: NAME-narrow.svg */
    struct lb_plot_pages *pages; /* (optional) receives a description of each page */
};

struct lb_plot_report {
    size_t pages;     /* drawn, each as SVG and PNG */
    char notes[1536]; /* what is missing and why: lines without a final line end; or "" */
};

/* One call of lb_plot. */
struct lb_plot_job {
    const struct lb_run *run;
    const struct lb_plot_options *options;
    struct lb_series_list series;
    struct lb_plot_report *report;
    char **scripts; /* [script_count] names of the .gp files written so far, owned */
    size_t script_count;
};

/* Adds a line to the report's notes, as far as there is room. */
void lb_plot_note(struct lb_plot_job *job, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif

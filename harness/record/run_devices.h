/* Results of several devices or nodes in one run: keeping them apart, or side by side. */
#ifndef LB_RUN_DEVICES_H
#define LB_RUN_DEVICES_H

#include "record/run_file.h"

enum lb_by {
    LB_BY_DEFAULT, /* by device, each on pages and under problems of its own */
    LB_BY_DEVICE,  /* by device, side by side: a series of its own for each */
    LB_BY_NODE,    /* by host and GPU, side by side */
    LB_BY_NONE     /* all together, as if they were one device */
};

/* Reads "device", "node" or "none". False for other words. */
bool lb_by_parse(const char *word, enum lb_by *by);

/* Gives the rows of the runs [count] labels where they need them, and takes rows of one case and
 * one label together as further processes of that case, so that every case has one row per label.
 *
 * Devices are the same when device, build and libraries are (lb_environment_kind). By default rows
 * get labels only when one of the runs alone has several devices; with a word, when the runs
 * together have several. Rows without a label are those of a run as it always was. A run must be
 * arranged at most once. LB_OOM. */
enum lb_status lb_run_arrange(struct lb_run *const *runs, size_t count, enum lb_by by,
                              struct lb_error *err);

/* lb_run_read and lb_run_arrange of this run alone. */
enum lb_status lb_run_read_by(const char *path, enum lb_by by, struct lb_run *run,
                              struct lb_error *err);

/* One line for people on where the run was measured: the environment's, or for several their number
 * and the devices. */
void lb_run_machine_line(const struct lb_run *run, char *line, size_t size);

#endif

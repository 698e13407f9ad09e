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

/* Gives labels to the rows of the runs [count] that need them. Rows of one case and one label
 * are then combined, as if they came from several processes of one run, so that every case has
 * one row per label.
 *
 * Two devices are the same when the device, the build and the libraries are the same
 * (lb_environment_kind). With LB_BY_DEFAULT, rows get labels only when one of the runs alone has
 * several devices; with the other values, when the runs together have several. Rows of a run on
 * one device have no label. A run must be arranged at most once. */
void lb_run_arrange(struct lb_run *runs, size_t count, enum lb_by by);

/* Calls lb_run_read and lb_run_arrange for this run alone. */
enum lb_status lb_run_read_by(const char *path, enum lb_by by, struct lb_run *run,
                              struct lb_error *err);

/* Writes one line that tells a reader where the run was measured: it describes the environment
 * or, when there are several, their number and the devices. */
void lb_run_machine_line(const struct lb_run *run, char *line, size_t size);

#endif

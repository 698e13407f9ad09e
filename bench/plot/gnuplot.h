/* Running gnuplot: one process for all scripts, without a shell, within a time limit. */
#ifndef LB_GNUPLOT_H
#define LB_GNUPLOT_H

#include <signal.h>
#include <stddef.h>

#include "api/status.h"

/* Runs scripts [count], names of .gp files in the folder, in one gnuplot process. Script NAME.gp
 * must draw NAME followed by each of the endings, a list that ends with NULL: ".svg", ".png". These
 * files are removed first, checked to be complete afterwards (gnuplot succeeds on a full disk), and
 * all removed if any step fails. So every picture in the folder is complete and shows the data
 * beside it. Before the time limit is
 * reached, a line on stderr tells it. LB_ABSENT: gnuplot is not
 * installed. LB_FAILED: it failed, and the text quotes its last line; it exceeded the time limit;
 * or a picture is missing, empty or cut short. LB_INTERRUPTED: see lb_gnuplot_set_stop. LB_IO,
 * LB_OOM. */
enum lb_status lb_gnuplot_run(const char *folder, char *const *scripts, size_t count,
                              const char *const *endings, double time_limit_s,
                              struct lb_error *err);

/* From now on a running gnuplot is stopped, with LB_INTERRUPTED, once *stop is nonzero. NULL: it is
 * never stopped early. */
void lb_gnuplot_set_stop(const volatile sig_atomic_t *stop);

#endif

/* The file with the spread between runs of one machine, which --self-test measures and --compare
 * reads. */
#ifndef LB_RUN_SPREAD_H
#define LB_RUN_SPREAD_H

#include "report/compare.h"

/* Reads what was kept for the machine of a run's environment; all zero where nothing was kept. */
void lb_run_spread_load(const json_t *environment, struct lb_run_spread *spread);

/* Keeps the spread for the machine of that environment, in the program's cache folder. LB_IO. */
enum lb_status lb_run_spread_save(const json_t *environment, const struct lb_run_spread *spread,
                                  struct lb_error *err);

#endif

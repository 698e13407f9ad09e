/* The table of a sweep on a terminal, problem by problem while the sweep runs. */
#ifndef LB_LIVE_TABLE_H
#define LB_LIVE_TABLE_H

#include "record/run_file.h"

/* Zero it before use; zeroed, it shows nothing. */
struct lb_live_table {
    json_t *left;      /* object: from a problem's text to how many of its cases have no row yet;
                          NULL: nothing is shown */
    struct lb_run run; /* its header, and the rows whose problems have cases left */
    size_t capacity;   /* of run.rows */
    char baseline[2 * LB_NAME_SIZE]; /* that the table's latest heading names */
};

/* Begins the table on stdout with the line of the machine. header: of the run, borrowed until the
 * end. LB_OOM. */
enum lb_status lb_live_begin(struct lb_live_table *live, json_t *header,
                             const struct lb_case *cases, size_t count, struct lb_error *err);

/* Takes a row, which becomes empty, and prints its problem when no other case of it is left. */
enum lb_status lb_live_add(struct lb_live_table *live, struct lb_row *row, struct lb_error *err);

/* Prints the problems that an interruption has cut short. Accepts a zeroed table. */
enum lb_status lb_live_end(struct lb_live_table *live, struct lb_error *err);

void lb_live_free(struct lb_live_table *live); /* accepts a zeroed table */

#endif

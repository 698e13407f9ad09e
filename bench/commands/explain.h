/* --explain CASE: why a case can or can not run, its floor, and what would run. --explain FRAMEWORK
 * 'units=512, ...': whether a framework runs its fast kernel for a layer. */
#ifndef LB_EXPLAIN_H
#define LB_EXPLAIN_H

#include "sweep/sweep.h"

/* Explains the case options->subject, on every implementation when it names none. LB_INVALID: it is
 * no case. */
enum lb_status lb_explain_print(const struct lb_session *session, struct lb_error *err);

/* Checks a layer against the criteria called `name` ("keras") and prints on stdout:
 * - a table with a line per criterion: the layer's value, the value needed, and whether it is met
 * - whether the fast kernel runs, and by which algorithm; else what runs instead, the settings that
 *   would make the fast kernel run, and what these change
 * - the notes that apply
 * - the command that measures the price of not running the fast kernel, and the ratio of times that
 *   the run at path `from` measured; NULL: no ratio
 * layer: the settings, "units=512, activation=relu". LB_INVALID when name, layer or run can't be
 * read; LB_IO. */
enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err);

#endif

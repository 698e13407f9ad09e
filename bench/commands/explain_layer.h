/* --explain FRAMEWORK 'units=512, ...': whether a framework runs its fast kernel for a layer. */
#ifndef LB_EXPLAIN_LAYER_H
#define LB_EXPLAIN_LAYER_H

#include "api/status.h"

/* Prints on stdout, for the criteria of that name and the layer's settings: a table of criteria,
 * yours, needed and met; whether the fast kernel runs, and which algorithm of it; else what runs
 * instead, the settings that would keep it and what they change; notes; and the command that
 * measures the price, with the ratio that the run at path `from` measured (NULL: none).
 * LB_INVALID when name, layer or run can't be read; LB_IO. */
enum lb_status lb_explain_layer(const char *name, const char *layer, const char *from,
                                struct lb_error *err);

#endif

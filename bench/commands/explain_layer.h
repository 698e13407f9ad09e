/* --explain FRAMEWORK 'units=512, ...': whether a framework runs its fast kernel for a layer. */
#ifndef LB_EXPLAIN_LAYER_H
#define LB_EXPLAIN_LAYER_H

#include "api/status.h"

/* Prints on stdout, for the criteria of that name and the layer's settings: a table of criteria,
 * yours, needed and met; whether the fast kernel runs, and which algorithm of it; else what runs
 * instead, the nearest settings that keep it and what they change; notes; and the command that
 * measures the price. LB_INVALID when name or layer can't be read. */
enum lb_status lb_explain_layer(const char *name, const char *layer, struct lb_error *err);

#endif

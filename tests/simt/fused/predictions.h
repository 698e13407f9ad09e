/* What the cost model predicts for a grid of sizes. */
#ifndef LB_SIMT_FUSED_PREDICTIONS_H
#define LB_SIMT_FUSED_PREDICTIONS_H

#include <stdio.h>

#include "impls/fused/fused.h"

/* Prints cuda/predictions.csv: one row per size, with all families. */
void print_predictions(FILE *to);

#endif

/* What the cost model expects of each cell of the recurrent grid. */
#ifndef LB_SIMT_FUSED_PREDICTIONS_H
#define LB_SIMT_FUSED_PREDICTIONS_H

#include <stdio.h>

#include "impls/fused/fused.h"

/* cuda/predictions.csv: a row a size, with all families. */
void print_predictions(FILE *to);

/* The table of cuda/README.md: family and us a step, forward and backward. */
void print_prediction_table(FILE *to);

#endif

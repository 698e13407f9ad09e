/* How far a result may be from the oracle. */
#ifndef LB_TOLERANCE_H
#define LB_TOLERANCE_H

#include "reference/verify.h"

/* What a piece may be off by: in its worst element, and in Euclidean norm. */
struct lb_tolerance {
    double max_abs, norm;
};

/* faithful: how far the faithful evaluation is off over this piece, each row counted once; now: the
 * result that is looked at, of which only the size of what is right matters. */
struct lb_tolerance lb_tolerance_of(const struct lb_comparison *comparison,
                                    const struct lb_slice *piece,
                                    const struct lb_deviation *faithful,
                                    const struct lb_deviation *now);

/* Measures each layer and direction of an answer after its backward: sizes [L*D]. */
void lb_measure_layer_dirs(const struct lb_expected *answer, struct lb_layer_dir_size *sizes);

#endif

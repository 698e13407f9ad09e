/* Single blocks of samples, outside a sweep: what A/B comparisons and the self-test are made of. */
#ifndef LB_SAMPLE_BLOCKS_H
#define LB_SAMPLE_BLOCKS_H

#include "record/record.h"
#include "run/session.h"

/* One side of a comparison. */
struct lb_side {
    char label[256];                   /* impl[:variant], or the path of a plug-in */
    const char *variant;               /* "": the default */
    const struct lb_impl_entry *entry; /* borrowed */
};

/* Short enough that a comparison holds many: 6 to 25 samples, about 10 ms. */
struct lb_sampler_options lb_block_sampler(void);

/* Measures both sides of the problem in turn, `pairs` pairs of blocks in one process, each pair in
 * random order. The rows have a block a pair; a side that fails has its verdict, and ends it.
 * LB_INTERRUPTED; LB_FAILED when no process can be started. */
enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err);

#endif

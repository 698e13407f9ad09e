/* Pairs of sample blocks, which --ab, --against and the self-test compare. */
#ifndef LB_INTERLEAVED_BLOCKS_H
#define LB_INTERLEAVED_BLOCKS_H

#include "record/record.h"
#include "run/worker.h"

/* One side of a comparison. */
struct lb_side {
    char label[256];     /* impl[:variant], the path of a plug-in, or a program */
    const char *variant; /* "": the default */
    const struct lb_impl_entry *impl_entry; /* borrowed; NULL: that of the case, with its variant */
    struct lb_pool *pool; /* each block runs in a fresh worker of it; NULL: both sides share a
                             worker of the session's */
};

/* The case as this side runs it. */
struct lb_case lb_case_of_side(const struct lb_case *problem, const struct lb_side *side);

/* The settings of one block in a shared process: 6 to 25 samples in about 10 ms, short enough for
 * many blocks. In fresh processes a block has the settings of a sweep. */
struct lb_sampler_options lb_block_sampler(void);

/* Measures both sides of the problem in turn: `pairs` pairs of blocks, each pair in random order.
 * Each row gets one block per pair. When a side fails, the measurement ends after that pair, so
 * that the other row has its own verdict. LB_INTERRUPTED; LB_FAILED: no process can be started. */
enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err);

#endif

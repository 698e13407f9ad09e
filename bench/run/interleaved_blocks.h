/* Pairs of sample blocks outside a sweep, which --ab and the self-test compare. */
#ifndef LB_INTERLEAVED_BLOCKS_H
#define LB_INTERLEAVED_BLOCKS_H

#include "record/record.h"
#include "run/session.h"

/* One side of a comparison. */
struct lb_side {
    char label[256];                        /* impl[:variant], or the path of a plug-in */
    const char *variant;                    /* "": the default */
    const struct lb_impl_entry *impl_entry; /* borrowed */
};

/* The settings of one block: 6 to 25 samples in about 10 ms, short enough for many blocks. */
struct lb_sampler_options lb_block_sampler(void);

/* Measures both sides of the problem in turn: `pairs` pairs of blocks in one process, each pair in
 * random order. Each row gets one block per pair. When a side fails, its row has the verdict and
 * the measurement ends after that pair, so that the other row has its own verdict. LB_INTERRUPTED;
 * LB_FAILED when no process can be started. */
enum lb_status lb_measure_pairs(const struct lb_session *session, const struct lb_case *problem,
                                const struct lb_side sides[2], int pairs, uint64_t *random,
                                struct lb_row rows[2], struct lb_error *err);

#endif

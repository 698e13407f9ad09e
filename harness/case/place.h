/* Where a case runs: the host or the device. Everything in which running a case differs between the
 * two is a row of one table, so that the steps of a case ask the table instead of the kind. */
#ifndef LB_CASE_PLACE_H
#define LB_CASE_PLACE_H

#include "api/impl.h"
#include "device/host_memory.h"
#include "record/record.h"
#include "reference/case_tensors.h"

struct lb_place {
    const struct lb_space *space; /* of the implementation's tensors */
    bool counts_use;            /* space->available tells how much libraries allocated themselves */
    bool workspace_is_poisoned; /* while weight gradients are converted */

    /* LB_ABSENT with the reason where there is nothing to run on. */
    enum lb_status (*exists)(struct lb_error *why);
    /* (optional) Binds the calling thread and describes that in text, as lb_pin; unbind takes it
     * back. */
    void (*bind)(int threads, char *text, size_t size);
    void (*unbind)(void);

    /* Flops per second that the case can't exceed on `cpus` CPUs or the device; NaN: not known.
     * again: measures the limit once more, with more care. */
    double (*peak_flops_s)(const struct lb_problem *problem, double cpus, bool again);

    /* (optional) Called before the first sample and after the last one; clock_end returns the mean
     * clock of the multiprocessors in between in MHz, NaN where it is not known. */
    void (*clock_begin)(void);
    double (*clock_end)(void);
    /* (optional) Notes clocks, temperature and what held clocks down in the row, while the place
     * goes on with the work that was sampled. mhz: what clock_end said. */
    void (*note_state)(struct lb_row *row, double mhz);

    /* Counts the values of the weight gradients that are infinite or NaN: of results, or of their
     * copy [weights] f16 in space. On the host it is one pass of one thread, on a device a kernel
     * and the way of its answer to the host. */
    enum lb_status (*count_overflow)(const struct lb_case *c, const struct lb_results *results,
                                     const void *copy, uint64_t *found);
    /* (optional) Whether a fault has made it unusable for this process. */
    bool (*lost)(void);
};

const struct lb_place *lb_place_of(enum lb_memory memory);

#endif

/* Ranges on a profiler's timeline (NVTX 3): which case ran, and what was being done with it.
 *
 * Domain bench-lstm. A case is one push/pop range named after its implementation, "cudnn:auto", and
 * within it lie ranges for its phases, one after the other and once each:
 *
 *     name       category   what happens
 *     plan       plan       supports, create, sizes, memory check
 *     oracle     verify     the double-precision answer, or its look-up; inputs
 *     prepare    prepare    buffers, upload, conversion of weights
 *     verify     verify     one checked call, fetched and compared
 *     warm-up    warm-up    calls until they no longer get faster
 *     timed      timed      all samples of one block: one range for the batch of them
 *     recheck    verify     the last timed call's results, fetched and compared
 *     teardown   teardown   destroy, buffers released
 *
 * Names are registered strings, so timed@bench-lstm can start a tool's capture. Colours are the
 * implementation's in the pictures (palette.h). Case and phases carry the problem as a payload of
 * schema "problem": T B I H L D as int64, dtype and pass as registered strings.
 *
 * Nothing is emitted between the two readings of the clock, or the two events, of a sample.
 * Without a tool a call returns after one comparison; without the headers it does nothing. */
#ifndef LB_NVTX_H
#define LB_NVTX_H

#include "model/case.h"

#ifdef __cplusplus
extern "C" {
#endif

enum lb_nvtx_phase {
    LB_NVTX_PLAN,
    LB_NVTX_ORACLE,
    LB_NVTX_PREPARE,
    LB_NVTX_VERIFY,
    LB_NVTX_WARM_UP,
    LB_NVTX_TIMED,
    LB_NVTX_RECHECK,
    LB_NVTX_TEARDOWN,
    LB_NVTX_NONE /* between phases */
};

/* The ranges of one case. Zeroed, or made by lb_nvtx_begin; used on the thread that made it. */
struct lb_nvtx {
    const struct lb_case *c; /* NULL: nothing is emitted, no tool listens */
    bool in_phase;
};

/* Opens the case's range; c must stay valid until lb_nvtx_end. */
void lb_nvtx_begin(struct lb_nvtx *nvtx, const struct lb_case *c);

/* Closes the phase that is open, and opens the next. */
void lb_nvtx_phase(struct lb_nvtx *nvtx, enum lb_nvtx_phase phase);

/* Closes the phase that is open, and the case. */
void lb_nvtx_end(struct lb_nvtx *nvtx);

#ifdef __cplusplus
}
#endif
#endif

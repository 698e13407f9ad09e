/* Ranges on a profiler's timeline (NVTX 3), which show which case runs and in which phase it is.
 *
 * All are in domain bench-lstm. A case is one push/pop range with the case's text as its name.
 * Inside it are ranges for its phases, one after the other:
 *
 *     name       category   what happens
 *     plan       plan       supports, create, sizes, memory check
 *     oracle     verify     expected results computed or found in the cache; inputs
 *     prepare    prepare    buffers, upload, conversion of weights
 *     verify     verify     the first calls: results downloaded and compared
 *     warm-up    warm-up    calls until they no longer get faster
 *     timed      timed      one range around all samples of one block
 *     recheck    verify     results of the last timed call compared; updates; calls on new inputs
 *     teardown   teardown   destroy, buffers released
 *
 * Names are registered strings, so a tool can start its capture at timed@bench-lstm. Ranges have
 * the colour of the implementation (base/palette.h), and carry the problem as a payload of schema
 * "problem": T B I H L D as int64, dtype and pass as registered strings. Nothing is emitted within
 * a sample. Without a tool a call returns after one comparison. */
#ifndef LB_NVTX_H
#define LB_NVTX_H

#include "model/case.h"

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

/* The open ranges of one case. Zeroed, or set by lb_nvtx_begin; to be used on one thread only. */
struct lb_nvtx {
    const struct lb_case *c; /* NULL: no tool listens, so nothing is emitted */
    bool in_phase;
};

/* Loads the profiler's library at the first call, if one listens, and registers names with it;
 * lb_nvtx_begin calls it too. Call it before looking at what an implementation leaves behind,
 * because profilers open files and start threads. */
void lb_nvtx_attach(void);

/* Opens the case's range; c must stay valid until lb_nvtx_end. */
void lb_nvtx_begin(struct lb_nvtx *nvtx, const struct lb_case *c);

/* Close the open phase, if any, and open the next, or close the case. */
void lb_nvtx_phase(struct lb_nvtx *nvtx, enum lb_nvtx_phase phase);
void lb_nvtx_end(struct lb_nvtx *nvtx);
#endif

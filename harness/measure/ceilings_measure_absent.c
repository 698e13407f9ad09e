/* Built instead of ceilings_measure.c in a program without CUDA. */
#include "measure/ceilings_measure.h"

enum lb_status lb_ceilings_measure(double seconds, struct lb_ceilings *ceilings,
                                   const struct lb_ceilings_observer *observer,
                                   struct lb_error *err)
{
    (void)seconds, (void)ceilings, (void)observer;
    return lb_fail(err, LB_ABSENT, "this program was built without CUDA");
}

/* Built instead of ceilings_measure.c in a program without CUDA. */
#include "measure/ceilings_measure.h"

enum lb_status lb_ceilings_measure(struct lb_ceilings *ceilings, struct lb_error *err)
{
    (void)ceilings;
    return lb_fail(err, LB_ABSENT, "this program was built without CUDA");
}

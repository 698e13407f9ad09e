/* mutants.h: the table that mutate.py writes. */
#ifndef LB_SIMT_FUSED_MUTANTS_H
#define LB_SIMT_FUSED_MUTANTS_H

#include "run.h"

namespace simt_fused
{

struct mutant {
    int number;
    const char *check, *fast; /* detector that must catch it in each mode; "-": need not */
    const char *breaks;
    subject kernel;
    shape size;
};

extern const mutant mutants[];
extern const size_t mutant_count;

} // namespace simt_fused

#endif

/* grid_mutants.h: the table that grid_mutate.py writes. */
#ifndef LB_SIMT_FUSED_GRID_MUTANTS_H
#define LB_SIMT_FUSED_GRID_MUTANTS_H

#include "grid_run.h"

namespace simt_grid
{

struct mutant {
    int number;
    const char *check, *fast; /* detector that must catch it in each mode; "-": need not */
    const char *breaks;
    subject kernel;
    shape size;
    manner how;
};

extern const mutant mutants[];
extern const size_t mutant_count;

} // namespace simt_grid

#endif

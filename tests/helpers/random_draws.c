/* Random draws and a known series for tests. */
#include "random_draws.h"

#include <math.h>

uint64_t draws_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 11;
}

double draws_uniform(uint64_t *state)
{
    return ((double)draws_bits(state) + 0.5) * 0x1p-53;
}

/* The Box-Muller transform; its second value is not used. */
double draws_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(draws_uniform(state)));
    return radius * cos(2 * acos(-1.0) * draws_uniform(state));
}

const double draws_nile[100] = {
    1120, 1160, 963, 1210, 1160, 1160, 813,  1230, 1370, 1140, 995,  935,  1110, 994,  1020,
    960,  1180, 799, 958,  1140, 1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774,  840,
    874,  694,  940, 833,  701,  916,  692,  1020, 1050, 969,  831,  726,  456,  824,  702,
    1120, 1100, 832, 764,  821,  768,  845,  864,  862,  698,  845,  744,  796,  1040, 759,
    781,  865,  845, 944,  984,  897,  822,  1010, 771,  676,  649,  846,  812,  742,  801,
    1040, 860,  874, 848,  890,  744,  749,  838,  1050, 918,  986,  797,  923,  975,  815,
    1020, 906,  901, 1170, 912,  746,  919,  718,  714,  740};

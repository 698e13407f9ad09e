/* Which timed calls are checked, which inputs each call reads, and when the inputs change places.
 */
#include "case/call_checks.h"

#include <math.h>

#include "base/clock.h"
#include "base/random.h"

enum { FIRST_CHECKED = 20, FIRST_SWAP_WITHIN = 16 };
static const double check_share = 0.05, swap_share = 0.01; /* of the sampling time */

void lb_call_checks_open(struct lb_call_checks *checks, double max_ns)
{
    uint64_t seed = (uint64_t)lb_now_ns();
    seed = lb_random_next(&seed);
    *checks =
        (struct lb_call_checks){.seed = seed >> 16, .first_checks_ns = fmin(20e6, max_ns / 10)};
    checks->state = checks->seed;
    checks->first_swap = (size_t)(lb_random_next(&checks->state) % FIRST_SWAP_WITHIN);
}

uint64_t lb_call_checks_order(struct lb_call_checks *checks)
{
    uint64_t in_turns = 0xaaaaaaaaaaaaaaaa;
    return lb_random_next(&checks->state) & 1 << 20 ? in_turns : ~in_turns;
}

/* True with that probability. */
static bool draw(struct lb_call_checks *checks, double probability)
{
    return (double)(lb_random_next(&checks->state) >> 11) * 0x1p-53 < probability;
}

bool lb_call_checks_due(struct lb_call_checks *checks)
{
    bool early = checks->samples < FIRST_CHECKED && !(checks->checks_ns > checks->first_checks_ns);
    bool due = checks->check_next || early ||
               draw(checks, check_share * checks->sample_ns / checks->check_ns);
    checks->check_next = false;
    checks->samples++;
    return due;
}

bool lb_call_checks_swap_due(struct lb_call_checks *checks)
{
    if (checks->samples <= checks->first_swap)
        return checks->samples == checks->first_swap;
    return draw(checks, swap_share * checks->sample_ns / checks->swap_ns);
}

void lb_call_checks_note_check(struct lb_call_checks *checks, double ns)
{
    checks->check_ns = checks->checked == 0 ? ns : fmin(checks->check_ns, ns);
    checks->checks_ns += ns;
    checks->checked++;
}

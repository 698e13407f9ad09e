/* Decides which timed calls are checked, which inputs each call reads, and when the two input sets
 * swap their buffers. All of it is drawn at random, so that no pattern of an implementation's calls
 * fits it.
 *
 * With n checked calls (the row's checked_calls), an error in a share p of the calls is found with
 * probability 1 - (1 - p)^n. For p = 0.01 that is 0.63 with n = 100 and 0.993 with n = 500. */
#ifndef LB_CALL_CHECKS_H
#define LB_CALL_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_call_checks {
    uint64_t seed;          /* 48 bits drawn from the clock, for the record */
    uint64_t state;         /* of lb_random_next */
    size_t samples;         /* number of samples for which lb_call_checks_due has decided */
    size_t first_swap;      /* number of the sample before which the inputs are swapped first */
    size_t checked;         /* number of samples that were checked */
    double first_checks_ns; /* most time that the first checks may take together */
    bool check_next;        /* check the next sample, whatever that costs */
    double checks_ns;       /* time of all checks, with preparing for them */
    double check_ns;        /* time of the shortest check: longer ones were interrupted */
    double sample_ns;       /* time of the latest sample: all its calls together */
    double swap_ns;         /* time of the latest swap; 0: none yet */
};

/* Draws a seed and begins with it. max_ns: wall time of the whole sampling. */
void lb_call_checks_open(struct lb_call_checks *checks, double max_ns);

/* Returns which buffer of inputs each call of the next sample reads: bit i % 64 is that of call i.
 * The first bit is random. The others alternate, so that no call of a batch finds its results
 * already written. */
uint64_t lb_call_checks_order(struct lb_call_checks *checks);

/* True when the next sample is to be checked. The first twenty are checked while that takes at most
 * 20 ms and a tenth of max_ns. Later ones are checked with a probability such that checks take
 * about a twentieth of the sampling time. */
bool lb_call_checks_due(struct lb_call_checks *checks);

/* True when the inputs are to be swapped before the next sample: once among the first sixteen
 * samples, later with a probability such that swaps take about a hundredth of the sampling time. */
bool lb_call_checks_swap_due(struct lb_call_checks *checks);

/* Notes the time of a check. */
void lb_call_checks_note_check(struct lb_call_checks *checks, double ns);

#endif

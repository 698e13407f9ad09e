/* Which timed calls are checked, which inputs each call reads, and when the inputs change places:
 * all of it drawn from the operating system's entropy, so that no implementation can know it.
 *
 * An error in a share p of the calls is found with probability 1 - (1 - p)^n, where n calls are
 * checked (the row's checked_calls): of one in a hundred, 0.63 with 100 and 0.993 with 500. */
#ifndef LB_CALL_CHECKS_H
#define LB_CALL_CHECKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lb_call_checks {
    uint64_t seed;          /* 48 bits of entropy, for the record */
    uint64_t state;         /* of lb_random_next */
    size_t samples;         /* that were decided upon */
    size_t first_swap;      /* the number of the sample before which inputs change places first */
    size_t checked;         /* samples that were checked */
    double first_checks_ns; /* that the first checks may take together */
    bool check_next;        /* whatever it costs */
    double checks_ns;       /* time of all checks, with preparing for them */
    double check_ns;        /* of the shortest check: longer ones were interrupted */
    double sample_ns;       /* of the latest sample: all its calls together */
    double swap_ns;         /* of the latest swap; 0: none yet */
};

/* Draws a seed and begins with it. max_ns: wall time of the whole sampling. */
void lb_call_checks_open(struct lb_call_checks *checks, double max_ns);

/* Bit i % 64 is the buffer of inputs that call i of the next sample reads. The first one is random.
 * The calls of a batch take turns, so that none finds its results already written. */
uint64_t lb_call_checks_order(struct lb_call_checks *checks);

/* Whether the next sample is to be checked. The first twenty are, while that takes less than 20 ms
 * and a tenth of max_ns; later ones with a probability such that checks take about a twentieth of
 * the sampling time. */
bool lb_call_checks_due(struct lb_call_checks *checks);

/* Whether the inputs change places before the next sample: once among the first sixteen, later with
 * a probability such that it takes about a hundredth of the sampling time. */
bool lb_call_checks_swap_due(struct lb_call_checks *checks);

/* Notes what a sample took, with all its calls; and what a check took. */
void lb_call_checks_note_sample(struct lb_call_checks *checks, double ns);
void lb_call_checks_note_check(struct lb_call_checks *checks, double ns);

#endif

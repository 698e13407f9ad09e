/* What is known of a case before it runs: whether it can run, what it needs, and what would run. */
#ifndef LB_CASE_PROBE_H
#define LB_CASE_PROBE_H

#include "api/impl.h"
#include "case/options.h"
#include "device/host_memory.h"
#include "model/case.h"

/* What follows from a case and an implementation before anything is created. lb_case_plan computes
 * it once, and every function that runs the case gets it. */
struct lb_case_plan {
    struct lb_exec_config config; /* where and how the case runs, with its variant resolved */
    /* What the implementation is created for: the case's problem, but with the pass train where it
     * is forward, so that a backward can show that forward kept what that needs. */
    struct lb_problem problem;
    struct lb_problem whole; /* what the oracle evaluates: of a stream, all of its calls at once */
    int chunks;              /* calls of T steps in `whole`; 1 unless it is a stream */
    int instances;           /* that run at once, each with this config */
    bool has_backward;       /* the timed calls produce gradients */
    bool calls_updates;      /* update is called */
    double space_bytes;      /* bytes that the harness allocates in that space, for all instances:
                                tensors, the buffer that flushes cold caches, and on the host results and
                                oracle as well */
    double host_bytes;       /* bytes of results and oracle on the host, wherever the tensors are */
};

/* Checks whether the harness and impl can run c, and fills *plan. available_bytes: what the host
 * has left. What an implementation on a device needs there is compared with the total memory of the
 * known device (lb_device_known). Of impl it calls only supports. LB_UNSUPPORTED or LB_ABSENT with
 * the reason; LB_OOM with "needs X, has Y". */
enum lb_status lb_case_plan(const struct lb_impl *impl, const struct lb_case *c,
                            double available_bytes, struct lb_case_plan *plan,
                            struct lb_error *why);

/* The problem that the oracle evaluates for a case. Of a stream that is one long sequence: a number
 * of calls, *chunks, that follow each other. There are so many that the oracle takes about a
 * second, but at least 2 and at most 256. */
struct lb_problem lb_case_whole(const struct lb_case *c, int *chunks);

/* Bytes that the harness allocates for a case: its tensors in the implementation's memory, and
 * results and oracle on the host. Infinite when they cannot be counted. What the implementation
 * asks for (lb_sizes) comes on top. */
double lb_case_bytes(const struct lb_case *c);

/* LB_OOM "needs X, has Y of SPACE memory" when needed is more than available. */
enum lb_status lb_check_memory(double needed, double available, const char *space,
                               struct lb_error *err);

/* What an opened implementation says of a case. */
struct lb_probe {
    struct lb_sizes sizes;
    char description[512]; /* what would run; "" when the implementation does not say */
    char note[512];        /* the implementation's note on the problem, or "" */
};

/* Plans the case and calls create, sizes, describe, note and destroy: everything up to the
 * allocation of memory. observer may be NULL. Errors as lb_case_plan, or what create and sizes
 * return; LB_OOM with "needs X, has Y" when what the implementation asks for does not fit. */
enum lb_status lb_case_probe(const struct lb_impl *impl, const struct lb_case *c,
                             double available_bytes, const struct lb_run_observer *observer,
                             struct lb_probe *probe, struct lb_error *err);

#endif

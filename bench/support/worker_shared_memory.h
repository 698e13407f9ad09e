/* Memory that the program shares with one worker process. The worker notes in it what no message
 * could tell: which function of an implementation it is in, and that it was forked. Writing there
 * costs one store, so that it can be done around every call that is not timed. */
#ifndef LB_WORKER_SHARED_MEMORY_H
#define LB_WORKER_SHARED_MEMORY_H

#include <signal.h>

#include "api/impl.h"

/* A function of an implementation that is not timed. */
enum lb_slot {
    LB_SLOT_NONE,
    LB_SLOT_SUPPORTS,
    LB_SLOT_CREATE,
    LB_SLOT_SIZES,
    LB_SLOT_PREPARE,
    LB_SLOT_GRADIENTS,
    LB_SLOT_DESCRIBE,
    LB_SLOT_DESTROY,
    LB_SLOT_NOTE,
    LB_SLOT_CHECK,
    LB_SLOT_COUNT
};

enum { LB_MOST_FORKS = 200 /* in a worker's life; each costs a child process */ };

struct lb_worker_shared {
    volatile sig_atomic_t slot;        /* enum lb_slot: where the worker is */
    volatile sig_atomic_t forks;       /* how often the worker was forked */
    volatile sig_atomic_t came_back;   /* a forked child returned from the implementation */
    volatile char came_back_phase[32]; /* in which phase of the case */
};

/* The slot's name, "sizes"; the phase's own where the worker is in no slot. */
const char *lb_slot_or_phase(const struct lb_worker_shared *page, const char *phase);

/* Creates the memory: *fd is what a worker maps it by, and the caller closes it. NULL when the
 * system refuses; *fd is -1 then. */
struct lb_worker_shared *lb_worker_shared_create(int *fd);

/* Maps the memory of a file descriptor, in a worker. NULL when the system refuses. */
struct lb_worker_shared *lb_worker_shared_map(int fd);
void lb_worker_shared_free(struct lb_worker_shared *page); /* accepts NULL */

/* Called before an implementation is created for a case, and after it is destroyed. */
struct lb_watch_hooks {
    void *user;
    void (*before_create)(void *user);
    void (*after_destroy)(void *user);
};

/* An implementation that does what impl does and notes in page which slot it is in; forward and
 * backward, which are timed, stay impl's own. impl, page and hooks must outlive its use. One at a
 * time: the next call changes what the last returned. */
const struct lb_impl *lb_watched_impl(const struct lb_impl *impl, struct lb_worker_shared *page,
                                      const struct lb_watch_hooks *hooks);

#endif

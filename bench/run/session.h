/* What commands share that run implementations or ask them what they support. */
#ifndef LB_SESSION_H
#define LB_SESSION_H

#include <jansson.h>
#include <signal.h>

#include "cli/options.h"
#include "model/registry.h"
#include "run/worker.h"

/* All borrowed. */
struct lb_session {
    const struct lb_options *options;
    struct lb_registry *registry;
    struct lb_pool *pool;
    const volatile sig_atomic_t *stop; /* nonzero once a signal asked the program to end */
    json_t *gpu; /* the device's record, owned by whoever made the session; NULL: there is none, or
                    it was not looked for */
    json_t *libraries; /* their versions (lb_pool_libraries), owned likewise; NULL: nothing was
                          loaded */
};

#endif

/* A plug-in that was built for interface FAULT, a compile-time number, and offers no other one.
 * It is cpu_ref with a struct that ends where that of the old interface ended. The program must
 * not call what lies behind it. */
#include <stdlib.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_impl impl;

/* Interfaces 2 and 3 had a `note` that wrote into a struct lb_error; interface 1 had none.
 * Either way, the program must not call it. */
static void no_note(const struct lb_problem *problem, const struct lb_exec_config *config,
                    char *text, size_t size)
{
    (void)problem, (void)config, (void)text, (void)size;
    abort();
}

static enum lb_status no_check(const void *self, struct lb_error *err)
{
    (void)self, (void)err;
    abort();
}

static enum lb_status check(const void *self, struct lb_error *err)
{
    (void)self;
    return lb_fail(err, LB_FAILED, "interface 3 has a check");
}

static enum lb_status no_update(void *self, const struct lb_update_io *io, struct lb_error *err)
{
    (void)self, (void)io, (void)err;
    abort();
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    impl = lb_impl_cpu_ref;
    impl.abi = FAULT;
    impl.name = "older_" TEXT(FAULT);
    impl.summary = "cpu_ref of an older interface";
    impl.note = FAULT < 4 ? no_note : NULL;
    impl.check = FAULT < 3 ? no_check : FAULT < 4 ? check : NULL;
    impl.update = no_update;
    return abi == FAULT ? &impl : NULL;
}

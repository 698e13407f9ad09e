/* A plug-in that was built for interface FAULT, a compile-time number, and offers no other:
 * cpu_ref, whose struct ends where that interface's did. What lies behind it is not to be called.
 */
#include <stdlib.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_impl impl;

static void no_note(const struct lb_problem *problem, const struct lb_exec_config *place,
                    struct lb_error *text)
{
    (void)problem, (void)place, (void)text;
    abort();
}

static enum lb_status no_check(const void *self, struct lb_error *err)
{
    (void)self, (void)err;
    abort();
}

static void note(const struct lb_problem *problem, const struct lb_exec_config *place,
                 struct lb_error *text)
{
    (void)problem, (void)place;
    lb_fail(text, LB_OK, "interface 2 has remarks");
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    impl = lb_impl_cpu_ref;
    impl.abi = FAULT;
    impl.name = "older_" TEXT(FAULT);
    impl.summary = "cpu_ref of an older interface";
    impl.note = FAULT < 2 ? no_note : note;
    impl.check = no_check;
    return abi == FAULT ? &impl : NULL;
}

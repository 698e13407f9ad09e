/* A plug-in that was built for an older interface, whose number is the compile-time number FAULT,
 * and offers no other. It is cpu_ref; the slots that the older interface did not have abort when
 * they are called, because the program must not call them. */
#include <stdlib.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_impl impl;

static void no_note(const struct lb_problem *problem, const struct lb_exec_config *config,
                    struct lb_error *text)
{
    (void)problem, (void)config, (void)text;
    abort();
}

static enum lb_status no_check(const void *self, struct lb_error *err)
{
    (void)self, (void)err;
    abort();
}

static void note(const struct lb_problem *problem, const struct lb_exec_config *config,
                 struct lb_error *text)
{
    (void)problem, (void)config;
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

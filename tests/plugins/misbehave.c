/* A plug-in that is right but for one thing: FAULT, a compile-time name, says which. Tests hold
 * that each fault costs its own row and no other. Everything else is cpu_ref's. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_impl impl; /* cpu_ref's, with the faulty slot replaced */

static enum lb_status crash(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    (void)self, (void)io, (void)err;
    raise(SIGSEGV);
    return LB_OK;
}

static enum lb_status leave(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    (void)self, (void)io, (void)err;
    _exit(7);
}

static enum lb_status hang(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    (void)self, (void)io, (void)err;
    for (;;)
        pause();
    return LB_OK;
}

static void hang_in_destroy(void *self)
{
    (void)self;
    for (;;)
        pause();
}

static void crash_in_destroy(void *self)
{
    (void)self;
    raise(SIGABRT);
}

/* Takes memory page by page until somebody ends it. */
static enum lb_status eat(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    (void)self, (void)io, (void)err;
    for (size_t chunk = 16U << 20;;) {
        void *memory = malloc(chunk);
        if (memory)
            memset(memory, 1, chunk);
    }
    return LB_OK;
}

static enum lb_status fail(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    (void)self, (void)io;
    return lb_fail(err, LB_FAILED, "the planted failure");
}

static enum lb_status chatter(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    puts("this must not end up among the program's data");
    fflush(stdout);
    return lb_impl_cpu_ref.forward(self, io, err);
}

/* Right once, then never again: what is checked is not what is timed. */
static enum lb_status cheat(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    static int calls;
    return calls++ == 0 ? lb_impl_cpu_ref.forward(self, io, err) : LB_OK;
}

static const struct fault {
    const char *name;
    enum lb_status (*forward)(void *, const struct lb_forward_io *, struct lb_error *);
    void (*destroy)(void *);
} faults[] = {
    {"none", NULL, NULL},
    {"crash", crash, NULL},
    {"leave", leave, NULL},
    {"hang", hang, NULL},
    {"hang_in_destroy", NULL, hang_in_destroy},
    {"crash_in_destroy", NULL, crash_in_destroy},
    {"eat", eat, NULL},
    {"fail", fail, NULL},
    {"chatter", chatter, NULL},
    {"cheat", cheat, NULL},
    {"other_abi", NULL, NULL},
};

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static char name[64];
    impl = lb_impl_cpu_ref;
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(faults[i].name, TEXT(FAULT)) != 0)
            continue;
        impl.forward = faults[i].forward ? faults[i].forward : impl.forward;
        impl.destroy = faults[i].destroy ? faults[i].destroy : impl.destroy;
    }
    snprintf(name, sizeof(name), "misbehave_%s", TEXT(FAULT));
    impl.name = name;
    impl.summary = "cpu_ref with one planted fault";
    if (strcmp(TEXT(FAULT), "other_abi") == 0)
        impl.abi = abi + 1;
    return &impl;
}

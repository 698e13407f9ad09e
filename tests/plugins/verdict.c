/* A plug-in with a failure that looks like another one; the compile-time name FAULT says which.
 * Everything else is cpu_ref's. Tests check that each row and message says what really happened. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impl.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

enum fault {
    killed,           /* is killed by SIGKILL although memory has not run out */
    hang_in_supports, /* `supports` does not return */
    hang_in_sizes,    /* `sizes` does not return */
    crash_in_prepare, /* raises SIGSEGV in `prepare` */
    no_forward,       /* its struct has no forward */
    many_variants,    /* has more variants than are allowed */
    bad_name,         /* has a name with capital letters */
    noted,            /* gives a note on the case */
    huge_workspace    /* asks for 1 EiB of workspace */
};

static const enum fault fault = FAULT;

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_impl impl;

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    if (fault == killed)
        kill(getpid(), SIGKILL);
    return lb_impl_cpu_ref.forward(self, io, err);
}

static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    while (fault == hang_in_supports)
        pause();
    return lb_impl_cpu_ref.supports(problem, config, why);
}

static enum lb_status sizes(void *self, struct lb_sizes *bytes, struct lb_error *err)
{
    while (fault == hang_in_sizes)
        pause();
    enum lb_status st = lb_impl_cpu_ref.sizes(self, bytes, err);
    if (fault == huge_workspace)
        bytes->workspace = (size_t)1 << 60;
    return st;
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    if (fault == crash_in_prepare)
        raise(SIGSEGV);
    return lb_impl_cpu_ref.prepare(self, buffers, weights, err);
}

static void note(const struct lb_problem *problem, const struct lb_exec_config *config, char *text,
                 size_t size)
{
    (void)config;
    snprintf(text, size, "a note on %lld steps", (long long)problem->seq_len);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static char names[80][8];
    static const char *variants[81] = {"auto"};
    (void)abi;
    impl = lb_impl_cpu_ref;
    impl.name = fault == bad_name ? "Bad Name" : "verdict_" TEXT(FAULT);
    impl.summary = "cpu_ref whose failure is easily taken for another one";
    impl.forward = fault == no_forward ? NULL : forward;
    impl.supports = supports;
    impl.sizes = sizes;
    impl.prepare = prepare;
    impl.note = fault == noted ? note : impl.note;
    for (size_t i = 1; i < 80; i++) {
        snprintf(names[i], sizeof(names[i]), "v%zu", i);
        variants[i] = names[i];
    }
    if (fault == many_variants)
        impl.variants = variants;
    return &impl;
}

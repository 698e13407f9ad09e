/* A plug-in that crashes, hangs, writes beside its tensors or is no right plug-in; tests check that
 * each fault costs its own row and no other, and that the row says what really happened. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "faulty.h"

enum fault {
    none,
    crash,            /* raises SIGSEGV */
    leave,            /* ends its process */
    hang,             /* does not return */
    hang_with_daemon, /* the same, and a process of its own session does not end either */
    hang_in_destroy,  /* does not return from destroy */
    crash_in_destroy, /* aborts in destroy */
    eat,              /* allocates without end */
    fail,             /* reports a failure */
    chatter,          /* prints to standard output, and is right */
    past_end,         /* writes one byte past y */
    past_4k,          /* writes 64 bytes, 4 KiB and a little past y, where no band of a guard is */
    past_64k,         /* the same, 64 KiB past it */
    past_200k,        /* the same, 200 KiB past it */
    before_start,     /* writes before cn */
    bytes,            /* speaks in bytes that are no UTF-8, with escape sequences for a terminal */
    slow_to_load,     /* takes 5 s to load */
    no_abi,           /* offers no interface */
    other_abi,        /* is of another interface */
    other_size,       /* has a shorter struct */
    nap,              /* sleeps once where a file asks it to, and is right */
    killed,           /* is killed by SIGKILL although memory has not run out */
    hang_in_supports, /* `supports` does not return */
    hang_in_sizes,    /* `sizes` does not return */
    crash_in_prepare, /* raises SIGSEGV in `prepare` */
    huge_workspace    /* asks for 1 EiB of workspace */
};

static const enum fault fault = FAULT;

static struct tensor_bytes tensors; /* of the case that was created last */

static void wait_for_ever(void)
{
    for (;;)
        pause();
}

static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    if (fault == hang_in_supports)
        wait_for_ever();
    if (fault == bytes && problem->hidden % 2 != 0)
        return lb_fail(why, LB_UNSUPPORTED, "\xfe\033]0;odd\a");
    return lb_impl_cpu_ref.supports(problem, config, why);
}

static enum lb_status create(void *self, const struct lb_problem *p,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    tensors = tensor_bytes_of(p);
    return lb_impl_cpu_ref.create(self, p, config, err);
}

static enum lb_status sizes(void *self, struct lb_sizes *out, struct lb_error *err)
{
    if (fault == hang_in_sizes)
        wait_for_ever();
    enum lb_status st = lb_impl_cpu_ref.sizes(self, out, err);
    if (fault == huge_workspace)
        out->workspace = (size_t)1 << 60;
    return st;
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    if (fault == crash_in_prepare)
        raise(SIGSEGV);
    return lb_impl_cpu_ref.prepare(self, buffers, weights, err);
}

/* Allocates memory until the process is killed. */
static void eat_memory(void)
{
    for (size_t chunk = 16U << 20;;) {
        void *memory = malloc(chunk);
        if (memory)
            memset(memory, 1, chunk);
    }
}

/* Sleeps for a second in the first process, which creates the file $LB_NAP: it shows that the call
 * has begun. */
static void sleep_once(void)
{
    const struct timespec second = {.tv_sec = 1};
    const char *path = getenv("LB_NAP");
    int file = path ? open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (file >= 0) {
        close(file);
        nanosleep(&second, NULL);
    }
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    switch (fault) {
    case crash: raise(SIGSEGV); break;
    case leave: _exit(7);
    case hang: wait_for_ever(); break;
    case hang_with_daemon:
        if (fork() == 0) {
            setsid();
            prctl(PR_SET_NAME, "lb_daemon");
        }
        wait_for_ever();
        break;
    case eat: eat_memory(); break;
    case fail: return lb_fail(err, LB_FAILED, "the planted failure");
    case bytes: return lb_fail(err, LB_FAILED, "caf\xe9 \033[31mred\a\xff");
    case killed: kill(getpid(), SIGKILL); break;
    case nap: sleep_once(); break;
    case chatter:
        puts("this must not end up among the program's data");
        fflush(stdout);
        break;
    default: break;
    }
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    if (fault == past_end)
        ((char *)io->y)[tensors.y] = 0;
    const size_t far = fault == past_4k     ? 4 << 10
                       : fault == past_64k  ? 64 << 10
                       : fault == past_200k ? 200 << 10
                                            : 0;
    if (far > 0)
        memset((char *)io->y + tensors.y + far + 512, 1, 64);
    if (fault == before_start)
        memset((char *)io->cn - tensors.state, 0, tensors.state);
    return st;
}

static void destroy(void *self)
{
    if (fault == hang_in_destroy)
        wait_for_ever();
    if (fault == crash_in_destroy)
        raise(SIGABRT);
    lb_impl_cpu_ref.destroy(self);
}

static const char *describe_in_bytes(const void *self)
{
    (void)self;
    return "algorithm \xc0\xaf";
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    static struct lb_impl impl;
    impl = cpu_ref_as("misbehave_" TEXT(FAULT),
                      fault == bytes ? "\xff bytes \033[1m" : "cpu_ref with one planted fault");
    impl.supports = supports;
    impl.create = create;
    impl.sizes = sizes;
    impl.prepare = prepare;
    impl.forward = forward;
    impl.destroy = destroy;
    impl.describe = fault == bytes ? describe_in_bytes : impl.describe;
    if (fault == slow_to_load)
        sleep(5);
    if (fault == other_abi)
        impl.abi = abi + 1;
    if (fault == other_size)
        impl.struct_bytes -= sizeof(void *);
    return fault == no_abi ? NULL : &impl;
}

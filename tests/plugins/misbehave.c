/* A plug-in with one fault, which the compile-time name FAULT names; everything else is cpu_ref's.
 * Tests check that each fault costs its own row and no other. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* Allocates memory until the process is killed. */
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

/* Correct, but the first call in the first process takes a second. It creates the file $LB_NAP,
 * which shows that the call has begun. */
static enum lb_status nap(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const struct timespec second = {.tv_sec = 1};
    const char *path = getenv("LB_NAP");
    int file = path ? open(path, O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
    if (file >= 0) {
        close(file);
        nanosleep(&second, NULL);
    }
    return lb_impl_cpu_ref.forward(self, io, err);
}

/* Correct in the first call only, so that the timed calls differ from the one that is checked
 * first. */
static enum lb_status cheat(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    static int calls;
    return calls++ == 0 ? lb_impl_cpu_ref.forward(self, io, err) : LB_OK;
}

static size_t y_bytes, state_bytes; /* sizes for the case that was created last */

static enum lb_status note_sizes(void *self, const struct lb_problem *p,
                                 const struct lb_exec_config *config, struct lb_error *err)
{
    size_t size = lb_dtype_size(p->dtype);
    y_bytes = (size_t)(p->seq_len * p->batch * p->directions * p->hidden) * size;
    state_bytes = (size_t)(p->layers * p->directions * p->batch * p->hidden) * size;
    return lb_impl_cpu_ref.create(self, p, config, err);
}

/* Correct, but writes one byte behind y. */
static enum lb_status past_end(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    ((char *)io->y)[y_bytes] = 0;
    return st;
}

/* Correct, but writes before the start of cn. */
static enum lb_status before_start(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    enum lb_status st = lb_impl_cpu_ref.forward(self, io, err);
    memset((char *)io->cn - state_bytes, 0, state_bytes);
    return st;
}

/* Fails with a message that is not UTF-8 and has escape sequences for a terminal. */
static enum lb_status fail_in_bytes(void *self, const struct lb_forward_io *io,
                                    struct lb_error *err)
{
    (void)self, (void)io;
    return lb_fail(err, LB_FAILED, "caf\xe9 \033[31mred\a\xff");
}

static enum lb_status refuse_in_bytes(const struct lb_problem *p,
                                      const struct lb_exec_config *config, struct lb_error *why)
{
    enum lb_status st = lb_impl_cpu_ref.supports(p, config, why);
    return p->hidden % 2 == 0 ? st : lb_fail(why, LB_UNSUPPORTED, "\xfe\033]0;odd\a");
}

static const char *describe_in_bytes(const void *self)
{
    (void)self;
    return "algorithm \xc0\xaf";
}

static const struct fault {
    const char *name;
    enum lb_status (*forward)(void *, const struct lb_forward_io *, struct lb_error *);
    void (*destroy)(void *);
} faults[] = {
    {"past_end", past_end, NULL},
    {"before_start", before_start, NULL},
    {"bytes", fail_in_bytes, NULL},
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
    {"nap", nap, NULL},
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
    impl.create = note_sizes;
    if (strcmp(TEXT(FAULT), "bytes") == 0) {
        impl.summary = "\xff bytes \033[1m";
        impl.supports = refuse_in_bytes;
        impl.describe = describe_in_bytes;
    }
    if (strcmp(TEXT(FAULT), "slow_to_load") == 0)
        sleep(5);
    if (strcmp(TEXT(FAULT), "other_abi") == 0)
        impl.abi = abi + 1;
    if (strcmp(TEXT(FAULT), "other_size") == 0)
        impl.struct_bytes -= sizeof(void *);
    return strcmp(TEXT(FAULT), "no_abi") == 0 ? NULL : &impl;
}

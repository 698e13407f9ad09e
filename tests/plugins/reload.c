/* A plug-in that loads once and not again, like a file that is rebuilt during a sweep. It is
 * cpu_ref, but crashes for T = 5 so that its worker is replaced. The compile-time name FAULT
 * says what happens at the second load. A file next to the shared object, ending in ".loaded",
 * records the first load. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "faulty.h"

enum fault {
    refuses,    /* its struct has no forward from the second load on */
    null,       /* lb_plugin returns NULL from the second load on */
    vanishes,   /* deletes its own file at the first load */
    other_name, /* has another name from the second load on */
    crashes     /* crashes while it is loaded for the second time */
};

static const enum fault fault = FAULT;

static struct lb_impl impl;
static int64_t seq_len;

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    seq_len = problem->seq_len;
    return lb_impl_cpu_ref.create(self, problem, config, err);
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    if (seq_len == 5)
        raise(SIGSEGV);
    return lb_impl_cpu_ref.forward(self, io, err);
}

/* Whether this shared object was loaded before, in any process. */
static int loaded_before(void)
{
    static int before = -1;
    Dl_info info;
    char mark[4096];
    if (before >= 0 || !dladdr(&impl, &info))
        return before > 0;
    snprintf(mark, sizeof(mark), "%.4000s.loaded", info.dli_fname);
    int file = open(mark, O_WRONLY | O_CREAT | O_EXCL, 0666);
    before = file < 0;
    if (file >= 0)
        close(file);
    if (fault == vanishes)
        unlink(info.dli_fname);
    return before;
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    int again = loaded_before();
    (void)abi;
    impl = cpu_ref_as(again && fault == other_name ? "renamed" : "reload_" TEXT(FAULT),
                      "cpu_ref that can't be loaded twice");
    impl.create = create;
    impl.forward = again && fault == refuses ? NULL : forward;
    if (again && fault == crashes)
        raise(SIGSEGV);
    return again && fault == null ? NULL : &impl;
}

/* Memory that the program shares with one worker, and implementations that note in it where they
 * are. */
#define _GNU_SOURCE /* memfd_create */
#include "support/worker_shared_memory.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const slot_names[LB_SLOT_COUNT] = {"",        "supports",  "create",   "sizes",
                                                      "prepare", "gradients", "describe", "destroy",
                                                      "note",    "check"};

const char *lb_slot_or_phase(const struct lb_worker_shared *page, const char *phase)
{
    int slot = page ? page->slot : LB_SLOT_NONE;
    return slot > LB_SLOT_NONE && slot < LB_SLOT_COUNT ? slot_names[slot] : phase;
}

struct lb_worker_shared *lb_worker_shared_map(int fd)
{
    void *page =
        mmap(NULL, sizeof(struct lb_worker_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

enum { ABOVE_THE_WORKERS = 10 /* so that no descriptor that a worker is given can be this one */ };

struct lb_worker_shared *lb_worker_shared_create(int *fd)
{
    struct lb_worker_shared *page = NULL;
    int low = memfd_create("bench-lstm-worker", MFD_CLOEXEC);
    *fd = low >= 0 ? fcntl(low, F_DUPFD_CLOEXEC, ABOVE_THE_WORKERS) : -1;
    if (low >= 0)
        close(low);
    if (*fd >= 0 && ftruncate(*fd, sizeof(*page)) == 0)
        page = lb_worker_shared_map(*fd);
    if (!page && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return page;
}

void lb_worker_shared_free(struct lb_worker_shared *page)
{
    if (page)
        munmap(page, sizeof(*page));
}

/* What lb_watched_impl was called with last. */
static const struct lb_impl *inner;
static struct lb_worker_shared *noted;
static const struct lb_watch_hooks *hooks_of_case;

static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    noted->slot = LB_SLOT_SUPPORTS;
    enum lb_status st = inner->supports(problem, config, why);
    noted->slot = LB_SLOT_NONE;
    return st;
}

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    if (hooks_of_case)
        hooks_of_case->before_create(hooks_of_case->user);
    noted->slot = LB_SLOT_CREATE;
    enum lb_status st = inner->create(self, problem, config, err);
    noted->slot = LB_SLOT_NONE;
    return st;
}

static enum lb_status sizes(void *self, struct lb_sizes *bytes, struct lb_error *err)
{
    noted->slot = LB_SLOT_SIZES;
    enum lb_status st = inner->sizes(self, bytes, err);
    noted->slot = LB_SLOT_NONE;
    return st;
}

static enum lb_status prepare(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err)
{
    noted->slot = LB_SLOT_PREPARE;
    enum lb_status st = inner->prepare(self, buffers, weights, err);
    noted->slot = LB_SLOT_NONE;
    return st;
}

static enum lb_status gradients(void *self, const struct lb_gradients *all, struct lb_error *err)
{
    noted->slot = LB_SLOT_GRADIENTS;
    enum lb_status st = inner->gradients(self, all, err);
    noted->slot = LB_SLOT_NONE;
    return st;
}

static const char *describe(const void *self)
{
    noted->slot = LB_SLOT_DESCRIBE;
    const char *text = inner->describe(self);
    noted->slot = LB_SLOT_NONE;
    return text;
}

static void destroy(void *self)
{
    noted->slot = LB_SLOT_DESTROY;
    inner->destroy(self);
    noted->slot = LB_SLOT_NONE;
    if (hooks_of_case)
        hooks_of_case->after_destroy(hooks_of_case->user);
}

static void note(const struct lb_problem *problem, const struct lb_exec_config *config, char *text,
                 size_t size)
{
    noted->slot = LB_SLOT_NOTE;
    inner->note(problem, config, text, size);
    noted->slot = LB_SLOT_NONE;
}

static enum lb_status check(const void *self, struct lb_error *err)
{
    noted->slot = LB_SLOT_CHECK;
    enum lb_status st = inner->check(self, err);
    noted->slot = LB_SLOT_NONE;
    return st;
}

const struct lb_impl *lb_watched_impl(const struct lb_impl *impl, struct lb_worker_shared *page,
                                      const struct lb_watch_hooks *hooks)
{
    static struct lb_impl watched;
    watched = *impl;
    inner = impl;
    noted = page;
    hooks_of_case = hooks;
    watched.supports = supports;
    watched.create = create;
    watched.sizes = sizes;
    watched.prepare = prepare;
    watched.destroy = destroy;
    watched.gradients = impl->gradients ? gradients : NULL;
    watched.describe = impl->describe ? describe : NULL;
    watched.note = impl->note ? note : NULL;
    watched.check = impl->check ? check : NULL;
    return &watched;
}

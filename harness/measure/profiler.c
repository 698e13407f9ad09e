/* A short run for profilers. */
#include "measure/profiler.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if LB_HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#endif

#include "base/text.h"

enum { WARM_UP_CALLS = 3, PERF_REPLY_MS = 5000 };

/* Pipes to and from perf; -1: none. */
struct perf {
    int control, acknowledge;
};

static enum lb_status open_perf(const char *pipes, struct perf *perf, struct lb_error *err)
{
    char path[1024];
    if (!pipes)
        return LB_OK;
    const char *comma = strchr(pipes, ',');
    snprintf(path, sizeof(path), "%.*s", comma ? (int)(comma - pipes) : 1023, pipes);
    /* Non-blocking, so that a pipe that nobody reads is an error instead of a hang. */
    perf->control = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (perf->control < 0)
        return lb_fail(err, LB_IO, "%s: %s", path,
                       errno == ENXIO ? "no perf listens to this pipe" : strerror(errno));
    if (!comma)
        return LB_OK;
    perf->acknowledge = open(comma + 1, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    return perf->acknowledge >= 0 ? LB_OK
                                  : lb_fail(err, LB_IO, "%s: %s", comma + 1, strerror(errno));
}

static void close_perf(struct perf *perf)
{
    if (perf->control >= 0)
        close(perf->control);
    if (perf->acknowledge >= 0)
        close(perf->acknowledge);
}

/* Adds a name to profile->told. */
static void note_told(struct lb_profile *profile, const char *name)
{
    lb_append(profile->told, sizeof(profile->told), "%s%s", profile->told[0] ? ", " : "", name);
}

/* Calls a function of the CUDA driver. *there: whether this process has loaded the driver, without
 * which nothing is called. The runtime's cudaProfilerStart does the same. */
static enum lb_status call_driver(const char *name, bool *there, struct lb_error *err)
{
    int (*function)(void) = NULL;
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *symbol = driver ? dlsym(driver, name) : NULL;
    *there = symbol != NULL;
    memcpy(&function, &symbol, sizeof(symbol));
    int result = function ? function() : 0;
    if (driver)
        dlclose(driver); /* the driver stays loaded, because others hold it */
    return result == 0 ? LB_OK : lb_fail(err, LB_FAILED, "%s failed (%d)", name, result);
}

/* write() to a pipe whose reader may have ended, which is an error here instead of a fatal SIGPIPE.
 * The process's handling of SIGPIPE stays as it was. */
static ssize_t write_pipe(int pipe, const char *text, size_t length)
{
    const struct timespec now = {0};
    sigset_t broken, before, pending;
    sigemptyset(&broken);
    sigaddset(&broken, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &broken, &before);
    ssize_t written = write(pipe, text, length);
    int reason = errno;
    if (written < 0 && reason == EPIPE && !sigismember(&pending, SIGPIPE))
        sigtimedwait(&broken, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = reason;
    return written;
}

/* Sends a command to perf and waits until it says that it has been carried out. */
static enum lb_status tell_perf(const struct perf *perf, const char *command, struct lb_error *err)
{
    char reply[16];
    size_t length = strlen(command);
    if (write_pipe(perf->control, command, length) != (ssize_t)length)
        return lb_fail(err, LB_IO, "perf's control pipe: %s", strerror(errno));
    if (perf->acknowledge < 0)
        return LB_OK;
    struct pollfd wait = {.fd = perf->acknowledge, .events = POLLIN};
    if (poll(&wait, 1, PERF_REPLY_MS) != 1 || read(wait.fd, reply, sizeof(reply)) < 3 ||
        memcmp(reply, "ack", 3) != 0)
        return lb_fail(err, LB_IO, "perf did not answer '%.*s'", (int)length - 1, command);
    return LB_OK;
}

static enum lb_status start(struct lb_profile *profile, const struct perf *perf,
                            struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool cuda;
    profile->told[0] = '\0';
    LB_TRY(call_driver("cuProfilerStart", &cuda, err));
    if (cuda)
        note_told(profile, "CUDA");
    if (perf->control >= 0) {
        LB_TRY(tell_perf(perf, "enable\n", err));
        note_told(profile, "perf");
    }
#if LB_HAVE_CALLGRIND
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_START_INSTRUMENTATION;
        note_told(profile, "callgrind");
    }
#endif
done:
    return st;
}

static enum lb_status stop(const struct perf *perf, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool cuda;
#if LB_HAVE_CALLGRIND
    CALLGRIND_STOP_INSTRUMENTATION;
#endif
    if (perf->control >= 0)
        LB_TRY(tell_perf(perf, "disable\n", err));
    LB_TRY(call_driver("cuProfilerStop", &cuda, err));
done:
    return st;
}

enum lb_status lb_profile(lb_measure *measure, void *user, const struct lb_sampler_options *hooks,
                          struct lb_profile *profile, struct lb_samples *samples,
                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct perf perf = {-1, -1};
    *samples = (struct lb_samples){.ns = malloc(profile->calls * sizeof(*samples->ns)),
                                   .stop_reason = LB_STOP_COUNT_LIMIT};
    if (!samples->ns)
        return lb_fail(err, LB_OOM, "out of memory for %zu samples", profile->calls);
    LB_TRY(open_perf(profile->perf_control, &perf, err));
    for (; samples->warmup < WARM_UP_CALLS; samples->warmup++)
        LB_TRY(measure(user, &samples->ns[0], err));
    LB_TRY(start(profile, &perf, err));
    if (hooks->warm)
        hooks->warm(user);
    for (; samples->count < profile->calls; samples->count++)
        LB_TRY(measure(user, &samples->ns[samples->count], err));
    if (hooks->done)
        hooks->done(user);
    LB_TRY(stop(&perf, err));
done:
    close_perf(&perf);
    if (st != LB_OK)
        lb_samples_free(samples);
    return st;
}

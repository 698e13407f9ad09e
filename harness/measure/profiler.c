/* A short run for profilers. */
#include "measure/sampler.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if LB_HAVE_CALLGRIND
#include <valgrind/callgrind.h>
#endif

#include "base/memory.h"
#include "base/text.h"

enum { WARM_UP_CALLS = 3 };

/* Calls a function of the CUDA driver, as the runtime's cudaProfilerStart does. *there: whether
 * this process has loaded the driver, without which nothing is called. */
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

static enum lb_status start(struct lb_profile *profile, struct lb_error *err)
{
    bool cuda;
    LB_CHECK(call_driver("cuProfilerStart", &cuda, err));
    snprintf(profile->told, sizeof(profile->told), "%s", cuda ? "CUDA" : "");
#if LB_HAVE_CALLGRIND
    if (RUNNING_ON_VALGRIND) {
        CALLGRIND_START_INSTRUMENTATION;
        lb_append(profile->told, sizeof(profile->told), "%scallgrind", cuda ? ", " : "");
    }
#endif
    return LB_OK;
}

static enum lb_status stop(struct lb_error *err)
{
    bool cuda;
#if LB_HAVE_CALLGRIND
    CALLGRIND_STOP_INSTRUMENTATION;
#endif
    return call_driver("cuProfilerStop", &cuda, err);
}

enum lb_status lb_profile(lb_measure *measure, void *user, const struct lb_sampler_options *hooks,
                          struct lb_profile *profile, struct lb_samples *samples,
                          struct lb_error *err)
{
    enum lb_status st = LB_OK;
    *samples = (struct lb_samples){.ns = lb_needed(malloc(profile->calls * sizeof(*samples->ns))),
                                   .stop_reason = LB_STOP_COUNT_LIMIT};
    for (; samples->warmup < WARM_UP_CALLS; samples->warmup++)
        LB_TRY(measure(user, &samples->ns[0], err));
    LB_TRY(start(profile, err));
    if (hooks->warm)
        hooks->warm(user);
    for (; samples->count < profile->calls; samples->count++)
        LB_TRY(measure(user, &samples->ns[samples->count], err));
    if (hooks->done)
        hooks->done(user);
    LB_TRY(stop(err));
done:
    if (st != LB_OK)
        lb_samples_free(samples);
    return st;
}

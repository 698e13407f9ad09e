/* The timer, which takes one sample. */
#include "device/timer.h"

#include "base/clock.h"
#include "device/device.h"
#include "host/cpu_affinity.h"
#include "host/cpu_topology.h"

static const struct lb_space *space_of(enum lb_memory memory)
{
    return memory == LB_DEVICE ? &lb_device_space : &lb_host_space;
}

size_t lb_timer_bytes(enum lb_memory memory, bool cold)
{
    if (!cold)
        return 0;
    if (memory == LB_HOST)
        return 2 * lb_host_cache_bytes();
    const struct lb_device_info *device = lb_device_known(NULL);
    return device ? 2 * (size_t)device->l2_bytes : 0;
}

enum lb_status lb_timer_create(enum lb_memory memory, bool cold, struct lb_timer *timer,
                               struct lb_error *err)
{
    *timer = (struct lb_timer){.memory = memory, .flush_bytes = lb_timer_bytes(memory, cold)};
    return space_of(memory)->allocate(timer->flush_bytes, &timer->flush, err);
}

void lb_timer_destroy(struct lb_timer *timer)
{
    for (int i = 0; i < 2; i++)
        if (timer->graphs[i])
            lb_device()->graph_release(timer->graphs[i]);
    space_of(timer->memory)->release(timer->flush);
    *timer = (struct lb_timer){.memory = timer->memory};
}

enum lb_status lb_timer_capture(struct lb_timer *timer, lb_call *call, void *user,
                                struct lb_error *err)
{
    const struct lb_device_api *device = lb_device();
    LB_CHECK(device->synchronize(err));
    LB_CHECK(device->capture_begin(err));
    /* The capture must be ended even when the call fails; the first failure tells the reason. */
    struct lb_error end_err = {""};
    enum lb_status st = call(user, err);
    void **graph = &timer->graphs[timer->graphs[0] ? 1 : 0];
    enum lb_status end = device->capture_end(graph, st == LB_OK ? err : &end_err);
    return st == LB_OK ? end : st;
}

/* lb_cpu_visit: writes more than the caches hold. Where a CPU that shares this one's third-level
 * cache is visited later, it writes only more than this CPU's own caches hold. */
static void flush_here(void *user, bool last)
{
    const struct lb_timer *timer = user;
    char *flush = timer->flush;
    size_t own = 2 * lb_cpu_cache_bytes(2);
    size_t bytes = last || own == 0 ? timer->flush_bytes : own;
    for (size_t i = 0; i < bytes && i < timer->flush_bytes; i += 64)
        flush[i] = (char)(flush[i] + 1);
}

/* Evicts the case's data from the caches of all CPUs that it runs on, or of the device. */
static enum lb_status flush_caches(const struct lb_timer *timer, struct lb_error *err)
{
    if (timer->memory == LB_HOST) {
        lb_visit_cpus(flush_here, (void *)timer);
        return LB_OK;
    }
    LB_CHECK(lb_device()->fill(timer->flush, 0, timer->flush_bytes, err));
    return lb_device()->synchronize(err);
}

static enum lb_status call_or_replay(const struct lb_timer *timer, int i, lb_call *call, void *user,
                                     struct lb_error *err)
{
    bool second = timer->graphs[1] && (timer->order >> i % 64 & 1) != 0;
    return timer->graphs[0] ? lb_device()->replay(timer->graphs[second], err) : call(user, err);
}

enum lb_status lb_timer_measure(struct lb_timer *timer, lb_call *call, void *user, int calls,
                                double *ns, struct lb_error *err)
{
    bool device = timer->memory == LB_DEVICE, by_events = device && !timer->until_seen;
    bool may_hold = !timer->never_hold && !timer->hold_expired && lb_device()->hold;
    bool held = by_events && may_hold && timer->graphs[0] && calls == 1;
    LB_CHECK(space_of(timer->memory)->synchronize(err));
    if (timer->flush)
        LB_CHECK(flush_caches(timer, err));
    if (held)
        LB_CHECK(lb_device()->hold(err));
    double start = lb_now_ns();
    if (by_events)
        LB_CHECK(lb_device()->start(err));
    for (int i = 0; i < calls; i++)
        LB_CHECK(call_or_replay(timer, i, call, user, err));
    if (by_events) {
        LB_CHECK(lb_device()->stop(ns, err));
    } else {
        if (device)
            LB_CHECK(lb_device()->synchronize(err));
        *ns = lb_now_ns() - start;
    }
    *ns /= calls;
    timer->hold_expired = timer->hold_expired || (held && !lb_device()->held());
    return LB_OK;
}

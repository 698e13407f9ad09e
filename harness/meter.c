/* Taking one sample. */
#include "meter.h"

#include <unistd.h>

#include "affinity.h"
#include "device.h"
#include "sampler.h"

static const struct lb_space *space_of(enum lb_memory memory)
{
    return memory == LB_DEVICE ? &lb_device_space : &lb_host_space;
}

size_t lb_meter_bytes(enum lb_memory memory, bool cold)
{
    if (!cold)
        return 0;
    if (memory == LB_HOST)
        return 2 * lb_host_cache_bytes();
    const struct lb_device_info *device = lb_device_known(NULL);
    return device ? 2 * (size_t)device->l2_bytes : 0;
}

enum lb_status lb_meter_create(enum lb_memory memory, bool cold, struct lb_meter *meter,
                               struct lb_error *err)
{
    *meter = (struct lb_meter){.memory = memory, .flush_bytes = lb_meter_bytes(memory, cold)};
    return space_of(memory)->allocate(meter->flush_bytes, &meter->flush, err);
}

void lb_meter_destroy(struct lb_meter *meter)
{
    if (meter->graph)
        lb_device()->graph_release(meter->graph);
    space_of(meter->memory)->release(meter->flush);
    *meter = (struct lb_meter){.memory = meter->memory};
}

enum lb_status lb_meter_capture(struct lb_meter *meter, lb_call *call, void *user,
                                struct lb_error *err)
{
    const struct lb_device_api *device = lb_device();
    enum lb_status st = device->synchronize(err);
    if (st == LB_OK)
        st = device->capture_begin(err);
    if (st != LB_OK)
        return st;
    /* A capture that was begun must be ended; the first failure is the one that tells why. */
    struct lb_error end_err = {""};
    st = call(user, err);
    enum lb_status end = device->capture_end(&meter->graph, st == LB_OK ? err : &end_err);
    return st == LB_OK ? end : st;
}

/* lb_cpu_visit: writes more than the caches hold; where another CPU will empty the cache that they
 * share, more than this one's own. */
static void flush_here(void *user, bool last)
{
    const struct lb_meter *meter = user;
    char *flush = meter->flush;
    long own = 2 * sysconf(_SC_LEVEL2_CACHE_SIZE);
    size_t bytes = last || own <= 0 ? meter->flush_bytes : (size_t)own;
    for (size_t i = 0; i < bytes && i < meter->flush_bytes; i += 64)
        flush[i] = (char)(flush[i] + 1);
}

/* Nothing of the case stays in the caches of any CPU that it runs on. */
static enum lb_status flush_caches(const struct lb_meter *meter, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (meter->memory == LB_HOST) {
        lb_visit_cpus(flush_here, (void *)meter);
        return LB_OK;
    }
    LB_TRY(lb_device()->fill(meter->flush, 0, meter->flush_bytes, err));
    LB_TRY(lb_device()->synchronize(err));
done:
    return st;
}

static enum lb_status call_or_replay(const struct lb_meter *meter, lb_call *call, void *user,
                                     struct lb_error *err)
{
    return meter->graph ? lb_device()->replay(meter->graph, err) : call(user, err);
}

enum lb_status lb_meter_time(const struct lb_meter *meter, lb_call *call, void *user, int calls,
                             double *ns, struct lb_error *err)
{
    bool device = meter->memory == LB_DEVICE;
    enum lb_status st = LB_OK;
    LB_TRY(space_of(meter->memory)->synchronize(err));
    if (meter->flush)
        LB_TRY(flush_caches(meter, err));
    double start = lb_now_ns();
    if (device)
        LB_TRY(lb_device()->start(err));
    for (int i = 0; i < calls; i++)
        LB_TRY(call_or_replay(meter, call, user, err));
    if (device)
        LB_TRY(lb_device()->stop(ns, err));
    else
        *ns = lb_now_ns() - start;
    *ns /= calls;
done:
    return st;
}

/* Where a case runs: the host or the device. */
#include "case/context.h"

#include <math.h>
#include <stdio.h>

#include "device/device.h"
#include "device/nvml.h"
#include "host/cpu_affinity.h"
#include "measure/case_lower_bound.h"
#include "reference/loss_scale.h"

/* ---- The host. ---- */

static enum lb_status host_exists(struct lb_error *why)
{
    (void)why;
    return LB_OK;
}

static double host_peak(const struct lb_problem *problem, double cpus, bool again)
{
    return lb_cpu_peak_flops_s(problem, again) * cpus;
}

static enum lb_status host_overflow(const struct lb_case *c, const struct lb_results *results,
                                    const void *copy, uint64_t *found)
{
    (void)copy;
    *found = lb_weight_gradients_non_finite(&c->problem, results);
    return LB_OK;
}

/* ---- The device. ---- */

static enum lb_status device_exists(struct lb_error *why)
{
    return lb_device_known(why) ? LB_OK : LB_ABSENT;
}

static double device_peak(const struct lb_problem *problem, double cpus, bool again)
{
    (void)cpus, (void)again;
    return lb_gpu_peak_flops_s(problem);
}

/* What fails in reading a clock fails again in the calls. */
static void device_clock_begin(void)
{
    if (lb_device()->clock_begin)
        (void)lb_device()->clock_begin(NULL);
}

static double device_clock_end(void)
{
    double mhz = NAN;
    bool read = lb_device()->clock_end && lb_device()->clock_end(&mhz, NULL) == LB_OK;
    return read ? mhz : (double)NAN;
}

/* NVML's clock of the multiprocessors stands in where the device can't read its own. */
static void note_device_state(struct lb_row *row, double mhz)
{
    struct lb_gpu_state state;
    char why[160], text[200];
    const struct lb_device_info *device = lb_device_known(NULL);
    row->sm_mhz = mhz;
    if (!device || !lb_nvml_read(device->uuid, &state))
        return;
    if (isnan(mhz))
        row->sm_mhz = state.sm_mhz;
    row->memory_mhz = state.memory_mhz;
    row->temperature_c = state.temperature_c;
    lb_throttle_text(state.throttle & ~1ull /* idle, once short work is done */, why, sizeof(why));
    snprintf(text, sizeof(text), "clocks were held down: %s", why);
    if (why[0])
        lb_row_warn(row, text);
}

static enum lb_status device_overflow(const struct lb_case *c, const struct lb_results *results,
                                      const void *copy, uint64_t *found)
{
    (void)c;
    return lb_device()->overflow(copy, results->weight_count, found, NULL);
}

static bool device_lost(void)
{
    return lb_device()->lost && lb_device()->lost();
}

const struct lb_place *lb_place_of(enum lb_memory memory)
{
    static const struct lb_place places[] = {
        [LB_HOST] = {.space = &lb_host_space,
                     .workspace_is_poisoned = true,
                     .exists = host_exists,
                     .bind = lb_pin,
                     .unbind = lb_unpin,
                     .peak_flops_s = host_peak,
                     .count_overflow = host_overflow},
        [LB_DEVICE] = {.space = &lb_device_space,
                       .counts_use = true,
                       .exists = device_exists,
                       .peak_flops_s = device_peak,
                       .clock_begin = device_clock_begin,
                       .clock_end = device_clock_end,
                       .note_state = note_device_state,
                       .count_overflow = device_overflow,
                       .lost = device_lost},
    };
    return &places[memory];
}

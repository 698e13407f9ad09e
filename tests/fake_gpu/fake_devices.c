/* Several fake devices for the real program, without CUDA. The library is preloaded into the
 * program and its workers, where it puts the fake devices in place of the device layer's own, and
 * it is also the plug-in fake_gpu: cpu_simd on such a device. A process has one device: opening
 * another one, or running without one, is a failure. Rows say in their description which device
 * the work ran on. The environment says what there is:
 *
 *     LB_FAKE_DEVICES   how many devices there are
 *     LB_FAKE_SLOW      N: each call takes half as long again on device N
 *     LB_FAKE_CRASHES   N: a case of T 5 crashes on device N; "all": on each device
 *     LB_FAKE_HANGS     N: a case of T 5 hangs on device N */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_device.h"
#include "host/cpu_affinity.h"
#include "impl.h"
#include "queue.h"

enum { FAILING_SEQ_LEN = 5 };

extern const struct lb_impl lb_impl_cpu_simd;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_device_api devices; /* the fake's, with an open of its own */
static struct lb_impl impl;          /* cpu_simd's, on a fake device */
static int opened = -1;              /* the device of this process */

/* Replaces libc's: the program looks for a driver by this file before it loads libraries. */
int access(const char *path, int mode)
{
    return strcmp(path, "/dev/nvidiactl") == 0 ? 0 : faccessat(AT_FDCWD, path, mode, 0);
}

/* The number in an environment variable; -1 without it. */
static int number_in(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

static enum lb_status open_device(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    int count = number_in("LB_FAKE_DEVICES");
    if (ordinal >= count)
        return lb_fail(err, LB_ABSENT, "no CUDA device %d: there are %d, counted from 0", ordinal,
                       count);
    if (opened >= 0 && opened != ordinal)
        return lb_fail(err, LB_ABSENT, "this process uses fake device %d already", opened);
    opened = ordinal;
    enum lb_status st = fake_device.open(ordinal, info, err);
    info->visible = count;
    snprintf(info->uuid, sizeof(info->uuid), "GPU-fa%06x-0000-0000-0000-000000000000",
             (unsigned)ordinal);
    fake_device_be(info);
    return st;
}

static bool is_planted(const char *name)
{
    const char *text = getenv(name);
    return text && (strcmp(text, "all") == 0 || atoi(text) == opened);
}

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    bool fails = problem->seq_len == FAILING_SEQ_LEN;
    if (opened < 0)
        return lb_fail(err, LB_FAILED, "no fake device was opened");
    if (fails && is_planted("LB_FAKE_CRASHES"))
        raise(SIGSEGV);
    while (fails && is_planted("LB_FAKE_HANGS"))
        pause();
    return lb_impl_cpu_simd.create(self, problem, config, err);
}

/* A call that is enqueued on the device. */
struct call {
    void *self;
    struct lb_forward_io forward;
    struct lb_backward_io backward;
    bool goes_back;
};

static enum lb_status run_call(const void *arguments, struct lb_error *err)
{
    struct call call;
    memcpy(&call, arguments, sizeof(call));
    if (is_planted("LB_FAKE_SLOW"))
        fake_clock_add(FAKE_WORK_NS / 2);
    return call.goes_back ? lb_impl_cpu_simd.backward(call.self, &call.backward, err)
                          : lb_impl_cpu_simd.forward(call.self, &call.forward, err);
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const struct call call = {.self = self, .forward = *io};
    return fake_enqueue(NULL, run_call, &call, sizeof(call), err);
}

static enum lb_status backward(void *self, const struct lb_backward_io *io, struct lb_error *err)
{
    const struct call call = {.self = self, .backward = *io, .goes_back = true};
    return fake_enqueue(NULL, run_call, &call, sizeof(call), err);
}

static const char *describe(const void *self)
{
    static char text[LB_CPU_LIST_SIZE + 64];
    char cpus[LB_CPU_LIST_SIZE];
    (void)self;
    lb_allowed_cpus(cpus);
    snprintf(text, sizeof(text), "on fake device %d, CPUs %s", opened, cpus);
    return text;
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    impl = lb_impl_cpu_simd;
    impl.abi = abi;
    impl.name = "fake_gpu";
    impl.summary = "cpu_simd on one of several fake devices";
    impl.memory = LB_DEVICE;
    impl.traits = LB_DETERMINISTIC;
    impl.create = create;
    impl.forward = forward;
    impl.backward = backward;
    impl.describe = describe;
    return &impl;
}

__attribute__((constructor)) static void install(void)
{
    fake_device_install(FAKE_NONE);
    fake_device_share_memory(); /* cpu_simd computes on the host */
    devices = fake_device;
    devices.open = open_device;
    lb_device_use(&devices);
}

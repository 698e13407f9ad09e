/* Several fake devices for the real program, without CUDA. The library is preloaded into the
 * program and its workers, where it puts the fake devices in place of the device layer's own, and
 * it is also the plug-in fake_gpu: cpu_simd on such a device. A process has one device: opening
 * another one, or running without one, is a failure. Rows say in their description which device
 * the work ran on. The environment says what there is:
 *
 *     LB_FAKE_DEVICES   how many devices there are
 *     LB_FAKE_FOLDER    a folder in which the processes leave notes for each other
 *     LB_FAKE_SLOW      N: each call takes half as long again on device N
 *     LB_FAKE_OTHER     N: device N has another name
 *     LB_FAKE_DISTURB   N: device N is slower by half while any other device is busy
 *     LB_FAKE_DIES      N: device N is lost in its third case that is no canary, and stays lost;
 *                       other devices wait for that in their third case; "all": each device
 *     LB_FAKE_CRASHES   N: a case of T 5 crashes on device N
 *     LB_FAKE_HANGS     N: a case of T 5 hangs on device N */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_device.h"
#include "host/numa_cpus.h"
#include "impl.h"
#include "queue.h"

enum {
    FAILING_SEQ_LEN = 5,
    DYING_CASE = 3,
    LONGEST = 100, /* seq_len of a case that is no canary, at most */
    WIDEST = 200   /* and its hidden */
};

extern const struct lb_impl lb_impl_cpu_simd;
const struct lb_impl *lb_plugin(uint32_t abi);

static struct lb_device_api devices; /* the fake's, with an open of its own */
static struct lb_impl impl;          /* cpu_simd's, on a fake device */
static int opened = -1;              /* the device of this process */
static bool dies;                    /* the device is lost in the case that runs */

/* The number in an environment variable; -1 without it. */
static int number_in(const char *name)
{
    const char *text = getenv(name);
    return text ? atoi(text) : -1;
}

/* The path of a device's note in the folder. */
static void note_path(const char *what, int device, char path[512])
{
    const char *folder = getenv("LB_FAKE_FOLDER");
    snprintf(path, 512, "%s/%s-%d", folder ? folder : "/nonexistent", what, device);
}

static bool has_note(const char *what, int device)
{
    char path[512];
    note_path(what, device, path);
    return access(path, F_OK) == 0;
}

/* Adds a byte to the note. Returns how many it has now. */
static long write_note(const char *what, int device)
{
    char path[512];
    note_path(what, device, path);
    FILE *note = fopen(path, "a");
    if (!note)
        return 0;
    fputc('.', note);
    long length = ftell(note);
    fclose(note);
    return length;
}

static void remove_note(const char *what, int device)
{
    char path[512];
    note_path(what, device, path);
    unlink(path);
}

static enum lb_status open_device(int ordinal, struct lb_device_info *info, struct lb_error *err)
{
    int count = number_in("LB_FAKE_DEVICES");
    if (ordinal >= count)
        return lb_fail(err, LB_ABSENT, "no CUDA device %d: there are %d, counted from 0", ordinal,
                       count);
    if (has_note("dead", ordinal))
        return lb_fail(err, LB_ABSENT, "fake device %d has fallen off the bus", ordinal);
    if (opened >= 0 && opened != ordinal)
        return lb_fail(err, LB_ABSENT, "this process uses fake device %d already", opened);
    opened = ordinal;
    enum lb_status st = fake_device.open(ordinal, info, err);
    info->visible = count;
    snprintf(info->uuid, sizeof(info->uuid), "GPU-fa%06x-0000-0000-0000-000000000000",
             (unsigned)ordinal);
    if (number_in("LB_FAKE_OTHER") == ordinal)
        snprintf(info->name, sizeof(info->name), "Other Fake GPU");
    fake_device_be(info);
    return st;
}

static bool is_planted(const char *name)
{
    const char *text = getenv(name);
    return text && (strcmp(text, "all") == 0 || atoi(text) == opened);
}

/* Whether the device is lost in this case. Waits until another one is, where that is planted. */
static bool is_lost_in(const struct lb_problem *problem)
{
    bool counts = problem->seq_len <= LONGEST && problem->hidden <= WIDEST;
    int dying = number_in("LB_FAKE_DIES");
    if (!getenv("LB_FAKE_DIES") || !counts || write_note("case", opened) != DYING_CASE)
        return false;
    if (is_planted("LB_FAKE_DIES"))
        return true;
    while (!has_note("dead", dying))
        usleep(10000);
    return false;
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
    dies = is_lost_in(problem);
    write_note("busy", opened);
    return lb_impl_cpu_simd.create(self, problem, config, err);
}

static void destroy(void *self)
{
    remove_note("busy", opened);
    lb_impl_cpu_simd.destroy(self);
}

/* How much longer than usual a call takes on this device. */
static double delay_ns(void)
{
    double delay = is_planted("LB_FAKE_SLOW") ? FAKE_WORK_NS / 2 : 0;
    for (int i = 0; is_planted("LB_FAKE_DISTURB") && i < number_in("LB_FAKE_DEVICES"); i++)
        if (i != opened && has_note("busy", i))
            return delay + FAKE_WORK_NS / 2;
    return delay;
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
    if (dies) {
        write_note("dead", opened);
        return fake_device_lose(err);
    }
    fake_clock_add(delay_ns());
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
    impl.destroy = destroy;
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

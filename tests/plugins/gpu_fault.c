/* A plug-in on a fake device: cpu_ref with its tensors in memory that counts as the device's.
 * The device fails in the case with seq_len 7, in the way that the compile-time name FAULT says.
 * Tests check that each fault costs the row of that case and no other. */
#include <string.h>

#include "impl.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/queue.h"

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

enum { BAD_SEQ_LEN = 7, RIGHT_CALLS = 8 };

extern const struct lb_impl lb_impl_cpu_ref;
const struct lb_impl *lb_plugin(uint32_t abi);

static const struct {
    const char *name;
    enum fake_fault fault;
} faults[] = {
    {"none", FAKE_NONE},
    {"absent", FAKE_ABSENT},
    {"oom", FAKE_OOM},
    {"oom_late", FAKE_OOM_LATE},
    {"illegal_address", FAKE_ILLEGAL_ADDRESS},
    {"no_capture", FAKE_NO_CAPTURE},
    {"hang", FAKE_HANG},
    {"hang_upload", FAKE_HANG_UPLOAD},
    {"slow_first", FAKE_SLOW_FIRST},
    {"hang_recheck", FAKE_HANG_RECHECK},
    {"hang_hash", FAKE_HANG_HASH},
};

/* Whether FAULT names a fault of the implementation itself rather than of the device. */
#define OWN_FAULT(name) (strcmp(TEXT(FAULT), name) == 0)

static struct lb_impl impl;       /* cpu_ref's, on the fake device */
static struct lb_problem current; /* problem of the case that runs */

static enum fake_fault planted(void)
{
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        if (strcmp(faults[i].name, TEXT(FAULT)) == 0)
            return faults[i].fault;
    return FAKE_NONE;
}

/* With the fault "lost_in_question", the device is lost once `supports` is called for the bad
 * case. */
static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    if (OWN_FAULT("lost_in_question") && fake_device.lost())
        return lb_fail(why, LB_FAILED, "the device was lost before");
    if (OWN_FAULT("lost_in_question") && problem->seq_len == BAD_SEQ_LEN) {
        fake_device_break(FAKE_ILLEGAL_ADDRESS);
        fake_device.synchronize(why);
    }
    return lb_impl_cpu_ref.supports(problem, config, why);
}

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    static void *handle; /* one for the process, as libraries keep it */
    if (problem->seq_len == BAD_SEQ_LEN)
        fake_device_break(planted());
    if (OWN_FAULT("retains") && !handle && fake_device.allocate(1 << 20, &handle, err) != LB_OK)
        return LB_FAILED;
    current = *problem;
    return lb_impl_cpu_ref.create(self, problem, config, err);
}

/* A call that is enqueued on the device, so that a graph can replay it. */
struct call {
    void *self;
    struct lb_forward_io forward;
    struct lb_backward_io backward;
    bool goes_back;
};

static enum lb_status run_call(const void *arguments, struct lb_error *err)
{
    static int calls;
    struct call call;
    memcpy(&call, arguments, sizeof(call));
    if (call.goes_back)
        return lb_impl_cpu_ref.backward(call.self, &call.backward, err);
    enum lb_status st = lb_impl_cpu_ref.forward(call.self, &call.forward, err);
    size_t count = (size_t)(current.seq_len * current.batch * current.directions * current.hidden);
    if (OWN_FAULT("past_end") && current.seq_len == BAD_SEQ_LEN)
        ((char *)call.forward.y)[count * lb_dtype_size(current.dtype)] ^= 1;
    if (OWN_FAULT("wrong_later") && current.seq_len == BAD_SEQ_LEN && ++calls > RIGHT_CALLS)
        *(float *)call.forward.y += 1;
    return st;
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

static void destroy(void *self)
{
    lb_impl_cpu_ref.destroy(self);
    fake_device_break(FAKE_NONE);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    fake_device_install(planted() == FAKE_ABSENT ? FAKE_ABSENT : FAKE_NONE);
    fake_device_share_memory(); /* cpu_ref computes on the host */
    impl = lb_impl_cpu_ref;
    impl.abi = abi;
    impl.name = "gpu_fault_" TEXT(FAULT);
    impl.summary = "cpu_ref on a fake device with one planted fault";
    impl.memory = LB_DEVICE;
    impl.traits = LB_CAPTURABLE | LB_DETERMINISTIC;
    impl.supports = supports;
    impl.create = create;
    impl.forward = forward;
    impl.backward = backward;
    impl.destroy = destroy;
    return &impl;
}

/* A plug-in on a fake device: cpu_ref with its tensors in memory that counts as the device's.
 * The device fails in the case with seq_len 7, in the way that the compile-time name FAULT says.
 * Tests check that each fault costs the row of that case and no other. */

#include "faulty.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/queue.h"

enum { BAD_SEQ_LEN = 7, RIGHT_CALLS = 8 };

enum fault {
    none,
    absent,           /* its machine has no device */
    oom,              /* its device has 1 KiB of memory */
    oom_late,         /* an allocation on its device fails */
    illegal_address,  /* its device reports an illegal address */
    no_capture,       /* its calls can't be captured */
    hang,             /* its device never finishes */
    hang_upload,      /* a copy to its device never ends */
    hang_recheck,     /* a copy from its device never ends once timing began */
    hang_hash,        /* a hash of its memory never ends */
    slow_first,       /* its first call is slow */
    past_end,         /* writes past the end of y on its device */
    retains,          /* keeps memory of the device, as libraries do */
    lost_in_question, /* its device is lost when it is asked about the case */
    wrong_later       /* its results are wrong from the ninth call on */
};

static const enum fault fault = FAULT;

/* The fault of the device; those that have none here are the implementation's own. */
static const enum fake_fault of_device[wrong_later + 1] = {
    [absent] = FAKE_ABSENT,           [oom] = FAKE_OOM,
    [oom_late] = FAKE_OOM_LATE,       [illegal_address] = FAKE_ILLEGAL_ADDRESS,
    [no_capture] = FAKE_NO_CAPTURE,   [hang] = FAKE_HANG,
    [hang_upload] = FAKE_HANG_UPLOAD, [hang_recheck] = FAKE_HANG_RECHECK,
    [hang_hash] = FAKE_HANG_HASH,     [slow_first] = FAKE_SLOW_FIRST,
};

static struct lb_impl impl;       /* cpu_ref's, on the fake device */
static struct lb_problem current; /* problem of the case that runs */

/* With the fault "lost_in_question", the device is lost once `supports` is called for the bad
 * case. */
static enum lb_status supports(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why)
{
    if (fault == lost_in_question && fake_device.lost())
        return lb_fail(why, LB_FAILED, "the device was lost before");
    if (fault == lost_in_question && problem->seq_len == BAD_SEQ_LEN) {
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
        fake_device_break(of_device[fault]);
    if (fault == retains && !handle && fake_device.allocate(1 << 20, &handle, err) != LB_OK)
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
    if (fault == past_end && current.seq_len == BAD_SEQ_LEN)
        ((char *)call.forward.y)[tensor_bytes_of(&current).y] ^= 1;
    if (fault == wrong_later && current.seq_len == BAD_SEQ_LEN && ++calls > RIGHT_CALLS)
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
    fake_device_install(fault == absent ? FAKE_ABSENT : FAKE_NONE);
    fake_device_share_memory(); /* cpu_ref computes on the host */
    impl = cpu_ref_as("gpu_fault_" TEXT(FAULT), "cpu_ref on a fake device with one planted fault");
    impl.abi = abi;
    impl.memory = LB_DEVICE;
    impl.traits = LB_CAPTURABLE | LB_DETERMINISTIC;
    impl.supports = supports;
    impl.create = create;
    impl.forward = forward;
    impl.backward = backward;
    impl.destroy = destroy;
    return &impl;
}

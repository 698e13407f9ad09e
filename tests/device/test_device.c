/* The device layer and its users: what is known of a device, the timer, packing. */
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "case/probe.h"
#include "device/nvml.h"
#include "device/timer.h"
#include "device/weight_packing.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

TEST(nothing_is_known_before_it_is_asked_for)
{
    struct lb_error why = {""};
    fake_device_install(FAKE_NONE);
    assert_null(lb_device_known(&why));
    assert_non_null(strstr(why.text, "nothing has looked for a device"));
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    assert_string_equal(lb_device_known(NULL)->name, "Fake GPU");
}

TEST(an_absent_device_keeps_its_reason)
{
    struct lb_error why = {""};
    fake_device_install(FAKE_ABSENT);
    assert_int_equal(lb_device_open(0, &why), LB_ABSENT);
    memset(&why, 0, sizeof(why));
    assert_int_equal(lb_device_open(0, &why), LB_ABSENT);
    assert_string_equal(why.text, "the fake device is told to be absent");
    assert_null(lb_device_known(&why));
    lb_device_assume(NULL, "seen elsewhere");
    assert_null(lb_device_known(&why));
    assert_string_equal(why.text, "seen elsewhere");
}

static enum lb_status work(void *user, struct lb_error *err)
{
    int *calls = user;
    (void)err;
    ++*calls;
    return LB_OK;
}

static enum lb_status nothing(const void *arguments, struct lb_error *err)
{
    (void)arguments, (void)err;
    return LB_OK;
}

static enum lb_status enqueue_two(void *user, struct lb_error *err)
{
    (void)user;
    enum lb_status st = fake_enqueue(NULL, nothing, "", 1, err);
    return st == LB_OK ? fake_enqueue(NULL, nothing, "", 1, err) : st;
}

enum { SPIN_NS = 2000000 };

static enum lb_status spin(void *user, struct lb_error *err)
{
    double start = lb_now_ns();
    (void)user, (void)err;
    while (lb_now_ns() - start < SPIN_NS)
        continue;
    return LB_OK;
}

static enum lb_status refuse(void *user, struct lb_error *err)
{
    (void)user;
    return lb_fail(err, LB_FAILED, "the call's own reason");
}

/* A timer of calls with cold caches, on a fake device in its initial state. */
static void open_timer(enum fake_fault fault, struct lb_timer *timer)
{
    fake_device_install(fault);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    assert_int_equal(lb_timer_create(LB_DEVICE, true, timer, NULL), LB_OK);
}

TEST(timers_capture_once_and_replay)
{
    struct lb_timer timer;
    int calls = 0;
    double ns;
    open_timer(FAKE_NONE, &timer);
    assert_int_equal(lb_timer_bytes(LB_DEVICE, true), 2 << 20);
    assert_int_equal(lb_timer_measure(&timer, work, &calls, 3, &ns, NULL), LB_OK);
    assert_int_equal(calls, 3);
    assert_int_equal(fake_device_counts()->fills, 1);
    assert_int_equal(fake_device_counts()->events, 2);
    assert_int_equal(lb_timer_capture(&timer, work, &calls, NULL), LB_OK);
    assert_int_equal(lb_timer_measure(&timer, work, &calls, 5, &ns, NULL), LB_OK);
    assert_int_equal(calls, 4);
    assert_int_equal(fake_device_counts()->replays, 5);
    lb_timer_destroy(&timer);
    assert_int_equal(fake_device_counts()->allocations, 0);
}

/* A sample includes neither the fill that flushes the caches nor work that was enqueued before. */
TEST(a_sample_is_the_time_of_one_call_and_no_more)
{
    struct lb_timer timer;
    double ns;
    open_timer(FAKE_NONE, &timer);
    assert_int_equal(enqueue_two(NULL, NULL), LB_OK);
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 4, &ns, NULL), LB_OK);
    assert_true(ns == (4 * 2 * FAKE_WORK_NS + FAKE_EVENTS_NS) / 4.0);
    assert_int_equal(lb_timer_capture(&timer, enqueue_two, NULL, NULL), LB_OK);
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 5, &ns, NULL), LB_OK);
    assert_true(ns == (5 * (2 * FAKE_WORK_NS + FAKE_LAUNCH_NS) + FAKE_EVENTS_NS) / 5.0);
    assert_int_equal(fake_device_counts()->fills, 2);
    lb_timer_destroy(&timer);
}

/* Found by this: a hold after the start event, or none; a hold of calls by single launches. */
TEST(the_launch_of_a_graph_is_not_part_of_its_time)
{
    struct lb_timer timer;
    double ns;
    open_timer(FAKE_NONE, &timer);
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 1, &ns, NULL), LB_OK);
    assert_int_equal(fake_device_counts()->holds, 0);
    assert_int_equal(lb_timer_capture(&timer, enqueue_two, NULL, NULL), LB_OK);
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 1, &ns, NULL), LB_OK);
    assert_int_equal(fake_device_counts()->holds, 1);
    assert_true(ns == 2 * FAKE_WORK_NS + FAKE_EVENTS_NS);
    assert_false(timer.hold_expired);
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 5, &ns, NULL), LB_OK);
    timer.never_hold = true;
    assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 1, &ns, NULL), LB_OK);
    assert_int_equal(fake_device_counts()->holds, 1);
    lb_timer_destroy(&timer);
}

/* The time then has the launch in it, is marked, and no later one is held. */
TEST(a_stream_that_cannot_be_held_long_enough_is_not_held_again)
{
    struct lb_timer timer;
    double ns;
    open_timer(FAKE_HOLD_EXPIRES, &timer);
    assert_int_equal(lb_timer_capture(&timer, enqueue_two, NULL, NULL), LB_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lb_timer_measure(&timer, enqueue_two, NULL, 1, &ns, NULL), LB_OK);
        assert_true(ns == FAKE_LAUNCH_NS + 2 * FAKE_WORK_NS + FAKE_EVENTS_NS);
        assert_true(timer.hold_expired);
        assert_int_equal(fake_device_counts()->holds, 1);
    }
    lb_timer_destroy(&timer);
}

static bool only_own_time;

/* Replaces the system's clock: while only_own_time is set, it stops when other processes run. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    return (int)syscall(SYS_clock_gettime, only_own_time ? CLOCK_PROCESS_CPUTIME_ID : id, now);
}

/* Several tries, because page faults and interrupts count as own time. */
static void expect_spin(struct lb_timer *timer, int calls)
{
    double ns = 0;
    for (int i = 0; i < 5 && (i == 0 || ns >= 2 * SPIN_NS); i++) {
        assert_int_equal(lb_timer_measure(timer, spin, NULL, calls, &ns, NULL), LB_OK);
        assert_true(ns >= SPIN_NS);
    }
    assert_true(ns < 2 * SPIN_NS);
}

/* By the host's clock, to the end of a wait for the device, with the launch of a graph. */
TEST(a_call_that_is_waited_for_lasts_until_its_end_is_seen)
{
    struct lb_timer timer;
    double ns;
    open_timer(FAKE_NONE, &timer);
    timer.until_seen = true;
    assert_int_equal(lb_timer_measure(&timer, spin, NULL, 1, &ns, NULL), LB_OK);
    assert_true(ns >= SPIN_NS);
    assert_int_equal(lb_timer_capture(&timer, enqueue_two, NULL, NULL), LB_OK);
    int waits = fake_device_counts()->waits;
    assert_int_equal(lb_timer_measure(&timer, NULL, NULL, 1, &ns, NULL), LB_OK);
    assert_int_equal(fake_device_counts()->waits,
                     waits + 3); /* before, after the flush, at the end */
    assert_int_equal(fake_device_counts()->holds, 0);
    assert_int_equal(fake_device_counts()->events, 0);
    lb_timer_destroy(&timer);
}

TEST(a_sample_on_the_host_is_one_call_too)
{
    struct lb_timer hot = {.memory = LB_HOST}, cold = {.memory = LB_HOST};
    only_own_time = true;
    expect_spin(&hot, 5);
    cold.flush_bytes = 128 << 20; /* far longer than the call */
    assert_int_equal(lb_host_space.allocate(cold.flush_bytes, &cold.flush, NULL), LB_OK);
    expect_spin(&cold, 1);
    only_own_time = false;
    lb_timer_destroy(&cold);
}

TEST(a_failed_capture_is_ended_and_reports_the_first_failure)
{
    struct lb_timer timer = {.memory = LB_DEVICE};
    struct lb_error err = {""};
    void *memory;
    fake_device_install(FAKE_NONE);
    assert_int_equal(lb_timer_capture(&timer, refuse, NULL, &err), LB_FAILED);
    assert_string_equal(err.text, "the call's own reason");
    /* The capture has ended: the device allocates again, which it cannot during a capture. */
    assert_int_equal(lb_device_space.allocate(16, &memory, NULL), LB_OK);
    lb_device_space.release(memory);
    lb_timer_destroy(&timer);
}

TEST(packed_tensors_are_aligned_and_do_not_overlap)
{
    struct lb_problem p = trial_problem("T3_B2_I5_H3_L2_D2/f16/train");
    size_t end = 0;
    for (size_t e = 0; e < 4; e++) {
        for (int w = 0; w < LB_WEIGHT_COUNT; w++) {
            size_t at = lb_packed_offset(&p, LB_F32, e, (enum lb_weight)w);
            assert_int_equal(at % 256, 0);
            assert_true(at >= end);
            end = at + 4 * lb_weight_elements(&p, e, (enum lb_weight)w);
        }
    }
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_IH), 12 * 5);
    assert_int_equal(lb_weight_elements(&p, 3, LB_W_IH), 12 * 6);
    assert_true(lb_packed_bytes(&p, LB_F32) >= end);
    assert_int_equal(lb_packed_bytes(&p, LB_F32) % 256, 0);
}

/* Sizes, flops and bytes of a projection and of peepholes, counted by hand. */
TEST(cells_have_their_own_sizes_and_costs)
{
    struct lb_problem p = trial_problem("T3_B2_I5_H8_P2_L2_D2/f32/infer");
    struct lb_counts n;
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_IH), 32 * 5);
    assert_int_equal(lb_weight_elements(&p, 3, LB_W_IH), 32 * 4);
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_HH), 32 * 2);
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_CELL), 2 * 8);
    assert_int_equal(lb_problem_counts(&p, &n, NULL), LB_OK);
    assert_int_equal(n.y, 3 * 2 * 4);
    assert_int_equal(n.state, 4 * 2 * 8);
    assert_int_equal(lb_h_count(&p), 4 * 2 * 2);
    assert_int_equal(n.weights, 2 * (32 * (5 + 2 + 2) + 16) + 2 * (32 * (4 + 2 + 2) + 16));
    double macs = 3 * 2 * 2 * (32 * (5 + 2) + 16 + 32 * (4 + 2) + 16);
    assert_true(lb_problem_flops(&p) == 2 * macs);
    double moved = 3 * 2 * 5 + (double)n.weights + 3 * 2 * 4 + 2 * (4 * 2 * 8 + 4 * 2 * 2);
    assert_true(lb_problem_bytes(&p) == 4 * moved);

    struct lb_problem standard = trial_problem("T3_B2_I5_H8/f32/train");
    p = trial_problem("T3_B2_I5_H8/f32/train/cell-peephole");
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_CELL), 3 * 8);
    assert_true(lb_problem_flops(&p) == lb_problem_flops(&standard));
    /* Read in both passes, and its gradient is written. */
    assert_true(lb_problem_bytes(&p) == lb_problem_bytes(&standard) + 4 * 3 * 3 * 8);
    p = trial_problem("T3_B2_I5_H8/f32/train/cell-recurrent-dropout");
    assert_true(lb_problem_bytes(&p) == lb_problem_bytes(&standard) + 4 * 2 * 2 * 8); /* the mask */
    p = trial_problem("T3_B2_I5_H8/f32/infer/cell-layernorm");
    assert_int_equal(lb_weight_elements(&p, 0, LB_W_CELL), 10 * 8);
}

/* Whether a process that runs the function ends by a fault of memory. */
static bool faults(void (*function)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        function();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

static volatile char *device_byte;

static void read_device_memory(void)
{
    (void)*device_byte;
}

/* What the fake refuses, as a real device does. */
TEST(host_and_device_memory_are_apart)
{
    void *memory, *other;
    char host[64] = "text";
    void *graph;
    fake_device_install(FAKE_NONE);
    assert_int_equal(fake_device.allocate(100, &memory, NULL), LB_OK);
    assert_int_equal(fake_device.allocate(100, &other, NULL), LB_OK);
    assert_int_equal((uintptr_t)memory % 256, 0);
    device_byte = memory;
    assert_true(faults(read_device_memory));
    assert_int_equal(fake_device.upload(memory, host, 64, NULL), LB_OK);
    assert_true(faults(read_device_memory)); /* also after the device has worked */
    assert_int_equal(fake_device.download(host, memory, 64, NULL), LB_OK);
    assert_string_equal(host, "text");
    assert_int_equal(fake_device.upload(host, memory, 64, NULL), LB_FAILED); /* the wrong way */
    assert_int_equal(fake_device.upload(memory, other, 64, NULL), LB_FAILED);
    assert_int_equal(fake_device.upload(memory, host, 101, NULL), LB_FAILED);
    assert_int_equal(fake_device.fill(host, 0, 64, NULL), LB_FAILED);

    assert_int_equal(fake_device.capture_begin(NULL), LB_OK);
    assert_int_equal(fake_device.fill(memory, 'x', 3, NULL), LB_OK); /* a capture takes it ... */
    assert_int_equal(fake_device.upload(memory, host, 1, NULL), LB_FAILED); /* ... and not this */
    assert_int_equal(fake_device.synchronize(NULL), LB_FAILED);
    assert_int_equal(fake_device.capture_end(&graph, NULL), LB_OK);
    assert_int_equal(fake_device.download(host, memory, 4, NULL), LB_OK);
    assert_string_equal(host, "text"); /* not yet */
    assert_int_equal(fake_device.replay(graph, NULL), LB_OK);
    assert_int_equal(fake_device.download(host, memory, 4, NULL), LB_OK);
    assert_string_equal(host, "xxxt");
    fake_device.graph_release(graph);
    fake_device.release(other);
    fake_device.release(memory);
}

/* Readings of four multiprocessors: one was read only before, one only after. */
TEST(mean_clock_is_that_of_multiprocessors_read_twice)
{
    static const struct lb_clock_reading from[] = {{100, 1000}, {0, 0}, {7, 2000}, {500, 1000}};
    static const struct lb_clock_reading to[] = {{3100, 3000}, {9, 3000}, {0, 0}, {4500, 3000}};
    assert_true(fabs(lb_mean_clock_mhz(from, to, 4) - (1500 + 2000) / 2.0) < 1e-9);
    assert_true(isnan(lb_mean_clock_mhz(from + 1, to + 1, 2)));
}

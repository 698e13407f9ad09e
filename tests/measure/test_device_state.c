/* The clocks in a row are those of a device at work: between first and last sample by the device's
 * own counters, and by a stub of NVML, which looks whether there is work on the fake device when it
 * is asked. */
#include <string.h>
#include <sys/mman.h>

#include "tests/fake_gpu/fake_device.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;
extern int (*stub_sm_mhz)(void);

enum { TAKEN_BYTES = 24 << 20 };

static int waits_at_last_call;
static int calls, takes_at_call; /* takes_at_call: the call that takes TAKEN_BYTES; 0: none */
static char *taken;

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    waits_at_last_call = fake_device_counts()->waits;
    if (++calls == takes_at_call) {
        taken = mmap(NULL, TAKEN_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(taken != MAP_FAILED);
        memset(taken, 1, TAKEN_BYTES);
    }
    return lb_impl_cpu_ref.forward(self, io, err);
}

/* The clock falls once somebody has waited for the device. */
static int sm_mhz(void)
{
    return fake_device_counts()->waits == waits_at_last_call ? 1980 : 345;
}

/* Runs a case on the fake device, whose clocks can be read or not. */
static struct lb_row run_case(bool own_clocks)
{
    struct lb_device_api api = fake_device;
    struct lb_impl impl = lb_impl_cpu_ref;
    struct lb_device_info info = {.name = "fake", .uuid = "GPU-0", .memory_bytes = 256 << 20};
    struct lb_run_options options = {.seed = 7, .sampler = lb_sampler_defaults(), .loss_scale = 1};
    struct lb_row row;
    impl.memory = LB_DEVICE;
    impl.forward = forward;
    options.sampler.min_samples = options.sampler.max_samples = 2;
    stub_sm_mhz = sm_mhz;
    fake_device_install(FAKE_NONE);
    if (!own_clocks)
        api.clock_begin = NULL, api.clock_end = NULL;
    lb_device_use(&api);
    fake_device_share_memory();
    lb_device_assume(&info, NULL);
    trial_case_run(&impl, "cpu_ref/T3_B2_I4_H4/f32/train", &options, &row);
    assert_string_equal(row.reason, "");
    lb_device_use(NULL);
    return row;
}

TEST(the_clock_is_the_mean_between_first_and_last_sample_or_nvmls_while_the_device_works)
{
    for (int own_clocks = 0; own_clocks < 2; own_clocks++) {
        struct lb_row row = run_case(own_clocks);
        assert_true(row.sm_mhz == (own_clocks ? FAKE_SM_MHZ : 1980) && row.memory_mhz == 1002);
        assert_int_equal(fake_device_counts()->clocks, own_clocks ? 2 : 0);
        lb_row_free(&row);
    }
}

/* One of the calls takes memory once, as it does where CUDA loads code: whichever it is, that is no
 * leak. */
TEST(what_one_call_takes_is_no_leak)
{
    for (takes_at_call = 1; takes_at_call <= 12; takes_at_call++) {
        calls = 0;
        struct lb_row row = run_case(false);
        if (strstr(row.warning, "leak"))
            fail_msg("call %d: %s", takes_at_call, row.warning);
        assert_true(calls >= 12);
        lb_row_free(&row);
        munmap(taken, TAKEN_BYTES); /* malloc would keep it, so that no later call takes any */
    }
    takes_at_call = 0;
}

/* Runs a case of the implementation `fused` whole, on a fake device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../fake_gpu/fake_device.h"
#include "impl_run.h"

extern const struct lb_impl lb_impl_fused;

static void ignore_phase(void *user, const char *phase)
{
    (void)user, (void)phase;
}

static void ignore_row(void *user, const struct lb_row *row)
{
    (void)user, (void)row;
}

struct lb_case lb_test_parse(const char *text)
{
    struct lb_case c;
    struct lb_error err;
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    return c;
}

void lb_test_run_case(const char *text, struct lb_reference_cache *cache, struct lb_row *row)
{
    const struct lb_run_observer observer = {NULL, ignore_phase, ignore_row};
    struct lb_run_options options = {
        .seed = 7, .sampler = lb_sampler_defaults(), .cache = cache, .loss_scale = 1};
    struct lb_case c = lb_test_parse(text);
    options.sampler.min_samples = options.sampler.max_samples = 1;
    fake_device_install(FAKE_NONE);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    lb_case_run(&lb_impl_fused, &c, &options, &observer, row);
    assert_int_equal(fake_device_counts()->allocations, 0);
}

/* Runs a case of the implementation `fused` whole, on a fake device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "impl_run.h"
#include "tests/fake_gpu/fake_device.h"

extern const struct lb_impl lb_impl_fused;

void lb_test_run_case(const char *text, struct lb_reference_cache *cache, struct lb_row *row)
{
    struct lb_run_options options = {
        .seed = 7, .sampler = lb_sampler_defaults(), .cache = cache, .loss_scale = 1};
    options.sampler.min_samples = options.sampler.max_samples = 1;
    fake_device_install(FAKE_NONE);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    trial_case_run(&lb_impl_fused, text, &options, row);
    assert_int_equal(fake_device_counts()->allocations, 0);
}

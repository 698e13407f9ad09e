/* What the program reads from NVML, with a stub of the library. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/nvml.h"
#include "measure/noise_check.h"

extern int stub_inits;
extern bool stub_hangs;

static void a_device_is_read_by_its_uuid(void **state)
{
    struct lb_gpu_state gpu;
    (void)state;
    assert_true(lb_nvml_read("GPU-0", &gpu));
    assert_true(gpu.sm_mhz == 1001 && gpu.memory_mhz == 1002 && gpu.sm_max_mhz == 1980);
    assert_true(gpu.temperature_c == 85);
#ifdef LB_STUB_NEW /* a function that this driver lacks costs its own figure alone */
    assert_true(isnan(gpu.power_w));
#else
    assert_true(gpu.power_w == 690.5);
#endif
    assert_int_equal(gpu.throttle, 0x44); /* by the function's new name or its old one */
    assert_false(lb_nvml_read("GPU-7", &gpu));
    assert_true(isnan(gpu.sm_mhz));
    assert_string_equal(lb_nvml_driver(), "580.1");
}

static void what_a_device_does_not_report_is_unknown(void **state)
{
    struct lb_gpu_state gpu;
    (void)state;
    assert_true(lb_nvml_read("GPU-1", &gpu));
    assert_true(gpu.sm_mhz == 301);
    assert_true(isnan(gpu.temperature_c));
}

static void a_part_of_a_gpu_has_the_state_of_the_whole(void **state)
{
    struct lb_gpu_state gpu;
    (void)state;
    assert_true(lb_nvml_read("MIG-part", &gpu));
    assert_true(gpu.sm_mhz == 301);
}

static void tenants_and_heat_are_noise(void **state)
{
    struct lb_noise_check noise = {0};
    (void)state;
    lb_noise_check_gpu(&noise);
    assert_int_equal(noise.gpus, 2);
    assert_int_equal(noise.gpu_tenants, 3);
    assert_int_equal(noise.gpus_throttled, 1); /* an idle GPU does not count */
}

/* Whatever holds the library up, the look at the machine ends and is otherwise whole. */
static void a_library_that_never_answers_holds_nothing_up(void **state)
{
    struct lb_noise_check noise;
    char *advice;
    size_t size;
    (void)state;
    lb_noise_check_run(0.01, 60, &noise);
    assert_false(noise.nvml_silent);
    assert_int_equal(noise.gpus, 2);
    assert_int_equal(noise.gpu_tenants, 3);
    stub_hangs = true;
    lb_noise_check_run(0.01, 0.2, &noise);
    stub_hangs = false;
    assert_true(noise.nvml_silent);
    assert_int_equal(noise.gpus, -1);
    assert_true(noise.cpus >= 1);
    FILE *out = open_memstream(&advice, &size);
    lb_noise_check_advise(&noise, out);
    fclose(out);
    assert_non_null(strstr(advice, "NVML does not answer"));
    free(advice);
}

static void the_library_is_initialised_once(void **state)
{
    struct lb_gpu_use use;
    (void)state;
    assert_int_equal(lb_nvml_count(), 2);
    assert_true(lb_nvml_use(1, &use));
    assert_false(lb_nvml_use(2, &use));
    assert_int_equal(stub_inits, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_read_by_its_uuid),
        cmocka_unit_test(what_a_device_does_not_report_is_unknown),
        cmocka_unit_test(a_part_of_a_gpu_has_the_state_of_the_whole),
        cmocka_unit_test(tenants_and_heat_are_noise),
        cmocka_unit_test(a_library_that_never_answers_holds_nothing_up),
        cmocka_unit_test(the_library_is_initialised_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

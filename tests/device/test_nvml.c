/* What the program reads from NVML, with a stub of the library. */
#include "device/nvml.h"
#include "measure/noise_check.h"
#include "tests/helpers/test.h"

extern int stub_inits;
extern bool stub_hangs;

TEST(a_device_is_read_by_its_uuid)
{
    struct lb_gpu_state gpu;
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

TEST(what_a_device_does_not_report_is_unknown)
{
    struct lb_gpu_state gpu;
    assert_true(lb_nvml_read("GPU-1", &gpu));
    assert_true(gpu.sm_mhz == 301);
    assert_true(isnan(gpu.temperature_c));
}

TEST(a_part_of_a_gpu_has_the_state_of_the_whole)
{
    struct lb_gpu_state gpu;
    assert_true(lb_nvml_read("MIG-part", &gpu));
    assert_true(gpu.sm_mhz == 301);
}

TEST(tenants_and_heat_are_noise)
{
    struct lb_noise_check noise = {0};
    lb_noise_check_gpu(&noise);
    assert_int_equal(noise.gpus, 2);
    assert_int_equal(noise.gpu_tenants, 3);
    assert_int_equal(noise.gpus_throttled, 1); /* an idle GPU does not count */
}

/* Whatever holds the library up, the look at the machine ends and is otherwise whole. */
TEST(a_library_that_never_answers_holds_nothing_up)
{
    struct lb_noise_check noise;
    char *advice;
    size_t size;
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

TEST(the_library_is_initialised_once)
{
    struct lb_gpu_use use;
    assert_int_equal(lb_nvml_count(), 2);
    assert_true(lb_nvml_use(1, &use));
    assert_false(lb_nvml_use(2, &use));
    assert_int_equal(stub_inits, 1);
}

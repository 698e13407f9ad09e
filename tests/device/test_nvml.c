/* What the program reads from NVML, with a stub of the library. */
#include "device/nvml.h"
#include "measure/noise_check.h"
#include "tests/helpers/test.h"

TEST(a_device_is_read_by_its_uuid)
{
    struct lb_gpu_state gpu;
    assert_true(lb_nvml_read("GPU-0", &gpu));
    assert_true(gpu.sm_mhz == 1001 && gpu.memory_mhz == 1002 && gpu.sm_max_mhz == 1980);
    assert_true(gpu.temperature_c == 85);
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
    struct lb_noise_check noise;
    lb_noise_check_run(0.01, &noise);
    assert_int_equal(noise.gpus, 2);
    assert_int_equal(noise.gpu_tenants, 3);
    assert_int_equal(noise.gpus_throttled, 1); /* an idle GPU does not count */
}

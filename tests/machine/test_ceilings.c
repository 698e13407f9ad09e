/* Measured ceilings: kept as JSON, applied to a machine, and measured on this one. */
#include "machine/ceilings.h"
#include "measure/ceilings_measure.h"
#include "tests/helpers/test.h"

TEST(figures_survive_json_and_unknown_ones_stay_unknown)
{
    struct lb_ceilings kept, back;
    lb_ceilings_clear(&kept, "GPU-1", 132);
    for (int i = 0; i < LB_FIGURE_COUNT; i += 2) {
        kept.all[i] = 1 + i;
        kept.core[i] = 0.5;
    }
    json_t *object = lb_ceilings_to_json(&kept);
    lb_ceilings_from_json(object, &back);
    json_decref(object);
    assert_string_equal(back.of, "GPU-1");
    assert_int_equal(back.cores, 132);
    for (int i = 0; i < LB_FIGURE_COUNT; i++)
        if (i % 2 == 0)
            assert_true(back.all[i] == 1 + i && back.core[i] == 0.5);
        else
            assert_true(isnan(back.all[i]) && isnan(back.core[i]));
    lb_ceilings_from_json(NULL, &back);
    assert_true(back.of[0] == '\0' && isnan(back.all[0]));
}

/* Published figures give way to measurements that are better, unknown ones to every one. */
TEST(a_machine_takes_what_is_better)
{
    struct lb_machine h100, m;
    struct lb_ceilings c;
    struct lb_problem p = {.dtype = LB_F32};
    assert_int_equal(lb_machine_read("h100", &h100, NULL), LB_OK);
    lb_ceilings_clear(&c, "GPU-1", 132);
    c.all[LB_FLOPS + LB_F16] = 7e14; /* of 1071e12 */
    c.all[LB_READ + LB_MEMORY] = 4e12;
    c.all[LB_PEER_NS] = 900;
    c.all[LB_FAR_NS] = 100;
    m = h100;
    lb_machine_measured(&m, &c);
    assert_true(m.flops_clock[LB_F16] == 4096 && m.bytes_s[LB_MEMORY] == 4e12);
    assert_true(m.peer_clocks == 233 && fabs(m.far_clocks - 198) < 1e-9);
    m = (struct lb_machine){.cpu = true, .cores = 4, .clock_hz = 1e9, .clock_max_hz = 1e9};
    assert_true(lb_machine_flops_s(&m, &p, 1) == 0);
    assert_true(isinf(lb_machine_read_s(&m, LB_CACHE, 4, 1e9)));
    lb_ceilings_clear(&c, "cpu", 4);
    c.core[LB_FLOPS + LB_F32] = 100e9;
    c.all[LB_FLOPS + LB_F32] = 350e9;
    c.core[LB_READ + LB_CACHE] = 20e9;
    c.all[LB_READ + LB_CACHE] = 50e9;
    c.all[LB_PEER_NS] = 60;
    lb_machine_measured(&m, &c);
    assert_true(lb_machine_flops_s(&m, &p, 2) == 200e9 && lb_machine_flops_s(&m, &p, 4) == 350e9);
    assert_true(lb_machine_read_s(&m, LB_CACHE, 2, 1e9) == 40e9);
    assert_true(lb_machine_read_s(&m, LB_CACHE, 4, 1e9) == 50e9 && m.peer_clocks == 60);
    /* All cores, measured in a slower moment than one, do not limit what one can do. */
    m = (struct lb_machine){.cpu = true, .cores = 4, .clock_hz = 1e9, .clock_max_hz = 1e9};
    c.all[LB_FLOPS + LB_F32] = 60e9;
    c.all[LB_READ + LB_CACHE] = 10e9;
    lb_machine_measured(&m, &c);
    assert_true(lb_machine_flops_s(&m, &p, 1) == 100e9);
    assert_true(lb_machine_read_s(&m, LB_CACHE, 1, 1e9) == 20e9);
    /* Nor does one core limit what all do where only it was measured. */
    m = (struct lb_machine){.cpu = true, .cores = 4, .clock_hz = 1e9, .clock_max_hz = 1e9};
    c.all[LB_READ + LB_CACHE] = NAN;
    lb_machine_measured(&m, &c);
    assert_true(lb_machine_read_s(&m, LB_CACHE, 4, 1e9) == 80e9);
}

/* The lowest rate that is taken for one of a machine's, in floating point operations per second. */
#ifdef LB_EMULATED
#define LEAST_RATE 1e5
#else
#define LEAST_RATE 1e8
#endif

/* An instruction of AVX512-VNNI has four times the products of one of f32. With a store of each sum
 * the loop shows half of its rate. Bursts take turns, so that other programs disturb both alike. */
TEST(sums_of_int8_stay_in_registers)
{
    double int8 = 0, f32 = 0;
    if (lb_cpu_best_unit(LB_INT8) != LB_CPU_AVX512)
        return;
    for (int i = 0; i < 400; i++) {
        int8 = fmax(int8, lb_cpu_burst_flops_s(LB_INT8));
        f32 = fmax(f32, lb_cpu_burst_flops_s(LB_F32));
    }
    assert_true(int8 > 3 * f32);
}

TEST(this_machine_is_measured)
{
    struct lb_ceilings c;
    struct lb_error err = {""};
    if (lb_cpu_ceilings_measure(0.1, 0, &c, &err) != LB_OK)
        fail_msg("%s", err.text);
    const bool cached = isfinite(c.core[LB_READ + LB_CACHE]);
    assert_true(!cached || isnan(c.core[LB_READ + LB_MEMORY])); /* nothing needs it */
    assert_int_equal(lb_cpu_ceilings_measure(0.1, (double)INFINITY, &c, &err), LB_OK);
    assert_true(!cached || c.core[LB_READ + LB_MEMORY] > LEAST_RATE);
    assert_string_equal(c.of, "cpu");
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        assert_true(c.core[LB_FLOPS + d] > LEAST_RATE && c.core[LB_FLOPS + d] < 1e14);
        assert_true(c.all[LB_FLOPS + d] > LEAST_RATE);
    }
    /* Were the accumulators of a loop merged, its rate would pass that of the other by far. */
    double ratio = c.core[LB_FLOPS + LB_F32] / c.core[LB_FLOPS + LB_F64];
    assert_true(ratio > 0.5 && ratio < 8);
    /* A loop whose vectors the compiler splits into words reads 8 bytes per clock, where the other
     * makes 16 flops or more. */
    if (isfinite(c.core[LB_READ + LB_INNER]))
        assert_true(c.core[LB_READ + LB_INNER] > 0.7 * c.core[LB_FLOPS + LB_F32]);
    assert_true((c.all[LB_PEER_NS] > 0) == (c.cores > 1));
    assert_true(lb_cpu_burst_flops_s(LB_F32) > LEAST_RATE);
}

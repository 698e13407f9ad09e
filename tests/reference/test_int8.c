/* Checks that int8 is right where it follows int8.h, and that mistakes of a quantisation are found:
 * by the bound on the distance from the network in f32, and by the comparison with the scheme. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/int8.h"
#include "impls/common/simd_kernels.h"
#include "model/registry.h"
#include "reference/reference.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

/* cpu_ref is the harness's evaluation of the scheme. cpu_simd shares nothing with it but int8.h. */
extern const struct lb_impl lb_impl_cpu_ref, lb_impl_cpu_simd;
static const struct lb_impl *const impls[] = {&lb_impl_cpu_ref, &lb_impl_cpu_simd};

__typeof__(lb_simd_kernels_best) __wrap_lb_simd_kernels_best;

/* cpu_simd gets its plain C, on every CPU. */
const struct lb_simd_kernels *__wrap_lb_simd_kernels_best(enum lb_dtype dtype)
{
    const struct lb_simd_kernels *list[LB_CPU_UNIT_COUNT];
    return list[lb_simd_kernels_all(dtype, list) - 1];
}

/* What the implementation says of itself, and what the harness finds of the CPU. */
static uint32_t traits = LB_QUANTISES_PLAINLY;
static bool lacks_vnni;

__typeof__(lb_cpu_lacks_avx512_vnni) __wrap_lb_cpu_lacks_avx512_vnni;
bool __wrap_lb_cpu_lacks_avx512_vnni(void)
{
    return lacks_vnni;
}

/* The weights of the only layer and direction, which a mistake changes as they would be read. */
struct network {
    size_t input, hidden;
    float *w_ih, *w_hh, *b_hh, x_max;
};

/* A factor and its inverse, of a row. */
static float channel(const struct network *n, size_t g)
{
    return lb_int8_channel(n->w_ih + g * n->input, n->input, n->x_max, n->w_hh + g * n->hidden,
                           n->hidden);
}

/* Applies a change to all weights: of w_ih times x_max, and of w_hh. */
static void change(struct network *n, float (*to)(float v, float most))
{
    for (size_t g = 0; g < 4 * n->hidden; g++) {
        float most = channel(n, g);
        for (size_t i = 0; i < n->input; i++)
            n->w_ih[g * n->input + i] = to(n->w_ih[g * n->input + i] * n->x_max, most) / n->x_max;
        for (size_t i = 0; i < n->hidden; i++)
            n->w_hh[g * n->hidden + i] = to(n->w_hh[g * n->hidden + i], most);
    }
}

static float six_bits(float v, float most)
{
    return rintf(v * 31 / most) * most / 31;
}

static float seven_bits(float v, float most)
{
    return rintf(v * 64 / most) * most / 64;
}

static float truncated(float v, float most)
{
    return truncf(v * 127 / most) * most / 127;
}

static void none(struct network *n)
{
    (void)n;
}

static void weights_of_six_bits(struct network *n)
{
    change(n, six_bits);
}

static void weights_of_seven_bits(struct network *n)
{
    change(n, seven_bits);
}

static void weights_truncated(struct network *n)
{
    change(n, truncated);
}

/* Each row is multiplied by the scale of the next one. */
static void scales_swapped(struct network *n)
{
    float first = channel(n, 0);
    for (size_t g = 0; g < 4 * n->hidden; g++) {
        float own = channel(n, g), next = g + 1 < 4 * n->hidden ? channel(n, g + 1) : first;
        for (size_t i = 0; i < n->input; i++)
            n->w_ih[g * n->input + i] *= next / own;
        for (size_t i = 0; i < n->hidden; i++)
            n->w_hh[g * n->hidden + i] *= next / own;
    }
}

static void inputs_saturated(struct network *n)
{
    n->x_max /= 2;
}

/* h is stored as u8 with 128 added, whose products nobody subtracts. */
static void zero_point_missed(struct network *n)
{
    for (size_t g = 0; g < 4 * n->hidden; g++)
        for (size_t i = 0; i < n->hidden; i++)
            n->b_hh[g] += n->w_hh[g * n->hidden + i] * 128 / 127;
}

static float *copy_of(const void *values, size_t count)
{
    float *copy = malloc(count * sizeof(*copy));
    assert_non_null(copy);
    return memcpy(copy, values, count * sizeof(*copy));
}

/* Whether y and hn are rounded as the h of the next step is, in whole 127ths; and whether the first
 * element of y stays unwritten. */
static bool rounds_results, leaves_nan;

static void round_results(const struct lb_results *results)
{
    for (int t = LB_Y; t <= LB_HN; t++)
        for (size_t i = 0; i < results->counts[t]; i++)
            ((float *)results->at[t])[i] = rintf(((float *)results->at[t])[i] * 127) / 127;
}

/* Runs an implementation with a mistake, and returns the error of the scheme. */
static double run_with(const struct lb_impl *impl, void (*mistake)(struct network *n),
                       struct lb_check *check)
{
    double error;
    struct lb_problem p = trial_problem("T40_B40_I64_H64/int8/infer");
    struct lb_exec_config config = {.threads = 1};
    struct lb_reference *reference;
    struct lb_results results;
    assert_int_equal(lb_reference_open(NULL, &p, 0, 1, true, &reference, NULL), LB_OK);
    assert_int_equal(lb_results_create(&p, &results, NULL), LB_OK);
    struct lb_inputs inputs = *lb_reference_inputs(reference, 0);
    size_t I = (size_t)p.input, H = (size_t)p.hidden;
    struct network n = {I,
                        H,
                        copy_of(inputs.weights.w_ih[0], 4 * H * I),
                        copy_of(inputs.weights.w_hh[0], 4 * H * H),
                        copy_of(inputs.weights.b_hh[0], 4 * H),
                        inputs.x_max};
    mistake(&n);
    const void *w_ih = n.w_ih, *w_hh = n.w_hh, *b_hh = n.b_hh;
    inputs.weights.w_ih = &w_ih;
    inputs.weights.w_hh = &w_hh;
    inputs.weights.b_hh = &b_hh;
    inputs.x_max = n.x_max;
    assert_int_equal(trial_run(impl, &p, &config, &inputs, &results, NULL), LB_OK);
    if (rounds_results)
        round_results(&results);
    if (leaves_nan)
        *(float *)results.at[LB_Y] = NAN;
    lb_reference_check(reference, 0, &results, traits, check);
    assert_int_equal(lb_reference_scheme_error(reference, 0, &results, &error, NULL), LB_OK);
    free(n.w_ih);
    free(n.w_hh);
    free(n.b_hh);
    lb_results_destroy(&results);
    lb_reference_close(reference);
    return error;
}

TEST(the_scheme_is_followed_to_rounding_and_its_price_is_within_the_bound)
{
    for (size_t i = 0; i < sizeof(impls) / sizeof(impls[0]); i++) {
        struct lb_check check;
        double error = run_with(impls[i], none, &check);
        assert_true(check.right);
        assert_true(check.err_norm > 1e-3); /* what quantisation costs is seen */
        assert_true(check.error_ratio < 1.1);
        assert_true(error < LB_INT8_ROUNDING / 5);
    }
}

/* As oneDNN and OpenVINO do. The error is larger, as one expects of results in such steps. */
TEST(results_in_whole_steps_have_a_bound_of_their_own)
{
    struct lb_check check;
    rounds_results = true;
    run_with(&lb_impl_cpu_ref, none, &check);
    assert_true(check.right && check.tolerance_used < 0.8);
    assert_true(check.error_ratio > 0.9 && check.error_ratio < 1.1);
    run_with(&lb_impl_cpu_ref, weights_of_six_bits, &check);
    assert_false(check.right);
    rounds_results = false;
}

TEST(weights_of_seven_bits_are_usual_for_libraries_on_a_CPU_without_VNNI)
{
    struct lb_check check;
    for (int i = 0; i < 4; i++) {
        traits = i & 1 ? LB_QUANTISES_PLAINLY : LB_QUANTISES;
        lacks_vnni = i & 2;
        run_with(&lb_impl_cpu_ref, weights_of_seven_bits, &check);
        assert_true(check.right);
        assert_int_equal(check.error_ratio < 1.2, lacks_vnni && traits == LB_QUANTISES);
        run_with(&lb_impl_cpu_ref, zero_point_missed, &check);
        assert_false(check.right);
        run_with(&lb_impl_cpu_ref, inputs_saturated, &check);
        assert_false(check.right);
    }
    traits = LB_QUANTISES_PLAINLY;
}

TEST(one_nan_makes_the_error_of_the_scheme_nan)
{
    struct lb_check check;
    assert_int_equal(lb_int8_round(NAN, 127), -127);
    leaves_nan = true;
    assert_true(isnan(run_with(&lb_impl_cpu_ref, none, &check)));
    assert_false(check.right);
    leaves_nan = false;
}

/* The scheme finds all. The bound need not find truncation, which costs twice the error of rounding
 * as another scheme might, nor swapped scales, since those of drawn weights are nearly equal. */
TEST(wrong_quantisations_are_found)
{
    enum { BEYOND_THE_BOUND = 3 };
    void (*const mistakes[])(struct network *) = {weights_of_six_bits, inputs_saturated,
                                                  zero_point_missed, weights_truncated,
                                                  scales_swapped};
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        struct lb_check check;
        assert_true(run_with(&lb_impl_cpu_simd, mistakes[i], &check) > 10 * LB_INT8_ROUNDING);
        if (i < BEYOND_THE_BOUND && check.right)
            fail_msg("mistake %zu is not found: %.3g of the tolerance", i, check.tolerance_used);
    }
}

/* The reference: which results pass the comparison, which errors it finds, and what the cache
 * keeps. */
#include <fenv.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "device/weight_packing.h"
#include "model/registry.h"
#include "reference/input_data.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

/* A correct result, into which tests put errors, and the reference that it is compared with. */
struct fixture {
    struct lb_problem problem;
    struct lb_counts n;
    struct lb_reference *reference;
    struct lb_results results;
};

/* Runs cpu_ref. */
static void run(const struct lb_problem *p, const struct lb_inputs *in, struct lb_results *out)
{
    const struct lb_exec_config config = {.threads = 1};
    struct lb_error err = {""};
    if (trial_run(&lb_impl_cpu_ref, p, &config, in, out, &err) != LB_OK)
        fail_msg("%s", err.text);
}

static void open_fixture(struct fixture *f, const char *text)
{
    struct lb_error err = {""};
    *f = (struct fixture){.problem = trial_problem(text)};
    if (lb_problem_counts(&f->problem, &f->n, &err) != LB_OK ||
        lb_reference_open(NULL, &f->problem, 0, 1, true, &f->reference, &err) != LB_OK ||
        lb_results_create(&f->problem, &f->results, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    run(&f->problem, lb_reference_inputs(f->reference, 0), &f->results);
}

static void close_fixture(struct fixture *f)
{
    lb_results_destroy(&f->results);
    lb_reference_close(f->reference);
}

static struct lb_check check_of(const struct fixture *f)
{
    struct lb_check check;
    lb_reference_check(f->reference, 0, &f->results, 0, &check);
    return check;
}

static double get(const struct fixture *f, const void *tensor, size_t i)
{
    double value;
    size_t size = lb_dtype_size(f->problem.dtype);
    lb_load(f->problem.dtype, (const char *)tensor + i * size, &value, 1);
    return value;
}

static void set(const struct fixture *f, void *tensor, size_t i, double value)
{
    lb_store(f->problem.dtype, (char *)tensor + i * lb_dtype_size(f->problem.dtype), &value, 1);
}

static const char *const dtype_names[LB_DTYPE_COUNT] = {"f64", "f32", "f16", "bf16", "int8"};

/* In the small shape all rows are distinct; the big one is dealt from a few rows. */
static const char *const small_shape = "T6_B5_I4_H7", *const big_shape = "T64_B40_I50_H50";

static void open_shape(struct fixture *f, const char *shape, int dtype, const char *pass)
{
    char text[128];
    snprintf(text, sizeof(text), "%s/%s/%s", shape, dtype_names[dtype], pass);
    open_fixture(f, text);
}

TEST(a_correct_result_passes)
{
    for (int dtype = 0; dtype < LB_INT8; dtype++)
        for (int big = 0; big < 2; big++) {
            struct fixture f;
            open_shape(&f, big ? big_shape : small_shape, dtype, "train/ragged");
            struct lb_check check = check_of(&f);
            if (!check.right)
                fail_msg("%s", check.reason);
            assert_true(check.err_max_abs >= 0 && check.err_norm < 0.01);
            assert_true(check.tolerance_used > 0 && check.tolerance_used <= 1);
            close_fixture(&f);
        }
}

/* A tensor of a train result, with its number of elements. */
struct tensor {
    void *at;
    size_t count;
};

static size_t tensors_of(const struct fixture *f, struct tensor out[10])
{
    const struct lb_results *r = &f->results;
    void *const *const gradients[] = {r->gradients.dw_ih, r->gradients.dw_hh, r->gradients.db_ih,
                                      r->gradients.db_hh};
    size_t count = 0;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        out[count++] = (struct tensor){r->at[t], r->counts[t]};
    for (int w = LB_W_IH; w <= LB_B_HH; w++)
        out[count++] =
            (struct tensor){gradients[w][0], lb_weight_elements(&f->problem, 0, (enum lb_weight)w)};
    return count;
}

/* The largest magnitude in a tensor, which is the unit of the errors that tests add. */
static double size_of(const struct fixture *f, const struct tensor *tensor)
{
    double size = 0;
    for (size_t i = 0; i < tensor->count; i++)
        size = fmax(size, fabs(get(f, tensor->at, i)));
    return size;
}

TEST(an_error_in_one_element_of_any_tensor_is_found)
{
    /* Relative to the tensor's largest element; each is more than the tolerance of any element. */
    static const double errors[LB_INT8] = {1e-11, 1e-4, 0.04, 0.3};
    for (int dtype = 0; dtype < LB_INT8; dtype++)
        for (int big = 0; big < 2; big++) {
            struct fixture f;
            struct tensor tensors[10];
            open_shape(&f, big ? big_shape : small_shape, dtype, "train");
            size_t count = tensors_of(&f, tensors);
            for (size_t i = 0; i < count; i++) {
                size_t at = tensors[i].count / 2;
                double kept = get(&f, tensors[i].at, at);
                set(&f, tensors[i].at, at, kept + errors[dtype] * size_of(&f, &tensors[i]));
                assert_false(check_of(&f).right);
                set(&f, tensors[i].at, at, kept);
            }
            assert_true(check_of(&f).right);
            close_fixture(&f);
        }
}

TEST(nan_and_infinity_in_any_tensor_are_found)
{
    for (int dtype = 0; dtype < LB_INT8; dtype++) {
        struct fixture f;
        struct tensor tensors[10];
        open_shape(&f, small_shape, dtype, "train");
        size_t count = tensors_of(&f, tensors);
        for (size_t i = 0; i < 2 * count; i++) {
            struct tensor *tensor = &tensors[i / 2];
            size_t at = tensor->count - 1;
            double kept = get(&f, tensor->at, at);
            set(&f, tensor->at, at, i & 1 ? (double)NAN : (double)INFINITY);
            struct lb_check check = check_of(&f);
            assert_false(check.right);
            assert_non_null(strstr(check.reason, i & 1 ? "NaN" : "infinite"));
            assert_true(isnan(check.err_max_abs) && isnan(check.err_norm));
            assert_true(isnan(check.error_ratio));
            set(&f, tensor->at, at, kept);
        }
        close_fixture(&f);
    }
}

TEST(an_unwritten_element_is_found_in_every_dtype)
{
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        struct fixture f;
        open_shape(&f, small_shape, dtype, "infer");
        lb_poison((char *)f.results.at[LB_Y] + (f.n.y - 1) * lb_dtype_size(f.problem.dtype),
                  lb_dtype_size(f.problem.dtype));
        assert_false(check_of(&f).right);
        close_fixture(&f);
    }
}

TEST(a_wrong_output_is_reported_before_a_wrong_gradient)
{
    struct fixture f;
    open_fixture(&f, "T3_B2_I3_H3/f32/train");
    set(&f, f.results.at[LB_DX], 0, NAN);
    assert_true(check_of(&f).in_gradient && !check_of(&f).right);
    set(&f, f.results.at[LB_CN], 0, NAN);
    assert_false(check_of(&f).in_gradient || check_of(&f).right);
    close_fixture(&f);
}

TEST(swapped_rows_are_found)
{
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        struct fixture f;
        open_shape(&f, big_shape, dtype, "infer");
        size_t H = 50, last = (64 - 1) * 40 * H; /* the last step of y */
        size_t a = 0, b = 1;                     /* two batch rows that repeat different rows */
        while (get(&f, f.results.at[LB_Y], last + a * H) ==
               get(&f, f.results.at[LB_Y], last + b * H))
            b++;
        for (size_t j = 0; j < H; j++) {
            double kept = get(&f, f.results.at[LB_Y], last + a * H + j);
            set(&f, f.results.at[LB_Y], last + a * H + j,
                get(&f, f.results.at[LB_Y], last + b * H + j));
            set(&f, f.results.at[LB_Y], last + b * H + j, kept);
        }
        assert_false(check_of(&f).right);
        close_fixture(&f);
    }
}

TEST(a_value_past_a_ragged_end_is_found)
{
    struct fixture f;
    open_fixture(&f, "T6_B5_I4_H7/f32/train/ragged");
    const int32_t *lengths = lb_reference_inputs(f.reference, 0)->lengths;
    assert_true(lengths[4] < 6);
    set(&f, f.results.at[LB_DX], (5 * 5 + 4) * 4, 0.5); /* the last row's last step */
    struct lb_check check = check_of(&f);
    assert_false(check.right);
    assert_non_null(strstr(check.reason, "dx [t 5, b 4, column 0]"));
    close_fixture(&f);
}

TEST(reasons_name_layer_direction_gate_and_element)
{
    struct fixture f;
    open_fixture(&f, "T3_B2_I4_H3_L2_D2/f32/train");
    set(&f, f.results.gradients.dw_hh[3], 7 * 3 + 2, 100); /* layer 1, direction 1 */
    struct lb_check check = check_of(&f);
    assert_non_null(strstr(check.reason, "dw_hh of layer 1, direction 1, gate g [7, 2] is 100"));
    close_fixture(&f);
}

/* Opens a reference twice. */
static void visit(struct lb_reference_cache *cache, const char *text)
{
    struct lb_problem problem = trial_problem(text);
    struct lb_reference *reference;
    struct lb_check check;
    struct lb_error err = {""};
    assert_int_equal(lb_reference_open(cache, &problem, 0, 1, true, &reference, &err), LB_OK);
    lb_reference_close(reference);
    assert_int_equal(trial_check(&lb_impl_cpu_ref, &problem, cache, 1, &check, &err), LB_OK);
    assert_true(check.right); /* the cached results are correct */
}

TEST(the_cache_shares_results_between_batches_passes_and_visits)
{
    struct lb_reference_cache cache = {.max_bytes = (size_t)1 << 30};
    visit(&cache, "T64_B40_H50/f32/train");
    assert_int_equal(cache.computed, 1);
    visit(&cache, "T64_B60_H50/f32/train"); /* another batch */
    visit(&cache, "T64_B40_H50/f32/backward");
    visit(&cache, "T64_B60_H50/f32/infer");
    assert_int_equal(cache.computed, 1);
    visit(&cache, "T64_B40_H50/bf16/train");
    visit(&cache, "T64_B40_H50/f32/train/ragged");
    visit(&cache, "T63_B40_H50/f32/train");
    assert_int_equal(cache.computed, 4);
    struct lb_problem stream = trial_problem("T64_B40_H50/f32/infer");
    struct lb_reference *reference;
    assert_int_equal(lb_reference_open(&cache, &stream, 1, 1, true, &reference, NULL), LB_OK);
    lb_reference_close(reference);
    assert_int_equal(cache.computed, 5);
    lb_reference_cache_clear(&cache);
}

TEST(the_cache_computes_again_when_results_lack_a_backward)
{
    struct lb_reference_cache cache = {.max_bytes = (size_t)1 << 30};
    visit(&cache, "T4_B3_H5/f32/infer");
    visit(&cache, "T4_B3_H5/f32/train");
    assert_int_equal(cache.computed, 2);
    lb_reference_cache_clear(&cache);
}

TEST(a_full_cache_drops_the_oldest_unused_results)
{
    struct lb_reference_cache cache = {.max_bytes = 1}; /* nothing fits */
    struct lb_reference *held;
    struct lb_problem problem = trial_problem("T4_B3_H5/f32/infer");
    assert_int_equal(lb_reference_open(&cache, &problem, 0, 1, true, &held, NULL), LB_OK);
    visit(&cache, "T5_B3_H5/f32/infer");
    assert_int_equal(cache.computed, 3); /* both visits computed, because nothing is kept */
    visit(&cache, "T4_B3_H5/f32/infer");
    assert_int_equal(cache.computed, 3); /* in use: still there */
    lb_reference_close(held);
    visit(&cache, "T4_B3_H5/f32/infer");
    assert_int_equal(cache.computed, 5);
    lb_reference_cache_clear(&cache);
}

TEST(another_seed_gives_other_inputs)
{
    struct lb_problem problem = trial_problem("T4_B3_H5/f32/infer");
    struct lb_reference *one, *two;
    assert_int_equal(lb_reference_open(NULL, &problem, 0, 1, true, &one, NULL), LB_OK);
    assert_int_equal(lb_reference_open(NULL, &problem, 0, 2, true, &two, NULL), LB_OK);
    assert_memory_not_equal(lb_reference_inputs(one, 0)->at[LB_X],
                            lb_reference_inputs(two, 0)->at[LB_X], 16);
    lb_reference_close(two);
    lb_reference_close(one);
}

/* Whether results that are right for one input set are wrong for the other, in every dtype: what an
 * implementation remembers of one call is no answer for the next. */
TEST(results_of_one_input_set_are_wrong_for_the_other)
{
    static const char *const shapes[] = {"T6_B1_I4_H7", "T6_B5_I4_H7", "T64_B40_I50_H50"};
    static const char *const passes[] = {"infer", "train", "train/ragged"};
    for (int dtype = 0; dtype < LB_INT8; dtype++)
        for (size_t shape = 0; shape < 3; shape++)
            for (size_t pass = 0; pass < 3; pass++) {
                struct fixture f;
                struct lb_check check;
                open_shape(&f, shapes[shape], dtype, passes[pass]);
                assert_true(check_of(&f).right);
                lb_reference_check(f.reference, 1, &f.results, 0, &check);
                assert_false(check.right || check.coarse);
                close_fixture(&f);
            }
}

/* Results from an x that was rounded to TF32 are coarse, of every pass; with an error that no
 * rounding makes they are wrong. */
TEST(results_of_tf32_operands_under_f32_are_coarse)
{
    static const char *const passes[] = {"infer", "train", "train/ragged"};
    for (size_t pass = 0; pass < 3; pass++) {
        struct fixture f;
        open_shape(&f, big_shape, LB_F32, passes[pass]);
        uint32_t *x = lb_reference_inputs(f.reference, 0)->at[LB_X];
        for (size_t i = 0; i < f.n.x; i++)
            x[i] &= 0xffffe000u;
        run(&f.problem, lb_reference_inputs(f.reference, 0), &f.results);
        struct lb_check check = check_of(&f);
        assert_true(!check.right && check.coarse);
        assert_true(check.error_ratio > 100 && check.error_ratio > check.usual_error_ratio);
        set(&f, f.results.at[LB_Y], 7, get(&f, f.results.at[LB_Y], 7) + 0.05);
        check = check_of(&f);
        assert_false(check.right || check.coarse);
        close_fixture(&f);
    }
}

/* Runs the steps of a problem as calls of one step each, between which c is rounded to the dtype.
 */
static void run_steps(const struct fixture *f, const char *one_step)
{
    struct lb_problem p = trial_problem(one_step);
    struct lb_inputs in = *lb_reference_inputs(f->reference, 0);
    struct lb_results step = {0};
    size_t size = lb_dtype_size(p.dtype), y = (size_t)(p.batch * p.hidden) * size;
    size_t x = (size_t)(p.batch * p.input) * size;
    assert_int_equal(lb_results_create(&p, &step, NULL), LB_OK);
    for (int64_t t = 0; t < f->problem.seq_len; t++) {
        run(&p, &in, &step);
        memcpy((char *)f->results.at[LB_Y] + (size_t)t * y, step.at[LB_Y], y);
        memcpy(f->results.at[LB_HN], step.at[LB_HN], y);
        memcpy(f->results.at[LB_CN], step.at[LB_CN], y);
        in.at[LB_X] = (char *)in.at[LB_X] + x;
        in.at[LB_H0] = f->results.at[LB_HN];
        in.at[LB_C0] = f->results.at[LB_CN];
    }
    lb_results_destroy(&step);
}

/* In f16 alone: in bf16 such errors are as large as those of a fault in a row. Of an implementation
 * that says how it rounds they are right in both. */
TEST(results_of_a_cell_state_in_f16_are_coarse)
{
    static const char *const dtypes[] = {"f16", "bf16"};
    static const int lengths[] = {600, 400};
    for (int i = 0; i < 2; i++) {
        char all[64], one[64];
        struct fixture f;
        snprintf(all, sizeof(all), "T%d_B4_I16_H128/%s/infer", lengths[i], dtypes[i]);
        snprintf(one, sizeof(one), "T1_B4_I16_H128/%s/infer", dtypes[i]);
        open_fixture(&f, all);
        run_steps(&f, one);
        struct lb_check check = check_of(&f);
        assert_true(!check.right && check.coarse == (i == 0));
        lb_reference_check(f.reference, 0, &f.results, LB_ROUNDS_OPERATIONS, &check);
        assert_true(check.right && check.error_ratio < check.usual_error_ratio);
        set(&f, f.results.at[LB_Y], 7, get(&f, f.results.at[LB_Y], 7) + 1);
        check = check_of(&f);
        assert_false(check.right || check.coarse);
        set(&f, f.results.at[LB_Y], 7, get(&f, f.results.at[LB_Y], 7) + 3);
        lb_reference_check(f.reference, 0, &f.results, LB_ROUNDS_OPERATIONS, &check);
        assert_false(check.right || check.coarse);
        close_fixture(&f);
    }
}

/* The rounded evaluation must differ in the gradients too: outputs alone would reveal nothing of an
 * implementation that remembers its weight gradients. */
TEST(weight_gradients_of_the_input_sets_differ)
{
    static const char *const shapes[] = {"T6_B1_I4_H7", "T6_B5_I4_H7", "T64_B40_I50_H50"};
    for (size_t shape = 0; shape < 3; shape++) {
        struct lb_results other = {0};
        struct lb_check check;
        struct fixture f;
        open_shape(&f, shapes[shape], LB_F32, "train");
        assert_int_equal(lb_results_create(&f.problem, &other, NULL), LB_OK);
        run(&f.problem, lb_reference_inputs(f.reference, 1), &other);
        lb_reference_check(f.reference, 1, &other, 0, &check);
        assert_true(check.right);
        memcpy(other.gradients.dw_ih[0], f.results.gradients.dw_ih[0], f.n.weights * sizeof(float));
        lb_reference_check(f.reference, 1, &other, 0, &check);
        assert_true(!check.right && check.in_gradient);
        assert_non_null(strstr(check.reason, "dw_ih"));
        lb_results_destroy(&other);
        close_fixture(&f);
    }
}

TEST(lengths_that_were_written_to_are_found)
{
    struct lb_reference *reference;
    struct lb_problem problem = trial_problem("T4_B3_H5/f32/infer/ragged");
    assert_int_equal(lb_reference_open(NULL, &problem, 0, 1, true, &reference, NULL), LB_OK);
    int32_t *lengths = (int32_t *)lb_reference_inputs(reference, 0)->lengths;
    assert_true(lb_reference_lengths_intact(reference));
    lengths[2]++;
    assert_false(lb_reference_lengths_intact(reference));
    lengths[2]--;
    assert_true(lb_reference_lengths_intact(reference));
    lb_reference_close(reference);
}

TEST(the_hash_changes_with_any_bit_of_any_tensor)
{
    struct fixture f;
    struct tensor tensors[10];
    open_fixture(&f, "T3_B2_I3_H3/bf16/train");
    uint64_t hash = lb_results_hash(&f.results);
    size_t count = tensors_of(&f, tensors);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < tensors[i].count; k++)
            for (int bit = 0; bit < 16; bit++) {
                uint16_t *element = (uint16_t *)tensors[i].at + k;
                *element = (uint16_t)(*element ^ 1U << bit);
                assert_true(lb_results_hash(&f.results) != hash);
                *element = (uint16_t)(*element ^ 1U << bit);
            }
    assert_true(lb_results_hash(&f.results) == hash);
    close_fixture(&f);
}

/* Rounds upwards and, where the machine can, flushes subnormal numbers to zero, as an
 * implementation may leave it. */
static void bend_arithmetic(void)
{
    fesetround(FE_UPWARD);
#ifdef __SSE__
    _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

TEST(gradients_of_a_batch_have_each_row_as_often_as_it_counts)
{
    enum { R = 4 };
    static const int32_t alone[R * R] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
    static const int32_t counts[3 * R] = {2, 1, 0, 1, 5, 1, 3, 1, 1, 1, 1, 1};
    struct lb_problem problem = trial_problem("T5_B4_I2_H3_L2_D2/f64/train");
    struct lb_expected *expected;
    assert_int_equal(lb_expected_create(&problem, 0, 1, R, NULL, 0, &expected, NULL), LB_OK);
    size_t n = lb_gradient_offset(&problem, lb_layer_dir_count(&problem));
    double *of_row = malloc((R + 1) * n * sizeof(double)), *dw = malloc(4 * n * sizeof(double));
    assert_true(of_row && dw);
    assert_int_equal(lb_expected_gradients(expected, alone, R, of_row, NULL), LB_OK);
    assert_int_equal(lb_expected_gradients(expected, counts, 3, dw, NULL), LB_OK);
    for (size_t i = 0; i < 4 * n; i++) { /* the fourth has each row once */
        double sum = 0;
        for (size_t r = 0; r < R; r++)
            sum += (i < 3 * n ? counts[i / n * R + r] : 1) * of_row[r * n + i % n];
        assert_true(fabs(dw[i] - sum) < 1e-13 * (1 + fabs(sum)));
    }
    free(of_row);
    free(dw);
    lb_expected_destroy(expected);
}

TEST(tolerances_do_not_depend_on_the_rounding_mode_found)
{
    for (int dtype = 0; dtype < LB_INT8; dtype++) {
        struct lb_problem problem = trial_problem("T9_B3_I4_H8/f32/train");
        struct lb_expected *fresh, *bent;
        problem.dtype = (enum lb_dtype)dtype;
        assert_int_equal(lb_expected_create(&problem, 0, 1, 3, NULL, 0, &fresh, NULL), LB_OK);
        bend_arithmetic();
        enum lb_status st = lb_expected_create(&problem, 0, 1, 3, NULL, 0, &bent, NULL);
        int rounding = fegetround();
#ifdef __SSE__
        unsigned flushes = _mm_getcsr() & 0x8040;
        _mm_setcsr(0x1f80);
        assert_int_equal(flushes, 0x8040);
#endif
        fesetenv(FE_DFL_ENV);
        assert_int_equal(rounding, FE_UPWARD); /* as it was found */
        assert_int_equal(st, LB_OK);
        assert_memory_equal(fresh->deviations[LB_PLAIN], bent->deviations[LB_PLAIN],
                            lb_slice_count(&problem) * sizeof(struct lb_deviation));
        lb_expected_destroy(bent);
        lb_expected_destroy(fresh);
    }
}

/* Inputs from a file: set 0 has the file's rows in their order and begins with zeros, set 1
 * differs, and what does not fit is refused. */
#include "base/given_files.h"
#include "model/tensor_files.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

enum { T = 5, B = 300, I = 3, H = 16 };

static double x[T * B * I];

/* The process reads the file once, as a worker does. */
static int give_inputs(void **state)
{
    if (scratch_setup(state) != 0)
        return -1;
    for (size_t i = 0; i < T * B * I; i++)
        x[i] = (double)i * 60 / 7;
    const char *path = scratch_path("x.npy");
    lb_give_files(&(struct lb_given_files){.inputs = path});
    return lb_sequence_file_write(path, T, B, I, x, NULL) == LB_OK ? 0 : -1;
}

static struct lb_reference *open_inputs(struct lb_problem problem, bool with_oracle)
{
    struct lb_reference *reference;
    assert_int_equal(lb_reference_open(NULL, &problem, 0, 1, with_oracle, &reference, NULL), LB_OK);
    return reference;
}

TEST(set_0_is_the_file)
{
    /* The second is so large that drawn rows would repeat. */
    static const char *const texts[] = {"T5_B300_I3_H16/f64/infer", "T5_B300_I3_H16_L9/f64/train",
                                        "T5_B300_I3_H16/f64/infer/ragged"};
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        struct lb_reference *reference = open_inputs(trial_problem(texts[k]), false);
        const struct lb_inputs *first = lb_reference_inputs(reference, 0);
        const struct lb_inputs *second = lb_reference_inputs(reference, 1);
        const double *h0 = first->at[LB_H0], *c0 = first->at[LB_C0];
        assert_memory_equal(first->at[LB_X], x, sizeof(x));
        for (size_t i = 0; i < B * H; i++)
            assert_true(h0[i] == 0 && c0[i] == 0);
        assert_memory_not_equal(second->at[LB_X], x, sizeof(x));
        lb_reference_close(reference);
    }
}

TEST(results_of_a_file_are_not_found_without_it)
{
    struct lb_reference_cache cache = {.max_bytes = SIZE_MAX};
    struct lb_problem problem = trial_problem("T5_B300_I3_H16/f64/infer");
    struct lb_reference *reference;
    struct lb_given_files none = {0}, given = {.inputs = scratch_path("x.npy")};
    for (int i = 0; i < 2; i++) {
        lb_give_files(i == 0 ? &given : &none);
        assert_int_equal(lb_reference_open(&cache, &problem, 0, 1, true, &reference, NULL), LB_OK);
        bool same = memcmp(lb_reference_inputs(reference, 0)->at[LB_X], x, sizeof(x)) == 0;
        assert_true(same == (i == 0));
        lb_reference_close(reference);
    }
    lb_give_files(&given);
    lb_reference_cache_clear(&cache);
}

TEST(values_are_rounded_to_the_dtype)
{
    struct lb_problem problem = trial_problem("T5_B300_I3_H16/f32/infer");
    struct lb_reference *reference = open_inputs(problem, false);
    const float *rounded = lb_reference_inputs(reference, 0)->at[LB_X];
    for (size_t i = 0; i < T * B * I; i++)
        assert_true(rounded[i] == (float)x[i]);
    lb_reference_close(reference);
}

/* Of relu, cn of the last rows exceeds what f16 holds. */
TEST(no_finite_result_is_right_where_the_right_one_overflows)
{
    struct lb_problem problem = trial_problem("T5_B300_I3_H64/f16/infer/act-relu");
    struct lb_reference *reference = open_inputs(problem, true);
    struct lb_results zeros;
    struct lb_check check;
    assert_int_equal(lb_results_create(&problem, &zeros, NULL), LB_OK);
    for (int t = LB_Y; t <= LB_CN; t++)
        memset(zeros.at[t], 0, zeros.counts[t] * zeros.element_bytes);
    lb_reference_check(reference, 0, &zeros, 0, &check);
    assert_true(!check.right && strstr(check.reason, "allowed 0"));
    lb_results_destroy(&zeros);
    lb_reference_close(reference);
}

TEST(a_problem_of_another_size_is_refused)
{
    static const char *const texts[] = {"T6_B300_I3_H16/f64/infer", "T5_B299_I3_H16/f64/infer",
                                        "T5_B300_I4_H16/f64/infer"};
    for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]); k++) {
        struct lb_problem problem = trial_problem(texts[k]);
        struct lb_reference *reference;
        struct lb_error err = {""};
        assert_int_equal(lb_reference_open(NULL, &problem, 0, 1, true, &reference, &err),
                         LB_INVALID);
        assert_non_null(strstr(err.text, "the file of inputs"));
    }
}

TEST_GROUP(give_inputs, scratch_teardown)

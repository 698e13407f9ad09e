/* Loss scaling: what counts as an overflow, and the schedule of a dynamic scale. */
#include "reference/loss_scale.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

TEST(each_gradient_that_is_not_finite_counts)
{
    static const char *const texts[] = {"T3_B2_I5_H4/f16/train", "T3_B2_I5_H4/bf16/train",
                                        "T3_B2_I5_H4/f32/train", "T3_B2_I5_H4/f64/train"};
    const double values[] = {0, 1, -65504, NAN, INFINITY, -INFINITY, 0x1p-24};
    for (int i = 0; i < 4; i++) {
        const struct lb_problem problem = trial_problem(texts[i]), *p = &problem;
        struct lb_results results;
        char text[128];
        assert_int_equal(lb_results_create(p, &results, NULL), LB_OK);
        size_t all = results.weight_count;
        for (int t = LB_DX; t <= LB_DC0; t++)
            all += results.counts[t];
        assert_int_equal(lb_gradients_non_finite(p, &results), all); /* the poison is NaN */
        assert_int_equal(lb_weight_gradients_non_finite(p, &results), results.weight_count);
        for (int t = LB_DX; t <= LB_DC0; t++)
            memset(results.at[t], 0, results.counts[t] * results.element_bytes);
        memset(results.gradients.dw_ih[0], 0, results.weight_count * results.element_bytes);
        assert_int_equal(lb_gradients_non_finite(p, &results), 0);
        assert_false(lb_loss_overflow(p, 1024, &results, text, sizeof(text)));
        lb_store(p->dtype, results.at[LB_DX], values, 7);
        lb_store(p->dtype, results.gradients.db_hh[0], values, 7);
        assert_int_equal(lb_gradients_non_finite(p, &results), 6);
        assert_int_equal(lb_weight_gradients_non_finite(p, &results), 3);
        assert_true(lb_loss_overflow(p, 1024, &results, text, sizeof(text)));
        assert_string_equal(text,
                            "gradients overflow at loss scale 1024: 6 of 222 are infinite or NaN");
        assert_false(lb_loss_overflow(p, 1, &results, text, sizeof(text))); /* none is scaled */
        lb_results_destroy(&results);
    }
}

/* h of the cell projection is smaller than c, and so is its gradient. */
TEST(the_gradients_of_a_projection_count_with_their_own_sizes)
{
    struct lb_problem p = trial_problem("T3_B2_I5_H4_P3/f16/train");
    struct lb_results results;
    char text[128];
    assert_int_equal(lb_results_create(&p, &results, NULL), LB_OK);
    assert_true(lb_loss_overflow(&p, 1024, &results, text, sizeof(text)));
    /* dx, dh0, dc0, and 16 * (5 + 3 + 2) + 3 * 4 weights: all are NaN */
    assert_string_equal(text,
                        "gradients overflow at loss scale 1024: 216 of 216 are infinite or NaN");
    lb_results_destroy(&results);
}

/* Steps that overflow above a scale, of each input set. */
struct made_up {
    double limits[LB_TIMED_SETS];
    int trials;
};

static enum lb_status try_made_up(void *user, double scale, int set, bool *overflow,
                                  struct lb_error *err)
{
    struct made_up *steps = user;
    (void)err;
    steps->trials++;
    *overflow = scale > steps->limits[set];
    return LB_OK;
}

TEST(the_schedule_says_scale_and_share_of_skipped_steps)
{
    static const struct {
        double start, limits[LB_TIMED_SETS], scale, skipped;
        int trials; /* at most one per scale and set */
    } runs[] = {
        /* 4 steps down; from then on 2000 good steps and one too far, four times. */
        {65536, {4096, 4096}, 4096, 4 + 4, 5 + 1 + 1},
        {4096, {4096, 4096}, 4096, 4, 4},
        /* It doubles after steps 2000, 4000, ..., 10000. */
        {1, {1e30, 1e30}, 32, 0, 12},
        /* Good steps of the one set do not add up where the other's next step overflows. */
        {8192, {8192, 4096}, 4096, 5, 4},
        /* Doubled by the very last step, which no other step has tried: its own check is not a
         * step. */
        {1, {16, 16}, 16, 0, 11},
        /* It never fits: the schedule ends at the last scale that is not below 1. */
        {1024, {0, 0}, 1, 11, 11},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
        struct made_up steps = {.limits = {runs[i].limits[0], runs[i].limits[1]}};
        struct lb_loss_schedule schedule;
        assert_int_equal(lb_loss_schedule_run(runs[i].start, try_made_up, &steps, &schedule, NULL),
                         LB_OK);
        double all = runs[i].limits[0] > 0 ? LB_LOSS_SCALE_STEPS : runs[i].skipped;
        if (schedule.scale != runs[i].scale || schedule.skipped != runs[i].skipped / all)
            fail_msg("run %zu: scale %g, skipped %.17g of %g", i, schedule.scale,
                     schedule.skipped * all, all);
        assert_in_range(steps.trials, 1, runs[i].trials);
    }
}

static enum lb_status fail_at_once(void *user, double scale, int set, bool *overflow,
                                   struct lb_error *err)
{
    (void)user, (void)scale, (void)set, (void)overflow;
    return lb_fail(err, LB_FAILED, "made up");
}

TEST(a_step_that_fails_ends_the_schedule)
{
    struct lb_loss_schedule schedule;
    struct lb_error err = {""};
    assert_int_equal(lb_loss_schedule_run(1024, fail_at_once, NULL, &schedule, &err), LB_FAILED);
    assert_string_equal(err.text, "made up");
}

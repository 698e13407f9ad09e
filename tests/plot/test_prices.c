/* What leaving the standard cell costs, and what leaving f32 gains: only problems that differ in
 * that alone are compared. */
#include "plot/grouped_run.h"
#include "tests/helpers/synthetic_run.h"
#include "tests/helpers/test.h"

static void add(struct lb_run *run, const char *text, double median_ns, double error)
{
    struct lb_row row = synthetic_row(text, LB_VERDICT_OK, median_ns, 5, 10);
    row.median_ns = median_ns;
    row.err_norm = error;
    synthetic_add(run, row);
}

TEST(prices_are_those_of_the_same_problem_and_have_a_sentence)
{
    struct lb_run run = synthetic_empty();
    add(&run, "cpu_ref/T8_B1_I16_H16/f32/train", 1000, 0);
    add(&run, "cpu_ref/T8_B1_I16_H16/f32/train/cell-peephole", 1100, 0);
    add(&run, "cpu_ref/T8_B4_I16_H16/f32/train", 2000, 0);
    add(&run, "cpu_ref/T8_B4_I16_H16/f32/train/cell-peephole", 2662, 0);
    add(&run, "cpu_ref/T8_B1_I16_H16_P4/f32/train", 500, 0);
    add(&run, "cpu_ref/T8_B1_I16_H16/f32/infer/cell-peephole", 9000, 0); /* no standard cell, */
    add(&run, "onednn/T8_B1_I16_H16/f32/train/cell-peephole", 9000, 0);  /* here neither, */
    add(&run, "cpu_ref/T8_B1_I16_H16/f32/train/cell-peephole/th2", 9000, 0);
    add(&run, "cpu_ref/T8_B1_I16_H16/bf16/train/cell-peephole", 9000, 0);
    synthetic_add(&run, synthetic_row("cpu_ref/T8_B1_I16_H16/bf16/train", LB_VERDICT_WRONG, NAN, 0,
                                      0)); /* and here none with a time */
    size_t count;
    struct lb_price *prices = lb_prices(&run, NULL, &count);
    assert_int_equal(count, 2);
    assert_int_equal(prices[0].cell, LB_CELL_PROJECTION);
    assert_int_equal(prices[0].problems, 1);
    assert_true(fabs(prices[0].mean - 0.5) < 1e-12);
    assert_int_equal(prices[1].cell, LB_CELL_PEEPHOLE);
    assert_int_equal(prices[1].problems, 2);
    assert_true(fabs(prices[1].mean - sqrt(1.1 * 1.331)) < 1e-12);
    assert_true(fabs(prices[1].least - 1.1) < 1e-12);
    assert_true(fabs(prices[1].most - 1.331) < 1e-12);
    assert_string_equal(prices[0].text, "projection takes 0.5 times as long as the standard cell "
                                        "on cpu_ref, train (1 problem)");
    assert_string_equal(prices[1].text, "peephole takes 1.21 times as long as the standard cell on "
                                        "cpu_ref, train (1.1 to 1.33 in 2 problems)");
    free(prices);
    lb_run_free(&run);
}

TEST(the_gain_of_a_precision_is_told_with_its_error)
{
    struct lb_run run = synthetic_empty();
    size_t count;
    add(&run, "cpu_ref/T8_B1_I16_H16/f32/infer", 1000, 1e-7);
    add(&run, "cpu_ref/T8_B1_I16_H16/int8/infer", 250, 0.0125);
    add(&run, "cpu_ref/T8_B4_I16_H16/f32/infer", 1000, 3e-7);
    add(&run, "cpu_ref/T8_B4_I16_H16/int8/infer", 1000, 0.01);
    add(&run, "cpu_ref/T8_B4_I16_H16/bf16/infer", 500, 2e-3);
    add(&run, "cpu_ref/T8_B4_I16_H16/f64/infer", 2000, 1e-16); /* gains nothing, */
    add(&run, "cpu_ref/T8_B9_I16_H16/bf16/infer", 500, 2e-3);  /* lacks f32 */
    struct lb_price *prices = lb_prices(&run, NULL, &count);
    assert_int_equal(count, 2);
    assert_string_equal(prices[0].text, "bf16 is 2 times as fast as f32 on cpu_ref, infer "
                                        "(1 problem), with an error of 0.002 where f32 has 3e-07");
    assert_string_equal(prices[1].text,
                        "int8 is 2 times as fast as f32 on cpu_ref, infer (1 to 4 in 2 problems), "
                        "with an error of at most 0.013 where f32 has 3e-07");
    free(prices);
    prices = lb_prices(&run, &run.rows[0].c.problem, &count);
    assert_int_equal(count, 1);
    assert_string_equal(prices[0].text, "int8 is 4 times as fast as f32 on cpu_ref, infer "
                                        "(1 problem), with an error of 0.013 where f32 has 1e-07");
    free(prices);
    lb_run_free(&run);
}

/* Runs every implementation that needs no device with every dtype and pass and many unusual
 * shapes. Each case that an implementation claims to support must be computed correctly. */
#include "base/random.h"
#include "model/case.h"
#include "model/registry.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

static const char *const shapes[] = {
    "T1_B1_I1_H1",     "T1_B3_I17_H3",        "T3_B1_I1_H17",        "T17_B3_I3_H1",
    "T3_B17_I17_H17",  "T17_B17_I1_H3",       "T5_B8_I16_H16",       "T3_B3_I3_H3_L3",
    "T3_B3_I3_H3_D2",  "T5_B17_I3_H17_L2_D2", "T17_B3_I17_H3_L3_D2", "T1_B1_I3_H1_L3_D2",
    "T33_B2_I7_H65",   "T3_B3_I17_H17_L2_D2",
#ifndef __SANITIZE_ADDRESS__ /* which takes minutes for it, and sees such batches in cpu_simd */
    "T40_B20_I64_H64",       /* this batch repeats a few distinct rows */
#endif
};

/* The properties of a problem besides shape, dtype and pass. */
static const struct lb_problem kinds[] = {
    {.math = LB_IEEE},
    {.math = LB_IEEE, .ragged = true},
    {.math = LB_IEEE, .act = LB_ACT_RELU},
    {.math = LB_TF32},
    {.math = LB_HALF},
    {.cell = LB_CELL_LAYERNORM},
    {.cell = LB_CELL_LAYERNORM, .ragged = true},
    {.cell = LB_CELL_RECURRENT_DROPOUT},
    {.cell = LB_CELL_RECURRENT_DROPOUT, .ragged = true},
    {.cell = LB_CELL_PROJECTION},
    {.cell = LB_CELL_PROJECTION, .ragged = true},
    {.cell = LB_CELL_PEEPHOLE},
    {.cell = LB_CELL_PEEPHOLE, .ragged = true},
    {.cell = LB_CELL_RESIDUAL},
    {.cell = LB_CELL_RESIDUAL, .ragged = true},
};

/* Gives the problem a cell, with a P for the projection. False where the cell does not go with it.
 */
static bool set_cell(struct lb_problem *problem, uint8_t cell)
{
    problem->cell = cell;
    problem->projection = cell == LB_CELL_PROJECTION ? (int32_t)(problem->hidden + 1) / 2 : 0;
    struct lb_case c = lb_case_defaults();
    c.problem = *problem;
    return lb_case_check(&c, NULL) == LB_OK;
}

struct tally {
    int right, skipped, wrong;
};

static void try_problem(const struct lb_impl *impl, const struct lb_problem *problem,
                        struct lb_reference_cache *cache, struct tally *tally)
{
    struct lb_check check = {0};
    struct lb_error err = {""};
    enum lb_status st = trial_check(impl, problem, cache, 3, &check, &err);
    if (st == LB_UNSUPPORTED) {
        assert_true(err.text[0] != '\0'); /* a reason is always given */
        tally->skipped++;
    } else if (st != LB_OK || !check.right) {
        print_error("%s/%s: %s\n", impl->name, trial_name(problem),
                    st != LB_OK ? err.text : check.reason);
        tally->wrong++;
    } else {
        tally->right++;
    }
}

enum { IMPLS_MAX = 32 };

static bool runs_here(const struct lb_registration *row)
{
    return row->impl && row->impl->memory == LB_HOST;
}

/* Tries a problem with each implementation that has fewer than `enough` right results, so that the
 * oracle runs once for all. False when none is left. */
static bool try_impls(const struct lb_problem *problem, int enough,
                      struct lb_reference_cache *cache, struct tally tallies[IMPLS_MAX])
{
    bool tried = false;
    for (size_t i = 0; lb_impl_table[i].name; i++) {
        assert_true(i < IMPLS_MAX);
        if (!runs_here(&lb_impl_table[i]) || tallies[i].right == enough)
            continue;
        try_problem(lb_impl_table[i].impl, problem, cache, &tallies[i]);
        tried = true;
    }
    return tried;
}

/* Fails unless each implementation has that many right results at least, and none that is wrong. */
static void check_tallies(const struct tally tallies[IMPLS_MAX], int least)
{
    int wrong = 0;
    for (size_t i = 0; lb_impl_table[i].name; i++) {
        const struct lb_registration *row = &lb_impl_table[i];
        const struct tally *tally = &tallies[i];
        if (!runs_here(row)) {
            print_message("%s: skipped: %s\n", row->name,
                          row->impl ? "needs a device" : row->absent);
            continue;
        }
        print_message("%s: %d right, %d wrong, %d skipped\n", row->name, tally->right, tally->wrong,
                      tally->skipped);
        assert_true(tally->right >= least);
        wrong += tally->wrong;
    }
    assert_int_equal(wrong, 0);
}

/* Tries all dtypes and passes of one shape and kind. */
static void try_shape(const char *shape, const struct lb_problem *kind,
                      struct lb_reference_cache *cache, struct tally tallies[IMPLS_MAX])
{
    /* The passes with a backward part come first, so that their cached expected results serve
     * all passes. */
    static const enum lb_pass passes[] = {LB_TRAIN, LB_BACKWARD, LB_FORWARD, LB_INFER};
    for (int dtype = 0; dtype < LB_DTYPE_COUNT; dtype++) {
        struct lb_problem problem = trial_problem(shape);
        problem.dtype = (enum lb_dtype)dtype;
        problem.math = kind->math;
        problem.act = kind->act;
        problem.ragged = kind->ragged;
        if (!set_cell(&problem, kind->cell)) /* other combinations don't exist */
            continue;
        for (size_t i = 0; i < LB_PASS_COUNT; i++) {
            problem.pass = passes[i];
            try_impls(&problem, -1, cache, tallies);
        }
    }
}

TEST(every_implementation_is_right_on_what_it_supports)
{
    static struct tally tallies[IMPLS_MAX];
    struct lb_reference_cache cache = {.max_bytes = (size_t)1 << 28};
    for (size_t shape = 0; shape < sizeof(shapes) / sizeof(shapes[0]); shape++)
        for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++)
            try_shape(shapes[shape], &kinds[kind], &cache, tallies);
    lb_reference_cache_clear(&cache);
    check_tallies(tallies, 1);
}

TEST(cpu_ref_supports_every_dtype_activation_and_cell)
{
    struct lb_exec_config config = {.threads = 1};
    struct lb_problem problem = trial_problem("T3_B3_I3_H3_L3_D2/train/ragged/act-relu");
    for (int dtype = 0; dtype < LB_INT8; dtype++) {
        problem.dtype = (enum lb_dtype)dtype;
        assert_int_equal(lb_impl_cpu_ref.supports(&problem, &config, NULL), LB_OK);
    }
    problem = trial_problem("T3_B3_I3_H3_L3_D2/int8/infer/ragged");
    assert_int_equal(lb_impl_supports(&lb_impl_cpu_ref, &problem, &config, NULL), LB_OK);
    problem.pass = LB_TRAIN;
    assert_int_equal(lb_impl_supports(&lb_impl_cpu_ref, &problem, &config, NULL), LB_UNSUPPORTED);
    for (uint8_t cell = 0; cell < LB_CELL_COUNT; cell++) {
        problem = trial_problem("T3_B3_I3_H3_L3_D2/train/ragged");
        assert_true(set_cell(&problem, cell));
        assert_int_equal(lb_impl_supports(&lb_impl_cpu_ref, &problem, &config, NULL), LB_OK);
    }
}

/* Draws a small problem of any kind. */
static struct lb_problem random_problem(uint64_t seed)
{
    static const uint64_t bounds[11] = {
        20, 20, 20, 20, 3, 2, LB_DTYPE_COUNT, 4, 2, 4, 2 * LB_CELL_COUNT};
    uint64_t draw[11];
    for (uint64_t i = 0; i < 11; i++)
        draw[i] = lb_random_below(seed, 1, i, bounds[i]);
    struct lb_problem problem = {.seq_len = 1 + (int64_t)draw[0],
                                 .batch = 1 + (int64_t)draw[1],
                                 .input = 1 + (int64_t)draw[2],
                                 .hidden = 1 + (int64_t)draw[3],
                                 .layers = 1 + (int64_t)draw[4],
                                 .directions = 1 + (int64_t)draw[5],
                                 .dtype = (enum lb_dtype)draw[6],
                                 .pass = (enum lb_pass)draw[7],
                                 .ragged = draw[8] == 1,
                                 .act = draw[9] == 0 ? LB_ACT_RELU : LB_ACT_TANH};
    if (!set_cell(&problem, draw[10] < LB_CELL_COUNT ? (uint8_t)draw[10] : LB_CELL_STANDARD))
        set_cell(&problem, LB_CELL_STANDARD);
    return problem;
}

#ifdef __SANITIZE_ADDRESS__ /* which looks for wrong accesses, not for wrong results */
enum { PROBLEMS = 200 };
#else
enum { PROBLEMS = 2000 };
#endif

TEST(no_false_alarm_in_random_problems)
{
    enum { DRAWS = 100 * PROBLEMS /* an implementation may support few problems */ };
    static struct tally tallies[IMPLS_MAX];
    struct lb_reference_cache cache = {.max_bytes = (size_t)1 << 24};
    bool left = true;
    for (uint64_t seed = 0; left && seed < DRAWS; seed++) {
        struct lb_problem problem = random_problem(seed);
        left = try_impls(&problem, PROBLEMS, &cache, tallies);
    }
    lb_reference_cache_clear(&cache);
    check_tallies(tallies, PROBLEMS);
}

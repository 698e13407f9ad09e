/* Tests of the path from times to verdicts: certainty and size, the known spread, the correction
 * for many cases. */
#include "stats/comparison.h"
#include "tests/helpers/test.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct lb_judgement defaults = {.margin = 0.02, .level = 0.01};

/* A significant but small shift, and a large but uncertain one, are not enough for a verdict. Each
 * side has n units, evenly spaced over `spread`. */
TEST(verdict_needs_both_certainty_and_size)
{
    static const char chance[] = "the estimate is beyond the margin, but chance can't be ruled out",
                      perhaps[] = "the times differ, but perhaps by less than the margin",
                      wide[] = "the interval reaches beyond the margin", few[] = "too few to tell";
    static const struct {
        size_t n;
        double spread, shift, margin;
        enum lb_outcome outcome;
        const char *reason;
    } known[] = {
        {15, 0.001, 0.019, 0.02, LB_OUTCOME_SAME, ""},
        {15, 0.010, 0.030, 0.02, LB_OUTCOME_SLOWER, ""},
        {15, 0.010, -0.030, 0.02, LB_OUTCOME_FASTER, ""},
        {15, 0.010, 0.019, 0.02, LB_OUTCOME_UNDECIDED, perhaps},
        {15, 0.200, 0.030, 0.02, LB_OUTCOME_UNDECIDED, chance},
        {15, 0.200, 0.000, 0.02, LB_OUTCOME_UNDECIDED, wide},
        {15, 0.200, 0.000, 0.20, LB_OUTCOME_SAME, ""},
        /* The 90 % interval of two one-sided tests ends at 1.7 %, that of 95 % at 2.3 %. */
        {15, 0.080, 0.000, 0.02, LB_OUTCOME_SAME, ""},
        /* 4 against 4 can't reach 1 %, however far apart. */
        {4, 0.010, 0.500, 0.02, LB_OUTCOME_UNDECIDED, chance},
        {3, 0.010, 0.500, 0.02, LB_OUTCOME_UNDECIDED, few},
        {1, 0, 0.500, 0.02, LB_OUTCOME_UNDECIDED, few},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        double times[2][15];
        size_t n = known[i].n;
        struct lb_contrast c = {.base = times[0], .now = times[1], .base_count = n, .now_count = n};
        const struct lb_judgement judgement = {known[i].margin, 0.01};
        for (size_t s = 0; s < 2; s++)
            for (size_t u = 0; u < n; u++)
                times[s][u] = known[i].spread * ((double)u / (double)n + 1e-3 * (double)s) +
                              known[i].shift * (double)s; /* nothing ties */
        lb_judge_cases(&c, 1, &judgement);
        assert_int_equal(c.outcome, known[i].outcome);
        assert_string_equal(c.reason, known[i].reason);
        assert_true(fabs(c.shift.estimate - known[i].shift) < 3e-4);
        assert_int_equal(c.tested, n >= LB_SHIFT_MIN_UNITS);
    }
}

/* Units that took turns are compared in pairs: what both share cancels. */
TEST(pairs_cancel_what_they_share)
{
    double base[8], now[8];
    struct lb_contrast c = {.base = base, .now = now, .base_count = 8, .now_count = 8};
    for (int i = 0; i < 8; i++) {
        base[i] = 0.1 * i;
        now[i] = base[i] + 0.03 + 1e-4 * i;
    }
    lb_judge_cases(&c, 1, &defaults);
    assert_int_equal(c.outcome, LB_OUTCOME_UNDECIDED);
    c.paired = true;
    lb_judge_cases(&c, 1, &defaults);
    assert_int_equal(c.outcome, LB_OUTCOME_SLOWER);
    c.now_count = 7; /* these form no pairs */
    lb_judge_cases(&c, 1, &defaults);
    assert_false(c.tested);
}

/* A time that is not known is no evidence. */
TEST(unknown_shift_shows_nothing)
{
    const double base = 0, now = NAN;
    struct lb_contrast c = {.base = &base, .now = &now, .base_count = 1, .now_count = 1};
    c.spread = (struct lb_spread){0.01, 5};
    lb_judge_cases(&c, 1, &defaults);
    assert_true(c.shift.p == 1 && c.adjusted_p == 1);
    assert_int_equal(c.outcome, LB_OUTCOME_UNDECIDED);
}

/* Values of tables: Abramowitz & Stegun, 26.10. One unit against one with a standard deviation of
 * sqrt(1/2) has an error of 1. */
TEST(known_spread_is_held_against_students_distribution)
{
    static const struct {
        double p, t;
        size_t df;
    } table[] = {{0.05, 12.706, 1}, {0.05, 4.303, 2},  {0.1, 2.353, 3},
                 {0.01, 4.032, 5},  {0.05, 2.228, 10}, {0.05, 2.021, 40}};
    for (size_t i = 0; i < COUNT(table); i++) {
        const double base[] = {0, 0}, now = -table[i].t;
        struct lb_contrast c = {.base = base, .now = &now, .base_count = 1, .now_count = 1};
        c.spread = (struct lb_spread){sqrt(0.5), table[i].df};
        lb_judge_cases(&c, 1, &defaults);
        assert_true(c.tested && c.shift.estimate == now);
        assert_true(fabs(c.shift.p - table[i].p) < 1e-4);
        double half = c.shift.hi95 - now;
        if (table[i].p == 0.05)
            assert_true(fabs(half - table[i].t) < 6e-4 && fabs(now - c.shift.lo95 - half) < 1e-9);
        if (table[i].p == 0.1)
            assert_true(fabs(c.shift.hi90 - now - table[i].t) < 6e-4);
        c.base_count = 2; /* more units lower the error */
        lb_judge_cases(&c, 1, &defaults);
        assert_true(fabs(c.shift.hi95 - now - half * sqrt(0.75)) < 1e-9);
    }
}

/* The fifteen p-values of Benjamini & Hochberg (1995), section 3.2, where four are rejected at 5 %;
 * SciPy's false_discovery_control has the others. They are in another order than the paper's,
 * because the order is no matter. With one degree of freedom, p is that of tan(pi (1 - p) / 2). A
 * case of too few units counts for nothing. */
TEST(p_values_are_corrected_as_in_the_paper)
{
    static const double p[] = {0.0459, 0.0001, 0.3240, 0.0004, 0.7590, 0.0019, 0.0095, 0.0201,
                               0.5719, 0.0278, 0.0298, 0.0344, 1.0,    0.4262, 0.6528};
    static const double adjusted[] = {0.0765,     0.0015,   0.486,  0.003,      0.81321429,
                                      0.0095,     0.035625, 0.0603, 0.714875,   0.06385714,
                                      0.06385714, 0.0645,   1,      0.58118182, 0.75323077};
    static const double zero = 0;
    const struct lb_judgement judgement = {.margin = 1e-9, .level = 0.05};
    double now[COUNT(p)];
    struct lb_contrast cases[COUNT(p) + 1] = {
        {.base = &zero, .now = &zero, .base_count = 1, .now_count = 1}};
    int slower = 0;
    for (size_t i = 0; i < COUNT(p); i++) {
        now[i] = tan(acos(-1) / 2 * (1 - p[i]));
        cases[i + 1] = cases[0];
        cases[i + 1].now = &now[i];
        cases[i + 1].spread = (struct lb_spread){sqrt(0.5), 1};
    }
    lb_judge_cases(cases, COUNT(p) + 1, &judgement);
    assert_false(cases[0].tested);
    for (size_t i = 0; i < COUNT(p); i++) {
        assert_true(fabs(cases[i + 1].shift.p - p[i]) < 1e-9);
        assert_true(fabs(cases[i + 1].adjusted_p - adjusted[i]) < 1e-7);
        slower += cases[i + 1].outcome == LB_OUTCOME_SLOWER;
    }
    assert_int_equal(slower, 4);
}

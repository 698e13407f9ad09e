/* Regions in which one implementation is fastest: true ones are found, and noise makes none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "plot/fastest_regions.h"
#include "tests/helpers/synthetic_run.h"

static const int t_values[] = {16, 64, 256}, b_values[] = {1, 8, 64}, h_values[] = {64, 256, 1024};

/* The time of a made-up implementation; 0 where it does not run. */
typedef double time_law(int t, int b, int h);

static double plain(int t, int b, int h)
{
    return 1000.0 * t * b * h;
}

static double better_at_large_h(int t, int b, int h)
{
    return plain(t, b, h) * (h >= 256 ? 0.5 : 2);
}

static double better_at_small_b_and_large_h(int t, int b, int h)
{
    return plain(t, b, h) * (h >= 256 && b <= 8 ? 0.5 : 2);
}

/* Within the noise of the other's samples: sometimes above them, sometimes below. */
static double as_good(int t, int b, int h)
{
    return plain(t, b, h) * ((t + b + h) % 3 == 0 ? 1.001 : 0.999);
}

static double better_in_one(int t, int b, int h)
{
    return plain(t, b, h) * (t == 64 && b == 8 && h == 256 ? 0.9 : 1.5);
}

static double fast_but_small_h_only(int t, int b, int h)
{
    return h <= 64 ? 0.2 * plain(t, b, h) : 0;
}

struct fixture {
    struct lb_run run;
    struct lb_grouped_run grouped;
    struct lb_regions regions;
};

/* Implementation alpha follows the law plain, beta the given one. */
static struct fixture make_fixture(time_law *law)
{
    struct fixture f = {.run = {.header = synthetic_header(), .resumes = json_array()}};
    for (int i = 0; i < 27; i++) {
        int t = t_values[i / 9], b = b_values[i / 3 % 3], h = h_values[i % 3];
        const double times[] = {plain(t, b, h), law(t, b, h)};
        for (int k = 0; k < 2; k++) {
            char text[128];
            snprintf(text, sizeof(text), "%s/T%d_B%d_H%d/f32/infer", k ? "beta" : "alpha", t, b, h);
            enum lb_verdict verdict = times[k] > 0 ? LB_VERDICT_OK : LB_VERDICT_UNSUPPORTED;
            synthetic_add(&f.run, synthetic_row(text, verdict, times[k], 1, 20));
        }
    }
    assert_int_equal(lb_group_run(&f.run, NULL, &f.grouped, NULL), LB_OK);
    assert_int_equal(f.grouped.count, 27);
    assert_int_equal(lb_regions_find(f.grouped.groups, 27, 2, &f.regions, NULL), LB_OK);
    return f;
}

static void free_fixture(struct fixture *f)
{
    lb_regions_free(&f->regions);
    lb_grouped_run_free(&f->grouped);
    lb_run_free(&f->run);
}

enum { ALPHA, BETA };

static void one_cut_is_found_where_it_is(void **state)
{
    (void)state;
    struct fixture f = make_fixture(better_at_large_h);
    assert_int_equal(f.regions.count, 2);
    const struct lb_region *small = &f.regions.items[0], *large = &f.regions.items[1];
    assert_int_equal(small->series, ALPHA);
    assert_int_equal(small->high[LB_SIZE_H], 64);
    assert_int_equal(small->count, 9);
    assert_int_equal(large->series, BETA);
    assert_int_equal(large->low[LB_SIZE_H], 64);
    assert_int_equal(large->count, 18);
    free_fixture(&f);
}

static void two_cuts_are_found_in_succession(void **state)
{
    (void)state;
    struct fixture f = make_fixture(better_at_small_b_and_large_h);
    size_t beta = 0;
    assert_int_equal(f.regions.count, 3);
    for (size_t i = 0; i < 3; i++) {
        if (f.regions.items[i].series != BETA)
            continue;
        beta++;
        assert_int_equal(f.regions.items[i].count, 12);
        assert_int_equal(f.regions.items[i].high[LB_SIZE_B], 8);
        assert_int_equal(f.regions.items[i].low[LB_SIZE_H], 64);
    }
    assert_int_equal(beta, 1);
    free_fixture(&f);
}

static void noise_is_no_region(void **state)
{
    (void)state;
    struct fixture f = make_fixture(as_good);
    assert_int_equal(f.regions.count, 1);
    assert_int_equal(f.regions.items[0].count, 27);
    free_fixture(&f);
}

static void single_cell_is_no_region(void **state)
{
    (void)state;
    struct fixture f = make_fixture(better_in_one);
    assert_int_equal(f.regions.count, 1);
    assert_int_equal(f.regions.items[0].series, ALPHA);
    free_fixture(&f);
}

static void where_it_does_not_run_it_is_not_chosen(void **state)
{
    (void)state;
    struct fixture f = make_fixture(fast_but_small_h_only);
    assert_int_equal(f.regions.count, 2);
    assert_int_equal(f.regions.items[0].series, BETA);
    assert_int_equal(f.regions.items[0].high[LB_SIZE_H], 64);
    assert_int_equal(f.regions.items[1].series, ALPHA);
    free_fixture(&f);
}

static void intervals_decide_who_leads(void **state)
{
    (void)state;
    struct fixture f = make_fixture(as_good);
    for (size_t i = 0; i < 27; i++) {
        const struct lb_group *group = &f.grouped.groups[i];
        const struct lb_candidate *a = lb_group_find(group, ALPHA), *b = lb_group_find(group, BETA);
        bool tied = !lb_rows_apart(a->row, b->row);
        assert_ptr_equal(lb_group_best(group), a->row->median_ns < b->row->median_ns ? a : b);
        assert_ptr_equal(lb_group_best_other(group, ALPHA), b);
        assert_int_equal(lb_group_best(group)->rank, tied ? LB_RANK_TIED : LB_RANK_FASTEST);
        assert_int_equal(a->rank == LB_RANK_TIED && b->rank == LB_RANK_TIED, tied);
    }
    free_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_cut_is_found_where_it_is),
        cmocka_unit_test(two_cuts_are_found_in_succession),
        cmocka_unit_test(noise_is_no_region),
        cmocka_unit_test(single_cell_is_no_region),
        cmocka_unit_test(where_it_does_not_run_it_is_not_chosen),
        cmocka_unit_test(intervals_decide_who_leads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

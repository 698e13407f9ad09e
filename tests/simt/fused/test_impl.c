/* The whole implementation `fused`: its own source on a fake device, GEMMs as plain loops, the
 * kernels on the emulator, and results compared with the oracle as in any run. */
#include "base/given_files.h"
#include "impls/fused/fused.h"
#include "tests/fake_gpu/gpu_case.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_fused;
extern int lb_grid_host_resident, lb_grid_host_missing; /* launch_host.cpp explains them */
extern int lb_host_sms;    /* SMs that the emulated device says it has */
extern char lb_host_log[]; /* what has run on it; launch_host.cpp explains the letters */

/* Runs the case, which must agree with the oracle. */
static void run_case(const char *text, struct lb_row *row)
{
    gpu_case_run_ok(&lb_impl_fused, text, row);
}

static void expect_ok(const char *text)
{
    struct lb_row row;
    run_case(text, &row);
    lb_row_free(&row);
}

TEST(every_pass_agrees_with_the_oracle)
{
    static const char *const cases[] = {
        "fused:cluster/T1_B1_I1_H1/f16/train",
        "fused:cluster/T3_B3_I5_H6/f16/infer",
        "fused:cluster/T4_B9_I4_H33/bf16/forward",
        "fused:cluster/T5_B4_I3_H7/f16/backward",
        "fused:cluster/T4_B5_I3_H5_D2/f16/train/ragged",
        "fused:cluster/T4_B3_I4_H5_L3/bf16/infer",
        "fused:cluster/T4_B3_I4_H5_L3/bf16/train/ragged",
        "fused:cluster/T3_B4_I4_H6_L2_D2/f16/train",
        "fused:cluster/T5_B6_I4_H5_L2_D2/f16/train/ragged",
        "fused:grid/T1_B1_I1_H1/f16/train",
        "fused:grid/T3_B3_I5_H6/f16/infer",
        "fused:grid/T4_B9_I4_H33/bf16/forward",
        "fused:grid/T5_B4_I3_H7/f16/backward",
        "fused:grid/T4_B5_I3_H5_D2/f16/train/ragged",
        "fused:grid/T4_B3_I4_H5_L3/bf16/infer",
        "fused:grid/T4_B3_I4_H5_L3/bf16/train/ragged",
        "fused:grid/T5_B6_I4_H5_L2_D2/f16/train/ragged",
        "fused:grid/T4_B5_I3_H11/f32/train",
        "fused:grid/T4_B5_I3_H5_L2_D2/f32/train/ragged",
        "fused:grid/T4_B5_I3_H11/f32/train/tf32",
        "fused:grid/T4_B18_I3_H20/f32/infer/half",
        "fused:step/T1_B1_I1_H1/f64/train",
        "fused:step/T4_B3_I5_H6/f16/infer",
        "fused:step/T3_B17_I4_H33/bf16/forward",
        "fused:step/T3_B4_I3_H7/f32/train/tf32",
        "fused:step/T3_B4_I3_H7/f32/train/half",
        "fused:step/T4_B5_I3_H5_D2/f32/train/ragged",
        "fused:step/T4_B3_I4_H5_L3/f64/train/ragged",
        "fused:step/T3_B4_I4_H6_L2_D2/f16/train/act-relu",
        "fused:step/T4_B6_I4_H5_L2_D2/f64/backward/ragged/act-relu",
        "fused:step/T2_B66_I2_H20/f16/train",
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_ok(cases[i]);
}

/* When a block never runs, the case ends with an error that names the block. */
TEST(a_wait_that_does_not_end_is_the_cases_error)
{
    static const char *const cases[] = {"fused:grid/T5_B4_I3_H29/f16/infer",
                                        "fused:grid/T5_B4_I3_H29/f32/infer"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        lb_grid_host_missing = 1;
        gpu_case_run(&lb_impl_fused, cases[i], 1, false, &row);
        lb_grid_host_missing = -1;
        if (row.verdict == LB_VERDICT_OK || !strstr(row.reason, "for block 1") ||
            !strstr(row.reason, "step 1"))
            fail_msg("%s: %s: %s", cases[i], lb_verdict_name(row.verdict), row.reason);
        lb_row_free(&row);
    }
}

/* Where the device has no room for all blocks of a tile, that is not launched, because blocks would
 * wait for ever. A tile of 8 units needs 4 blocks here, one of 16 units needs 2. */
TEST(blocks_that_cannot_all_run_are_refused)
{
    static const struct {
        int room;
        enum lb_verdict verdict;
        const char *says;
    } cases[] = {{1, LB_VERDICT_UNSUPPORTED, "room for 1"},
                 {3, LB_VERDICT_OK, "grid was refused: "}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row row;
        lb_grid_host_resident = cases[i].room;
        gpu_case_run(&lb_impl_fused, "fused:grid/T5_B4_I3_H29/f16/infer", 1, false, &row);
        lb_grid_host_resident = 132;
        assert_int_equal(row.verdict, cases[i].verdict);
        assert_non_null(strstr(i == 0 ? row.reason : row.description, cases[i].says));
        lb_row_free(&row);
    }
}

/* Describes the fake device by a file, and returns its path. lb_machine_of knows the file that was
 * read last. */
static const char *describe_device(const char *text)
{
    struct lb_device_info info;
    struct lb_error err;
    const char *path = scratch_write("device.txt", text);
    if (lb_device_model(path, &info, &err) != LB_OK)
        fail_msg("%s", err.text);
    return path;
}

/* Behind a test that describes the device. */
static int device_teardown(void **state)
{
    describe_device("like = h100\nname = no device\n");
    return scratch_teardown(state);
}

/* A device with so slow a clock that few steps are long enough for two chunks. */
static const char slow_clock[] = "like = h100\nname = Fake GPU\nclock_hz = 2e8\n";
/* One that multiplies so slowly that the GEMMs of few steps take longer than a launch. */
static const char slow_gemms[] = "like = h100\nname = Fake GPU\nf16_flops_clock = 0.02\n";

/* Layers run in a wavefront where the device has room for all, else one after the other. Both give
 * the same bits, in whichever order streams run. The host's part does not depend on the family, so
 * the cluster kernels, which take longest, run in one order only. */
TEST_WITH(a_wavefront_gives_the_same_bits, scratch_setup, device_teardown)
{
    static const struct {
        const char *text;
        enum fake_order first_order;
    } cases[] = {
        {"fused:step/T8_B3_I4_H5_L2/f16/infer", FAKE_LAZY},
        {"fused:step/T9_B3_I4_H5_L3/f32/train/ragged", FAKE_LAZY},
        {"fused:cluster/T23_B1_I3_H5_L2/f16/infer", FAKE_SHUFFLED},
    };
    describe_device(slow_clock);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_row wave, plain;
        lb_host_sms = 1;
        run_case(cases[i].text, &plain);
        lb_host_sms = 132;
        assert_null(strstr(plain.description, "wavefront"));
        for (int order = cases[i].first_order; order < FAKE_ORDER_COUNT; order++) {
            fake_queue_order((enum fake_order)order);
            run_case(cases[i].text, &wave);
            assert_non_null(strstr(wave.description, "wavefront"));
            assert_true(wave.hash == plain.hash);
            lb_row_free(&wave);
        }
        lb_row_free(&plain);
    }
    expect_ok("fused:step/T8_B3_I4_H5_L2_D2/f16/train"); /* no wavefront: a layer needs both
                                                            directions below it for all times */
}

TEST_WITH(a_wavefront_without_one_of_its_waits_is_found, scratch_setup, device_teardown)
{
    static const struct gpu_case_waits waits[] = {
        {"fused:step/T6_B1_I1_H2_L3/f32/train", FAKE_WAIT, FAKE_FORWARD, 4},
        {"fused:step/T6_B1_I1_H2_L3/f32/train", FAKE_WAIT, FAKE_BACKWARD, 4},
        {"fused:step/T6_B1_I1_H2_L3/f32/forward", FAKE_JOIN, FAKE_FORWARD, 1},
        {"fused:step/T6_B1_I1_H2_L3/f32/train", FAKE_JOIN, FAKE_BACKWARD, 1},
        {"fused:step/T6_B1_I1_H2_L3/f32/backward/graph", FAKE_FORK, FAKE_BACKWARD, 1},
    };
    describe_device(slow_clock);
    gpu_case_expect_waits_needed(&lb_impl_fused, waits, sizeof(waits) / sizeof(waits[0]));
}

/* One layer runs in chunks. GEMMs that add to dw round more often, so that only inference has the
 * same bits as without chunks. */
TEST_WITH(gemms_beside_the_recurrence_give_the_same_results, scratch_setup, device_teardown)
{
    static const char *const cases[] = {"fused:cluster/T8_B2_I80_H6/f16/infer",
                                        "fused:cluster/T8_B2_I80_H6/f16/train/graph",
                                        "fused:grid/T8_B2_I80_H6/f16/infer/ragged"};
    static const struct gpu_case_waits waits[] = {
        {"fused:cluster/T8_B2_I80_H6/f16/train", FAKE_WAIT, FAKE_FORWARD, 2},
        {"fused:cluster/T8_B2_I80_H6/f16/train", FAKE_WAIT, FAKE_BACKWARD, 2},
        {"fused:cluster/T8_B2_I80_H6/f16/forward", FAKE_JOIN, FAKE_FORWARD, 1},
        {"fused:cluster/T8_B2_I80_H6/f16/backward/graph", FAKE_FORK, FAKE_BACKWARD, 1},
    };
    struct lb_row plain, row;
    run_case(cases[0], &plain);
    assert_null(strstr(plain.description, "beside"));
    describe_device(slow_gemms);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (int order = 0; order < FAKE_ORDER_COUNT; order++) {
            fake_queue_order((enum fake_order)order);
            run_case(cases[i], &row);
            if (!strstr(row.description, "GEMMs beside the recurrence"))
                fail_msg("%s: %s", cases[i], row.description);
            assert_true(i > 0 || row.hash == plain.hash);
            lb_row_free(&row);
        }
    }
    gpu_case_expect_waits_needed(&lb_impl_fused, waits, sizeof(waits) / sizeof(waits[0]));
    expect_ok("fused:step/T8_B2_I80_H6/f16/infer"); /* in one piece: steps come and go */
    lb_row_free(&plain);
}

/* Exchange buffers of grid kernels are cleared once per call and pass, however many chunks there
 * are, and on the stream of the recurrence before that waits for the GEMM of the first chunk. With
 * the clearing behind that wait, GEMMs run in front of it: GCK. With one clearing per chunk, each K
 * has a C. */
TEST_WITH(exchange_buffers_are_cleared_once_and_before_the_gemms, scratch_setup, device_teardown)
{
    describe_device(slow_gemms);
    fake_queue_order(FAKE_EAGER);
    lb_host_log[0] = 0;
    expect_ok("fused:grid/T8_B2_I80_H6/f16/infer");
    size_t call = strcspn(lb_host_log + 1, "C") + 1; /* letters of one call */
    if (strncmp(lb_host_log, "CGKGK", 5) != 0)
        fail_msg("a call begins by %.20s", lb_host_log);
    for (size_t i = 0; lb_host_log[i]; i++)
        assert_int_equal(lb_host_log[i], lb_host_log[i % call]);
    lb_host_log[0] = 0;
    expect_ok("fused:grid/T8_B2_I80_H6/f16/train");
    size_t clears = 0, kernels = 0;
    for (const char *at = lb_host_log; *at; at++)
        clears += *at == 'C', kernels += *at == 'K';
    assert_true(clears > 0 && kernels == clears * (call - 1) / 2);
}

/* Gives a file for tuned choices; whether later cases measure those that it lacks. */
static void tune(bool on)
{
    const struct lb_given_files given = {.tuned = scratch_path("tuned.txt"), .tune = on};
    lb_give_files(&given);
}

static void expect_description(const char *text, const char *begins, const char *has)
{
    struct lb_row row;
    run_case(text, &row);
    if (strncmp(row.description, begins, strlen(begins)) != 0 || !strstr(row.description, has))
        fail_msg("%s: %s", text, row.description);
    lb_row_free(&row);
}

TEST_WITH(what_was_measured_is_known_to_later_runs, scratch_setup, scratch_teardown)
{
    static const char text[] = "fused/T2_B2_I3_H5/f64/train";
    tune(false);
    expect_description(text, "step: ", "expected");
    tune(true);
    expect_description(text, "step: ", "tuned, ");
    tune(false);
    expect_description(text, "step: ", "tuned, ");
    expect_description("fused/T2_B2_I3_H6/f64/train", "step: ", "expected"); /* another problem */
}

/* On the fake device all launches take the same time: one for one or two steps beats one per step.
 */
TEST_WITH(a_variant_is_tuned_apart_from_auto, scratch_setup, device_teardown)
{
    static const char any[] = "fused/T1_B2_I3_H5/f16/infer";
    static const char step[] = "fused:step/T1_B2_I3_H5/f16/infer";
    describe_device("like = h100\nname = Fake GPU\ncluster = 4\n"); /* wider ones run for long */
    tune(true);
    expect_description(any, "cluster: ", "tuned, ");
    expect_description(step, "step: ", "tuned, ");
    tune(false);
    expect_description(any, "cluster: ", "tuned, ");
    expect_description(step, "step: ", "tuned, ");
}

/* A plan measured over two steps, where launches dominate, is not used for long sequences. On the
 * fake device a step costs the same in each of T launches, and the events around them cost
 * something too, which must not be in the time of a step. */
TEST_WITH(few_steps_are_tuned_apart_from_many, scratch_setup, scratch_teardown)
{
    tune(true);
    expect_description("fused:step/T2_B1_I2_H3/f64/infer", "step: ", "tuned, 1000.00 us per step");
    expect_ok("fused:step/T64_B1_I2_H3/f64/infer");
    tune(false);
    expect_description("fused:step/T2_B1_I2_H3/f64/infer", "step: ", "tuned, ");
    expect_description("fused:step/T3_B1_I2_H3/f64/infer", "step: ", "expected");
    expect_description("fused:step/T70_B1_I2_H3/f64/infer", "step: ", "tuned, ");
}

/* Single launches cost time of the host, so that another tile may be the fastest. */
TEST_WITH(what_was_measured_by_launches_is_not_taken_for_replays, scratch_setup, scratch_teardown)
{
    static const char text[] = "fused/T2_B2_I3_H5/f64/infer";
    static const char replayed[] = "fused/T2_B2_I3_H5/f64/infer/graph";
    tune(true);
    expect_description(text, "step: ", "tuned, ");
    assert_int_equal(fake_device_counts()->captures, 0);
    tune(false);
    expect_description(replayed, "step: ", "expected");
    assert_int_equal(fake_device_counts()->captures, 2); /* one per input set */
    tune(true);
    expect_description(replayed, "step: ", "tuned, ");
    assert_true(fake_device_counts()->captures > 3); /* those of the case, and one per tile */
}

/* Replaces the value of a problem's forward pass in the file that --tune wrote. */
static void write_tuned(const char *value)
{
    char *text = scratch_read(scratch_path("tuned.txt"), NULL), line[640];
    const char *key = strstr(text, "fused forward");
    assert_non_null(key);
    snprintf(line, sizeof(line), "bench-lstm tuned choices 1\n%.*s\t%s\n", (int)strcspn(key, "\t"),
             key, value);
    scratch_write("tuned.txt", line);
    free(text);
}

TEST_WITH(a_tuned_choice_is_taken_and_a_damaged_one_is_said, scratch_setup, scratch_teardown)
{
    static const char text[] = "fused/T2_B2_I3_H5/f64/infer";
    struct lb_case c = trial_case(text);
    struct lb_fused_view view;
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    char value[128], units[32];
    tune(true);
    expect_ok(text);
    tune(false);
    assert_int_equal(lb_fused_view_make(&c.problem, NULL, &view, NULL), LB_OK);
    int count = lb_fused_plans(&view, "step", false, plans, NULL);
    assert_true(count >= 2);
    for (int i = 0; i < count; i++) { /* each plan is taken, whichever was the fastest */
        size_t bytes = lb_fused_weight_bytes(&c.problem, &plans[i]);
        char says[200];
        snprintf(value, sizeof(value), "step %d %zu 123400", plans[i].tile, bytes);
        write_tuned(value);
        lb_fused_step.describe(&c.problem, &plans[i], says, sizeof(says));
        snprintf(units, sizeof(units), "%.20s", strstr(says, "time, ") + 6);
        expect_description(text, "step: ", "tuned, 123.40 us");
        expect_description(text, "step: ", units);
    }
    write_tuned("step 0 17 123400"); /* a tile that does not exist any more */
    expect_description(text, "step: ", "expected");
    write_tuned("no plan at all");
    expect_description(text, "step: ", "expected");
    scratch_write("tuned.txt", "something else\n");
    tune(true); /* the file is not overwritten either */
    expect_description(text, "step: ", "not a file of tuned choices");
    expect_description(text, "step: ", "expected");
    tune(false);
}

static enum lb_status choose(const char *model, const char *text, struct lb_fused_choice *choice,
                             struct lb_error *err)
{
    struct lb_case c = trial_case(text);
    struct lb_device_info device;
    assert_int_equal(lb_device_model(model, &device, err), LB_OK);
    return lb_fused_choose(&c.problem, &device, c.variant[0] ? c.variant : "auto", choice, err);
}

static struct lb_fused_choice chosen(const char *model, const char *text)
{
    struct lb_fused_choice choice;
    struct lb_error err;
    if (choose(model, text, &choice, &err) != LB_OK)
        fail_msg("%s: %s", text, err.text);
    assert_true(choice.forward.step_ns > 0);
    return choice;
}

struct cluster_tile {
    int blocks, warps, rows;
};

static struct cluster_tile cluster_tile(const char *model, const char *text)
{
    struct lb_fused_choice choice = chosen(model, text);
    struct lb_case c = trial_case(text);
    struct cluster_tile t;
    char says[200];
    int needed, resident;
    choice.forward.family->describe(&c.problem, &choice.forward, says, sizeof(says));
    if (sscanf(says, "%d clusters, %d at a time, %d blocks x %d warps x %d rows", &needed,
               &resident, &t.blocks, &t.warps, &t.rows) != 5)
        fail_msg("%s: %s", text, says);
    assert_true(4 * t.blocks * t.warps >= c.problem.hidden);
    assert_true(needed == choice.forward.needed && resident == choice.forward.resident);
    return t;
}

TEST(the_choice_follows_size_and_batch)
{
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H128/f16/infer").blocks, 4);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H512/f16/infer").blocks, 16);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H768/f16/infer").warps, 12);
    /* 112 rows are 14 clusters of 8 rows, where 7 run at a time: 16 rows each are one wave. */
    struct lb_fused_choice wide = chosen("h100", "fused:cluster/T9_B112_H512/f16/infer");
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B112_H512/f16/infer").rows, 16);
    assert_true(wide.forward.needed <= wide.forward.resident);
    /* 8 rows are 4 clusters of 2 rows, which is all that a quarter of the tile's columns takes. */
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B8_H512/f16/infer").rows, 2);
    assert_int_equal(cluster_tile("h100", "fused:cluster/T9_B28_H512/f16/infer").rows, 4);
}

/* Of a device that forms clusters of at most 8 blocks no tile of 16 is planned, in neither pass.
 * Without the comparison of a tile's blocks with the device's, H = 512 has plans. */
TEST_WITH(no_cluster_is_wider_than_the_device_forms, scratch_setup, device_teardown)
{
    struct lb_fused_plan plans[LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX];
    struct lb_fused_refusal refusal;
    struct lb_fused_view view;
    struct lb_device_info device;
    struct lb_case c = trial_case("fused:cluster/T9_B8_H512/f16/train");
    const char *path = describe_device("like = h100\nname = no device\ncluster = 8\n");
    assert_int_equal(lb_device_model(path, &device, NULL), LB_OK);
    for (int backward = 0; backward < 2; backward++) {
        assert_int_equal(lb_fused_view_make(&c.problem, &device, &view, NULL), LB_OK);
        assert_int_equal(lb_fused_plans(&view, "cluster", backward, plans, &refusal), 0);
        assert_non_null(strstr(refusal.why.text, "hidden 512"));
    }
    assert_int_equal(cluster_tile(path, "fused:cluster/T9_B8_H256/f16/train").blocks, 8);
    assert_ptr_equal(chosen(path, "fused/T9_B8_H512/f16/train").forward.family, &lb_fused_grid);
}

struct grid_tile {
    int blocks, units, groups, rows, chunks, columns;
    bool apart;
};

static struct grid_tile grid_tile(const char *model, const char *text)
{
    struct lb_fused_choice choice = chosen(model, text);
    struct lb_case c = trial_case(text);
    struct grid_tile t;
    char says[200];
    int resident;
    choice.forward.family->describe(&c.problem, &choice.forward, says, sizeof(says));
    if (sscanf(says,
               "%d blocks of %d at a time, %d units each; %d groups x %d rows in %d chunks of %d",
               &t.blocks, &resident, &t.units, &t.groups, &t.rows, &t.chunks, &t.columns) != 7)
        fail_msg("%s: %s", text, says);
    t.apart = strstr(says, "one direction after the other") != NULL;
    assert_true(t.blocks <= resident && t.groups * t.rows >= c.problem.batch);
    assert_true(t.blocks * t.units >= c.problem.hidden * t.groups);
    return t;
}

TEST(the_batch_is_split_where_there_is_room)
{
    struct grid_tile t = grid_tile("h100", "fused:grid/T9_B16_H768/f16/infer");
    assert_int_equal(t.units, 16);
    assert_int_equal(t.groups, 2);
    assert_int_equal(t.rows, 8);
    t = grid_tile("h100", "fused:grid/T9_B16_H1024_D2/f16/infer");
    assert_false(t.apart);
    assert_int_equal(t.groups, 1);
    t = grid_tile("h100", "fused:grid/T9_B16_H2048_D2/bf16/infer");
    assert_true(t.apart);
    t = grid_tile("a100", "fused:grid/T9_B16_H1024/f16/infer");
    assert_int_equal(t.blocks, 64);
}

/* 132 SMs do not run eight clusters of 16 blocks, because each cluster must be in one GPC. */
TEST(clusters_that_no_gpc_has_room_for_wait_for_a_second_wave)
{
    static const char seven[] = "fused:cluster/T128_B56_H768/f16/train";
    static const char eight[] = "fused:cluster/T128_B64_H768/f16/train";
    struct lb_fused_plan one = chosen("h100", seven).backward;
    struct lb_fused_plan two = chosen("h100", eight).backward;
    assert_int_equal(one.needed, 7);
    assert_int_equal(two.needed, 8);
    assert_int_equal(two.resident, 7);
    assert_true(two.step_ns == 2 * one.step_ns);
}

/* Where a device forms clusters of 4 blocks, they share the tiles of a wide backward step. */
TEST_WITH(a_cluster_shares_a_backward_step_where_it_fits, scratch_setup, device_teardown)
{
    static const struct {
        const char *model, *text;
        bool shared;
    } cases[] = {
        {"h100", "fused:step/T9_B64_H2048/f16/train", true},
        {"b200", "fused:step/T9_B64_H1024/bf16/train", true},
        {"h100", "fused:step/T9_B64_H1024/f32/train/tf32", true},
        {"h100", "fused:step/T9_B64_H1024/f32/train", false},
        {"h100", "fused:step/T9_B1_H1024/f16/train", false},
        {"a100", "fused:step/T9_B64_H1024/f16/train", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_fused_choice choice = chosen(cases[i].model, cases[i].text);
        struct lb_case c = trial_case(cases[i].text);
        char says[200];
        assert_ptr_equal(choice.backward.family, &lb_fused_step);
        lb_fused_step.describe(&c.problem, &choice.backward, says, sizeof(says));
        assert_int_equal(strstr(says, "clusters of 4 blocks") != NULL, cases[i].shared);
        choice.forward.family->describe(&c.problem, &choice.forward, says, sizeof(says));
        assert_null(strstr(says, "clusters"));
    }
    const char *path = describe_device("like = h100\nname = no device\ncluster = 2\n");
    assert_int_equal(chosen(path, "fused:step/T9_B64_H1024/f16/train").backward.tile, 1);
    /* Where an SM reads slowly, they do so at sizes that the emulator runs in a moment. */
    describe_device("like = h100\nname = Fake GPU\ncache_bytes_clock = 0.01\n");
    expect_description("fused:step/T2_B40_I2_H72/f16/train", "step: ", "clusters of 4 blocks");
}

/* Runs a case and returns the us per step that its description expects. */
static double expected_us(const char *text)
{
    struct lb_row row;
    double us = 0;
    run_case(text, &row);
    const char *says = strstr(row.description, "; expected ");
    if (!says || sscanf(says, "; expected %lf us", &us) != 1)
        fail_msg("%s: %s", text, row.description);
    lb_row_free(&row);
    return us;
}

TEST(a_device_with_less_room_than_expected_takes_more_waves)
{
    static const char text[] = "fused:cluster/T2_B9_I3_H5/f16/infer"; /* 5 clusters of 2 rows */
    double roomy = expected_us(text);
    lb_host_sms = 4;
    double narrow = expected_us(text);
    lb_host_sms = 132;
    assert_true(fabs(narrow - 5 * roomy) < 0.05);
}

TEST(what_cannot_run_is_refused_with_its_limit)
{
    static const struct {
        const char *model, *text, *says;
    } cases[] = {
        {"h100", "fused:cluster/T9_B8_H769/f16/infer", "hidden 769"},
        {"a100", "fused:cluster/T9_B8_H64/f16/infer",
         "needs compute capability 9.0, this is an NVIDIA A100"},
        {"h100", "fused:cluster/T9_B8_H64/f32/infer", "f32"},
        {"h100", "fused:cluster/T9_B8_H64/f16/infer/act-relu", "relu"},
        {"h100", "fused:grid/T9_B8_H2049/f16/infer", "hidden 2049"},
        {"a100", "fused:grid/T9_B8_H2048/f16/infer", "108 SMs"},
        {"h100", "fused:grid/T9_B8_H1025/f32/infer", "hidden 1025"},
        {"h100", "fused:grid/T9_B8_H64/f64/infer", "f64"},
        {"h100", "fused:grid/T9_B8_H64/f16/infer/act-relu", "relu"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_fused_choice choice;
        struct lb_error err;
        assert_int_equal(choose(cases[i].model, cases[i].text, &choice, &err), LB_UNSUPPORTED);
        if (!strstr(err.text, cases[i].says))
            fail_msg("%s: %s", cases[i].text, err.text);
    }
    /* A device with little shared memory has only the smaller tiles. */
    static const struct {
        const char *text, *variant;
        enum lb_status fits;
    } small_cases[] = {
        {"fused/T9_B8_H768/f16/infer", "cluster", LB_UNSUPPORTED},
        {"fused/T9_B8_H512/f16/infer", "cluster", LB_OK},
        {"fused/T9_B8_H2048/f16/infer", "grid", LB_UNSUPPORTED},
        {"fused/T9_B8_H1024/f16/infer", "grid", LB_OK},
    };
    struct lb_device_info device;
    struct lb_fused_choice choice;
    struct lb_error err;
    struct lb_case c;
    assert_int_equal(lb_device_model("h100", &device, NULL), LB_OK);
    for (size_t i = 0; i < sizeof(small_cases) / sizeof(small_cases[0]); i++) {
        const char *variant = small_cases[i].variant;
        c = trial_case(small_cases[i].text);
        device.shared_bytes = 227 << 10;
        assert_int_equal(lb_fused_choose(&c.problem, &device, variant, &choice, NULL), LB_OK);
        device.shared_bytes = 99 << 10;
        assert_int_equal(lb_fused_choose(&c.problem, &device, variant, &choice, NULL),
                         small_cases[i].fits);
    }
    device.major = 7;
    assert_int_equal(lb_fused_choose(&c.problem, &device, "grid", &choice, &err), LB_UNSUPPORTED);
    assert_non_null(strstr(err.text, "needs compute capability 8.0"));
}

/* A tile that is slower and leaves SMs to the other layer is taken where a wavefront gains more
 * than it loses. Single launches per step, whose rate all layers share, are no reason. */
TEST(layers_run_in_a_wavefront_where_that_is_faster)
{
    static const struct {
        const char *text;
        bool wavefront;
    } cases[] = {{"fused/T1024_B16_H256_L2/f16/infer", true},
                 {"fused/T1024_B16_H256_L2/f16/train", true},
                 {"fused/T1600_B64_H384_L5/f16/infer", false},
                 {"fused/T16_B16_H256_L2/f16/infer", false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct lb_case c = trial_case(cases[i].text);
        struct lb_fused_view view;
        struct lb_fused_choice choice;
        assert_int_equal(lb_fused_view_make(&c.problem, NULL, &view, NULL), LB_OK);
        assert_int_equal(lb_fused_choose(&c.problem, NULL, "auto", &choice, NULL), LB_OK);
        assert_ptr_equal(choice.forward.family, &lb_fused_cluster);
        assert_int_equal(lb_fused_chunk(&view, &choice) < c.problem.seq_len, cases[i].wavefront);
    }
}

/* --tune measures one layer: 8 clusters are faster there, but two layers of them have no SMs of
 * their own on an H100. Layers of `step` share the rate of launches. */
TEST(a_tuned_plan_leaves_room_for_other_layers)
{
    const struct lb_fused_plan faster = {
        .family = &lb_fused_cluster, .step_ns = 710, .needed = 8, .resident = 14};
    struct lb_fused_plan slower = faster;
    slower.needed = 4, slower.step_ns = 780;
    const struct lb_problem two = trial_case("fused/T1024_B16_H256_L2/f16/infer").problem,
                            one = trial_case("fused/T1024_B16_H256/f16/infer").problem;
    assert_true(lb_fused_layers_ns(&one, &faster) < lb_fused_layers_ns(&one, &slower));
    assert_true(lb_fused_layers_ns(&two, &faster) > 1.5 * lb_fused_layers_ns(&two, &slower));
    slower.family = &lb_fused_step;
    assert_true(lb_fused_layers_ns(&two, &faster) < lb_fused_layers_ns(&two, &slower));
}

TEST_GROUP(NULL, trial_close_cache)

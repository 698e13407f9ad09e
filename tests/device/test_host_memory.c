/* The host's memory: guard bands, and how much memory is counted as available. */
#include <sys/stat.h>

#include "case/probe.h"
#include "device/host_memory.h"
#include "device/timer.h"
#include "host/cgroup.h"
#include "model/registry.h"
#include "reference/case_tensors.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

TEST(blocks_are_aligned_and_report_no_overrun)
{
    for (size_t bytes = 1; bytes < 5000; bytes = 3 * bytes + 1) {
        void *memory;
        assert_int_equal(lb_host_space.allocate(bytes, &memory, NULL), LB_OK);
        assert_int_equal((uintptr_t)memory % 256, 0);
        memset(memory, 0, bytes);
        if (lb_host_space.overrun)
            assert_null(lb_host_space.overrun(memory));
        lb_host_space.release(memory);
    }
}

/* Changes one byte at a time, over the full width of both bands. */
TEST(a_changed_byte_outside_a_block_is_found)
{
    enum { BYTES = 1000 };
    char *memory;
    if (!lb_host_space.overrun)
        skip();
    assert_int_equal(lb_host_space.allocate(BYTES, (void **)&memory, NULL), LB_OK);
    for (ptrdiff_t at = -256; at < BYTES + 4096; at++) {
        char was = memory[at];
        memory[at] = (char)(was ^ 1);
        const char *side = lb_host_space.overrun(memory);
        if (at >= 0 && at < BYTES)
            assert_null(side);
        else
            assert_string_equal(side, at < 0 ? "before its start" : "past its end");
        memory[at] = was;
        assert_null(lb_host_space.overrun(memory));
    }
    lb_host_space.release(memory);
}

TEST(weight_gradients_have_guard_bands)
{
    struct lb_problem p = trial_problem("cpu_ref/T2_B1_H3/f32/train");
    struct lb_results results;
    if (!lb_host_space.overrun)
        skip();
    assert_int_equal(lb_results_create(&p, &results, NULL), LB_OK);
    float *last = results.gradients.db_hh[0];
    assert_null(lb_host_space.overrun(results.gradients.dw_ih[0]));
    last[4 * 3] = 0;
    assert_non_null(lb_host_space.overrun(results.gradients.dw_ih[0]));
    lb_results_destroy(&results);
}

static size_t weight_bytes; /* of all weight gradients of the case */

static enum lb_status write_past_gradients(void *self, const struct lb_gradients *out,
                                           struct lb_error *err)
{
    LB_CHECK(lb_impl_cpu_ref.gradients(self, out, err));
    ((char *)out->dw_ih[0])[weight_bytes] ^= 1;
    return LB_OK;
}

/* They are on the host also where the implementation's memory is a device's. */
TEST(a_write_past_the_weight_gradients_makes_a_row_wrong)
{
    static const char text[] = "cpu_ref/T2_B1_H3/f32/train";
    const struct lb_problem p = trial_problem(text);
    struct lb_run_options options = {.seed = 7, .sampler = lb_sampler_defaults(), .loss_scale = 1};
    struct lb_impl impl = lb_impl_cpu_ref;
    struct lb_counts counts;
    if (!lb_host_space.overrun)
        skip();
    assert_int_equal(lb_problem_counts(&p, &counts, NULL), LB_OK);
    weight_bytes = counts.weights * sizeof(float);
    impl.gradients = write_past_gradients;
    fake_device_install(FAKE_NONE);
    fake_device_share_memory();
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
    for (int on_device = 0; on_device < 2; on_device++) {
        struct lb_row row;
        impl.memory = on_device ? LB_DEVICE : LB_HOST;
        trial_case_run(&impl, text, &options, &row);
        assert_string_equal(row.reason, "the weight gradients was written past its end");
        lb_row_free(&row);
    }
}

/* The buffer that flushes the caches before each sample counts as memory that a case needs. */
TEST(cold_caches_need_more_memory)
{
    static const char *const texts[] = {"cpu_ref/T2_B1_H3/f32/infer",
                                        "cpu_ref/T2_B1_H3/f32/infer/cold"};
    for (size_t i = 0; i < 2; i++) {
        struct lb_case c = trial_case(texts[i]);
        struct lb_case_plan plan;
        double flush = (double)lb_timer_bytes(LB_HOST, i > 0), base = lb_case_bytes(&c);
        assert_int_equal(flush > 0, i > 0);
        assert_int_equal(lb_case_plan(&lb_impl_cpu_ref, &c, base + flush, &plan, NULL), LB_OK);
        assert_int_equal(lb_case_plan(&lb_impl_cpu_ref, &c, base + flush - 1, &plan, NULL), LB_OOM);
    }
}

static struct lb_case_plan plan_of(const char *text)
{
    struct lb_case c = trial_case(text);
    struct lb_case_plan plan;
    struct lb_error why = {""};
    if (lb_case_plan(&lb_impl_cpu_ref, &c, INFINITY, &plan, &why) != LB_OK)
        fail_msg("%s: %s", text, why.text);
    return plan;
}

/* The plan is what a case later allocates by, so its parts must add up. */
TEST(a_plan_says_how_a_case_runs_and_what_it_needs)
{
    struct lb_case c = trial_case("cpu_ref/T2_B1_H3/f32/train");
    struct lb_case_plan train = plan_of("cpu_ref/T2_B1_H3/f32/train");
    struct lb_case_plan cold = plan_of("cpu_ref/T2_B1_H3/f32/train/cold");
    struct lb_case_plan infer = plan_of("cpu_ref/T2_B1_H3/f32/infer");
    assert_int_equal(train.config.threads, 1);
    assert_null(train.config.stream);
    assert_true(train.has_backward && !infer.has_backward);
    assert_true(train.space_bytes == lb_case_bytes(&c));
    assert_true(cold.space_bytes == train.space_bytes + (double)lb_timer_bytes(LB_HOST, true));
    /* In the implementation's memory: x and two states twice, y and two states; and as many
     * gradients, of which those of y and its states are read. */
    assert_true(train.space_bytes - train.host_bytes == 2 * (3 * (6 + 2 * 3)) * 4);
    assert_true(infer.space_bytes - infer.host_bytes == (3 * (6 + 2 * 3)) * 4);
}

/* Writes a file below a folder of the scratch folder. */
static void write_below(const char *root, const char *name, const char *text)
{
    char below[512];
    snprintf(below, sizeof(below), "%s/%s", root, name);
    scratch_write(below, text);
}

/* Control groups of both versions in made-up systems: the limit may be set for the process's own
 * group or for one above it, inactive page cache counts as free, and missing files and "max" mean
 * no limit.
 */
TEST_WITH(control_groups_limit_what_is_available, scratch_setup, scratch_teardown)
{
    enum { FILES = 9 };
    static const struct {
        const char *files[FILES][2];
        double room;
    } systems[] = {
        {{{"proc/self/cgroup", "0::/a/b\n"}}, INFINITY},
        {{{"proc/self/cgroup", "0::/\n"},
          {"sys/fs/cgroup/memory.max", "1000\n"},
          {"sys/fs/cgroup/memory.current", "700\n"}},
         300},
        {{{"proc/self/cgroup", "0::/system.slice/run-1.scope\n"},
          {"sys/fs/cgroup/system.slice/memory.max", "max\n"},
          {"sys/fs/cgroup/system.slice/memory.current", "5000\n"},
          {"sys/fs/cgroup/system.slice/run-1.scope/memory.max", "1000\n"},
          {"sys/fs/cgroup/system.slice/run-1.scope/memory.current", "900\n"},
          {"sys/fs/cgroup/system.slice/run-1.scope/memory.stat",
           "anon 100\ninactive_file_x 1\ninactive_file 450\nactive_file 350\n"}},
         550},
        {{{"proc/self/cgroup", "0::/job/step\n"},
          {"sys/fs/cgroup/job/memory.max", "600\n"},
          {"sys/fs/cgroup/job/memory.current", "500\n"},
          {"sys/fs/cgroup/job/step/memory.max", "1000\n"},
          {"sys/fs/cgroup/job/step/memory.current", "400\n"},
          {"sys/fs/cgroup/other/memory.max", "1\n"},
          {"sys/fs/cgroup/other/memory.current", "1\n"}},
         100},
        {{{"proc/self/cgroup", "0::/as/the/host/sees/it\n"},
          {"sys/fs/cgroup/memory.max", "1000\n"},
          {"sys/fs/cgroup/memory.current", "1100\n"}},
         0},
        {{{"proc/self/cgroup", "4:cpu,memory:/slurm/job\n3:memory_x:/no\n0::/\n"},
          {"sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "1000\n"},
          {"sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "900\n"},
          {"sys/fs/cgroup/memory/slurm/job/memory.stat",
           "inactive_file 1\ntotal_inactive_file 200\n"},
          {"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"},
          {"sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n"},
          {"sys/fs/cgroup/memory/no/memory.limit_in_bytes", "1\n"},
          {"sys/fs/cgroup/memory/no/memory.usage_in_bytes", "1\n"}},
         300},
    };
    for (size_t i = 0; i < sizeof(systems) / sizeof(systems[0]); i++) {
        char name[32];
        snprintf(name, sizeof(name), "%zu", i);
        assert_int_equal(mkdir(scratch_path(name), 0777), 0);
        for (size_t k = 0; k < FILES && systems[i].files[k][0]; k++)
            write_below(name, systems[i].files[k][0], systems[i].files[k][1]);
        assert_true(lb_cgroup_room(scratch_path(name)) == systems[i].room);
    }
}

/* A file of a made-up system, and what is read once it has been written. */
struct step {
    const char *file, *text;
    double value;
};

static void expect_values(double (*read)(const char *root), const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        write_below("system", steps[i].file, steps[i].text);
        double value = read(scratch_path("system"));
        assert_true(isnan(steps[i].value) ? isnan(value) : value == steps[i].value);
    }
}

TEST_WITH(a_group_that_ran_out_of_cpu_time_is_found, scratch_setup, scratch_teardown)
{
    static const struct step steps[] = {
        {"proc/self/cgroup", "2:cpu,cpuacct:/job\n0::/user.slice/run-1.scope\n", NAN},
        {"sys/fs/cgroup/cpu.stat", "usage_usec 5\n", NAN},
        {"sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\n", NAN},
        {"sys/fs/cgroup/user.slice/cpu.stat", "nr_periods 100\nnr_throttled 25\n", 0.25},
        {"sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 100\nnr_throttled 50\n", 0.5},
        {"sys/fs/cgroup/other/cpu.stat", "nr_periods 100\nnr_throttled 75\n", 0.5},
        {"proc/self/cgroup", "0::/user.slice/run-1.scope\n", 0.25},
    };
    expect_values(lb_cgroup_throttled, steps, sizeof(steps) / sizeof(steps[0]));
}

/* The count rises with the machine's and with that of any group of the process, and no other's. */
TEST_WITH(kills_for_memory_are_counted, scratch_setup, scratch_teardown)
{
    static const struct step steps[] = {
        {"proc/self/cgroup", "4:memory:/slurm/job\n0::/job/step\n", NAN},
        {"sys/fs/cgroup/other/memory.events", "oom 9\noom_kill 9\n", NAN},
        {"proc/vmstat", "nr_free 1\noom_kill 3\n", 3},
        {"sys/fs/cgroup/job/memory.events", "oom 7\noom_kill 2\noom_group_kill 8\n", 5},
        {"sys/fs/cgroup/memory/slurm/job/memory.oom_control",
         "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 6},
        {"sys/fs/cgroup/memory.events", "oom_kill 4\n", 10},
        {"proc/self/cgroup", "0::/\n", 7},
    };
    expect_values(lb_oom_kills, steps, sizeof(steps) / sizeof(steps[0]));
}

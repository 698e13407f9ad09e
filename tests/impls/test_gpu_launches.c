/* Checks every launch of `fused`, for the shapes that GPUs are compared on, against the limits
 * of several devices. The launchers' own code runs. The fake runtime accepts or refuses the
 * launches, and no kernel runs. */
#include <sys/wait.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

#include "api/impl.h"
#include "base/given_files.h"
#include "tests/fake_gpu/fake_libraries.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/scratch_folder.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_fused;

/* The linker calls these instead of the runtime's functions (--wrap). They imitate a launcher
 * that does not set a kernel's attributes, and a device that has too few registers for the next
 * kernels. */
static bool readies_nothing;
static int refused_kernels;
static cudaError_t refusal = cudaErrorLaunchOutOfResources;

__typeof__(cudaFuncSetAttribute) __real_cudaFuncSetAttribute, __wrap_cudaFuncSetAttribute;
cudaError_t __wrap_cudaFuncSetAttribute(const void *kernel, enum cudaFuncAttribute what, int value)
{
    return readies_nothing ? cudaSuccess : __real_cudaFuncSetAttribute(kernel, what, value);
}

__typeof__(cudaLaunchKernelExC) __real_cudaLaunchKernelExC, __wrap_cudaLaunchKernelExC;
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *kernel,
                                       void **arguments)
{
    static const void *last;
    if (refused_kernels == 0)
        return __real_cudaLaunchKernelExC(config, kernel, arguments);
    refused_kernels -= kernel != last;
    last = kernel;
    return refusal;
}

/* Installs a device without memory behind its addresses. */
static void install_device(const struct lb_device_info *info)
{
    fake_device_install(FAKE_NONE);
    fake_device_be(info);
    fake_device_hollow_out();
    fake_cudart_reset();
    fake_cublas_reset(FAKE_CUBLAS_NONE);
    lb_device_use(&lb_device_cuda);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
}

static void install(const char *name)
{
    struct lb_device_info info = trial_device(name);
    info.modelled = false;
    install_device(&info);
}

enum { BUFFERS = 4, LAYER_DIRS_MAX = 64 };

/* An implementation from create to destroy. All its tensors share one block, which is large
 * enough for each of them. */
struct life {
    void *self, *tensors, *zeros;
    const void *tables[LAYER_DIRS_MAX];
    struct lb_sizes sizes;
    struct lb_buffers buffers;
};

static enum lb_status allocate(struct life *life, const struct lb_problem *p, struct lb_error *err)
{
    const size_t bytes[BUFFERS] = {life->sizes.weights, life->sizes.gradients, life->sizes.reserve,
                                   life->sizes.workspace};
    void **const slots[BUFFERS] = {&life->buffers.weights, &life->buffers.gradients,
                                   &life->buffers.reserve, &life->buffers.workspace};
    size_t widest = (size_t)(p->input > 2 * p->hidden ? p->input : 2 * p->hidden);
    enum lb_status st = LB_OK;
    for (int i = 0; i < BUFFERS; i++)
        LB_TRY(lb_device_space.allocate(bytes[i], slots[i], err));
    LB_TRY(lb_device_space.allocate(
        (size_t)(p->seq_len * p->batch) * widest * 8 * (size_t)p->layers, &life->tensors, err));
    life->zeros = calloc(4 * (size_t)p->hidden * widest, 8);
    for (int i = 0; i < LAYER_DIRS_MAX; i++)
        life->tables[i] = life->zeros;
done:
    return st;
}

static enum lb_status call(const struct life *life, const struct lb_problem *p,
                           struct lb_error *err)
{
    void *t = life->tensors;
    const struct lb_forward_io forward = {t, t, t, t, t, t, NULL};
    const struct lb_backward_io backward = {t, t, t, t, t, t, t, t, t, t, NULL};
    enum lb_status st = LB_OK;
    LB_TRY(lb_impl_fused.forward(life->self, &forward, err));
    if (lb_has_backward(p))
        LB_TRY(lb_impl_fused.backward(life->self, &backward, err));
    LB_TRY(lb_device()->synchronize(err));
done:
    return st;
}

static void end(struct life *life)
{
    lb_impl_fused.destroy(life->self);
    lb_device_space.release(life->tensors);
    lb_device_space.release(life->buffers.workspace);
    lb_device_space.release(life->buffers.reserve);
    lb_device_space.release(life->buffers.gradients);
    lb_device_space.release(life->buffers.weights);
    free(life->zeros);
    free(life->self);
}

/* Launches a problem. LB_UNSUPPORTED: the variant does not support it on this device. */
static enum lb_status launch(const char *variant, const char *text, struct lb_error *err)
{
    const struct lb_problem p = trial_problem(text);
    struct life life = {.self = calloc(1, lb_impl_fused.state_size)};
    const struct lb_exec_config config = {
        .threads = 1, .variant = variant, .stream = lb_device()->stream()};
    const void *const *t = life.tables;
    const struct lb_weights weights = {t, t, t, t, t};
    enum lb_status st = LB_OK;
    LB_TRY(lb_impl_fused.supports(&p, &config, err));
    LB_TRY(lb_impl_fused.create(life.self, &p, &config, err));
    LB_TRY(lb_impl_fused.sizes(life.self, &life.sizes, err));
    LB_TRY(allocate(&life, &p, err));
    LB_TRY(lb_impl_fused.prepare(life.self, &life.buffers, &weights, err));
    LB_TRY(call(&life, &p, err));
done:
    end(&life);
    return st;
}

static void expect_launch(const char *variant, const char *text)
{
    struct lb_error err = {""};
    if (launch(variant, text, &err) != LB_OK)
        fail_msg("fused:%s/%s on %s: %s", variant, text, lb_device_known(NULL)->name, err.text);
}

static const char *const variants[] = {"cluster", "grid", "step"};
static const char *const kinds[] = {"f16/train", "f32/train", "f32/infer/tf32", "f64/infer"};
enum { VARIANTS = 3, KINDS = 4 };

/* Launches all kinds of one shape. */
static int launch_shape(const char *device, const char *shape)
{
    int launched = 0;
    for (int i = 0; i < VARIANTS * KINDS; i++) {
        char text[LB_CASE_ID_SIZE];
        struct lb_error err = {""};
        snprintf(text, sizeof(text), "%s/%s", shape, kinds[i % KINDS]);
        enum lb_status st = launch(variants[i / KINDS], text, &err);
        if (st != LB_OK && st != LB_UNSUPPORTED)
            fail_msg("fused:%s/%s on %s: %s", variants[i / KINDS], text, device, err.text);
        launched += st == LB_OK;
    }
    return launched;
}

TEST_WITH(every_launch_of_the_gpu_cases_is_within_the_limits, scratch_setup, scratch_teardown)
{
    static const char *const devices[] = {"a100", "rtx4090", "h100", "h200", "b200", "rtx5090"};
    for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
        char line[256];
        int launched = 0;
        FILE *file = fopen(LB_SOURCE_DIR "/bench/cases/gpu.txt", "r");
        assert_non_null(file);
        install(devices[d]);
        while (fgets(line, sizeof(line), file)) {
            char shape[48];
            if (sscanf(line, "%47[TBIHLD0-9_]", shape) == 1)
                launched += launch_shape(devices[d], shape);
        }
        fclose(file);
        const struct fake_cudart_counts *counts = fake_cudart_counts();
        print_message(
            "%s: %d cases, %d launches, %d of clusters, %d cooperative, %d beyond 48 KiB\n",
            devices[d], launched, counts->launches, counts->clusters, counts->cooperative,
            counts->beyond_48k);
        assert_true(counts->cooperative > 0 && counts->beyond_48k > 0);
        assert_int_equal(counts->clusters > 0, d > 1);
        /* Occupancy was asked with the sizes of the launch. Mutant: asked without shared memory. */
        assert_int_equal(counts->other_than_asked, 0);
    }
}

/* A wavefront puts layers on streams of their own. Each launch of a recurrence has the highest
 * priority, while the GEMMs and element-wise kernels of other layers have the lowest. Cooperative
 * launches follow one another on one stream. */
TEST(recurrences_come_first_and_cooperative_ones_stay_on_one_stream)
{
    static const char shape[] = "T1024_B4_H128_L3/f16/train";
    const struct fake_cudart_counts *counts = fake_cudart_counts();
    install("h100");
    expect_launch("cluster", shape);
    assert_true(counts->clusters > 3 * 2);
    assert_int_equal(counts->urgent, counts->clusters);
    assert_true(counts->launches > counts->urgent); /* bias gradients */
    assert_int_equal(__builtin_popcount(counts->cluster_streams), 3);
    install("h100");
    expect_launch("grid", shape);
    assert_int_equal(counts->cooperative, 3 * 2);
    assert_int_equal(counts->urgent, counts->cooperative);
    assert_int_equal(__builtin_popcount(counts->cooperative_streams), 1);
    install("h100");
    expect_launch("step", shape);
    assert_true(counts->urgent >= 3 * 2 * 1024);
    /* Two blocks of a step find shared memory on one SM. Mutant: no maximum is asked for. */
    assert_int_equal(counts->carved, counts->urgent);
}

/* Clusters that all run at once have SMs of their own; where there are more, two may share one. */
TEST(clusters_share_no_sm_while_there_are_enough)
{
    static const struct {
        const char *device, *text;
        bool share;
    } cases[] = {
        {"h100", "T4_B64_H128/f16/infer", false},    {"h100", "T4_B4096_H128/f16/infer", true},
        {"h100", "T4_B8_H256_L2/f16/train", false},  {"h100", "T4_B128_H128_L4/f16/infer", true},
        {"rtx5090", "T4_B16_H128/f16/infer", false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        install(cases[i].device);
        expect_launch("cluster", cases[i].text);
        const struct fake_cudart_counts *counts = fake_cudart_counts();
        assert_true(counts->clusters > 0);
        if (counts->sharing != (cases[i].share ? counts->clusters : 0))
            fail_msg("%s: %d of %d", cases[i].text, counts->sharing, counts->clusters);
    }
}

TEST(a_kernel_that_is_not_readied_is_refused)
{
    static const char text[] = "T4_B16_H1024/f32/infer";
    struct lb_error err = {""};
    install("h100");
    expect_launch("grid", text);
    assert_true(fake_cudart_counts()->beyond_48k > 0);
    readies_nothing = true;
    install("h100");
    assert_int_equal(launch("grid", text, &err), LB_FAILED);
    readies_nothing = false;
    assert_non_null(strstr(err.text, "launching the grid kernel: CUDA error 1"));
}

/* The first step of a call follows what is no step, so that it must begin after that. Backward has
 * a fifth launch, for step -1; wide ones are of clusters, which follow each other too. */
TEST(steps_follow_each_other_where_the_device_can)
{
    static const char narrow[] = "T4_B16_H256/f16/train", wide[] = "T4_B64_H1024/f16/train";
    static const struct {
        const char *device, *text;
        int driver, code, following, clusters;
    } cases[] = {
        {"h100", narrow, 12030, 0, 3 + 4, 0}, {"b200", narrow, 13000, 0, 3 + 4, 0},
        {"h100", narrow, 12020, 0, 0, 0},     {"a100", narrow, 13000, 0, 0, 0},
        {"h100", wide, 12030, 0, 3 + 4, 5},   {"h100", wide, 12020, 0, 0, 5},
        {"a100", wide, 13000, 0, 0, 0},       {"h100", wide, 13000, 80, 0, 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        install(cases[i].device);
        fake_cudart_set_versions(cases[i].driver, cases[i].code);
        expect_launch("step", cases[i].text);
        assert_int_equal(fake_cudart_counts()->following, cases[i].following);
        assert_int_equal(fake_cudart_counts()->clusters, cases[i].clusters);
        expect_launch("grid", cases[i].text);
        assert_int_equal(fake_cudart_counts()->following, cases[i].following);
    }
}

/* A device runs code for older ones too, where kernels that need more are empty. */
TEST(a_device_or_code_that_is_too_old_for_a_kernel_is_told)
{
    static const char text[] = "T4_B16_H256/f16/infer", wide[] = "T4_B16_H2048/f16/infer";
    static const struct {
        const char *device;
        int code;
        const char *variant, *text, *says;
    } cases[] = {
        {"t4", 0, "cluster", text, "this is a Tesla T4 (7.5)"},
        {"t4", 0, "grid", text, "this is a Tesla T4 (7.5)"},
        {"t4", 0, "step", text, "this is a Tesla T4 (7.5)"},
        {"h100", 80, "cluster", text, "its code here is for compute capability 8.0"},
        {"h100", 120, "grid", wide, "its code here is for compute capability 12.0"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct lb_error err = {""};
        install(cases[i].device);
        fake_cudart_set_versions(0, cases[i].code);
        assert_int_equal(launch(cases[i].variant, cases[i].text, &err), LB_UNSUPPORTED);
        assert_non_null(strstr(err.text, cases[i].says));
    }
}

/* A device that no model describes has clusters as wide as its architecture forms, not an H100's.
 */
TEST(clusters_of_an_unknown_device_are_as_wide_as_its_architecture_forms)
{
    static const struct {
        const char *name;
        int major, shared_kib;
        enum lb_status wide; /* of the variant that needs a cluster of 16 blocks */
    } devices[] = {{"NVIDIA H800", 9, 227, LB_OK},
                   {"NVIDIA B300 SXM6 AC", 10, 227, LB_OK},
                   {"NVIDIA RTX PRO 6000 Blackwell", 12, 99, LB_UNSUPPORTED}};
    static const char text[] = "T4_B8_H512/f16/infer";
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        struct lb_device_info info = {.major = devices[i].major,
                                      .sm_count = 132,
                                      .memory_bytes = 80e9,
                                      .l2_bytes = 50 << 20,
                                      .shared_bytes = devices[i].shared_kib << 10};
        snprintf(info.name, sizeof(info.name), "%s", devices[i].name);
        install_device(&info);
        assert_int_equal(launch("cluster", text, NULL), devices[i].wide);
        expect_launch("auto", text);
    }
}

/* Whatever the model promised: what the device refuses is no failure of the case, and auto takes
 * another family. */
TEST(a_cluster_that_the_device_does_not_form_is_unsupported)
{
    static const char text[] = "T4_B8_H512/f16/train";
    struct lb_device_info info = trial_device("h100");
    struct lb_error err = {""};
    info.modelled = false;
    info.major = 11;
    install_device(&info);
    assert_int_equal(launch("cluster", text, &err), LB_UNSUPPORTED);
    assert_string_equal(err.text, "this device cannot run a cluster of 16 blocks");
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    expect_launch("auto", text);
    assert_true(fake_cudart_counts()->cooperative > 0);
}

/* Creates the case as --tune does, with all plans measured first. description may be NULL. */
static enum lb_status tune(const char *text, char description[512], struct lb_error *err)
{
    struct lb_problem p = trial_problem(text);
    const struct lb_exec_config config = {.threads = 1,
                                          .variant = "auto",
                                          .stream = lb_device()->stream(),
                                          .forward_only = p.pass == LB_FORWARD};
    void *self = calloc(1, lb_impl_fused.state_size);
    if (config.forward_only)
        p.pass = LB_TRAIN;
    const struct lb_given_files given = {.tuned = scratch_path("tuned.txt"), .tune = true};
    lb_give_files(&given);
    enum lb_status st = lb_impl_fused.create(self, &p, &config, err);
    if (st == LB_OK && description)
        snprintf(description, 512, "%s", lb_impl_fused.describe(self));
    lb_impl_fused.destroy(self);
    free(self);
    lb_give_files(&(struct lb_given_files){0});
    return st;
}

TEST_WITH(a_plan_that_can_not_be_launched_is_passed_over, scratch_setup, scratch_teardown)
{
    char description[512] = "";
    struct lb_error err = {""};
    install("h100");
    refused_kernels = 2;
    if (tune("T4_B16_H256/f16/infer", description, &err) != LB_OK)
        fail_msg("%s", err.text);
    assert_int_equal(refused_kernels, 0);
    assert_non_null(strstr(description, "tuned, "));
    refused_kernels = 1 << 20; /* all plans are refused, so the reason is that of the last one */
    assert_int_equal(tune("T4_B16_H512/f16/infer", NULL, &err), LB_FAILED);
    assert_non_null(strstr(err.text, "tuning: launching the "));
    assert_non_null(strstr(err.text, "CUDA error 701"));
    refusal = cudaErrorMemoryAllocation;
    assert_int_equal(tune("T4_B16_H512/f16/infer", NULL, &err), LB_OOM);
    refusal = cudaErrorLaunchOutOfResources;
    refused_kernels = 0;
}

static int references;

static enum lb_status count_reference(double *ns, struct lb_error *err)
{
    if (references++ == 0)
        assert_int_equal(fake_cudart_counts()->launches, 0);
    return lb_device_cuda.reference(ns, err);
}

TEST_WITH(plans_are_compared_at_the_clock_of_a_busy_device, scratch_setup, scratch_teardown)
{
    struct lb_device_api counted = lb_device_cuda;
    counted.reference = count_reference;
    install("h100");
    const struct lb_device_info info = *lb_device_known(NULL);
    lb_device_use(&counted);
    lb_device_assume(&info, NULL);
    assert_int_equal(tune("T4_B16_H256/f16/infer", NULL, NULL), LB_OK);
    assert_in_range(references, 100, 1000);
    lb_device_use(&lb_device_cuda);
}

TEST_WITH(passes_that_are_timed_are_tuned, scratch_setup, scratch_teardown)
{
    static const char *const texts[] = {"T4_B16_H256/f16/forward", "T4_B16_H256/f16/train"};
    for (int i = 0; i < 2; i++) {
        install("h100");
        assert_int_equal(tune(texts[i], NULL, NULL), LB_OK);
        char *tuned = scratch_read(scratch_path("tuned.txt"), NULL);
        assert_non_null(strstr(tuned, "fused forward in training"));
        assert_int_equal(strstr(tuned, "fused backward") != NULL, i == 1);
        free(tuned);
    }
}

/* Runs in a process of its own, because a lost device stays lost. */
TEST_WITH(a_plan_that_loses_the_device_ends_the_case_with_its_reason, scratch_setup,
          scratch_teardown)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        struct lb_error err = {""};
        install("h100");
        fake_device_break(FAKE_LAUNCH_FAULT);
        bool right = tune("T4_B16_H256/f16/infer", NULL, &err) == LB_FAILED &&
                     lb_device()->lost() && strstr(err.text, "tuning: ") &&
                     strstr(err.text, "CUDA error 700");
        if (!right)
            print_error("%s\n", err.text);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Tests the GPU implementations that call libraries. Their host code and that of the device
 * layer run on fakes of the CUDA runtime, cuBLAS and cuDNN. The tests cover conformance, and the
 * result of each fault of a library or an implementation. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cublas_v2.h>
#include <cudnn.h>

#include "cuda/common/cell.h"
#include "device/streams.h"
#include "impls/cudnn/rnn.h"
#include "tests/fake_gpu/fake_libraries.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cudnn, lb_impl_cuda_step, lb_impl_cuda_naive;
extern const struct lb_impl *lb_plugin(uint32_t abi); /* tests/plugins/bad_address.c */

/* The linker redirects calls of this function here (--wrap), so that a test can leave it out. */
static bool no_zeroed_tails;

__typeof__(lb_cell_zero_tails) __real_lb_cell_zero_tails, __wrap_lb_cell_zero_tails;
enum lb_status __wrap_lb_cell_zero_tails(enum lb_dtype dtype, void *tensor, const int32_t *lengths,
                                         int64_t steps, int64_t batch, int64_t width, void *stream,
                                         struct lb_error *err)
{
    return no_zeroed_tails ? LB_OK
                           : __real_lb_cell_zero_tails(dtype, tensor, lengths, steps, batch, width,
                                                       stream, err);
}

/* ---- Running a case ------------------------------------------------------------------------ */

/* Installs CUDA's device layer on fakes in the state of a new process. device: NULL for the
 * default one. */
static void install_device(const struct lb_device_info *device, enum fake_fault fault,
                           enum fake_cudnn_fault in_cudnn)
{
    fake_device_install(fault);
    if (device)
        fake_device_be(device);
    fake_cudart_reset();
    fake_cublas_reset(FAKE_CUBLAS_NONE);
    fake_cudnn_reset(in_cudnn);
    lb_device_use(&lb_device_cuda);
    assert_int_equal(lb_device_open(0, NULL), LB_OK);
}

static void install(enum fake_fault fault, enum fake_cudnn_fault in_cudnn)
{
    install_device(NULL, fault, in_cudnn);
}

static const struct lb_impl *impl_of(const char *text)
{
    if (strncmp(text, "bad_address", 11) == 0)
        return lb_plugin(LB_IMPL_ABI);
    static const struct lb_impl *const impls[] = {&lb_impl_cudnn, &lb_impl_cuda_step,
                                                  &lb_impl_cuda_naive};
    for (size_t i = 0; i < sizeof(impls) / sizeof(impls[0]); i++)
        if (strncmp(text, impls[i]->name, strlen(impls[i]->name)) == 0)
            return impls[i];
    fail_msg("%s: no such implementation", text);
    return NULL;
}

/* Runs a case with two samples and returns its row. */
static struct lb_row run(const char *text)
{
    struct lb_run_options options = {
        .seed = 7, .sampler = lb_sampler_defaults(), .cache = trial_cache, .loss_scale = 1};
    struct lb_row row;
    options.sampler.min_samples = options.sampler.max_samples = 2;
    trial_case_run(impl_of(text), text, &options, &row);
    /* The device layer keeps one allocation each for hashes, clocks and its reference. */
    assert_in_range(fake_device_counts()->allocations, 0, 3);
    return row;
}

static void expect(const char *text, enum lb_verdict verdict, const char *says)
{
    struct lb_row row = run(text);
    if (row.verdict != verdict || !strstr(row.reason, says))
        fail_msg("%s: %s: %s", text, lb_verdict_name(row.verdict), row.reason);
    lb_row_free(&row);
}

/* Checks that the case is right in each order that the waits between streams allow. */
static void expect_ok(const char *text)
{
    for (int order = 0; order < FAKE_ORDER_COUNT; order++) {
        install(FAKE_NONE, FAKE_CUDNN_SOUND);
        fake_queue_order((enum fake_order)order);
        expect(text, LB_VERDICT_OK, "");
    }
    fake_queue_order(FAKE_LAZY);
}

/* ---- Conformance --------------------------------------------------------------------------- */

static const char *const shapes[] = {
    "T1_B1_I1_H1",    "T7_B3_I5_H6",           "T9_B5_I4_H8/ragged",
    "T5_B4_I3_H7_D2", "T6_B5_I3_H5_D2/ragged", "T11_B3_I4_H5_L3",
    "T4_B2_I3_H200",  "T7_B3_I5_H6_P2",        "T6_B3_I4_H5_L3_D2/ragged",
    "T1_B1_I1_H2_P1", "T6_B4_I3_H7_P3_L3",     "T5_B3_I4_H9_P8_L2_D2/ragged"};
static const char *const dtypes[] = {"f64", "f32", "f16", "bf16"};
static const char *const passes[] = {"infer", "forward", "backward", "train"};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), KINDS = 16 };

/* "IMPL/T7_B3_I5_H6/f32/train/ragged" names a case by its implementation, shape, dtype and pass. */
static void name_case(const char *impl, int shape, int kind, char text[LB_CASE_ID_SIZE])
{
    const char *slash = strchr(shapes[shape], '/');
    int length = slash ? (int)(slash - shapes[shape]) : (int)strlen(shapes[shape]);
    snprintf(text, LB_CASE_ID_SIZE, "%s/%.*s/%s/%s%s", impl, length, shapes[shape],
             dtypes[kind / 4], passes[kind % 4], slash ? slash : "");
}

/* Runs each pass and dtype of all shapes with the standard algorithm, and of the first shapes,
 * of which the third is ragged, with the others. The model must accept every case that the rules
 * accept. */
TEST(every_algorithm_of_cudnn_agrees_with_the_oracle)
{
    int right = 0, unsupported = 0;
    for (int v = 0; v < CUDNN_VARIANT_COUNT; v++) {
        for (int i = 0; i < (v == CUDNN_STANDARD ? SHAPES : 3) * KINDS; i++) {
            char text[LB_CASE_ID_SIZE], name[32];
            snprintf(name, sizeof(name), "cudnn:%s", lb_cudnn_variant_names[v]);
            name_case(name, i / KINDS, i % KINDS, text);
            install(FAKE_NONE, FAKE_CUDNN_SOUND);
            struct lb_problem p = trial_problem(text);
            struct lb_row row = run(text);
            bool takes = lb_cudnn_rules_check((enum lb_cudnn_variant)v, &p, lb_device_known(NULL),
                                              NULL) == LB_OK;
            if (row.verdict != (takes ? LB_VERDICT_OK : LB_VERDICT_UNSUPPORTED))
                fail_msg("%s: %s: %s", text, lb_verdict_name(row.verdict), row.reason);
            right += takes;
            unsupported += !takes;
            lb_row_free(&row);
        }
    }
    print_message("cudnn: %d right, %d unsupported\n", right, unsupported);
    assert_true(right > 200 && unsupported > 0);
}

/* test_gpu_loops.c tests all orders of streams and all shapes without the library. */
TEST(loops_on_cublas_agree_with_the_oracle)
{
    static const char *const problems[] = {
        "T7_B3_I5_H6/f64/train",           "T9_B5_I4_H8/f32/train/ragged",
        "T6_B5_I3_H5_D2/f16/train/ragged", "T11_B3_I4_H5_L3/bf16/train",
        "T8_B3_I5_H6/f32/infer/tf32",      "T8_B3_I5_H6/f32/backward/half"};
    static const char *const impls[] = {"cuda_step", "cuda_naive"};
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof(problems) / sizeof(problems[0]); k++) {
            char text[LB_CASE_ID_SIZE];
            snprintf(text, sizeof(text), "%s/%s", impls[i], problems[k]);
            expect_ok(text);
        }
    }
}

TEST(graphs_cold_caches_and_batches_are_timed)
{
    static const char *const impls[] = {"cudnn:standard", "cudnn", "cuda_step", "cuda_naive"};
    static const char *const kinds[] = {"f32/train/graph", "f16/backward/graph/cold",
                                        "f32/infer/batched"};
    char text[LB_CASE_ID_SIZE];
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            snprintf(text, sizeof(text), "%s/T4_B2_H4_L2/%s", impls[i], kinds[k]);
            install(FAKE_NONE, FAKE_CUDNN_SOUND);
            expect(text, LB_VERDICT_OK, "");
            assert_int_equal(fake_device_counts()->captures > 0, k < 2);
        }
}

/* ---- What auto chooses --------------------------------------------------------------------- */

static void expect_choice(const char *text, const char *expected)
{
    static const double forward_ns[] = {30e3, 10e3, 15e3, 60e3},
                        backward_ns[] = {10e3, 40e3, 20e3, 60e3};
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    for (int a = 0; a < 4; a++)
        fake_cudnn_set_time(a, forward_ns[a], backward_ns[a]);
    struct lb_row row = run(text);
    if (row.verdict != LB_VERDICT_OK || strncmp(row.description, expected, strlen(expected)) != 0)
        fail_msg("%s: %s: %s%s", text, lb_verdict_name(row.verdict), row.reason, row.description);
    lb_row_free(&row);
}

/* persist_static is the fastest in forward calls, standard in backward calls, and persist_dynamic
 * in both together. */
TEST(auto_times_what_is_measured)
{
    expect_choice("cudnn/T5_B2_H4/f32/infer", "persist_static;");
    expect_choice("cudnn/T5_B2_H4/f32/forward", "persist_static;");
    expect_choice("cudnn/T5_B2_H4/f32/train", "persist_dynamic;");
    expect_choice("cudnn/T5_B2_H4/f32/backward", "standard;");
    /* The other algorithms refuse projections, in the rules and in the library. */
    expect_choice("cudnn/T5_B2_H4_P2/f32/train", "standard;");
}

/* A device whose clock rises while it works: standard, the first candidate, is the fastest then. */
static enum lb_status raise_clock(double *ns, struct lb_error *err)
{
    static int calls;
    if (++calls == 100)
        fake_cudnn_set_time(0, 10e3, 0);
    return lb_device_cuda.reference(ns, err);
}

TEST(auto_compares_at_the_clock_of_a_busy_device)
{
    struct lb_device_api slow_at_first = lb_device_cuda;
    slow_at_first.reference = raise_clock;
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    const struct lb_device_info info = *lb_device_known(NULL);
    lb_device_use(&slow_at_first);
    lb_device_assume(&info, NULL);
    for (int a = 0; a < 4; a++)
        fake_cudnn_set_time(a, 20e3 + 10e3 * (a == 0), 0);
    struct lb_row row = run("cudnn/T5_B2_H4/f32/infer");
    if (strncmp(row.description, "standard;", 9) != 0)
        fail_msg("%s%s", row.reason, row.description);
    lb_row_free(&row);
    lb_device_use(&lb_device_cuda);
}

TEST(auto_times_replays_where_graphs_are_measured)
{
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    expect("cudnn:standard/T5_B2_H4/f32/infer/graph", LB_VERDICT_OK, "");
    int alone = fake_device_counts()->captures;
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    expect("cudnn/T5_B2_H4/f32/infer/graph", LB_VERDICT_OK, "");
    assert_int_equal(fake_device_counts()->captures, alone + 4);
}

TEST(ragged_calls_are_not_captured)
{
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    expect("cudnn/T5_B2_H4/f32/infer/ragged/graph", LB_VERDICT_UNSUPPORTED, "lengths");
}

/* ---- Faults -------------------------------------------------------------------------------- */

/* Faults of the library, and arguments that it refuses or that make the results wrong. */
TEST(faults_of_cudnn_end_in_a_verdict)
{
    static const char projected[] = "cudnn:standard/T5_B2_H6_P3/f32/infer",
                      train[] = "cudnn:standard/T5_B2_H4/f32/train";
    static const struct {
        enum fake_cudnn_fault fault;
        const char *text;
        enum lb_verdict verdict;
        const char *says;
    } cases[] = {
        {FAKE_CUDNN_PROBE_FAILS, "cudnn/T5_B2_H4/f32/infer", LB_VERDICT_ERROR,
         "persist_static: cudnnGetRNNTempSpaceSizes: cuDNN status 4000"},
        {FAKE_CUDNN_PROBE_REFUSES, "cudnn/T5_B2_H4/f32/infer", LB_VERDICT_OK, ""},
        {FAKE_CUDNN_PROBE_REFUSES, "cudnn:persist_static/T5_B2_H4/f32/infer",
         LB_VERDICT_UNSUPPORTED, "the probe was made to refuse"},
        {FAKE_CUDNN_CALL_FAILS, "cudnn:standard/T5_B2_H4/f32/infer", LB_VERDICT_ERROR,
         "cudnnRNNForward: cuDNN status 5000"},
        {FAKE_CUDNN_CALL_FAILS, "cudnn/T5_B2_H4/f32/infer/graph", LB_VERDICT_ERROR,
         "standard: cudnnRNNForward: cuDNN status 5000"},
        {FAKE_CUDNN_MOVES_WEIGHTS, "cudnn:standard/T5_B2_H4/f32/infer", LB_VERDICT_ERROR,
         "places part 2 of layer_dir 0 outside"},
        {FAKE_CUDNN_MOVES_WEIGHTS, projected, LB_VERDICT_ERROR, "places part 8 of layer_dir 0"},
        {FAKE_CUDNN_GROWS, "cudnn:standard/T5_B2_H4/f32/infer/ragged", LB_VERDICT_ERROR,
         "needs 8192 bytes of workspace"},
        {FAKE_CUDNN_NO_PADDED_IO, "cudnn:standard/T5_B2_H4/f32/infer", LB_VERDICT_UNSUPPORTED,
         "CUDNN_RNN_PADDED_IO_ENABLED"},
        {FAKE_CUDNN_WRONG_MATH, "cudnn:standard/T5_B2_H4/f64/infer", LB_VERDICT_UNSUPPORTED,
         "mathType"},
        {FAKE_CUDNN_NO_PROJECTION, projected, LB_VERDICT_ERROR,
         "cuDNN has no part 8 of layer_dir 0"},
        {FAKE_CUDNN_OTHER_BATCH, "cudnn:persist_dynamic/T5_B2_H4/f32/infer", LB_VERDICT_UNSUPPORTED,
         "built for batch 3, called with 2"},
        {FAKE_CUDNN_WIDE_STATES, projected, LB_VERDICT_ERROR,
         "the states' descriptor has other sizes"},
        {FAKE_CUDNN_OTHER_MATRIX, projected, LB_VERDICT_WRONG, "y"},
        {FAKE_CUDNN_OTHER_MATRIX, "cudnn:standard/T5_B2_H6_P3/f32/train", LB_VERDICT_WRONG, ""},
        {FAKE_CUDNN_FULL_LENGTHS, "cudnn:standard/T5_B3_H4/f32/infer/ragged", LB_VERDICT_ERROR,
         "the descriptors of x and y do not match"},
        {FAKE_CUDNN_SET_GRADIENTS, train, LB_VERDICT_UNSUPPORTED, "gradients can only be added"},
        {FAKE_CUDNN_SHORT_WEIGHTS, train, LB_VERDICT_ERROR, "bytes of weights are too few"},
        {FAKE_CUDNN_SHORT_WORKSPACE, train, LB_VERDICT_ERROR, "bytes of workspace are too few"},
        {FAKE_CUDNN_SHORT_RESERVE, train, LB_VERDICT_ERROR, "bytes of reserve space are too few"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        install(FAKE_NONE, cases[i].fault);
        expect(cases[i].text, cases[i].verdict, cases[i].says);
    }
}

/* Runs the case in a process of its own, because a lost device stays lost. */
static void expect_elsewhere(enum fake_fault fault, const char *text, enum lb_verdict verdict,
                             const char *says, bool lost)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        install(fault, FAKE_CUDNN_SOUND);
        struct lb_row row = run(text);
        bool right = row.verdict == verdict && strstr(row.reason, says) && row.samples == 0 &&
                     lb_device()->lost() == lost;
        if (!right)
            print_error("%s: %s: %s\n", text, lb_verdict_name(row.verdict), row.reason);
        _exit(right ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

TEST(faults_of_the_device_end_in_a_verdict)
{
    static const char *const impls[] = {"cudnn:standard", "cudnn", "cuda_step", "cuda_naive"};
    for (int i = 0; i < 4; i++) {
        char text[LB_CASE_ID_SIZE];
        snprintf(text, sizeof(text), "%s/T4_B2_H4/f32/train", impls[i]);
        expect_elsewhere(FAKE_OOM, text, LB_VERDICT_OOM, "needs", false);
        expect_elsewhere(FAKE_OOM_LATE, text, LB_VERDICT_OOM, "allocating", false);
        expect_elsewhere(FAKE_LIBRARY_FAULT, text, LB_VERDICT_ERROR, "CUDA error 700", true);
        if (i >= 2)
            expect_elsewhere(FAKE_LAUNCH_FAULT, text, LB_VERDICT_ERROR, "CUDA error 700", true);
        snprintf(text, sizeof(text), "%s/T4_B2_H4/f32/train/graph", impls[i]);
        expect_elsewhere(FAKE_NO_CAPTURE, text, LB_VERDICT_ERROR, "capturing a graph", false);
    }
}

/* As in gpu-check.sh on a real device, the case costs one row and the device is lost. */
TEST(a_kernel_that_reads_nowhere_costs_one_row)
{
    expect_elsewhere(FAKE_NONE, "bad_address/T7_B2_H4/f32/infer", LB_VERDICT_ERROR,
                     "CUDA error 700", true);
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    expect("bad_address/T5_B2_H4/f32/infer", LB_VERDICT_OK, "");
}

/* cuDNN has kernels for older devices, but those of the harness are built for compute capability
 * 8.0 and later. */
TEST(an_older_device_is_refused)
{
    static const char *const texts[] = {"cuda_step/T4_B2_H4/f32/infer",
                                        "cuda_naive/T4_B2_H4/f16/train", "cudnn/T4_B2_H4/f32/infer",
                                        "cudnn:standard/T4_B2_H4/f32/train/graph"};
    struct lb_device_info t4 = trial_device("t4");
    t4.modelled = false;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        install_device(&t4, FAKE_NONE, FAKE_CUDNN_SOUND);
        expect(texts[i], LB_VERDICT_UNSUPPORTED,
               "needs compute capability 8.0, this is a Tesla T4 (7.5)");
    }
}

/* The library loads its kernels in the first call, which must not become a sample. */
TEST(a_slow_first_call_is_no_sample)
{
    install(FAKE_SLOW_FIRST, FAKE_CUDNN_SOUND);
    struct lb_row row = run("cuda_step/T4_B2_H4/f32/infer");
    assert_int_equal(row.verdict, LB_VERDICT_OK);
    assert_false(fake_device_strikes(FAKE_SLOW_FIRST)); /* the fault has occurred */
    for (size_t i = 0; i < row.samples; i++)
        assert_true(row.samples_ns[i] < 1e9);
    lb_row_free(&row);
}

TEST(a_loop_that_gets_its_gemms_wrong_is_found)
{
    static const struct {
        enum fake_cublas_mistake mistake;
        enum lb_verdict verdict;
        const char *says;
    } cases[] = {
        {FAKE_CUBLAS_NO_WORKSPACE, LB_VERDICT_OOM, "cuBLAS status 3 (3)"},
        {FAKE_CUBLAS_SMALL_WORKSPACE, LB_VERDICT_OOM, "cuBLAS status 3 (3)"},
        {FAKE_CUBLAS_SHORT_ROWS, LB_VERDICT_ERROR, "cuBLAS status 7 (7)"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        install(FAKE_NONE, FAKE_CUDNN_SOUND);
        fake_cublas_reset(cases[i].mistake);
        expect("cuda_step/T5_B2_H4/f32/infer", cases[i].verdict, cases[i].says);
    }
}

TEST(padding_that_is_not_zeroed_is_found)
{
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    no_zeroed_tails = true;
    expect("cudnn:standard/T5_B3_H4/f32/train/ragged", LB_VERDICT_WRONG, "dx");
    no_zeroed_tails = false;
}

/* Runs a second backward pass on a reserve space that the first has already used up. */
static enum lb_status backward_twice(void *self, const struct lb_backward_io *io,
                                     struct lb_error *err)
{
    enum lb_status st = lb_impl_cudnn.backward(self, io, err);
    return st == LB_OK ? lb_impl_cudnn.backward(self, io, err) : st;
}

TEST(a_reserve_space_serves_one_backward_pass)
{
    struct lb_impl twice = lb_impl_cudnn;
    struct lb_run_options options = {
        .seed = 7, .sampler = lb_sampler_defaults(), .cache = trial_cache, .loss_scale = 1};
    struct lb_row row;
    twice.backward = backward_twice;
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    trial_case_run(&twice, "cudnn:standard/T5_B2_H4/f32/train", &options, &row);
    assert_int_equal(row.verdict, LB_VERDICT_WRONG);
    lb_row_free(&row);
}

static void *first_stream;

/* A thread that uses the device, a library's handles and cuDNN once. */
static void *pass_by(void *user)
{
    struct lb_problem problem = trial_problem("T5_B2_H4/f32/infer");
    struct lb_streams *streams = NULL;
    void *scratch = NULL;
    (void)user;
    assert_int_equal(lb_device()->enter(NULL), LB_OK);
    const struct lb_exec_config config = {
        .stream = lb_device()->stream(), .threads = 1, .variant = "standard"};
    assert_ptr_not_equal(config.stream, first_stream);
    assert_int_equal(lb_device()->allocate(lb_stream_scratch_bytes(), &scratch, NULL), LB_OK);
    assert_int_equal(lb_streams_create(1, config.stream, scratch, &streams, NULL), LB_OK);
    lb_streams_destroy(streams);
    lb_device()->release(scratch);
    void *self = calloc(1, lb_impl_cudnn.state_size);
    assert_int_equal(lb_impl_cudnn.create(self, &problem, &config, NULL), LB_OK);
    lb_impl_cudnn.destroy(self);
    free(self);
    return NULL;
}

/* The fakes have fewer streams, events and handles than threads that come and go here. */
TEST(what_a_thread_uses_of_the_device_ends_with_it)
{
    install(FAKE_NONE, FAKE_CUDNN_SOUND);
    first_stream = lb_device()->stream();
    for (int i = 0; i < 70; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, pass_by, NULL), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_ptr_equal(lb_device()->stream(), first_stream);
}

TEST_GROUP(NULL, trial_close_cache)

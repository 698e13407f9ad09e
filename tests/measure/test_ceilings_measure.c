/* --ceilings on devices of all speeds: a fake device whose clock follows a model of a GPU. It has
 * no memory, because nothing that is measured looks at it. */
#include "device/streams.h"
#include "measure/ceilings_measure.h"
#include "measure/gpu_latency.h"
#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/queue.h"
#include "tests/helpers/test.h"

/* A GPU: bytes per second of a copy, flops per second in GEMMs, and how long the first GEMM
 * of a dtype takes to load its kernel. */
static const struct gpu {
    const char *name;
    double copy_bytes_s, flops_s[LB_DTYPE_COUNT], load_ns;
} gpus[] = {
    {"H100", 2.5e12, {[LB_F64] = 6e13, [LB_F32] = 5e13, [LB_F16] = 8e14, [LB_BF16] = 8e14}, 3e8},
    {"RTX 4060", 2.4e11, {[LB_F64] = 2.4e11, [LB_F32] = 1.2e13, [LB_F16] = 6e13, 6e13}, 3e8},
    {"GT 1030", 4e10, {[LB_F64] = 3e10, [LB_F32] = 9e11, [LB_F16] = 1.4e10, [LB_BF16] = 1e10}, 1e9},
};

static const struct gpu *gpu;
static int loaded, refused = -1, fatal = -1; /* dtypes */
static bool copies_fail;

/* fake_work */
static enum lb_status take(const void *ns, struct lb_error *err)
{
    fake_clock_add(*(const double *)ns - FAKE_WORK_NS);
    return LB_OK;
}

static enum lb_status work(double ns, struct lb_error *err)
{
    return fake_enqueue(NULL, take, &ns, sizeof(ns), err);
}

/* ---- What is enqueued on it: these functions stand for the library's. ------------------------ */

enum lb_status lb_streams_create(int count, void *stream, void *scratch, struct lb_streams **out,
                                 struct lb_error *err)
{
    *out = NULL;
    return LB_OK;
}

void lb_streams_destroy(struct lb_streams *streams)
{
}

size_t lb_stream_scratch_bytes(void)
{
    return 64;
}

enum lb_status lb_launch_empty(void *unused, struct lb_error *err)
{
    return work(2000, err);
}

enum lb_status lb_stream_copy(struct lb_streams *streams, int stream_index, void *to,
                              const void *from, size_t bytes, struct lb_error *err)
{
    if (copies_fail)
        return lb_fail(err, LB_FAILED, "the planted failure");
    return work(2 * (double)bytes / gpu->copy_bytes_s * 1e9, err);
}

enum lb_status lb_stream_gemm(struct lb_streams *streams, int stream_index, const struct lb_gemm *g,
                              struct lb_error *err)
{
    if ((int)g->in == fatal)
        return fake_device_lose(err);
    if ((int)g->in == refused)
        return lb_fail(err, LB_FAILED, "the planted failure");
    double load_ns = loaded & 1 << g->in ? 0 : gpu->load_ns;
    loaded |= 1 << g->in;
    return work(load_ns + 2.0 * (double)(g->m * g->n * g->k) / gpu->flops_s[g->in] * 1e9 + 5000,
                err);
}

enum lb_status lb_latency_measure(struct lb_ceilings *ceilings, struct lb_error *err)
{
    ceilings->all[LB_BARRIER_NS] = 1500;
    ceilings->all[LB_CLUSTER_BARRIER_NS] = 300;
    ceilings->all[LB_PEER_NS] = 200;
    ceilings->all[LB_FAR_NS] = 700;
    fake_clock_add(1e8);
    return LB_OK;
}

/* ---- Tests. --------------------------------------------------------------------------------- */

/* Counts the figures and remembers the last one that failed. */
struct heard {
    int figures;
    char failed[128];
};

static void hear(void *user, const struct lb_ceilings *ceilings, const char *figure,
                 const char *failed)
{
    struct heard *heard = user;
    heard->figures++;
    if (failed[0])
        snprintf(heard->failed, sizeof(heard->failed), "%.40s: %.80s", figure, failed);
}

static enum lb_status measure(const struct gpu *on, struct lb_ceilings *ceilings,
                              struct heard *heard)
{
    const struct lb_device_info info = {
        .name = "made up", .uuid = "GPU-made-up", .sm_count = 30, .memory_bytes = 8e9};
    const struct lb_ceilings_observer observer = {heard, hear};
    struct lb_error err = {""};
    gpu = on;
    loaded = 0;
    *heard = (struct heard){0};
    fake_device_install(FAKE_NONE);
    fake_device_be(&info);
    fake_device_hollow_out();
    lb_device_assume(&info, NULL);
    return lb_ceilings_measure(20, ceilings, &observer, &err);
}

TEST(a_card_of_any_speed_is_measured_within_30_s)
{
    for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
        struct lb_ceilings ceilings;
        struct heard heard;
        assert_int_equal(measure(&gpus[i], &ceilings, &heard), LB_OK);
        if (fake_clock_ns() > 30e9)
            fail_msg("%s: %.0f s", gpus[i].name, fake_clock_ns() / 1e9);
        assert_string_equal(heard.failed, "");
        assert_true(fabs(ceilings.all[LB_READ + LB_MEMORY] / gpu->copy_bytes_s - 1) < 0.01);
        for (int d = 0; d < LB_INT8; d++) /* for which no implementation on a GPU exists */
            assert_true(fabs(ceilings.all[LB_FLOPS + d] / gpu->flops_s[d] - 1) < 0.05);
        assert_true(fabs(ceilings.all[LB_GRAPH_NODE_NS] - 2000) < 10);
        assert_true(fabs(ceilings.all[LB_LAUNCH_NS] - 2000) < 10);
        assert_true(ceilings.all[LB_FAR_NS] == 700);
    }
}

/* A dtype or a copy that is refused costs no other figure, and a device that is lost none from
 * before. */
TEST(a_figure_that_fails_costs_no_other)
{
    struct lb_ceilings ceilings;
    struct heard heard;
    refused = LB_BF16;
    assert_int_equal(measure(&gpus[0], &ceilings, &heard), LB_OK);
    refused = -1;
    assert_string_equal(heard.failed, "bf16 GEMMs in ieee math: the planted failure");
    assert_true(isnan(ceilings.all[LB_FLOPS + LB_BF16]));
    assert_true(ceilings.all[LB_FLOPS + LB_F16] > 0 && ceilings.all[LB_FAR_NS] == 700);
    copies_fail = true;
    assert_int_equal(measure(&gpus[0], &ceilings, &heard), LB_OK);
    copies_fail = false;
    assert_string_equal(heard.failed, "copy: the planted failure");
    assert_true(isnan(ceilings.all[LB_READ + LB_MEMORY]));
    assert_true(ceilings.all[LB_EVENT_NS] >= 0 && ceilings.all[LB_LAUNCH_NS] > 0);
    fatal = LB_F16;
    assert_int_equal(measure(&gpus[0], &ceilings, &heard), LB_FAILED);
    fatal = -1;
    assert_true(ceilings.all[LB_FLOPS + LB_F64] > 0 && ceilings.all[LB_FLOPS + LB_F32] > 0);
    assert_true(heard.figures >= 3);
}

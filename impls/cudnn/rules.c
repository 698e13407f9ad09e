/* What cuDNN's RNN can do, as tables. The limits are those that the library itself names in its log
 * (cuDNN 9.19: descriptors can be probed without a GPU) and those of its API reference. */
#include "impls/cudnn/rules.h"

#include <string.h>

enum {
    SEQ_LEN_MAX = 65535,    /* of a data descriptor */
    SMALL_H_MAX = 192,      /* largest hidden size of the algorithm SMALL_H */
    SMALL_H_BACKWARD = 128, /* largest hidden size for which PyTorch uses it in a backward pass */
    /* PyTorch's gate for PERSIST_STATIC (RNN.cpp). */
    PERSIST_H_MAX = 1024,
    PERSIST_H_STEP = 128,
    PERSIST_BATCH_MAX = 128,
    PERSIST_SMS = 98
};

const char *const lb_cudnn_variant_names[CUDNN_VARIANT_COUNT + 1] = LB_CUDNN_VARIANTS;

enum lb_cudnn_variant lb_cudnn_variant_of(const char *name)
{
    for (int v = 0; name && v < CUDNN_VARIANT_COUNT; v++)
        if (strcmp(lb_cudnn_variant_names[v], name) == 0)
            return (enum lb_cudnn_variant)v;
    return CUDNN_AUTO;
}

/* Says in one sentence why a problem is not taken. */
#define REFUSED(...) lb_fail(why, LB_UNSUPPORTED, __VA_ARGS__)

/* What holds for every variant. */
static enum lb_status check_all(const struct lb_problem *p, const struct lb_device_info *device,
                                struct lb_error *why)
{
    const int64_t int_max = INT32_MAX;
    if (p->act == LB_ACT_RELU)
        return REFUSED("act relu: cuDNN's LSTM cell has tanh only (its relu is that of the plain "
                       "RNN)");
    if (p->seq_len > SEQ_LEN_MAX)
        return REFUSED("seq_len %lld is above %d, the most that cuDNN takes", (long long)p->seq_len,
                       SEQ_LEN_MAX);
    if (p->input > int_max || p->layers > int_max || p->batch > int_max / p->hidden)
        return REFUSED("a size, or batch times hidden, is above 2^31 - 1, the most that cuDNN "
                       "takes");
    return lb_device_needs(device, 8, "", why); /* as the kernels of the harness do */
}

enum lb_status lb_cudnn_rules_check(enum lb_cudnn_variant variant, const struct lb_problem *problem,
                                    const struct lb_device_info *device, struct lb_error *why)
{
    const struct lb_problem *p = problem;
    LB_CHECK(check_all(p, device, why));
    if (variant == CUDNN_AUTO || variant == CUDNN_STANDARD)
        return LB_OK;
    if (p->cell == LB_CELL_PROJECTION)
        return REFUSED("cell projection: only the standard algorithm has projections");
    if (p->ragged)
        return REFUSED("ragged: only the standard algorithm takes rows of different lengths");
    if (p->dtype == LB_F64 && variant != CUDNN_PERSIST_DYNAMIC)
        return REFUSED("dtype f64: only the standard and persist_dynamic algorithms take it");
    if (variant == CUDNN_SMALL_H && p->hidden > SMALL_H_MAX)
        return REFUSED("hidden %lld is above %d, the most that small_h takes", (long long)p->hidden,
                       SMALL_H_MAX);
    return LB_OK;
}

/* PyTorch's gate for PERSIST_STATIC: why gets the first criterion that fails, as half a sentence.
 * device NULL: unknown, taken for a large one. */
static enum lb_status check_persist_gate(const struct lb_problem *p,
                                         const struct lb_device_info *device, struct lb_error *why)
{
    long long hidden = p->hidden, input = p->input, layers = p->layers, batch = p->batch;
    if (p->dtype != LB_F16)
        return REFUSED("dtype %s is not f16", lb_dtype_name(p->dtype));
    if (layers != 1)
        return REFUSED("layers %lld is not 1", layers);
    if (p->directions != 1)
        return REFUSED("directions %lld is not 1", (long long)p->directions);
    if (hidden > PERSIST_H_MAX)
        return REFUSED("hidden %lld is above %d", hidden, PERSIST_H_MAX);
    if (hidden % PERSIST_H_STEP != 0)
        return REFUSED("hidden %lld is not a multiple of %d", hidden, PERSIST_H_STEP);
    if (input % PERSIST_H_STEP != 0)
        return REFUSED("input %lld is not a multiple of %d", input, PERSIST_H_STEP);
    if (device && device->minor == 6)
        return REFUSED("compute capability %d.%d is left out", device->major, device->minor);
    if (batch % 8 != 0)
        return REFUSED("batch %lld is not a multiple of 8", batch);
    if (batch > PERSIST_BATCH_MAX)
        return REFUSED("batch %lld is above %d", batch, PERSIST_BATCH_MAX);
    if (device && device->sm_count < PERSIST_SMS)
        return REFUSED("the device has %d multiprocessors, fewer than %d", device->sm_count,
                       PERSIST_SMS);
    return LB_OK;
}

enum lb_cudnn_variant lb_cudnn_rules_usual(const struct lb_problem *problem,
                                           const struct lb_device_info *device,
                                           struct lb_error *why)
{
    int64_t small = lb_has_backward(problem) ? SMALL_H_BACKWARD : SMALL_H_MAX;
    /* lb_fail only writes what decides; its status is not used. */
    if (problem->cell == LB_CELL_PROJECTION) {
        lb_fail(why, LB_OK, "only that algorithm has projections");
    } else if (problem->ragged) {
        lb_fail(why, LB_OK, "rows of different lengths");
    } else if (problem->dtype != LB_F64 && problem->hidden <= small) {
        lb_fail(why, LB_OK, "hidden %lld is at most %lld", (long long)problem->hidden,
                (long long)small);
        return CUDNN_SMALL_H;
    } else if (check_persist_gate(problem, device, why) == LB_OK) {
        lb_fail(why, LB_OK, "f16, one layer, one direction, and sizes within its gate");
        return CUDNN_PERSIST_STATIC;
    }
    return CUDNN_STANDARD;
}

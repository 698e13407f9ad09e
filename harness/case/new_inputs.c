/* Calls on inputs that were in no call before: the last step of a case, or one of the samples. An
 * implementation that looks up what it remembers does not have their results, or takes longer to
 * compute them. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "case/context.h"
#include "reference/loss_scale.h"
#include "stats/order_stats.h"

/* A call is slow on new inputs when it takes that many times as long as on known ones. An
 * implementation that waits for half of the time that computing takes is at 2. */
static const double slow = 1.4, clearly = 1.15; /* below the second it clearly is not slow */

/* What a call may gain without remembering results: a CPU's branch predictor learns the inputs of
 * short calls. On a Xeon, cpu_ref gained 5 ns per activation, up to 11 ns beside other programs,
 * and 14 us in all at most. */
static double learned_ns(const struct lb_problem *p)
{
    double rows = (double)p->seq_len * (double)p->batch * (double)lb_layer_dir_count(p);
    return 2000 + 8 * fmin(5 * rows * (double)p->hidden, 1536);
}

/* The time of a call: of the sample, and of the CPUs. Other programs add nothing to the second, and
 * threads that wait for each other add nothing to the first. */
struct call_time {
    double ns, cpu_ns;
};

/* Puts inputs into buffer 0 and times one call on them. */
static enum lb_status time_call_on(struct lb_case_context *context, const struct lb_inputs *inputs,
                                   struct call_time *time, struct lb_error *err)
{
    LB_CHECK(lb_tensors_upload(&context->tensors, 0, inputs, err));
    lb_case_set_order(context, 0, 1);
    LB_CHECK(lb_case_poison_some(context, err));
    LB_CHECK(lb_case_call_before(context, false, err));
    double cpu = lb_process_cpu_ns();
    LB_CHECK(lb_timer_measure(&context->timer, lb_case_call, context, 1, &time->ns, err));
    time->cpu_ns = lb_process_cpu_ns() - cpu;
    return LB_OK;
}

/* Bytes of NaN behind each output in the call on new inputs: there an implementation that writes
 * far past an end hits nothing else. Other calls have none, because with gaps their tensors would
 * share pages and cache sets in another way. */
enum { GAP = 256 << 10, ALIGNMENT = 256 };

/* The memory that stands in for the outputs' own: a mapping, so that the heap stays as it is. */
struct stand_in {
    char *memory; /* NULL on a device, where graphs keep addresses, in a stream, whose outputs are
                     inputs too, and where the memory does not suffice */
    size_t bytes;
    void *own[LB_TENSOR_COUNT];
};

static size_t bytes_with_gap(size_t bytes)
{
    return bytes > 0 ? (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + GAP : 0;
}

static enum lb_status move_outputs(struct lb_case_context *context, struct stand_in *outputs,
                                   struct lb_error *err)
{
    struct lb_tensors *tensors = &context->tensors;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        outputs->bytes += bytes_with_gap(tensors->bytes[t]);
    if (context->on_device || lb_case_streams(context) ||
        lb_host_available() < 2 * (double)outputs->bytes)
        return LB_OK;
    char *at =
        mmap(NULL, outputs->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return lb_fail(err, LB_OOM, "out of memory for outputs with gaps");
    outputs->memory = at;
    lb_poison(at, outputs->bytes);
    context->resident_prepared += (double)outputs->bytes; /* not the implementation's memory */
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++) {
        outputs->own[t] = tensors->at[0][t];
        if (tensors->at[0][t])
            tensors->at[0][t] = tensors->at[1][t] = at;
        at += bytes_with_gap(tensors->bytes[t]);
    }
    lb_case_set_arguments(context);
    return LB_OK;
}

static void move_outputs_back(struct lb_case_context *context, const struct stand_in *outputs)
{
    if (!outputs->memory)
        return;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        context->tensors.at[0][t] = context->tensors.at[1][t] = outputs->own[t];
    lb_case_set_arguments(context);
    munmap(outputs->memory, outputs->bytes);
}

/* Whether the latest call wrote to a gap. */
static enum lb_status check_gaps(struct lb_case_context *context, const struct stand_in *outputs)
{
    const struct lb_tensors *tensors = &context->tensors;
    for (int t = LB_Y; t < LB_TENSOR_COUNT && outputs->memory; t++) {
        const unsigned char *gap = tensors->at[0][t];
        size_t i = 0;
        if (!gap)
            continue;
        gap += tensors->bytes[t];
        if (gap[0] == 0xff && memcmp(gap, gap + 1, GAP - 1) == 0)
            continue;
        while (gap[i] == 0xff)
            i++;
        return lb_case_wrong(context, "%s was written past its end, %zu bytes behind it",
                             lb_tensor_name((enum lb_tensor)t), i);
    }
    return LB_OK;
}

/* Makes a call, or all verified calls of a stream, on the set of inputs that no other call reads,
 * and fetches the results. Buffer 0 holds that set afterwards. *ns: the time of the call, or the
 * median of those times. */
static enum lb_status call_on_new_set(struct lb_case_context *context, double *ns,
                                      struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const size_t count = (size_t)context->plan.chunks;
    double *times = lb_needed(malloc(count * sizeof(*times)));
    if (lb_case_streams(context)) {
        lb_case_begin_stream(context, LB_NEW_SET);
    } else {
        context->held[0] = LB_NEW_SET;
        LB_TRY(lb_tensors_upload(&context->tensors, 0, &context->inputs[LB_NEW_SET], err));
    }
    for (size_t i = 0; i < count; i++) {
        LB_TRY(lb_case_next_calls(context, 0, 1, err));
        LB_TRY(lb_case_poison(context, err));
        LB_TRY(lb_case_call_before(context, false, err));
        LB_TRY(lb_timer_measure(&context->timer, lb_case_call, context, 1, &times[i], err));
        LB_TRY(lb_case_call_after(context, err));
        LB_TRY(lb_case_fetch(context, LB_BY_GRADIENTS, err));
        lb_case_collect_results(context);
    }
    lb_sort(times, count);
    *ns = lb_median(times, count);
done:
    free(times);
    return st;
}

/* Makes that call, or those of a stream, and compares its results with the oracle's. */
static enum lb_status check_new_set(struct lb_case_context *context, double *ns,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct stand_in outputs = {0};
    lb_case_phase(context, "new inputs");
    LB_TRY(move_outputs(context, &outputs, err));
    LB_TRY(call_on_new_set(context, ns, err));
    /* A dynamic loss scale is that of the timed inputs. Where new ones overflow at it, which in
     * training is a step that is skipped, half of it is tried. */
    while (lb_case_has_dynamic_scale(context) && context->loss_scale >= 2 &&
           lb_gradients_non_finite(&context->c->problem, &context->results) > 0) {
        LB_TRY(lb_case_scale_inputs(context, context->loss_scale / 2, err));
        LB_TRY(call_on_new_set(context, ns, err));
    }
    LB_TRY(check_gaps(context, &outputs));
    lb_case_phase(context, "oracle");
    if (lb_case_check_results(context) != LB_OK) {
        lb_row_append(&context->row->reason, ", with inputs that were in no call before");
        st = LB_FAILED;
    }
done:
    move_outputs_back(context, &outputs);
    return st;
}

enum lb_status lb_case_sample_new_inputs(struct lb_case_context *context, double *ns,
                                         struct lb_error *err)
{
    const int held = context->held[0];
    const double start = lb_now_ns();
    LB_CHECK(check_new_set(context, ns, err));
    context->new_inputs_ns = *ns;
    context->held[0] = held;
    LB_CHECK(lb_tensors_upload(&context->tensors, 0, &context->inputs[held], err));
    lb_case_phase(context, "sample");
    context->row->verify_ns += lb_now_ns() - start - *ns;
    return LB_OK;
}

/* A copy of the inputs in one block of memory, *memory. */
static enum lb_status copy_inputs(const struct lb_case_context *context,
                                  const struct lb_inputs *from, struct lb_inputs *copy,
                                  void **memory, struct lb_error *err)
{
    const struct lb_tensors *tensors = &context->tensors;
    char *at = *memory = malloc(lb_tensors_input_bytes(tensors));
    *copy = *from;
    if (!at)
        return lb_fail(err, LB_OOM, "out of memory for other inputs");
    for (int t = LB_X; t <= LB_DCN; t++) {
        if (!from->at[t])
            continue;
        copy->at[t] = memcpy(at, from->at[t], tensors->bytes[t]);
        at += tensors->bytes[t];
    }
    return LB_OK;
}

/* Whether a number of the outputs of forward is not finite, or an h is beyond what o tanh(c) can
 * be, of which the tanh of ONNX Runtime 1.31 may give 1 + 2^-23. *tensor is the first tensor that
 * has one. */
static bool has_impossible(const struct lb_case_context *context, enum lb_tensor *tensor)
{
    enum { BLOCK = 256 };
    const struct lb_results *results = &context->results;
    const struct lb_problem *p = &context->c->problem;
    const bool bounded = p->cell != LB_CELL_PROJECTION && p->cell != LB_CELL_RESIDUAL;
    double block[BLOCK];
    for (int t = LB_Y; t <= LB_CN; t++)
        for (size_t first = 0; first < results->counts[t]; first += BLOCK) {
            size_t n = results->counts[t] - first < BLOCK ? results->counts[t] - first : BLOCK;
            double most = bounded && t != LB_CN ? 1 + 2 * lb_dtype_roundoff(p->dtype) : DBL_MAX;
            lb_load(p->dtype, (char *)results->at[t] + first * lb_dtype_size(p->dtype), block, n);
            *tensor = (enum lb_tensor)t;
            for (size_t i = 0; i < n; i++)
                if (!(fabs(block[i]) <= most))
                    return true;
        }
    return false;
}

/* Makes one forward on an x that is 30 times as large, where gates saturate: activations must not
 * leave their range. f16 can't hold that much of a large x. relu has no range. In a training step
 * that one function computes, the results of forward may be there only when backward has returned.
 */
static enum lb_status check_large_x(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const struct lb_problem *p = &context->c->problem;
    const double most = p->dtype == LB_F16 ? 65504 : FLT_MAX;
    const double larger = fmin(30, most / context->inputs[LB_NEW_SET].x_max);
    enum lb_tensor tensor;
    struct lb_inputs inputs;
    void *memory = NULL;
    if (p->act == LB_ACT_RELU)
        return LB_OK;
    LB_TRY(copy_inputs(context, &context->inputs[LB_NEW_SET], &inputs, &memory, err));
    lb_scale_array(p->dtype, inputs.at[LB_X], inputs.at[LB_X],
                   context->tensors.bytes[LB_X] / lb_dtype_size(p->dtype), larger);
    LB_TRY(lb_tensors_upload(&context->tensors, 0, &inputs, err));
    lb_case_set_order(context, 0, 1);
    /* A stream never makes two calls in a row on the same buffers: here the second must compute. */
    for (int call = lb_case_streams(context) ? 0 : 1; call < 2; call++) {
        LB_TRY(lb_case_poison(context, err));
        LB_TRY(context->impl->forward(context->self, &context->forward[0], err));
        LB_TRY(context->space->synchronize(err));
    }
    LB_TRY(lb_tensors_download(&context->tensors, &context->results, err));
    bool impossible = has_impossible(context, &tensor);
    if (impossible && p->pass == LB_TRAIN) {
        LB_TRY(context->impl->backward(context->self, &context->backward[0], err));
        LB_TRY(context->space->synchronize(err));
        LB_TRY(lb_tensors_download(&context->tensors, &context->results, err));
        impossible = has_impossible(context, &tensor);
    }
    if (impossible)
        st = lb_case_wrong(context, "%s has values that no LSTM gives, with %g times as large an x",
                           lb_tensor_name(tensor), larger);
done:
    free(memory);
    return st;
}

/* Makes all inputs ones that were never used, but the mask of recurrent dropout, whose values are 0
 * and 1.25: draws the first numbers of each anew, and the signs of all others. */
static void draw_inputs_again(struct lb_case_context *context, const struct lb_inputs *inputs)
{
    enum { DRAWN = 16 };
    const enum lb_dtype dtype = context->c->problem.dtype;
    const size_t size = lb_dtype_size(dtype);
    for (int t = LB_X; t <= LB_DCN; t++) {
        unsigned char *values = t == LB_MASK ? NULL : inputs->at[t];
        for (size_t i = 0; values && i < context->tensors.bytes[t] / size; i++) {
            uint64_t bits = lb_random_next(&context->checks.state);
            double number = (double)(bits >> 11) * 0x1p-52 - 1;
            if (i < DRAWN)
                lb_store(dtype, values + i * size, &number, 1);
            else /* the highest byte */
                values[(i + 1) * size - 1] ^= (unsigned char)(bits >> 56 & 0x80);
        }
    }
}

enum { PAIRS = 20 };

/* Times on new inputs over those on known ones, of pairs of calls. */
struct ratios {
    double ns[PAIRS], cpu_ns[PAIRS];
    size_t count;
};

/* Whether both ratios are above the limit. Only the first counts on a device, which computes
 * without the host's CPUs, and with cold caches, whose flushing takes CPU time. */
static bool is_above(const struct lb_case_context *context, double ns, double cpu_ns, double limit)
{
    bool by_cpu = !context->on_device && !context->timer.flush;
    return ns > limit && (!by_cpu || cpu_ns > limit);
}

/* Times a call on inputs that are drawn anew, and one on known ones. *above: whether the first took
 * longer, than the second and than the samples. */
static enum lb_status time_pair(struct lb_case_context *context, const struct lb_inputs *drawn,
                                struct ratios *ratios, bool *above, struct lb_error *err)
{
    const struct lb_inputs *known = &context->inputs[0];
    struct call_time time, known_time;
    draw_inputs_again(context, drawn);
    /* A call in between: threads of the implementation may have gone to sleep meanwhile. */
    LB_CHECK(time_call_on(context, known, &time, err));
    LB_CHECK(time_call_on(context, drawn, &time, err));
    *above = time.ns > clearly * context->row->median_ns;
    if (!*above)
        return LB_OK;
    LB_CHECK(time_call_on(context, known, &known_time, err));
    size_t i = ratios->count++;
    double learned = learned_ns(&context->c->problem);
    ratios->ns[i] = (time.ns - learned) / known_time.ns;
    ratios->cpu_ns[i] = (time.cpu_ns - learned) / known_time.cpu_ns;
    *above = is_above(context, ratios->ns[i], ratios->cpu_ns[i], clearly);
    return LB_OK;
}

/* Times pairs of calls until one shows clearly that new inputs are not slower, which usually is the
 * first. Where none does, the medians of the ratios decide. */
static enum lb_status compare_times(struct lb_case_context *context, struct lb_error *err)
{
    const double enough_ns = fmax(context->options->sampler.max_ns / 10, 1e8);
    const double start = lb_now_ns();
    struct ratios ratios = {.count = 0};
    enum lb_status st = LB_OK;
    bool above = true;
    struct lb_inputs drawn;
    void *memory = NULL;
    LB_TRY(copy_inputs(context, &context->inputs[0], &drawn, &memory, err));
    while (above && ratios.count < PAIRS && (ratios.count < 5 || lb_now_ns() - start < enough_ns))
        LB_TRY(time_pair(context, &drawn, &ratios, &above, err));
    if (!above)
        goto done;
    lb_sort(ratios.ns, ratios.count);
    lb_sort(ratios.cpu_ns, ratios.count);
    double ns = lb_median(ratios.ns, ratios.count);
    if (is_above(context, ns, lb_median(ratios.cpu_ns, ratios.count), slow))
        lb_row_suspect(context->row,
                       "a call takes %.1f times as long with inputs that were in no call before",
                       ns);
done:
    free(memory);
    return st;
}

enum lb_status lb_case_surprise(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const double start = lb_now_ns(), usual = context->row->median_ns;
    double ns = context->new_inputs_ns;
    struct call_time known = {.ns = usual};
    if (ns == 0)
        LB_TRY(check_new_set(context, &ns, err));
    lb_case_phase(context, "new inputs");
    LB_TRY(check_large_x(context, err));
    /* Where calls are this long, the machine may have changed its speed since the samples. */
    if (ns > clearly * usual && usual >= LB_LONG_CALL_NS)
        LB_TRY(time_call_on(context, &context->inputs[0], &known, err));
    if (ns > clearly * usual && ns > clearly * known.ns)
        LB_TRY(compare_times(context, err));
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

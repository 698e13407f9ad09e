/* Runs one case in this process, from supports to destroy, and fills one row with the outcome. */
#include "measure/case_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/random.h"
#include "base/text.h"
#include "device/device.h"
#include "device/memory.h"
#include "device/nvml.h"
#include "device/timer.h"
#include "host/cpu_affinity.h"
#include "measure/call_checks.h"
#include "measure/case_lower_bound.h"
#include "measure/case_probe.h"
#include "measure/case_update.h"
#include "model/sequence_file.h"
#include "reference/case_tensors.h"
#include "reference/loss_scale.h"
#include "stats/order_stats.h"
#include "trace/kernel_trace.h"
#include "trace/nvtx.h"

/* Everything that one case holds while it runs. The implementation keeps pointers to the plan's
 * config and to the buffers, so the context stays where it is until close_case, which releases all
 * of it in reverse order. */
struct case_context {
    const struct lb_impl *impl;
    const struct lb_case *c;
    const struct lb_run_options *options;
    const struct lb_run_observer *observer;
    struct lb_row *row;
    struct lb_nvtx nvtx;

    struct lb_case_plan plan;
    void *self; /* the implementation's state, zeroed before create; NULL until then */
    struct lb_sizes sizes;
    struct lb_buffers buffers; /* of those sizes, in plan.space */
    char cpus[64];             /* the CPUs that the case is pinned to; "" on a device */
    double available_before;   /* bytes that plan.space had left before create */
    double own_bytes;          /* of the buffers and tensors that the harness allocated */
    double used_bytes;         /* of the device, at most, since create */

    struct lb_reference *reference;              /* inputs and expected results */
    struct lb_inputs inputs[LB_INPUT_SETS];      /* the reference's, gradients scaled */
    void *scaled[LB_INPUT_SETS];                 /* those gradients; owned */
    double loss_scale;                           /* of them */
    struct lb_results results;                   /* of the last checked call, on the host */
    struct lb_tensors tensors;                   /* inputs and outputs in plan.space */
    struct lb_forward_io forward[LB_INPUT_SETS]; /* these tensors as arguments, by buffer */
    struct lb_backward_io backward[LB_INPUT_SETS];
    struct lb_case_update update; /* all zero where update is not called */
    struct lb_timer timer;
    int calls; /* per sample: 1 when timed in isolation, more when batched */

    struct lb_call_checks checks;
    int held[LB_INPUT_SETS]; /* which input set each buffer holds */
    uint64_t order;          /* its last bit is the buffer that the next call reads */
    int last_set;            /* the input set that the latest call read */
    struct checked_bits {
        uint64_t results; /* hash of the checked results, in canonical form */
        uint64_t memory;  /* hash of the same where and as the implementation wrote them */
    } bits[LB_INPUT_SETS];
    size_t calls_made, calls_before; /* in all; before the first sample */
    struct lb_holdings holdings;     /* before the first sample */
    double elsewhere_ns, since_ns;   /* lb_cpu_ns_elsewhere and the clock before the first sample */
    double cpus_elsewhere;           /* how many CPUs such threads used during the samples */
    double sm_mhz;                   /* of the multiprocessors from first to last sample, or NaN */
    double verified_ns[LB_INPUT_SETS]; /* times of the calls that were verified first */
    bool verified;                     /* both sets gave right results once */
    bool found_wrong;                  /* by a check between samples; the row has the verdict */
};

static void phase(const struct case_context *context, const char *name)
{
    if (context->observer->phase)
        context->observer->phase(context->observer->user, name);
}

/* Notes the device memory that is now in use beyond what was before create, whoever allocated it,
 * because libraries may allocate more than they said. On the host only the harness's own buffers
 * are known. */
static void note_peak(struct case_context *context)
{
    if (context->impl->memory != LB_DEVICE)
        return;
    double used = context->available_before - context->plan.space->available();
    if (context->update.io.weights.w_ih) /* an optimizer's tensors, which no call reads */
        used -= lb_case_update_bytes(&context->c->problem);
    context->used_bytes = fmax(context->used_bytes, used);
    context->row->peak_bytes = fmax(context->own_bytes, context->used_bytes);
}

/* Takes what stayed in use after the case was closed off its peak: handles and modules that
 * libraries keep for the process. Only the first case that needs them would count them. */
static void leave_out_retained(struct case_context *context)
{
    bool lost = lb_device()->lost && lb_device()->lost();
    if (context->impl->memory != LB_DEVICE || context->used_bytes == 0 || lost)
        return;
    double retained = context->available_before - context->plan.space->available();
    context->row->peak_bytes = fmax(context->own_bytes, context->used_bytes - fmax(retained, 0));
}

/* Bytes of what the implementation asked for. */
static double buffer_bytes(const struct case_context *context)
{
    const struct lb_sizes *s = &context->sizes;
    return (double)s->weights + (double)s->gradients + (double)s->reserve + (double)s->workspace;
}

/* Calls create and sizes, and checks that the memory suffices. */
static enum lb_status open_implementation(struct case_context *context, struct lb_error *err)
{
    const struct lb_impl *impl = context->impl;
    enum lb_status st = LB_OK;
    phase(context, "create");
    context->self = calloc(1, impl->state_size);
    if (!context->self)
        return lb_fail(err, LB_OOM, "allocating %zu bytes of state failed", impl->state_size);
    context->available_before = context->plan.space->available();
    if (impl->memory == LB_HOST)
        lb_pin(context->plan.config.threads, context->cpus, sizeof(context->cpus));

    double start = lb_now_ns();
    LB_TRY(impl->create(context->self, &context->c->problem, &context->plan.config, err));
    LB_TRY(impl->sizes(context->self, &context->sizes, err));
    context->row->prepare_ns = lb_now_ns() - start;

    const struct lb_sizes *s = &context->sizes;
    context->row->weights_bytes = (double)s->weights;
    context->row->gradients_bytes = (double)s->gradients;
    context->row->reserve_bytes = (double)s->reserve;
    context->row->workspace_bytes = (double)s->workspace;
    LB_TRY(lb_check_memory(context->plan.space_bytes + buffer_bytes(context),
                           context->plan.space->available(), context->plan.space->name, err));
done:
    return st;
}

static enum lb_status allocate_buffers(struct case_context *context, struct lb_error *err)
{
    const struct lb_space *space = context->plan.space;
    enum lb_status st = LB_OK;
    LB_TRY(space->allocate(context->sizes.weights, &context->buffers.weights, err));
    LB_TRY(space->allocate(context->sizes.gradients, &context->buffers.gradients, err));
    LB_TRY(space->allocate(context->sizes.reserve, &context->buffers.reserve, err));
    LB_TRY(space->allocate(context->sizes.workspace, &context->buffers.workspace, err));
    LB_TRY(lb_tensors_create(&context->c->problem, space, &context->tensors, err));
    LB_TRY(lb_results_create(&context->c->problem, &context->results, err));
    for (int i = 0; i < LB_INPUT_SETS; i++) {
        context->forward[i] = lb_tensors_forward(&context->tensors, i);
        context->backward[i] = lb_tensors_backward(&context->tensors, i);
    }
    struct lb_row *row = context->row;
    context->own_bytes = (double)lb_tensors_bytes(&context->tensors) + buffer_bytes(context);
    row->peak_bytes = context->own_bytes;
    row->input_sets = LB_INPUT_SETS;
    row->working_set_bytes = row->peak_bytes;
    row->call_bytes = row->peak_bytes - (double)lb_tensors_input_bytes(&context->tensors);
    LB_TRY(
        lb_timer_create(context->impl->memory, context->c->cache == LB_COLD, &context->timer, err));
    context->timer.never_hold = context->options->kernels || context->options->profile;
    note_peak(context);
done:
    return st;
}

/* Puts both input sets into the buffers that context->held says. */
static enum lb_status upload_inputs(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    for (int i = 0; i < LB_INPUT_SETS; i++)
        LB_TRY(lb_tensors_upload(&context->tensors, i, &context->inputs[context->held[i]], err));
done:
    return st;
}

static void set_lower_bound(const struct lb_impl *impl, struct lb_row *row, const int32_t *lengths)
{
    if (impl->memory == LB_DEVICE)
        lb_case_lower_bound(row, lengths);
    else
        lb_case_cpu_lower_bound(row, lengths);
}

/* Whether the loss scale follows the schedule of a dynamic one: where f16 is trained. */
static bool has_dynamic_scale(const struct case_context *context)
{
    return context->options->dynamic_loss_scale && context->plan.has_backward &&
           context->c->problem.dtype == LB_F16;
}

/* Scales the gradients that go in, and puts both input sets into their buffers. */
static enum lb_status scale_inputs(struct case_context *context, double scale, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    context->loss_scale = scale;
    for (int i = 0; i < LB_INPUT_SETS; i++) {
        free(context->scaled[i]);
        context->inputs[i] = *lb_reference_inputs(context->reference, i);
        LB_TRY(lb_loss_scale(&context->c->problem, scale, &context->inputs[i], &context->scaled[i],
                             err));
    }
    LB_TRY(upload_inputs(context, err));
done:
    return st;
}

/* Whether update is called: not for a tool that looks at what the calls of the pass do. */
static bool updates(const struct case_context *context)
{
    return context->impl->update && context->plan.has_backward && !context->options->kernels &&
           !context->options->profile;
}

/* Calls the implementation's prepare, and update where it has one. */
static enum lb_status prepare_implementation(struct case_context *context, struct lb_error *err)
{
    const struct lb_weights *weights = &context->inputs[0].weights;
    const struct lb_impl *impl = context->impl;
    enum lb_status st = LB_OK;
    if (updates(context))
        LB_TRY(lb_case_update_open(&context->c->problem, context->plan.space, weights,
                                   &context->update, err));
    double start = lb_now_ns();
    if (updates(context))
        LB_TRY(
            lb_case_update_prepare(impl, context->self, &context->buffers, &context->update, err));
    else
        LB_TRY(impl->prepare(context->self, &context->buffers, weights, err));
    LB_TRY(context->plan.space->synchronize(err));
    context->row->prepare_ns += lb_now_ns() - start;
    if (updates(context))
        LB_TRY(lb_case_update_poison_weights(&context->update, err));
done:
    return st;
}

/* Brings everything in place for calls: expected results, buffers, inputs and converted weights. */
static enum lb_status prepare(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    phase(context, "oracle");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_ORACLE);
    if (context->options->kernels) /* a trace needs inputs alone */
        LB_TRY(lb_reference_open_inputs(&context->c->problem, context->options->seed,
                                        &context->reference, err));
    else
        LB_TRY(lb_reference_open(context->options->cache, &context->c->problem,
                                 context->options->seed, &context->reference, err));
    context->row->verify_ns = lb_now_ns() - start;

    phase(context, "upload");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_PREPARE);
    LB_TRY(allocate_buffers(context, err));
    for (int i = 0; i < LB_INPUT_SETS; i++)
        context->held[i] = i;
    bool fixed = !context->options->dynamic_loss_scale || has_dynamic_scale(context);
    LB_TRY(scale_inputs(context, fixed ? context->options->loss_scale : 1, err));
    const struct lb_inputs *inputs = &context->inputs[0];
    context->buffers.lengths = inputs->lengths;
    if (inputs->lengths)
        set_lower_bound(context->impl, context->row, inputs->lengths);

    phase(context, "prepare");
    LB_TRY(prepare_implementation(context, err));
    if (context->impl->describe) {
        const char *description = context->impl->describe(context->self);
        lb_row_print(&context->row->description, "%s%s%s", description ? description : "",
                     context->cpus[0] ? ", on " : "", context->cpus);
    }
done:
    return st;
}

/* lb_call: one call of the pass, on the buffer of inputs that is next in order. This is what is
 * timed. */
static enum lb_status call_once(void *user, struct lb_error *err)
{
    struct case_context *context = user;
    enum lb_status st = LB_OK;
    uint64_t buffer = context->order & 1;
    context->order = context->order >> 1 | context->order << 63;
    if (context->c->problem.pass != LB_BACKWARD)
        LB_TRY(context->impl->forward(context->self, &context->forward[buffer], err));
    if (context->plan.has_backward)
        LB_TRY(context->impl->backward(context->self, &context->backward[buffer], err));
done:
    return st;
}

/* Fixes which buffers the next calls read, as lb_call_checks_order; calls: how many there will be.
 */
static void set_order(struct case_context *context, uint64_t order, int calls)
{
    context->order = context->timer.order = order;
    context->last_set = context->held[order >> (calls - 1) % 64 & 1];
    context->calls_made += (size_t)calls;
}

/* The untimed work that a call needs before it: backward alone needs a reserve that a forward has
 * just filled, from the inputs that backward will read. */
static enum lb_status call_before(struct case_context *context, struct lb_error *err)
{
    if (context->c->problem.pass != LB_BACKWARD)
        return LB_OK;
    return context->impl->forward(context->self, &context->forward[context->order & 1], err);
}

/* Fills everything that the pass must write with NaN, so that the next check finds what a call
 * leaves unwritten. */
static enum lb_status poison(const struct case_context *context, struct lb_error *err)
{
    enum lb_status st = lb_tensors_poison(&context->tensors, err);
    return st == LB_OK ? context->plan.space->poison(context->buffers.gradients,
                                                     context->sizes.gradients, err)
                       : st;
}

/* What a check between samples returns when it found something wrong; the row has the verdict. */
static enum lb_status give_up(struct case_context *context, struct lb_error *err)
{
    context->found_wrong = true;
    return lb_fail(err, LB_FAILED, "%s", context->row->reason);
}

/* False when the implementation wrote to inputs, weights or lengths, which it may only read; the
 * row then has the verdict and names what was written to. Otherwise *st may be a failure to look.
 */
static bool inputs_intact(struct case_context *context, enum lb_status *st, struct lb_error *err)
{
    enum lb_tensor changed = LB_TENSOR_COUNT;
    const char *name = lb_reference_damage(context->reference);
    *st = LB_OK;
    for (int i = 0; i < LB_INPUT_SETS && !name && *st == LB_OK; i++) {
        *st = lb_tensors_compare(&context->tensors, i, &context->inputs[context->held[i]], &changed,
                                 err);
        name = changed < LB_TENSOR_COUNT ? lb_tensor_name(changed) : NULL;
    }
    if (*st != LB_OK || !name)
        return *st == LB_OK;
    context->row->verdict = LB_VERDICT_WRONG;
    lb_row_print(&context->row->reason, "it wrote to %s, which it may only read", name);
    return false;
}

/* Where the weight gradients of the fetched results come from. */
enum gradient_source {
    BY_GRADIENTS,
    BY_GRADIENTS_ALONE, /* the same, with no inputs to compute them from */
    BY_UPDATE
};

/* Calls gradients while the inputs are NaN, and on the host the workspace as well, whose contents
 * do not survive a call. Gradients that are computed there, instead of in the timed call, become
 * NaN. */
static enum lb_status fetch_gradients_alone(struct case_context *context, struct lb_error *err)
{
    const struct lb_space *space = context->plan.space;
    enum lb_status st = LB_OK;
    if (!inputs_intact(context, &st, err)) /* which could not be seen afterwards */
        return st == LB_OK ? give_up(context, err) : st;
    LB_TRY(lb_tensors_poison_inputs(&context->tensors, err));
    if (context->impl->memory == LB_HOST)
        LB_TRY(space->poison(context->buffers.workspace, context->sizes.workspace, err));
    LB_TRY(context->impl->gradients(context->self, &context->results.gradients, err));
    LB_TRY(upload_inputs(context, err));
done:
    return st;
}

/* Waits for the last call and brings its results to the host, unscaled. */
static enum lb_status fetch_results(struct case_context *context, enum gradient_source source,
                                    struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(context->plan.space->synchronize(err));
    if (context->impl->check)
        LB_TRY(context->impl->check(context->self, err));
    lb_results_poison(&context->results);
    LB_TRY(lb_tensors_download(&context->tensors, &context->results, err));
    if (source == BY_UPDATE)
        LB_TRY(lb_case_update_download(&context->update, &context->results.gradients, err));
    else if (context->plan.has_backward && source == BY_GRADIENTS_ALONE)
        LB_TRY(fetch_gradients_alone(context, err));
    else if (context->plan.has_backward)
        LB_TRY(context->impl->gradients(context->self, &context->results.gradients, err));
    lb_loss_unscale(&context->c->problem, context->loss_scale, &context->results);
    note_peak(context);
done:
    return st;
}

/* A hash of the outputs that the latest call wrote. */
static enum lb_status outputs_hash(const struct case_context *context, uint64_t *hash,
                                   struct lb_error *err)
{
    *hash = 0;
    return lb_tensors_hash(&context->tensors, hash, err);
}

/* The same, and a hash of these outputs and the weight gradients in the implementation's own
 * layout. */
static enum lb_status memory_hash(const struct case_context *context, uint64_t *outputs,
                                  uint64_t *hash, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(outputs_hash(context, outputs, err));
    *hash = *outputs;
    if (context->buffers.gradients)
        LB_TRY(context->plan.space->hash(context->buffers.gradients, context->sizes.gradients, hash,
                                         err));
done:
    return st;
}

/* Compares the outputs with the hash that they had when the latest call had returned. Where
 * something has written to them since, such as check, gradients or a thread, the call's time lacks
 * a part of its work: LB_FAILED, and the row has the verdict. */
static enum lb_status check_finished(struct case_context *context, uint64_t returned,
                                     struct lb_error *err)
{
    uint64_t now;
    enum lb_status st = outputs_hash(context, &now, err);
    if (st != LB_OK || now == returned)
        return st;
    context->row->verdict = LB_VERDICT_WRONG;
    lb_row_print(&context->row->reason,
                 "call %zu was not finished when it had returned: its results changed afterwards",
                 context->calls_made);
    return give_up(context, err);
}

/* Compares the fetched results with those expected of the latest call and notes the errors in the
 * row. False when they are wrong; the row then has the verdict and the reason. */
static bool results_right(struct case_context *context)
{
    struct lb_check check;
    struct lb_row *row = context->row;
    lb_reference_check(context->reference, context->last_set, &context->results, &check);
    row->err_max_abs = check.right ? fmax(row->err_max_abs, check.err_max_abs) : check.err_max_abs;
    row->err_max_rel = check.right ? fmax(row->err_max_rel, check.err_max_rel) : check.err_max_rel;
    row->err_norm = check.right ? fmax(row->err_norm, check.err_norm) : check.err_norm;
    row->tolerance_used =
        check.right ? fmax(row->tolerance_used, check.tolerance_used) : check.tolerance_used;
    if (context->plan.has_backward)
        row->gradient_err_norm = check.right ? fmax(row->gradient_err_norm, check.gradient_err_norm)
                                             : check.gradient_err_norm;
    if (!check.right) {
        row->verdict = LB_VERDICT_WRONG;
        char reason[LB_ROW_TEXT_SIZE];
        bool overflows =
            check.in_gradient && lb_loss_overflow(&context->c->problem, context->loss_scale,
                                                  &context->results, reason, sizeof(reason));
        lb_row_print(&row->reason, "%s", overflows ? reason : check.reason);
    }
    return check.right;
}

/* Adds to a reason that the results were found in a later call, and of how many. */
static void name_call(struct case_context *context)
{
    struct lb_row *row = context->row;
    lb_row_append(&row->reason, ", in call %zu; the first calls were right", context->calls_made);
}

/* Whether the fetched results of the latest call are right, and of the same bits as those that were
 * verified first where the implementation says that it is deterministic. False with the verdict. */
static bool results_repeat(struct case_context *context)
{
    uint64_t first = context->bits[context->last_set].results;
    uint64_t hash = lb_results_hash(&context->results);
    if (hash == first)
        return true;
    phase(context, "oracle");
    bool right = results_right(context);
    phase(context, "sample");
    if (!right) {
        name_call(context);
        return false;
    }
    if (!(context->impl->traits & LB_DETERMINISTIC))
        return true;
    context->row->verdict = LB_VERDICT_WRONG;
    lb_row_print(
        &context->row->reason,
        "says it is deterministic, but call %zu gave other bits (hash %016llx) than the first "
        "call with the same inputs (%016llx)",
        context->calls_made, (unsigned long long)hash, (unsigned long long)first);
    return false;
}

/* False when the implementation wrote before the start or past the end of a buffer; the row then
 * has the verdict and names the buffer. */
static bool guards_intact(struct case_context *context)
{
    const struct {
        const char *name;
        const void *memory;
    } others[] = {
        {"the packed weights", context->buffers.weights},
        {"its gradients", context->buffers.gradients},
        {"the reserve", context->buffers.reserve},
        {"the workspace", context->buffers.workspace},
        {"the updated weights", context->update.weights},
        {"the updated gradients", context->update.gradients},
    };
    const struct lb_gradients *gradients = &context->results.gradients;
    const char *side, *name = NULL;
    if (!context->plan.space->overrun)
        return true;
    enum lb_tensor tensor = lb_tensors_overrun(&context->tensors, &side);
    if (side)
        name = lb_tensor_name(tensor);
    for (size_t i = 0; !side && i < sizeof(others) / sizeof(others[0]); i++)
        if ((side = context->plan.space->overrun(others[i].memory)))
            name = others[i].name;
    if (!side && gradients->dw_ih && (side = context->plan.space->overrun(gradients->dw_ih[0])))
        name = "the weight gradients";
    if (side) {
        context->row->verdict = LB_VERDICT_WRONG;
        lb_row_print(&context->row->reason, "%s was written %s", name, side);
    }
    return !side;
}

/* lb_call: one update, which a step of an optimizer would need. */
static enum lb_status update_once(void *user, struct lb_error *err)
{
    struct case_context *context = user;
    return context->impl->update(context->self, &context->update.io, err);
}

/* Whether the weight gradients that update wrote after the latest call are right, and the weights
 * that it read unchanged. Otherwise the row has the verdict, or *st a failure to look. */
static bool update_right(struct case_context *context, enum lb_status *st, struct lb_error *err)
{
    struct lb_row *row = context->row;
    bool intact = true;
    *st = fetch_results(context, BY_UPDATE, err);
    if (*st == LB_OK)
        *st = lb_case_update_intact(&context->update, &context->inputs[0].weights, &intact, err);
    if (*st != LB_OK)
        return false;
    if (!results_right(context)) {
        char found[LB_ROW_TEXT_SIZE];
        snprintf(found, sizeof(found), "%s", row->reason);
        lb_row_print(&row->reason, "after update: %s", found);
        return false;
    }
    if (intact)
        return true;
    row->verdict = LB_VERDICT_WRONG;
    lb_row_print(&row->reason, "it wrote to the weights of update, which it may only read");
    return false;
}

/* Makes one update after the latest call, on poisoned gradients, and checks it as above. */
static bool check_update(struct case_context *context, enum lb_status *st, struct lb_error *err)
{
    *st = lb_case_update_renew(&context->update, &context->inputs[0].weights, err);
    if (*st == LB_OK)
        *st = update_once(context, err);
    return *st == LB_OK && update_right(context, st, err);
}

/* Writes y of the latest call to the file that the options name. */
static enum lb_status write_outputs(const struct case_context *context, struct lb_error *err)
{
    const struct lb_problem *p = &context->c->problem;
    int64_t width = p->directions * lb_h_size(p);
    size_t count = (size_t)(p->seq_len * p->batch * width);
    double *y = malloc(count * sizeof(*y));
    if (!y)
        return lb_fail(err, LB_OOM, "out of memory for y");
    lb_load(p->dtype, context->results.y, y, count);
    enum lb_status st =
        lb_sequence_file_write(context->options->outputs, p->seq_len, p->batch, width, y, err);
    free(y);
    return st;
}

/* Makes one call on an input set, on poisoned outputs, notes its time and fetches its results. */
static enum lb_status call_on_set(struct case_context *context, int set, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    const uint64_t order = context->held[0] == set ? 0 : UINT64_MAX;
    uint64_t returned;
    phase(context, "verify");
    LB_TRY(poison(context, err));
    set_order(context, order, 1);
    LB_TRY(call_before(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    double start = lb_now_ns();
    LB_TRY(call_once(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    context->verified_ns[set] = lb_now_ns() - start;
    LB_TRY(outputs_hash(context, &returned, err));
    LB_TRY(fetch_results(context, BY_GRADIENTS_ALONE, err));
    LB_TRY(check_finished(context, returned, err));
done:
    return st;
}

/* lb_loss_trial: a step whose gradients are finite must be right, or an overflow was hidden. */
static enum lb_status try_loss_scale(void *user, double scale, int set, bool *overflow,
                                     struct lb_error *err)
{
    struct case_context *context = user;
    struct lb_check check;
    enum lb_status st = LB_OK;
    if (context->loss_scale != scale)
        LB_TRY(scale_inputs(context, scale, err));
    LB_TRY(call_on_set(context, set, err));
    phase(context, "oracle");
    *overflow = lb_gradients_non_finite(&context->c->problem, &context->results) > 0;
    if (*overflow)
        return LB_OK;
    lb_reference_check(context->reference, set, &context->results, &check);
    if (check.right)
        return LB_OK;
    context->row->verdict = LB_VERDICT_WRONG;
    if (check.in_gradient)
        lb_row_print(
            &context->row->reason,
            "at loss scale %g no gradient is infinite or NaN, as after an overflow, but %s", scale,
            check.reason);
    else
        lb_row_print(&context->row->reason, "%s", check.reason);
    context->found_wrong = true;
    st = lb_fail(err, LB_FAILED, "%s", context->row->reason);
done:
    return st;
}

/* Finds the loss scale of the timed calls: the given one, or that at the end of a schedule. */
static enum lb_status settle_loss_scale(struct case_context *context, struct lb_error *err)
{
    struct lb_loss_schedule schedule;
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    if (has_dynamic_scale(context)) {
        lb_nvtx_phase(&context->nvtx, LB_NVTX_VERIFY);
        LB_TRY(lb_loss_schedule_run(context->loss_scale, try_loss_scale, context, &schedule, err));
        context->row->overflow_share = schedule.skipped;
        lb_row_append(&context->row->description, "%sloss scale %g, %.2g %% of steps skipped",
                      context->row->description[0] ? ", " : "", schedule.scale,
                      100 * schedule.skipped);
        if (context->loss_scale != schedule.scale)
            LB_TRY(scale_inputs(context, schedule.scale, err));
    }
    if (context->plan.has_backward)
        context->row->loss_scale = context->loss_scale > 0 ? context->loss_scale : 1;
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Makes one call on an input set, on poisoned outputs, and checks its results. */
static enum lb_status verify_set(struct case_context *context, int set, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    uint64_t outputs;
    LB_TRY(call_on_set(context, set, err));
    struct checked_bits *bits = &context->bits[set];
    LB_TRY(memory_hash(context, &outputs, &bits->memory, err));
    phase(context, "oracle");
    bits->results = lb_results_hash(&context->results);
    if (set == 0)
        context->row->hash = bits->results;
    bool right = results_right(context);
    phase(context, "verify");
    if (set == 0 && right && context->options->outputs)
        LB_TRY(write_outputs(context, err));
    if (right && updates(context))
        right = check_update(context, &st, err);
    if (st == LB_OK)
        context->verified = right && guards_intact(context);
done:
    return st;
}

static enum lb_status verify(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    lb_nvtx_phase(&context->nvtx, LB_NVTX_VERIFY);
    context->verified = true;
    for (int set = 0; context->verified && set < LB_INPUT_SETS; set++) {
        context->verified = false;
        LB_TRY(verify_set(context, set, err));
    }
    context->verified = context->verified && inputs_intact(context, &st, err);
    if (context->verified)
        context->row->verdict = LB_VERDICT_OK;
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Checks the results of the last timed call as well: it must have computed right results too, and
 * the same bits as the first call where the implementation says that it is deterministic. */
static enum lb_status verify_again(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    phase(context, "recheck");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_RECHECK);
    LB_TRY(fetch_results(context, BY_GRADIENTS, err));
    if (!guards_intact(context))
        goto done;
    phase(context, "oracle");
    bool repeats = results_repeat(context);
    phase(context, "recheck");
    if (repeats)
        inputs_intact(context, &st, err);
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Compares what the latest call wrote with the verified call of the same inputs: by a hash that is
 * computed where the results lie, and where that differs, by the fetched results. */
static enum lb_status check_call(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    uint64_t outputs, hash;
    LB_TRY(memory_hash(context, &outputs, &hash, err));
    if (hash == context->bits[context->last_set].memory)
        return LB_OK;
    LB_TRY(fetch_results(context, BY_GRADIENTS, err));
    LB_TRY(check_finished(context, outputs, err));
    if (!results_repeat(context))
        st = give_up(context, err);
done:
    return st;
}

/* Fills a few places of all that the next call must write with NaN. */
static enum lb_status poison_some(struct case_context *context, struct lb_error *err)
{
    uint64_t *random = &context->checks.state;
    enum lb_status st = lb_tensors_poison_some(&context->tensors, random, err);
    return st == LB_OK ? lb_poison_some(context->plan.space, context->buffers.gradients,
                                        context->sizes.gradients, random, err)
                       : st;
}

/* Lets the two input sets change places, so that what is remembered by address is wrong too. */
static enum lb_status swap_inputs(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    LB_TRY(context->plan.space->synchronize(err));
    if (!inputs_intact(context, &st, err)) {
        st = st == LB_OK ? give_up(context, err) : st;
        goto done;
    }
    int first = context->held[0];
    context->held[0] = context->held[1];
    context->held[1] = first;
    LB_TRY(upload_inputs(context, err));
    context->checks.swap_ns = lb_now_ns() - start;
done:
    return st;
}

/* Makes as many calls as one sample times. Before the first one some results become NaN, whether
 * they are checked afterwards or not: an implementation that looks for NaN learns nothing. */
static enum lb_status time_calls(struct case_context *context, int calls, double *ns,
                                 struct lb_error *err)
{
    enum lb_status st = LB_OK;
    if (!context->options->profile)
        LB_TRY(poison_some(context, err));
    set_order(context, lb_call_checks_order(&context->checks), calls);
    LB_TRY(call_before(context, err));
    LB_TRY(lb_timer_measure(&context->timer, call_once, context, calls, ns, err));
done:
    return st;
}

/* Checks a call: that of the sample before, or where calls are timed in batches, the last of
 * another batch, which is not recorded. It ends after a random number of calls, so that any call of
 * a batch may be the one that is checked, and none can know that it is not. */
static enum lb_status check_sample(struct case_context *context, struct lb_error *err)
{
    struct lb_call_checks *checks = &context->checks;
    enum lb_status st = LB_OK;
    double unused, batch_ns = 0; /* of such a batch on average */
    if (context->calls > 1) {
        uint64_t random = lb_random_next(&checks->state);
        LB_TRY(time_calls(context, 1 + (int)(random % (uint64_t)context->calls), &unused, err));
        batch_ns = checks->sample_ns / 2;
    }
    double start = lb_now_ns();
    LB_TRY(check_call(context, err));
    lb_call_checks_note_check(checks, batch_ns + lb_now_ns() - start);
done:
    return st;
}

/* lb_measure: takes one sample, for a profiler without any checks. */
static enum lb_status measure(void *user, double *ns, struct lb_error *err)
{
    struct case_context *context = user;
    struct lb_call_checks *checks = &context->checks;
    bool profiles = context->options->profile != NULL;
    enum lb_status st = LB_OK;
    if (!profiles && lb_call_checks_swap_due(checks))
        LB_TRY(swap_inputs(context, err));
    bool checked = !profiles && lb_call_checks_due(checks);
    /* Else the batch after one that was checked would always be one that is not. */
    bool first = checked && context->calls > 1 && lb_random_next(&checks->state) & 1 << 20;
    if (first)
        LB_TRY(check_sample(context, err));
    LB_TRY(time_calls(context, context->calls, ns, err));
    lb_call_checks_note_sample(checks, *ns * context->calls);
    if (checked && !first)
        LB_TRY(check_sample(context, err));
done:
    return st;
}

/* The flops of one call, of ragged rows with their lengths. */
static double call_flops(const struct case_context *context)
{
    const struct lb_problem *p = &context->c->problem;
    double steps = 0, all = (double)p->seq_len * (double)p->batch;
    for (int64_t b = 0; context->buffers.lengths && b < p->batch; b++)
        steps += context->buffers.lengths[b];
    return context->row->flops * (context->buffers.lengths ? steps / all : 1);
}

/* An upper bound of the flops per second that the case could reach. */
static double peak_flops_s(const struct case_context *context, bool again)
{
    const struct lb_problem *problem = &context->c->problem;
    if (context->impl->memory == LB_DEVICE)
        return lb_gpu_peak_flops_s(problem);
    bool pinned = strncmp(context->cpus, "any", 3) != 0;
    double cpus = pinned ? context->c->threads : (double)sysconf(_SC_NPROCESSORS_ONLN);
    return lb_cpu_peak_flops_s(problem, again) * cpus;
}

/* A rate that the machine cannot reach is wrong, however the results came about. Not for profilers,
 * some of which slow the machine down at one time and not at another. */
static void check_rate(struct case_context *context)
{
    struct lb_row *row = context->row;
    double rate = call_flops(context) / row->median_ns * 1e9;
    if (context->options->profile || row->verdict != LB_VERDICT_OK ||
        !(rate > peak_flops_s(context, false)))
        return;
    double most = peak_flops_s(context, true);
    if (!(rate > most))
        return;
    row->verdict = LB_VERDICT_WRONG;
    lb_row_print(&row->reason,
                 "faster than this machine can compute it: %.3g GFLOP/s measured, at most %.3g",
                 rate / 1e9, most / 1e9);
}

/* Chooses how many calls one sample times. Batched timing takes as many as last 100 us together,
 * because the clock cannot resolve shorter ones. */
static enum lb_status choose_calls(struct case_context *context, struct lb_error *err)
{
    double ns;
    context->calls = 1;
    if (context->c->timing == LB_ISOLATED)
        return LB_OK;
    enum lb_status st = measure(context, &ns, err);
    if (st == LB_OK)
        context->calls = (int)fmin(fmax(ceil(1e5 / ns), 1), 10000);
    return st;
}

/* Enqueues calls of the pass for about 5 ms, without waiting for them. What fails here fails again
 * in the check of the last call, which reports it. */
static void keep_device_busy(struct case_context *context, double call_ns)
{
    enum lb_status st = LB_OK;
    int calls = (int)fmin(fmax(5e6 / fmax(call_ns, 1), 1), 200);
    for (int i = 0; i < calls && st == LB_OK; i++) {
        set_order(context, 0, 1);
        st = call_before(context, NULL);
        if (st == LB_OK)
            st = call_once(context, NULL);
    }
}

/* Notes the clock of the multiprocessors during the samples. Notes the other clocks, the
 * temperature and whether something held clocks down while the device goes on with the work that
 * was sampled, because an idle one lowers its clocks at once. NVML's clock of the multiprocessors
 * stands in where the device can't read its own. */
static void note_device_state(struct case_context *context, double call_ns)
{
    struct lb_gpu_state state;
    char why[160];
    const struct lb_device_info *device = lb_device_known(NULL);
    if (context->impl->memory != LB_DEVICE || !device)
        return;
    context->row->sm_mhz = context->sm_mhz;
    keep_device_busy(context, call_ns);
    if (!lb_nvml_read(device->uuid, &state))
        return;
    if (isnan(context->sm_mhz))
        context->row->sm_mhz = state.sm_mhz;
    context->row->memory_mhz = state.memory_mhz;
    context->row->temperature_c = state.temperature_c;
    lb_throttle_text(state.throttle & ~1ull /* idle, once short work is done */, why, sizeof(why));
    if (why[0])
        lb_row_print(&context->row->warning, "clocks were held down: %s", why);
}

/* Whether the device reads its clocks before the first sample and after the last one. What fails in
 * that fails again in the calls. */
static bool reads_clocks(const struct case_context *context)
{
    return context->impl->memory == LB_DEVICE && !context->timer.never_hold &&
           lb_device()->clock_begin;
}

/* lb_sampler_options.warm */
static void samples_begin(void *user)
{
    struct case_context *context = user;
    context->checks.check_next = true;
    context->calls_before = context->calls_made;
    context->sm_mhz = NAN;
    if (reads_clocks(context))
        (void)lb_device()->clock_begin(NULL);
    if (!context->options->profile) /* which is to see the calls alone */
        context->holdings = lb_holdings_read();
    context->elsewhere_ns = lb_cpu_ns_elsewhere();
    context->since_ns = lb_now_ns();
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TIMED);
}

/* lb_sampler_options.done */
static void samples_end(void *user)
{
    struct case_context *context = user;
    context->cpus_elsewhere =
        (lb_cpu_ns_elsewhere() - context->elsewhere_ns) / (lb_now_ns() - context->since_ns);
    if (reads_clocks(context) && lb_device()->clock_end(&context->sm_mhz, NULL) != LB_OK)
        context->sm_mhz = NAN;
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
}

static void add_warning(struct lb_row *row, const char *text)
{
    lb_row_append(&row->warning, "%s%s", row->warning[0] ? "; " : "", text);
}

/* Adds a warning when the timed calls left memory, file descriptors or threads behind. */
static void note_leaks(struct case_context *context)
{
    char text[200];
    if (context->options->profile)
        return;
    struct lb_holdings now = lb_holdings_read();
    if (lb_leaks_text(&context->holdings, &now, context->calls_made - context->calls_before, text,
                      sizeof(text)))
        add_warning(context->row, text);
}

/* Adds a warning when threads of this process computed on CPUs that --threads does not give it. One
 * CPU less than those is no reason: some libraries can't bind their threads. */
static void note_elsewhere(struct case_context *context)
{
    static const double unnoticed = 0.05; /* of a CPU */
    char text[120];
    double allowed = context->plan.config.threads - 1 + unnoticed;
    if (context->options->profile || !(context->cpus_elsewhere > allowed))
        return;
    snprintf(text, sizeof(text),
             "threads that are not bound to its CPUs (--threads %d) used %.2f CPUs meanwhile",
             context->plan.config.threads, context->cpus_elsewhere);
    add_warning(context->row, text);
}

/* Adds a warning when some of the samples include the launch of the graph and others do not. */
static void note_hold(struct case_context *context)
{
    if (context->timer.hold_expired)
        add_warning(context->row, "launching the graph takes longer than the stream can be held: "
                                  "times include the launch");
}

/* Times the check for overflow that a dynamic loss scale needs per step, which is no part of the
 * timed calls: of all weight gradients in canonical layout, where the implementation has its
 * memory. On the host it is one pass of one thread, on a device a kernel and the way of its answer
 * to the host. It is the same for all implementations. Where it fails the time stays unknown. */
static void time_overflow_check(struct case_context *context)
{
    enum { PASSES = 9 };
    const struct lb_space *space = context->plan.space;
    const void *gradients = context->results.gradients.dw_ih[0];
    size_t count = context->results.counts.weights;
    bool on_device = context->impl->memory == LB_DEVICE;
    double ns[PASSES];
    uint64_t found = 0;
    void *copy = NULL;
    enum lb_status st = LB_OK;
    if (on_device)
        st = space->allocate(count * sizeof(uint16_t), &copy, NULL);
    if (on_device && st == LB_OK)
        st = space->upload(copy, gradients, count * sizeof(uint16_t), NULL);
    for (int i = 0; i < PASSES && st == LB_OK && found == 0; i++) {
        double start = lb_now_ns();
        if (on_device)
            st = lb_device()->overflow(copy, count, &found, NULL);
        else
            found = lb_weight_gradients_non_finite(&context->c->problem, &context->results);
        ns[i] = lb_now_ns() - start;
    }
    space->release(copy);
    if (found > 0)
        add_warning(context->row, "the check for overflow finds some in gradients that are right");
    if (st != LB_OK || found > 0)
        return;
    lb_sort(ns, PASSES);
    context->row->overflow_check_ns = lb_median(ns, PASSES);
}

/* Takes a few samples of update, launched or replayed as the calls are, and notes their median.
 * Afterwards the gradients must be those of the last call. */
static enum lb_status time_update(struct case_context *context, struct lb_error *err)
{
    enum { FEWEST = 3, MOST = 11 };
    static const double enough_ns = 2e7;
    enum lb_status st = LB_OK;
    struct lb_timer timer = {.memory = context->impl->memory};
    double ns[MOST], spent = 0;
    int count = 0;
    phase(context, "update");
    LB_TRY(lb_case_update_renew(&context->update, &context->inputs[0].weights, err));
    LB_TRY(lb_timer_create(context->impl->memory, false, &timer, err));
    LB_TRY(update_once(context, err)); /* loads what is loaded lazily */
    if (context->c->launch == LB_GRAPH)
        LB_TRY(lb_timer_capture(&timer, update_once, context, err));
    while (count < FEWEST || (count < MOST && spent < enough_ns)) {
        LB_TRY(lb_timer_measure(&timer, update_once, context, 1, &ns[count], err));
        spent += ns[count++];
    }
    lb_sort(ns, (size_t)count);
    context->row->update_ns = lb_median(ns, (size_t)count);
    if (!update_right(context, &st, err) || !guards_intact(context))
        context->row->update_ns = (double)NAN;
done:
    lb_timer_destroy(&timer);
    return st;
}

/* Times one call on buffer 0. */
static enum lb_status time_one_call(struct case_context *context, double *ns, struct lb_error *err)
{
    set_order(context, 0, 1);
    enum lb_status st = call_before(context, err);
    return st == LB_OK ? lb_timer_measure(&context->timer, call_once, context, 1, ns, err) : st;
}

/* Times one call on an x that was in no call before: the elements are rotated, and the first ones
 * are drawn. The other inputs stay. */
static enum lb_status time_new_x(struct case_context *context, double *ns, struct lb_error *err)
{
    enum { DRAWN = 16 };
    double numbers[DRAWN], storage[DRAWN];
    const enum lb_dtype dtype = context->c->problem.dtype;
    const struct lb_tensors *tensors = &context->tensors;
    size_t size = lb_dtype_size(dtype), count = tensors->bytes[LB_X] / size;
    size_t by = (size_t)(lb_random_next(&context->checks.state) % count);
    size_t drawn = count < DRAWN ? count : DRAWN;
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < drawn; i++)
        numbers[i] = (double)(lb_random_next(&context->checks.state) >> 11) * 0x1p-52 - 1;
    lb_store(dtype, storage, numbers, drawn);
    LB_TRY(lb_tensors_upload_rotated_x(tensors, 0, &context->inputs[context->held[0]], by * size,
                                       err));
    LB_TRY(tensors->space->upload(tensors->at[0][LB_X], storage, drawn * size, err));
    LB_TRY(time_one_call(context, ns, err));
done:
    return st;
}

/* Times one call on the inputs of the samples. */
static enum lb_status time_known_x(struct case_context *context, double *ns, struct lb_error *err)
{
    const struct lb_inputs *inputs = &context->inputs[context->held[0]];
    enum lb_status st = lb_tensors_upload(&context->tensors, 0, inputs, err);
    return st == LB_OK ? time_one_call(context, ns, err) : st;
}

/* Adds a warning when calls are slower on inputs that were in no call before: the timed calls then
 * looked up results that the implementation remembers. One such call that is not slower suffices.
 * Else calls on both kinds of inputs take turns, because the machine may be slower than before.
 * Calls that are long for the time of a case are left out. */
static enum lb_status compare_with_new_inputs(struct case_context *context, struct lb_error *err)
{
    enum { FEWEST = 3, PAIRS = 20 };
    const double most_ns = context->options->sampler.max_ns / 20;
    static const double slower = 2; /* than what noise does to the fastest of so many calls */
    struct lb_row *row = context->row;
    double start = lb_now_ns(), ns, fastest = INFINITY, known = INFINITY;
    enum lb_status st = LB_OK;
    char text[120];
    if (context->options->profile || context->calls > 1 || row->median_ns > most_ns)
        return LB_OK;
    phase(context, "new inputs");
    for (int i = 0; fastest > slower * row->median_ns &&
                    (i < FEWEST || (i < PAIRS && lb_now_ns() - start < 2 * most_ns));
         i++) {
        LB_TRY(time_new_x(context, &ns, err));
        fastest = fmin(fastest, ns);
        if (fastest > slower * row->median_ns) {
            LB_TRY(time_known_x(context, &ns, err));
            known = fmin(known, ns);
        }
    }
    if (fastest > slower * fmax(row->median_ns, known)) {
        snprintf(text, sizeof(text),
                 "a call takes %.1f times as long with inputs that were in no call before",
                 fastest / row->median_ns);
        add_warning(row, text);
    }
done:
    row->verify_ns += lb_now_ns() - start;
    return st;
}

/* Whether the verified calls are like those that will be timed, so that they are calls of the
 * warm-up. A profiler's calls are all made where it can see them. */
static bool verified_calls_warm_up(const struct case_context *context)
{
    const struct lb_case *c = context->c;
    return c->launch == LB_STREAM && c->cache == LB_HOT && c->timing == LB_ISOLATED &&
           !context->options->profile;
}

/* Times the case: captures a graph if asked for, warms up, takes samples, checks the last call. */
static enum lb_status sample(struct case_context *context, struct lb_error *err)
{
    struct lb_samples samples = {0};
    struct lb_sampler_options sampler = context->options->sampler;
    enum lb_status st = LB_OK;
    phase(context, "sample");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_WARM_UP);
    LB_TRY(poison(context, err));
    for (int i = 0; context->c->launch == LB_GRAPH && i < LB_INPUT_SETS; i++) {
        set_order(context, i == 0 ? 0 : UINT64_MAX, 1);
        LB_TRY(call_before(context, err));
        LB_TRY(lb_timer_capture(&context->timer, call_once, context, err));
    }
    LB_TRY(choose_calls(context, err));
    sampler.warm = samples_begin;
    sampler.done = samples_end;
    sampler.calls = context->calls;
    sampler.made_ns = context->verified_ns;
    sampler.made = verified_calls_warm_up(context) ? LB_INPUT_SETS : 0;
    if (context->options->profile)
        LB_TRY(lb_profile(measure, context, &sampler, context->options->profile, &samples, err));
    else
        LB_TRY(lb_sample(measure, context, &sampler, &samples, err));
    for (size_t i = 0; i < sampler.made && i < samples.warmup; i++)
        context->row->verify_ns -= context->verified_ns[i]; /* they are calls of the warm-up */
    note_device_state(context, samples.count > 0 ? samples.ns[samples.count - 1] : 0);
    note_leaks(context);
    note_elsewhere(context);
    note_hold(context);
    context->row->calls_per_sample = context->calls;
    context->row->checked_calls = (double)context->checks.checked;
    context->row->stop_reason = samples.stop_reason;
    LB_TRY(lb_row_add_block(context->row, samples.ns, samples.count, err));
    LB_TRY(lb_row_summarize(context->row, err));
    LB_TRY(verify_again(context, err));
    check_rate(context);
    if (updates(context) && context->row->verdict == LB_VERDICT_OK)
        LB_TRY(time_update(context, err));
    if (context->row->verdict == LB_VERDICT_OK)
        LB_TRY(compare_with_new_inputs(context, err));
done:
    lb_samples_free(&samples);
    return st;
}

/* lb_traced_call */
static enum lb_status call_for_trace(void *user, struct lb_error *err)
{
    double ns;
    struct case_context *context = user;
    set_order(context, 0, 1);
    return lb_timer_measure(&context->timer, call_once, context, 1, &ns, err);
}

/* Traces the GPU kernels of one call into the row, and warns when they contradict the case's name.
 * A call before it loads what is loaded lazily. */
static enum lb_status trace_kernels(struct case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_row *row = context->row;
    bool graph = context->c->launch == LB_GRAPH;
    phase(context, "trace");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
    LB_TRY(poison(context, err));
    set_order(context, 0, 1);
    LB_TRY(call_before(context, err));
    LB_TRY(call_once(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    if (graph)
        LB_TRY(lb_timer_capture(&context->timer, call_once, context, err));
    LB_TRY(call_before(context, err));
    LB_TRY(context->plan.space->synchronize(err));
    LB_TRY(lb_kernel_trace(call_for_trace, context, graph, &row->kernels, err));
    char contradiction[256];
    lb_kernels_contradict(context->c, &row->kernels, contradiction, sizeof(contradiction));
    lb_row_print(&row->warning, "%s", contradiction);
    row->verdict = LB_VERDICT_OK;
done:
    return st;
}

static void close_case(struct case_context *context)
{
    phase(context, "destroy");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_TEARDOWN);
    if (context->self) {
        context->impl->destroy(context->self);
        free(context->self);
    }
    lb_timer_destroy(&context->timer);
    lb_case_update_close(&context->update);
    lb_unpin();
    lb_tensors_destroy(&context->tensors);
    lb_results_destroy(&context->results);
    context->plan.space->release(context->buffers.workspace);
    context->plan.space->release(context->buffers.reserve);
    context->plan.space->release(context->buffers.gradients);
    context->plan.space->release(context->buffers.weights);
    for (int i = 0; i < LB_INPUT_SETS; i++)
        free(context->scaled[i]);
    if (context->reference) /* a case that failed may have written to weights that others share */
        lb_reference_damage(context->reference);
    lb_reference_close(context->reference);
    lb_nvtx_end(&context->nvtx);
}

/* What a failure makes of the case. verified: calls have given right results already, so that the
 * implementation cannot say any more that it does not support the case. */
static enum lb_verdict verdict_of(enum lb_status st, bool verified)
{
    switch (st) {
    case LB_UNSUPPORTED: return verified ? LB_VERDICT_ERROR : LB_VERDICT_UNSUPPORTED;
    case LB_ABSENT: return verified ? LB_VERDICT_ERROR : LB_VERDICT_ABSENT;
    case LB_OOM: return LB_VERDICT_OOM;
    default: return LB_VERDICT_ERROR;
    }
}

void lb_case_run(const struct lb_impl *impl, const struct lb_case *c,
                 const struct lb_run_options *options, const struct lb_run_observer *observer,
                 struct lb_row *row)
{
    enum lb_status st = LB_OK;
    struct lb_error err = {""};
    double start = lb_now_ns();
    struct case_context context = {
        .impl = impl,
        .c = c,
        .options = options,
        .observer = observer,
        .row = row,
        .plan = {.space = impl->memory == LB_DEVICE ? &lb_device_space : &lb_host_space},
        .timer = {.memory = impl->memory},
        .calls = 1,
    };

    lb_nvtx_begin(&context.nvtx, c);
    lb_nvtx_phase(&context.nvtx, LB_NVTX_PLAN);
    *row = lb_row_make(c);
    row->flops = lb_problem_flops(&c->problem);
    row->bytes = lb_problem_bytes(&c->problem);
    row->deterministic = impl->traits & LB_DETERMINISTIC ? 1 : 0;
    lb_call_checks_open(&context.checks, options->sampler.max_ns);
    row->order_seed = (double)context.checks.seed;
    /* A missing device is reported first, whatever else the implementation does not support. */
    if (impl->memory == LB_DEVICE && !lb_device_known(&err))
        LB_TRY(LB_ABSENT);
    LB_TRY(lb_case_plan(impl, c, lb_host_available(), &context.plan, &err));
    set_lower_bound(impl, row, NULL);
    LB_TRY(open_implementation(&context, &err));
    LB_TRY(prepare(&context, &err));
    if (options->kernels) {
        LB_TRY(trace_kernels(&context, &err));
        goto done;
    }
    LB_TRY(settle_loss_scale(&context, &err));
    LB_TRY(verify(&context, &err));
    if (row->verdict == LB_VERDICT_OK && !options->outputs) {
        LB_TRY(sample(&context, &err));
        if (has_dynamic_scale(&context))
            time_overflow_check(&context);
    }
done:
    if (st != LB_OK && !context.found_wrong) {
        bool late = context.verified && (st == LB_UNSUPPORTED || st == LB_ABSENT);
        row->verdict = verdict_of(st, context.verified);
        lb_row_print(&row->reason, "%s%s%.400s", late ? lb_status_name(st) : "",
                     late ? ", after calls that were right: " : "",
                     err.text[0] ? err.text : "the implementation gave no reason");
    }
    if (row->verdict != LB_VERDICT_OK)
        lb_row_drop_samples(row);
    lb_row_clean(row);
    row->elapsed_ns = lb_now_ns() - start;
    observer->result(observer->user, row);
    close_case(&context);
    leave_out_retained(&context);
}

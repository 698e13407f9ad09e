/* The step after the samples: checks the last timed call, and finds what explains the times. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/random.h"
#include "case/context.h"
#include "stats/order_stats.h"
#include "trace/kernel_trace.h"

/* Enqueues calls of the pass for about 5 ms, without waiting for them. What fails here fails again
 * in the check of the last call, which reports it. */
static void keep_busy(struct lb_case_context *context, double call_ns)
{
    enum lb_status st = LB_OK;
    int calls = (int)fmin(fmax(5e6 / fmax(call_ns, 1), 1), 200);
    for (int i = 0; i < calls && st == LB_OK; i++) {
        lb_case_set_order(context, 0, 1);
        st = lb_case_call_before(context, NULL);
        if (st == LB_OK)
            st = lb_case_call(context, NULL);
    }
}

/* Adds a warning when the timed calls left memory, file descriptors or threads behind. */
static void note_leaks(struct lb_case_context *context)
{
    char text[200];
    struct lb_holdings now = lb_holdings_read();
    if (lb_leaks_text(&context->holdings, &now, context->calls_made - context->calls_before, text,
                      sizeof(text)))
        lb_row_warn(context->row, text);
}

/* Adds a warning when threads of this process computed on CPUs that --threads does not give it. One
 * CPU less than those is no reason: some libraries can't bind their threads. */
static void note_elsewhere(struct lb_case_context *context)
{
    static const double unnoticed = 0.05; /* of a CPU */
    char text[120];
    if (!(context->cpus_elsewhere > context->plan.config.threads - 1 + unnoticed))
        return;
    snprintf(text, sizeof(text),
             "threads that are not bound to its CPUs (--threads %d) used %.2f CPUs meanwhile",
             context->plan.config.threads, context->cpus_elsewhere);
    lb_row_warn(context->row, text);
}

/* Checks the results of the last timed call as well. */
static enum lb_status check_last_call(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double start = lb_now_ns();
    lb_case_phase(context, "recheck");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_RECHECK);
    LB_TRY(lb_case_fetch(context, LB_BY_GRADIENTS, err));
    LB_TRY(lb_case_check_guards(context));
    LB_TRY(lb_case_check_repeats(context));
    LB_TRY(lb_case_check_inputs(context, err));
done:
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

/* The flops of one call, of ragged rows with their lengths. */
static double call_flops(const struct lb_case_context *context)
{
    const struct lb_problem *p = &context->c->problem;
    double steps = 0, all = (double)p->seq_len * (double)p->batch;
    for (int64_t b = 0; context->buffers.lengths && b < p->batch; b++)
        steps += context->buffers.lengths[b];
    return context->row->flops * (context->buffers.lengths ? steps / all : 1);
}

/* A rate that the machine cannot reach is wrong, however the results came about. */
static enum lb_status check_rate(struct lb_case_context *context)
{
    const struct lb_problem *problem = &context->c->problem;
    double rate = call_flops(context) / context->row->median_ns * 1e9;
    bool bound = strncmp(context->cpus, "any", 3) != 0;
    double cpus = bound ? context->c->threads : (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (!(rate > context->place->peak_flops_s(problem, cpus, false)))
        return LB_OK;
    double most = context->place->peak_flops_s(problem, cpus, true);
    return rate > most ? lb_case_wrong(context,
                                       "faster than this machine can compute it: %.3g GFLOP/s "
                                       "measured, at most %.3g",
                                       rate / 1e9, most / 1e9)
                       : LB_OK;
}

/* Takes a few samples of update, launched or replayed as the calls are, and notes their median.
 * Afterwards the gradients must be those of the last call. */
static enum lb_status time_update(struct lb_case_context *context, struct lb_error *err)
{
    enum { FEWEST = 3, MOST = 11 };
    static const double enough_ns = 2e7;
    enum lb_status st = LB_OK;
    struct lb_timer timer = {.memory = context->impl->memory};
    double ns[MOST], spent = 0;
    int count = 0;
    lb_case_phase(context, "update");
    LB_TRY(lb_case_update_renew(&context->update, &context->inputs[0].weights, err));
    LB_TRY(lb_timer_create(context->impl->memory, false, &timer, err));
    LB_TRY(lb_case_call_update(context, err)); /* loads what is loaded lazily */
    if (context->c->launch == LB_GRAPH)
        LB_TRY(lb_timer_capture(&timer, lb_case_call_update, context, err));
    while (count < FEWEST || (count < MOST && spent < enough_ns)) {
        LB_TRY(lb_timer_measure(&timer, lb_case_call_update, context, 1, &ns[count], err));
        spent += ns[count++];
    }
    LB_TRY(lb_case_check_update(context, err));
    LB_TRY(lb_case_check_guards(context));
    lb_sort(ns, (size_t)count);
    context->row->update_ns = lb_median(ns, (size_t)count);
done:
    lb_timer_destroy(&timer);
    return st;
}

/* Times the check for overflow that a dynamic loss scale needs per step, which is no part of the
 * timed calls: of all weight gradients in canonical layout, where the implementation has its
 * memory. It is the same for all implementations. Where it fails the time stays unknown. */
static void time_overflow_check(struct lb_case_context *context)
{
    enum { PASSES = 9 };
    double ns[PASSES];
    uint64_t found = 0;
    void *copy = NULL;
    size_t bytes = context->results.weight_count * lb_dtype_size(context->c->problem.dtype);
    enum lb_status st = context->space->allocate(bytes, &copy, NULL);
    if (st == LB_OK)
        st = context->space->upload(copy, context->results.gradients.dw_ih[0], bytes, NULL);
    for (int i = 0; i < PASSES && st == LB_OK && found == 0; i++) {
        double start = lb_now_ns();
        st = context->place->count_overflow(context->c, &context->results, copy, &found);
        ns[i] = lb_now_ns() - start;
    }
    context->space->release(copy);
    if (found > 0)
        lb_row_warn(context->row, "the check for overflow finds some in gradients that are right");
    if (st != LB_OK || found > 0)
        return;
    lb_sort(ns, PASSES);
    context->row->overflow_check_ns = lb_median(ns, PASSES);
}

/* Times one call on buffer 0, whose x becomes the given one first. */
static enum lb_status time_call_on(struct lb_case_context *context, const void *x, double *ns,
                                   struct lb_error *err)
{
    const struct lb_tensors *tensors = &context->tensors;
    enum lb_status st = context->space->upload(tensors->at[0][LB_X], x, tensors->bytes[LB_X], err);
    lb_case_set_order(context, 0, 1);
    if (st == LB_OK)
        st = lb_case_call_before(context, err);
    return st == LB_OK ? lb_timer_measure(&context->timer, lb_case_call, context, 1, ns, err) : st;
}

/* Makes x [count] one that was never used: draws its first numbers anew, and all other signs. */
static void draw_again(enum lb_dtype dtype, unsigned char *x, size_t count, uint64_t *random)
{
    enum { DRAWN = 16 };
    const size_t size = lb_dtype_size(dtype);
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = lb_random_next(random);
        double number = (double)(bits >> 11) * 0x1p-52 - 1;
        if (i < DRAWN)
            lb_store(dtype, x + i * size, &number, 1);
        else
            x[(i + 1) * size - 1] ^= (unsigned char)(bits >> 56 & 0x80); /* the highest byte */
    }
}

/* Adds a warning when calls are slower on inputs that were in no call before: the timed calls then
 * looked up results that the implementation remembers. One such call that is not slower suffices.
 * Else calls on both kinds of inputs take turns, because the machine may be slower than before.
 * Batches, and calls that are long for the time of a case, are left out. */
static enum lb_status compare_with_new_inputs(struct lb_case_context *context, struct lb_error *err)
{
    enum { FEWEST = 3, PAIRS = 20 };
    static const double slower = 2; /* than what noise does to the fastest of so many calls */
    const double most_ns = context->options->sampler.max_ns / 20, median = context->row->median_ns;
    const void *known_x = context->inputs[context->held[0]].at[LB_X];
    const size_t bytes = context->tensors.bytes[LB_X];
    const enum lb_dtype dtype = context->c->problem.dtype;
    double start = lb_now_ns(), ns, fastest = INFINITY, known = INFINITY;
    enum lb_status st = LB_OK;
    if (context->calls > 1 || median > most_ns)
        return LB_OK;
    unsigned char *new_x = malloc(bytes);
    if (!new_x)
        return lb_fail(err, LB_OOM, "out of memory for another x");
    memcpy(new_x, known_x, bytes);
    lb_case_phase(context, "new inputs");
    for (int i = 0; fastest > slower * median &&
                    (i < FEWEST || (i < PAIRS && lb_now_ns() - start < 2 * most_ns));
         i++) {
        draw_again(dtype, new_x, bytes / lb_dtype_size(dtype), &context->checks.state);
        LB_TRY(time_call_on(context, new_x, &ns, err));
        fastest = fmin(fastest, ns);
        LB_TRY(time_call_on(context, known_x, &ns, err));
        known = fmin(known, ns);
    }
    if (fastest > slower * fmax(median, known)) {
        char text[120];
        snprintf(text, sizeof(text),
                 "a call takes %.1f times as long with inputs that were in no call before",
                 fastest / median);
        lb_row_warn(context->row, text);
    }
done:
    free(new_x);
    context->row->verify_ns += lb_now_ns() - start;
    return st;
}

enum lb_status lb_case_diagnose(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    bool profiles = context->options->profile != NULL; /* which may slow one time or another down */
    if (context->place->note_state) { /* an idle device lowers its clocks at once */
        keep_busy(context, context->row->median_ns);
        context->place->note_state(context->row, context->sm_mhz);
    }
    if (!profiles) {
        note_leaks(context);
        note_elsewhere(context);
    }
    if (context->timer.hold_expired)
        lb_row_warn(context->row, "launching the graph takes longer than the stream can be held: "
                                  "times include the launch");
    LB_TRY(check_last_call(context, err));
    if (!profiles)
        LB_TRY(check_rate(context));
    if (lb_case_updates(context))
        LB_TRY(time_update(context, err));
    if (lb_case_has_dynamic_scale(context))
        time_overflow_check(context);
    if (!profiles)
        LB_TRY(compare_with_new_inputs(context, err));
done:
    return st;
}

/* lb_traced_call */
static enum lb_status call_for_trace(void *user, struct lb_error *err)
{
    double ns;
    struct lb_case_context *context = user;
    lb_case_set_order(context, 0, 1);
    return lb_timer_measure(&context->timer, lb_case_call, context, 1, &ns, err);
}

enum lb_status lb_case_trace(struct lb_case_context *context, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_row *row = context->row;
    bool graph = context->c->launch == LB_GRAPH;
    char contradiction[256];
    lb_case_phase(context, "trace");
    lb_nvtx_phase(&context->nvtx, LB_NVTX_NONE);
    LB_TRY(lb_case_poison(context, err));
    lb_case_set_order(context, 0, 1);
    LB_TRY(lb_case_call_before(context, err));
    LB_TRY(lb_case_call(context, err)); /* loads what is loaded lazily */
    LB_TRY(context->space->synchronize(err));
    if (graph)
        LB_TRY(lb_timer_capture(&context->timer, lb_case_call, context, err));
    LB_TRY(lb_case_call_before(context, err));
    LB_TRY(context->space->synchronize(err));
    LB_TRY(lb_kernel_trace(call_for_trace, context, graph, &row->kernels, err));
    lb_kernels_contradict(context->c, &row->kernels, contradiction, sizeof(contradiction));
    lb_row_print(&row->warning, "%s", contradiction);
    row->verdict = LB_VERDICT_OK;
done:
    return st;
}

/* One checked call of an implementation through the contract, for tests. */
#include "trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"

/* What an implementation asked for, each in a block of just that size. */
static enum lb_status allocate(const struct lb_sizes *sizes, struct lb_buffers *buffers)
{
    const size_t bytes[4] = {sizes->weights, sizes->gradients, sizes->reserve, sizes->workspace};
    void **const slots[4] = {&buffers->weights, &buffers->gradients, &buffers->reserve,
                             &buffers->workspace};
    for (size_t i = 0; i < 4; i++) {
        size_t rounded = (bytes[i] + 255) / 256 * 256;
        *slots[i] = bytes[i] ? aligned_alloc(256, rounded) : NULL;
        if (bytes[i] && !*slots[i])
            return LB_OOM;
        lb_poison(*slots[i], bytes[i]);
    }
    return LB_OK;
}

static enum lb_status call(const struct lb_impl *impl, void *self, const struct lb_problem *problem,
                           const struct lb_inputs *in, const struct lb_results *out,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_forward_io forward = {
        .x = in->x, .h0 = in->h0, .c0 = in->c0, .y = out->y, .hn = out->hn, .cn = out->cn};
    struct lb_backward_io backward = {.x = in->x,
                                      .h0 = in->h0,
                                      .c0 = in->c0,
                                      .y = out->y,
                                      .dy = in->dy,
                                      .dhn = in->dhn,
                                      .dcn = in->dcn,
                                      .dx = out->dx,
                                      .dh0 = out->dh0,
                                      .dc0 = out->dc0};
    LB_TRY(impl->forward(self, &forward, err));
    if (lb_has_backward(problem)) {
        LB_TRY(impl->backward(self, &backward, err));
        LB_TRY(impl->gradients(self, &out->gradients, err));
    }
done:
    return st;
}

enum lb_status trial_run(const struct lb_impl *impl, const struct lb_problem *problem,
                         const struct lb_place *place, const struct lb_inputs *inputs,
                         const struct lb_results *results, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_sizes sizes = {0};
    struct lb_buffers buffers = {.lengths = inputs->lengths};
    void *self = NULL;
    if (lb_has_backward(problem) && !impl->backward)
        return lb_fail(err, LB_UNSUPPORTED, "it has no backward");
    LB_TRY(impl->supports(problem, place, err));
    self = calloc(1, impl->state_size);
    LB_TRY(impl->create(self, problem, place, err));
    LB_TRY(impl->sizes(self, &sizes, err));
    LB_TRY(allocate(&sizes, &buffers));
    LB_TRY(impl->prepare(self, &buffers, &inputs->weights, err));
    lb_results_poison(problem, results);
    LB_TRY(call(impl, self, problem, inputs, results, err));
    /* Once more, as the timed calls do: nothing of the first may be left in the way, nor serve. */
    uint64_t hash = lb_results_hash(problem, results);
    lb_results_poison(problem, results);
    lb_poison(buffers.gradients, sizes.gradients);
    LB_TRY(call(impl, self, problem, inputs, results, err));
    if ((impl->traits & LB_DETERMINISTIC) && lb_results_hash(problem, results) != hash)
        st = lb_fail(err, LB_FAILED, "%s says it is deterministic, and is not", impl->name);
done:
    if (self)
        impl->destroy(self);
    free(self);
    free(buffers.workspace);
    free(buffers.reserve);
    free(buffers.gradients);
    free(buffers.weights);
    return st;
}

enum lb_status trial_check(const struct lb_impl *impl, const struct lb_problem *problem,
                           struct lb_reference_cache *cache, uint64_t seed, struct lb_check *check,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_reference *reference = NULL;
    struct lb_results results = {0};
    struct lb_place place = {.threads = 1, .variant = impl->variants ? impl->variants[0] : NULL};
    *check = (struct lb_check){0};
    LB_TRY(impl->supports(problem, &place, err)); /* before the oracle works for nothing */
    LB_TRY(lb_reference_open(cache, problem, seed, &reference, err));
    LB_TRY(lb_results_create(problem, &results, err));
    LB_TRY(trial_run(impl, problem, &place, lb_reference_inputs(reference), &results, err));
    lb_reference_check(reference, &results, check);
done:
    lb_results_destroy(&results);
    lb_reference_close(reference);
    return st;
}

const char *trial_name(const struct lb_problem *problem)
{
    static char text[LB_CASE_ID_SIZE];
    struct lb_case c = lb_case_defaults();
    c.problem = *problem;
    lb_case_print_problem(&c, text);
    return text;
}

struct lb_problem trial_problem(const char *text)
{
    struct lb_case c;
    struct lb_error err;
    if (lb_case_parse(text, &c, NULL, NULL, &err) != LB_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return c.problem;
}

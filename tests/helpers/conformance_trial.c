/* Calls an implementation through the contract and checks its results; runs whole cases. */
#include "conformance_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/host_memory.h"
#include "device/weight_packing.h"
#include "model/case.h"
#include "model/registry.h"

enum { BUFFERS = 4 };

/* Allocates what an implementation asked for, each buffer between guard bands and full of NaN. */
static enum lb_status allocate(const struct lb_sizes *sizes, struct lb_buffers *buffers,
                               struct lb_error *err)
{
    const size_t bytes[BUFFERS] = {sizes->weights, sizes->gradients, sizes->reserve,
                                   sizes->workspace};
    void **const slots[BUFFERS] = {&buffers->weights, &buffers->gradients, &buffers->reserve,
                                   &buffers->workspace};
    enum lb_status st = LB_OK;
    for (size_t i = 0; i < BUFFERS; i++) {
        LB_TRY(lb_host_space.allocate(bytes[i], slots[i], err));
        lb_poison(*slots[i], bytes[i]);
    }
done:
    return st;
}

static enum lb_status check_bands(const struct lb_impl *impl, const struct lb_buffers *buffers,
                                  struct lb_error *err)
{
    static const char *const names[BUFFERS] = {"weights", "gradients", "reserve", "workspace"};
    const void *const blocks[BUFFERS] = {buffers->weights, buffers->gradients, buffers->reserve,
                                         buffers->workspace};
    for (size_t i = 0; i < BUFFERS && lb_host_space.overrun; i++) {
        const char *side = lb_host_space.overrun(blocks[i]);
        if (side)
            return lb_fail(err, LB_FAILED, "%s wrote beside its %s: %s", impl->name, names[i],
                           side);
    }
    return LB_OK;
}

static enum lb_status call(const struct lb_impl *impl, void *self, const struct lb_problem *problem,
                           const struct lb_inputs *in, const struct lb_results *out,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    void *at[LB_TENSOR_COUNT];
    for (int t = 0; t < LB_TENSOR_COUNT; t++)
        at[t] = t < LB_Y ? in->at[t] : out->at[t];
    struct lb_forward_io forward = lb_forward_io(at);
    struct lb_backward_io backward = lb_backward_io(at);
    LB_TRY(impl->forward(self, &forward, err));
    if (lb_has_backward(problem)) {
        LB_TRY(impl->backward(self, &backward, err));
        LB_TRY(impl->gradients(self, &out->gradients, err));
    }
done:
    return st;
}

/* Replaces the weight gradients by those that update writes. */
static enum lb_status update_gradients(const struct lb_impl *impl, void *self,
                                       const struct lb_case_update *update,
                                       const struct lb_weights *weights,
                                       const struct lb_results *results, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    LB_TRY(lb_case_update_renew(update, weights, err));
    LB_TRY(impl->update(self, &update->io, err));
    LB_TRY(lb_packed_download(update->problem, update->space, update->problem->dtype,
                              update->gradients, &results->gradients, err));
    if (lb_host_space.overrun && lb_host_space.overrun(update->gradients))
        st = lb_fail(err, LB_FAILED, "%s wrote beside the gradients of update", impl->name);
done:
    return st;
}

enum lb_status trial_run(const struct lb_impl *impl, const struct lb_problem *problem,
                         const struct lb_exec_config *config, const struct lb_inputs *inputs,
                         const struct lb_results *results, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_sizes sizes = {0};
    struct lb_buffers buffers = {.lengths = inputs->lengths, .x_max = inputs->x_max};
    struct lb_case_update update = {0};
    bool updates = impl->update && lb_has_backward(problem);
    void *self = NULL;
    if (lb_has_backward(problem) && !impl->backward)
        return lb_fail(err, LB_UNSUPPORTED, "it has no backward");
    LB_TRY(lb_impl_supports(impl, problem, config, err));
    self = calloc(1, impl->state_size);
    LB_TRY(impl->create(self, problem, config, err));
    LB_TRY(impl->sizes(self, &sizes, err));
    LB_TRY(allocate(&sizes, &buffers, err));
    if (updates) {
        LB_TRY(lb_case_update_open(problem, &lb_host_space, &inputs->weights, &update, err));
        lb_poison(update.weights, update.bytes);
        LB_TRY(impl->prepare(self, &buffers, &update.io.weights, err));
        LB_TRY(lb_case_update_renew(&update, &inputs->weights, err));
        LB_TRY(impl->update(self, &update.io, err));
        lb_poison(update.weights, update.bytes);
    } else {
        LB_TRY(impl->prepare(self, &buffers, &inputs->weights, err));
    }
    lb_results_poison(results);
    LB_TRY(call(impl, self, problem, inputs, results, err));
    /* A second call, as timed calls are: it must neither depend on the first nor be disturbed by
     * it. Its weight gradients are those of update where there is one. */
    uint64_t hash = lb_results_hash(results);
    lb_results_poison(results);
    lb_poison(buffers.gradients, sizes.gradients);
    LB_TRY(call(impl, self, problem, inputs, results, err));
    if (updates)
        LB_TRY(update_gradients(impl, self, &update, &inputs->weights, results, err));
    LB_TRY(check_bands(impl, &buffers, err));
    if ((impl->traits & LB_DETERMINISTIC) && lb_results_hash(results) != hash)
        st = lb_fail(err, LB_FAILED, "%s says it is deterministic, and is not", impl->name);
done:
    if (self)
        impl->destroy(self);
    free(self);
    lb_case_update_close(&update);
    lb_host_space.release(buffers.workspace);
    lb_host_space.release(buffers.reserve);
    lb_host_space.release(buffers.gradients);
    lb_host_space.release(buffers.weights);
    return st;
}

static enum lb_status check_scheme(const struct lb_reference *reference, int set,
                                   const struct lb_results *results, struct lb_check *check,
                                   struct lb_error *err)
{
    double error;
    LB_CHECK(lb_reference_scheme_error(reference, set, results, &error, err));
    if (check->right && !(error <= LB_INT8_ROUNDING)) {
        check->right = false;
        snprintf(check->reason, sizeof(check->reason), "off by %.3g from int8.h's scheme", error);
    }
    return LB_OK;
}

enum lb_status trial_check(const struct lb_impl *impl, const struct lb_problem *problem,
                           struct lb_reference_cache *cache, uint64_t seed, struct lb_check *check,
                           struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct lb_reference *reference = NULL;
    struct lb_results results = {0};
    struct lb_exec_config config = {.threads = 1,
                                    .variant = impl->variants ? impl->variants[0] : NULL};
    *check = (struct lb_check){0};
    LB_TRY(lb_impl_supports(impl, problem, &config, err)); /* before the oracle runs in vain */
    LB_TRY(lb_reference_open(cache, problem, 0, seed, true, &reference, err));
    LB_TRY(lb_results_create(problem, &results, err));
    check->right = true;
    for (int set = 0; check->right && set < LB_TIMED_SETS; set++) {
        LB_TRY(
            trial_run(impl, problem, &config, lb_reference_inputs(reference, set), &results, err));
        lb_reference_check(reference, set, &results, impl->traits, check);
        if (problem->dtype == LB_INT8 && problem->layers == 1 &&
            (impl->traits & LB_QUANTISES_PLAINLY))
            LB_TRY(check_scheme(reference, set, &results, check, err));
    }
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

/* Aborts unless the text or name was understood. */
static void must_be(enum lb_status st, const char *text, const struct lb_error *err)
{
    if (st == LB_OK)
        return;
    fprintf(stderr, "%s: %s\n", text, err->text);
    abort();
}

struct lb_case trial_case(const char *text)
{
    struct lb_case c;
    struct lb_error err;
    must_be(lb_case_parse(text, &c, NULL, NULL, &err), text, &err);
    return c;
}

struct lb_machine trial_machine(const char *name)
{
    struct lb_machine machine;
    struct lb_error err;
    must_be(lb_machine_read(name, &machine, &err), name, &err);
    return machine;
}

struct lb_device_info trial_device(const char *name)
{
    struct lb_device_info device;
    struct lb_error err;
    must_be(lb_device_model(name, &device, &err), name, &err);
    return device;
}

struct lb_problem trial_problem(const char *text)
{
    return trial_case(text).problem;
}

static void ignore_phase(void *user, const char *phase)
{
    (void)user, (void)phase;
}

void trial_case_run(const struct lb_impl *impl, const char *text,
                    const struct lb_run_options *options, struct lb_row *row)
{
    const struct lb_run_observer observer = {NULL, ignore_phase};
    struct lb_case c = trial_case(text);
    lb_case_run(impl, &c, options, &observer, row);
}

static struct lb_reference_cache cache = {.max_bytes = (size_t)1 << 30};
struct lb_reference_cache *const trial_cache = &cache;

int trial_close_cache(void **state)
{
    (void)state;
    lb_reference_cache_clear(&cache);
    return 0;
}

/* Which GPU there is, what --device-model names, and what GPU and CPUs reach at best. */
#include "run/worker.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/tuned_choices.h"
#include "machine/ceilings.h"
#include "measure/ceilings_measure.h"
#include "record/environment.h"
#include "support/library_versions.h"
#include "support/texts.h"

bool lb_gpu_wanted(const struct lb_session *session, const char *name)
{
    const struct lb_registry *registry = session->registry;
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        if (!impl_entry->absent && impl_entry->memory == LB_DEVICE &&
            (!name || strcmp(impl_entry->name, name) == 0))
            return true;
    }
    return false;
}

/* From now on this process plans for what a worker sees, a device or none. */
static enum lb_status see_gpu(struct lb_session *session, struct lb_error *why)
{
    struct lb_device_info info;
    enum lb_status st = lb_pool_find_device(session->pool, &session->gpu, why);
    if (st == LB_OK)
        lb_device_from_json(session->gpu, &info);
    if (st == LB_OK || st == LB_ABSENT)
        lb_device_assume(st == LB_OK ? &info : NULL, why->text);
    return st;
}

enum lb_status lb_machine_find(struct lb_session *session, bool gpu, struct lb_error *err)
{
    const char *name = session->options->device_model;
    struct lb_device_info device;
    struct lb_machine model = {.cpu = true};
    struct lb_error why = {""};
    enum lb_status st = name ? lb_machine_read(name, &model, &why) : LB_OK;
    if (st != LB_OK)
        return lb_fail(err, st, "--device-model %.400s", why.text);
    if (!model.cpu) {
        LB_CHECK(lb_device_model(name, &device, err));
        lb_device_assume(&device, NULL);
        return LB_OK;
    }
    if (name)
        lb_cpu_assume(&model);
    return gpu && see_gpu(session, &why) == LB_INTERRUPTED ? LB_INTERRUPTED : LB_OK;
}

void lb_gpu_annotate(const struct lb_session *session, json_t *environment)
{
    char path[4096], digits[24];
    int64_t changed_s;
    uint64_t hash;
    if (!session->gpu)
        return;
    if (lb_tuned_file(path, &changed_s, &hash)) {
        snprintf(digits, sizeof(digits), "%016llx", (unsigned long long)hash);
        json_object_set_new(environment, "tuned",
                            json_pack("{s:s, s:I, s:s}", "file", path, "changed_s",
                                      (json_int_t)changed_s, "hash", digits));
    }
    json_object_set(environment, "gpu", session->gpu);
    lb_warn(lb_libraries_mismatch(json_object_get(environment, "libraries")));
}

/* Measures the GPU, in a worker process; *figures is what was measured, also before a failure. */
static enum lb_status measure_gpu(const struct lb_session *session, double seconds,
                                  struct lb_ceilings *figures, struct lb_error *err)
{
    json_t *measured = NULL;
    enum lb_status st = lb_pool_ceilings(session->pool, seconds, &measured, err);
    lb_ceilings_from_json(measured, figures);
    json_decref(measured);
    return st;
}

void lb_ceilings_find(const struct lb_session *session, const struct lb_case *cases, size_t count,
                      json_t *environment)
{
    const struct lb_sampler_options sampler = lb_options_sampler(session->options);
    struct lb_ceilings cpu, gpu;
    struct lb_error why;
    json_t *list = json_array();
    double all_s = 0, most_bytes = 0; /* of the cases; of a call */
    for (size_t i = 0; i < count; i++) {
        all_s += lb_predict_seconds(&cases[i], LB_CPU_FLOPS_S, &sampler);
        most_bytes = fmax(most_bytes, cases[i].cache == LB_COLD /* then all come from memory */
                                          ? (double)INFINITY
                                          : lb_problem_bytes(&cases[i].problem));
    }
    double seconds = fmin(fmax(0.05 * all_s, 0.1), session->options->quick ? 0.7 : 2.5);
    if (lb_cpu_ceilings_measure(seconds, most_bytes, &cpu, &why) == LB_OK)
        json_array_append_new(list, lb_ceilings_to_json(&cpu));
    else
        fprintf(stderr, "warning: the CPUs' ceilings are not known: %s\n", why.text);
    if (session->gpu) {
        if (measure_gpu(session, seconds, &gpu, &why) != LB_OK)
            fprintf(stderr, "warning: the GPU's ceilings are not all known: %s\n", why.text);
        json_array_append_new(list, lb_ceilings_to_json(&gpu));
    }
    lb_pool_tell_ceilings(session->pool, list);
    json_object_set_new(environment, "ceilings", list);
}

enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err)
{
    static const double cpu_seconds = 6, gpu_seconds = 20;
    struct lb_ceilings figures;
    struct lb_device_info info;
    struct lb_machine published;
    struct lb_error why = {""};
    LB_CHECK(lb_cpu_ceilings_measure(cpu_seconds, (double)INFINITY, &figures, err));
    printf("CPUs, %d core%s\n", figures.cores, figures.cores == 1 ? "" : "s");
    lb_ceilings_print_figures(stdout, &figures, NULL);
    enum lb_status st = see_gpu(session, &why);
    if (st == LB_ABSENT) {
        printf("no GPU was measured: %s\n", why.text);
        return LB_OK;
    }
    if (st != LB_OK)
        return lb_fail(err, st, "%s", why.text);
    lb_device_from_json(session->gpu, &info);
    st = measure_gpu(session, gpu_seconds, &figures, err);
    printf("%s, %d SMs, %s\n", info.name, info.sm_count, LB_BYTES_TEXT(info.memory_bytes));
    bool known = lb_machine_of(&info, &published, NULL) == LB_OK;
    lb_ceilings_print_figures(stdout, &figures, known ? &published : NULL);
    return st;
}

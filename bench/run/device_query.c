/* What the program asks about the GPU, and about the CPU that --device-model names. */
#include "run/device_query.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "device/ceilings.h"
#include "device/device_models.h"
#include "host/cpu_ceilings.h"
#include "host/cpu_models.h"
#include "measure/cpu_ceilings_measure.h"
#include "record/device_record.h"
#include "support/library_versions.h"
#include "support/terminal.h"

/* The GPU that --device-model names; NULL: none, or a CPU. */
static const char *gpu_model(const struct lb_session *session)
{
    const char *name = session->options->device_model;
    return name && !lb_cpu_model_is(name) ? name : NULL;
}

bool lb_gpu_wanted(const struct lb_session *session, const char *name)
{
    const struct lb_registry *registry = session->registry;
    if (gpu_model(session))
        return true;
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_impl_entry *impl_entry = &registry->impl_entries[i];
        if (impl_entry->impl && impl_entry->memory == LB_DEVICE &&
            (!name || strcmp(impl_entry->name, name) == 0))
            return true;
    }
    return false;
}

enum lb_status lb_cpu_find(const struct lb_session *session, struct lb_error *err)
{
    struct lb_cpu_machine machine;
    struct lb_error why;
    const char *name = session->options->device_model;
    if (!name || gpu_model(session))
        return LB_OK;
    enum lb_status st = lb_cpu_model(name, &machine, &why);
    if (st != LB_OK)
        return lb_fail(err, st, "--device-model %.400s", why.text);
    lb_cpu_assume(&machine);
    return LB_OK;
}

enum lb_status lb_gpu_find(struct lb_session *session, struct lb_error *err)
{
    struct lb_device_info model;
    struct lb_error why = {""};
    const char *name = gpu_model(session);
    if (!name) {
        enum lb_status st = lb_pool_device(session->pool, &session->gpu, &why);
        return st == LB_INTERRUPTED ? st : LB_OK;
    }
    enum lb_status st = lb_device_model(name, &model, &why);
    if (st != LB_OK && !strpbrk(name, "./")) {
        char cpus[128];
        lb_cpu_model_names(cpus, sizeof(cpus));
        return lb_fail(err, st, "--device-model %.330s. CPUs: %s", why.text, cpus);
    }
    if (st != LB_OK)
        return lb_fail(err, st, "--device-model %.400s", why.text);
    lb_device_assume(&model, NULL);
    return LB_OK;
}

void lb_gpu_describe(json_t *gpu, json_t *environment)
{
    struct lb_ceilings ceilings;
    json_object_set(environment, "gpu", gpu);
    json_object_del(environment, "ceilings"); /* they may be those of another device */
    if (lb_ceilings_load(json_string_value(json_object_get(gpu, "uuid")), &ceilings))
        json_object_set_new(environment, "ceilings", lb_ceilings_to_json(&ceilings));
}

void lb_gpu_annotate(const struct lb_session *session, json_t *environment)
{
    if (!session->gpu)
        return;
    lb_gpu_describe(session->gpu, environment);
    lb_warn(lb_libraries_mismatch(json_object_get(environment, "libraries")));
}

/* published: NaN where no such figure is known. */
static void print_figure(const char *name, double value, double published, double unit,
                         const char *unit_name)
{
    if (!isfinite(value))
        return;
    printf("  %-22s%9.2f %s", name, value / unit, unit_name);
    if (isfinite(published))
        printf("; published %.4g", published / unit);
    printf("\n");
}

/* The published figures are those of the lower-bound model, for devices that it knows. */
static void print_ceilings(const struct lb_ceilings *c, const struct lb_device_info *device)
{
    struct lb_machine m;
    char name[48];
    bool known = lb_machine_of(device, &m, NULL) == LB_OK;
    double clocks = known ? device->sm_count * m.clock_hz : (double)NAN;
    print_figure("copy", c->copy_bytes_s, known ? m.memory_bytes_s : (double)NAN, 1e9,
                 "GB/s, read and written");
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        print_figure(lb_dtype_name((enum lb_dtype)d), c->gemm_flops_s[d][LB_IEEE],
                     known ? m.flops_clock[d] * clocks : (double)NAN, 1e12, "TFLOP/s in GEMMs");
        for (int math = LB_IEEE + 1; math < LB_MATH_COUNT; math++) {
            snprintf(name, sizeof(name), "%s %s", lb_dtype_name((enum lb_dtype)d),
                     lb_math_name((enum lb_math)math));
            print_figure(name, c->gemm_flops_s[d][math],
                         known && math == LB_TF32 ? m.tf32_flops_clock * clocks : (double)NAN, 1e12,
                         "TFLOP/s in GEMMs");
        }
    }
    print_figure("enqueue", c->launch_ns, (double)NAN, 1e3, "us, one fill after the other");
    print_figure("graph node", c->graph_node_ns, known ? m.node_ns : (double)NAN, 1e3,
                 "us, the same in a graph");
    print_figure("event pair", c->event_ns, (double)NAN, 1e3, "us, with nothing between");
    print_figure("grid barrier", c->grid_barrier_ns, (double)NAN, 1e3, "us, a block on each SM");
    print_figure("cluster barrier", c->cluster_barrier_ns, (double)NAN, 1e3,
                 "us, the largest cluster");
    print_figure("store to a peer", c->peer_ns,
                 known ? m.peer_clocks / m.clock_hz * 1e9 : (double)NAN, 1e3,
                 "us until its waiter goes on");
    print_figure("store to the cache", c->l2_ns,
                 known ? m.l2_clocks / m.clock_hz * 1e9 : (double)NAN, 1e3,
                 "us until another SM's waiter goes on");
}

/* With one thread and with all of them. */
static void print_cpu_ceilings(const struct lb_cpu_ceilings *c)
{
    const struct lb_cpu_rates *one = &c->rates[0], *all = &c->rates[c->count - 1];
    char name[48];
    printf("%s, with 1 and with %d threads\n", c->cpu, all->threads);
    for (int d = 0; d < LB_DTYPE_COUNT; d++)
        printf("  %-22s%9.1f %9.1f GFLOP/s in registers, by %s\n", lb_dtype_name((enum lb_dtype)d),
               one->flops_s[d] / 1e9, all->flops_s[d] / 1e9, lb_cpu_unit_name(c->units[d]));
    for (int level = 0; level < LB_CPU_LEVEL_COUNT; level++) {
        snprintf(name, sizeof(name), "read %s", lb_cpu_level_name((enum lb_cpu_level)level));
        if (isfinite(one->read_bytes_s[level]))
            printf("  %-22s%9.1f %9.1f GB/s\n", name, one->read_bytes_s[level] / 1e9,
                   all->read_bytes_s[level] / 1e9);
    }
    if (c->count > 1)
        printf("  %-22s%9s %9.2f us\n", "barrier", "", all->barrier_ns / 1e3);
}

static enum lb_status measure_cpu(struct lb_error *err)
{
    enum { ROUNDS = 200 };
    struct lb_cpu_ceilings ceilings;
    enum lb_status st = LB_OK;
    struct lb_error why;
    LB_TRY(lb_cpu_ceilings_measure(0, ROUNDS, &ceilings, err));
    print_cpu_ceilings(&ceilings);
    if (lb_cpu_ceilings_save(&ceilings, &why) != LB_OK)
        st =
            lb_fail(err, LB_IO,
                    "the ceilings are not kept: %.300s; set XDG_CACHE_HOME to a folder that can be "
                    "written",
                    why.text);
done:
    return st;
}

enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err)
{
    struct lb_ceilings ceilings, older;
    struct lb_device_info info;
    char line[160];
    json_t *measured = NULL;
    enum lb_status st = LB_OK;
    struct lb_error why = {""};
    LB_TRY(measure_cpu(err));
    st = lb_pool_device(session->pool, &session->gpu, &why);
    if (st == LB_ABSENT) {
        printf("no GPU was measured: %s\n", why.text);
        st = LB_OK;
        goto done;
    }
    if (st != LB_OK) {
        lb_fail(err, st, "%s", why.text);
        goto done;
    }
    enum lb_status measuring = lb_pool_ceilings(session->pool, &measured, err);
    if (!measured)
        LB_TRY(measuring);
    lb_ceilings_from_json(measured, &ceilings); /* the figures before a failure are kept */
    lb_device_from_json(session->gpu, &info);
    lb_device_line(&info, line, sizeof(line));
    printf("%s\n", line);
    print_ceilings(&ceilings, &info);
    if (lb_ceilings_load(ceilings.uuid, &older))
        lb_ceilings_complete(&ceilings, &older);
    LB_TRY(lb_ceilings_save(&ceilings, measuring == LB_OK ? err : NULL));
    st = measuring;
done:
    json_decref(measured);
    return st;
}

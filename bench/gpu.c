/* The program's side of the GPU. */
#include "gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ceilings.h"
#include "device_record.h"
#include "libraries.h"

bool lb_gpu_wanted(const struct lb_session *session, const char *name)
{
    const struct lb_registry *registry = session->registry;
    if (session->options->device_model)
        return true;
    for (size_t i = 0; i < registry->count; i++) {
        const struct lb_entry *entry = &registry->entries[i];
        if (entry->impl && entry->memory == LB_DEVICE && (!name || strcmp(entry->name, name) == 0))
            return true;
    }
    return false;
}

enum lb_status lb_gpu_find(struct lb_session *session, struct lb_error *err)
{
    struct lb_device_info model;
    struct lb_error why = {""};
    const char *name = session->options->device_model;
    if (!name) {
        enum lb_status st = lb_pool_device(session->pool, &session->gpu, &why);
        return st == LB_INTERRUPTED ? st : LB_OK;
    }
    if (lb_device_model(name, &model, &why) != LB_OK)
        return lb_fail(err, LB_INVALID, "--device-model %.400s", why.text);
    lb_device_assume(&model, NULL);
    return LB_OK;
}

void lb_gpu_annotate(const struct lb_session *session, json_t *environment)
{
    struct lb_ceilings ceilings;
    if (!session->gpu)
        return;
    json_object_set(environment, "gpu", session->gpu);
    if (lb_ceilings_load(json_string_value(json_object_get(session->gpu, "uuid")), &ceilings))
        json_object_set_new(environment, "ceilings", lb_ceilings_to_json(&ceilings));
    const char *mismatch = lb_libraries_mismatch();
    if (mismatch[0])
        fprintf(stderr, "warning: %s\n", mismatch);
}

static void print_rate(const char *name, double value, double unit, const char *unit_name)
{
    if (isfinite(value))
        printf("  %-22s%8.1f %s\n", name, value / unit, unit_name);
}

enum lb_status lb_ceilings_print(struct lb_session *session, struct lb_error *err)
{
    struct lb_ceilings ceilings;
    struct lb_device_info info;
    char line[160], name[48];
    json_t *measured = NULL;
    enum lb_status st = LB_OK;
    LB_TRY(lb_pool_device(session->pool, &session->gpu, err));
    LB_TRY(lb_pool_ceilings(session->pool, &measured, err));
    lb_ceilings_from_json(measured, &ceilings);
    lb_device_from_json(session->gpu, &info);
    lb_device_line(&info, line, sizeof(line));
    printf("%s\n", line);
    print_rate("copy", ceilings.copy_bytes_s, 1e9, "GB/s, read and written");
    for (int d = 0; d < LB_DTYPE_COUNT; d++) {
        for (int m = 0; m < LB_MATH_COUNT; m++) {
            snprintf(name, sizeof(name), "products %s%s%s", lb_dtype_name((enum lb_dtype)d),
                     m == LB_IEEE ? "" : " ", m == LB_IEEE ? "" : lb_math_name((enum lb_math)m));
            print_rate(name, ceilings.gemm_flops_s[d][m], 1e12, "TFLOP/s");
        }
    }
    print_rate("enqueue", ceilings.launch_ns, 1e3, "us, one fill after the other");
    print_rate("graph node", ceilings.graph_node_ns, 1e3, "us, the same in a graph");
    print_rate("event pair", ceilings.event_ns, 1e3, "us, with nothing between");
    LB_TRY(lb_ceilings_save(&ceilings, err));
done:
    json_decref(measured);
    return st;
}

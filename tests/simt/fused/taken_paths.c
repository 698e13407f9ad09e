/* Prints the paths that the fused kernels take for the shapes of bench/cases in every type and
 * pass, by every family, on any device that is known by name: a line per path, most of them many
 * times. */
#include <stdio.h>
#include <stdlib.h>

#include "impls/fused/fused.h"
#include "paths.h"
#include "tests/helpers/conformance_trial.h"

static void print_plan(const struct lb_problem *p, struct lb_fused_plan *plan, bool cut)
{
    const struct path_shape shape = {.batch = (int)p->batch,
                                     .hidden = (int)p->hidden,
                                     .directions = (int)p->directions,
                                     .ragged = p->ragged,
                                     .train = lb_trains(p),
                                     .cut = cut};
    if (plan->family == &lb_fused_grid)
        print_grid_paths(&plan->kernel.grid, &shape);
    else if (plan->family == &lb_fused_cluster)
        print_cluster_paths(&plan->kernel.cluster.tile, p->dtype, plan->backward, &shape);
    else
        print_step_paths(&plan->kernel.step.tile, p->dtype, p->math, plan->backward, &shape);
}

/* Prints the paths of one problem by all variants on one device. */
static void print_problem(const struct lb_problem *p, const struct lb_device_info *device)
{
    struct lb_fused_view view;
    if (lb_fused_view_make(p, device, &view, NULL) != LB_OK)
        return;
    for (int v = 0; lb_fused_variants[v]; v++) {
        struct lb_fused_choice choice;
        if (lb_fused_choose(p, device, lb_fused_variants[v], &choice, NULL) != LB_OK)
            continue;
        bool cut = lb_fused_chunk(&view, &choice) < p->seq_len;
        print_plan(p, &choice.forward, cut);
        if (lb_has_backward(p))
            print_plan(p, &choice.backward, cut);
    }
}

/* Prints the paths of a shape in all types and passes, on all devices that the families run on. */
static void print_shape(const char *text)
{
    static const char *const devices[] = {"a100", "rtx3090", "rtx4090", "l4",    "l40s",
                                          "h100", "h200",    "b200",    "gb200", "rtx5090"};
    static const enum lb_pass passes[] = {LB_INFER, LB_TRAIN};
    for (size_t d = 0; d < sizeof(devices) / sizeof(devices[0]); d++) {
        struct lb_device_info device;
        if (lb_device_model(devices[d], &device, NULL) != LB_OK)
            abort();
        for (int kind = 0; kind < 2 * (LB_DTYPE_COUNT + 1); kind++) {
            struct lb_problem p = trial_problem(text);
            p.pass = passes[kind % 2];
            p.dtype = kind / 2 < LB_DTYPE_COUNT ? (enum lb_dtype)(kind / 2) : LB_F32;
            p.math = kind / 2 < LB_DTYPE_COUNT ? LB_IEEE : LB_TF32;
            if (p.dtype != LB_INT8) /* which no kernel on a GPU computes */
                print_problem(&p, &device);
        }
    }
}

/* Prints the paths of all shapes of one set of cases. */
static void print_case_set(const char *name)
{
    char path[512], line[256], shape[LB_CASE_ID_SIZE];
    snprintf(path, sizeof(path), LB_SOURCE_DIR "/bench/cases/%s.txt", name);
    FILE *file = fopen(path, "r");
    if (!file)
        abort();
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "%127[^# \t\n]", shape) == 1)
            print_shape(shape);
    fclose(file);
}

int main(void)
{
    static const char *const sets[] = {"quick",    "gpu",       "cliffs",     "cpu",
                                       "criteria", "deepbench", "frameworks", "recurrent"};
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        print_case_set(sets[i]);
    return 0;
}

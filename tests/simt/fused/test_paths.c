/* Every path that the fused kernels take for the shapes of bench/cases, on any device that is known
 * by name, is one that the emulator runs, with the same tile and type.
 *
 *   test_simt_paths_impl_fast PROGRAM...      each prints what it runs: `PROGRAM list` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "impls/fused/fused.h"
#include "paths.h"
#include "tests/helpers/conformance_trial.h"

/* Lines of text; a set once they are sorted and each is there once. */
struct lines {
    char **items;
    size_t count;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add_line(struct lines *set, const char *line)
{
    set->items = realloc(set->items, (set->count + 1) * sizeof(*set->items));
    set->items[set->count++] = strdup(line);
}

/* set is sorted. */
static bool has_line(const struct lines *set, const char *line)
{
    return set->count > 0 &&
           bsearch(&line, set->items, set->count, sizeof(*set->items), by_text) != NULL;
}

static void sort_and_unify(struct lines *set)
{
    size_t kept = 0;
    qsort(set->items, set->count, sizeof(*set->items), by_text);
    for (size_t i = 0; i < set->count; i++) {
        if (kept > 0 && strcmp(set->items[kept - 1], set->items[i]) == 0)
            free(set->items[i]);
        else
            set->items[kept++] = set->items[i];
    }
    set->count = kept;
}

static void free_lines(struct lines *set)
{
    for (size_t i = 0; i < set->count; i++)
        free(set->items[i]);
    free(set->items);
}

/* ---- What the cases take ----------------------------------------------------------------------
 */

static void print_plan(FILE *to, const struct lb_problem *p, struct lb_fused_plan *plan, bool cut)
{
    const struct path_shape shape = {.batch = (int)p->batch,
                                     .hidden = (int)p->hidden,
                                     .directions = (int)p->directions,
                                     .ragged = p->ragged,
                                     .train = lb_trains(p),
                                     .cut = cut};
    if (plan->family == &lb_fused_grid) { /* its plan has the kernel already */
        print_grid_paths(to, &plan->kernel.grid, &shape);
        return;
    }
    if (plan->family->ready(p, plan, NULL) != LB_OK)
        return;
    if (plan->family == &lb_fused_cluster)
        print_cluster_paths(to, &plan->kernel.cluster.tile, p->dtype, plan->backward, &shape);
    else
        print_step_paths(to, &plan->kernel.step.tile, p->dtype, p->math, plan->backward, &shape);
}

/* Prints the paths of one problem by all variants on one device. */
static void print_problem(FILE *to, const struct lb_problem *p, const struct lb_device_info *device)
{
    struct lb_fused_view view;
    if (lb_fused_view_make(p, device, &view, NULL) != LB_OK)
        return;
    for (int v = 0; lb_fused_variants[v]; v++) {
        struct lb_fused_choice choice;
        if (lb_fused_choose(p, device, lb_fused_variants[v], &choice, NULL) != LB_OK)
            continue;
        bool cut = lb_fused_chunk(&view, &choice) < p->seq_len;
        print_plan(to, p, &choice.forward, cut);
        if (lb_has_backward(p))
            print_plan(to, p, &choice.backward, cut);
    }
}

/* Prints the paths of a shape in all types and passes, on all devices that the families run on. */
static void print_shape(FILE *to, const char *text)
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
            print_problem(to, &p, &device);
        }
    }
}

/* Prints the paths of all shapes of one set of cases, and returns how many shapes there are. */
static int print_case_set(FILE *to, const char *name)
{
    char path[512], line[256], shape[LB_CASE_ID_SIZE];
    int shapes = 0;
    snprintf(path, sizeof(path), LB_SOURCE_DIR "/bench/cases/%s.txt", name);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%127[^# \t\n]", shape) != 1)
            continue;
        print_shape(to, shape);
        shapes++;
    }
    fclose(file);
    return shapes;
}

/* ---- What the emulator runs -------------------------------------------------------------------
 */

static void read_lines(FILE *from, struct lines *set)
{
    char line[512];
    while (fgets(line, sizeof(line), from)) {
        line[strcspn(line, "\n")] = '\0';
        add_line(set, line);
    }
}

static bool ask_program(const char *program, struct lines *set)
{
    char command[600];
    snprintf(command, sizeof(command), "'%s' list", program);
    FILE *from = popen(command, "r");
    if (!from)
        return false;
    read_lines(from, set);
    return pclose(from) == 0;
}

/* Counts the paths that no case of the emulator takes, and prints them. Cases are separated by
 * lines "case"; the one with the number `without` is left out, if there is one. */
static int missing(const struct lines *taken, const struct lines *ran, int without, bool print)
{
    struct lines covered = {0};
    int number = -1, count = 0;
    for (size_t i = 0; i < ran->count; i++) {
        number += strcmp(ran->items[i], "case") == 0;
        if (number != without)
            add_line(&covered, ran->items[i]);
    }
    sort_and_unify(&covered);
    for (size_t i = 0; i < taken->count; i++) {
        if (has_line(&covered, taken->items[i]))
            continue;
        count++;
        if (print)
            printf("no case of the emulator takes: %s\n", taken->items[i]);
    }
    free_lines(&covered);
    return count;
}

/* A test that could not fail would pass with any case left out. */
static int needed_cases(const struct lines *taken, const struct lines *ran)
{
    int cases = 0, needed = 0;
    for (size_t i = 0; i < ran->count; i++)
        cases += strcmp(ran->items[i], "case") == 0;
    for (int i = 0; i < cases; i++)
        needed += missing(taken, ran, i, false) > 0;
    printf("%d cases of the emulator, of which %d alone take a path\n", cases, needed);
    return needed;
}

int main(int argc, char **argv)
{
    static const char *const sets[] = {"quick",    "gpu",       "cliffs",     "cpu",
                                       "criteria", "deepbench", "frameworks", "recurrent"};
    struct lines taken = {0}, ran = {0};
    char *text = NULL;
    size_t size = 0;
    int shapes = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory)
        return 2;
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        shapes += print_case_set(memory, sets[i]);
    fclose(memory);
    memory = fmemopen(text, size, "r");
    if (!memory)
        return 2;
    read_lines(memory, &taken);
    fclose(memory);
    free(text);
    sort_and_unify(&taken);
    for (int i = 1; i < argc; i++)
        if (!ask_program(argv[i], &ran))
            return fprintf(stderr, "%s list failed\n", argv[i]), 2;
    int lost = missing(&taken, &ran, -1, true);
    printf("%d shapes take %zu paths, %d of them on no emulator\n", shapes, taken.count, lost);
    bool right = shapes > 0 && lost == 0 && needed_cases(&taken, &ran) > 0;
    free_lines(&taken);
    free_lines(&ran);
    return right ? 0 : 1;
}

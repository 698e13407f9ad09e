/* What the cost model predicts for a grid of sizes in f16 on an H100. The predictions are written
 * down before a run, which then tests the model. */
#include "impls/fused/fused.h"
#include "tests/helpers/test.h"

static const int hiddens[] = {128, 256, 512, 768, 1024}, batches[] = {1, 8, 16, 32, 64};
static const int lengths[] = {128, 1024};

enum { HIDDENS = 5, BATCHES = 5, LENGTHS = 2 };

static struct lb_problem problem_of(int seq_len, int batch, int hidden, enum lb_pass pass)
{
    return (struct lb_problem){.seq_len = seq_len,
                               .batch = batch,
                               .input = hidden,
                               .hidden = hidden,
                               .layers = 1,
                               .directions = 1,
                               .dtype = LB_F16,
                               .pass = pass};
}

static enum lb_status choose(int seq_len, int batch, int hidden, const char *variant,
                             struct lb_fused_choice *choice)
{
    const struct lb_problem p = problem_of(seq_len, batch, hidden, LB_TRAIN);
    return lb_fused_choose(&p, NULL, variant, choice, NULL);
}

/* Returns the time of a call in us: all steps in sequence, and the GEMMs that they do not hide. */
static double call_us(const struct lb_fused_view *v, int seq_len, int batch, int hidden,
                      enum lb_pass pass, const struct lb_fused_choice *c, double *floor_us)
{
    const struct lb_problem p = problem_of(seq_len, batch, hidden, pass);
    const struct lb_lower_bound_run run = {0};
    struct lb_fused_view view = *v;
    struct lb_fused_choice passes = *c;
    struct lb_lower_bound floor;
    lb_lower_bound_of(&v->machine, &p, &run, &floor);
    *floor_us = floor.total_ns / 1e3;
    view.problem = &p;
    if (pass != LB_TRAIN)
        passes.backward.family = NULL;
    double step = c->forward.step_ns + (pass == LB_TRAIN ? c->backward.step_ns : 0);
    return (seq_len * step + lb_fused_gemms_ns(&view, lb_fused_chunk(&view, &passes))) / 1e3;
}

/* Prints a family's pass: the predicted time of a step, its parts, and what was planned. That is
 * the numbers with which try_fused describes the same tile, or how the steps are launched. */
static void print_plan(FILE *to, const struct lb_fused_plan *p)
{
    const struct lb_cluster_kernel *c = &p->kernel.cluster;
    const struct lb_grid_kernel *g = &p->kernel.grid;
    fprintf(to, ",%.2f,%.3f,%.3f,", p->step_ns / 1e3, p->product_ns / 1e3, p->exchange_ns / 1e3);
    if (p->family == &lb_fused_cluster)
        fprintf(to, "%d %d %d %d %d %d", c->tile.blocks, c->tile.warps, c->tile.split,
                c->tile.resident, c->tile.columns, c->rows);
    else if (p->family == &lb_fused_grid)
        fprintf(to, "%d %d %d %d %d %d", g->tile.units, g->tile.resident, g->tile.columns,
                g->split.groups, g->split.rows, g->split.chunks);
    else
        fputs(p->kernel.step.follows ? "dependent" : "node", to);
}

static void print_cell(FILE *to, const struct lb_fused_view *view, int hidden, int batch)
{
    struct lb_fused_choice c;
    double floor_us;
    if (choose(128, batch, hidden, "auto", &c) != LB_OK)
        return;
    fprintf(to, "%d,%d,%s,%.2f,%s,%.2f", hidden, batch, c.forward.family->name,
            c.forward.step_ns / 1e3, c.backward.family->name, c.backward.step_ns / 1e3);
    for (int t = 0; t < LENGTHS; t++) {
        for (int train = 0; train < 2; train++) {
            double us = call_us(view, lengths[t], batch, hidden, train ? LB_TRAIN : LB_INFER, &c,
                                &floor_us);
            fprintf(to, ",%.0f,%.0f", us, floor_us);
        }
    }
    for (int f = 1; lb_fused_variants[f]; f++) {
        struct lb_fused_choice one;
        if (choose(128, batch, hidden, lb_fused_variants[f], &one) == LB_OK)
            print_plan(to, &one.forward), print_plan(to, &one.backward);
        else
            fputs(",,,,,,,,", to);
    }
    fputc('\n', to);
}

/* Prints cuda/predictions.csv: one row per size, with all families. */
static void print_predictions(FILE *to)
{
    const struct lb_problem any = problem_of(1, 1, 1, LB_INFER);
    struct lb_fused_view view;
    if (lb_fused_view_make(&any, NULL, &view, NULL) != LB_OK)
        return;
    fputs("hidden,batch,forward,forward_step_us,backward,backward_step_us", to);
    for (int t = 0; t < LENGTHS; t++)
        fprintf(to, ",infer_T%d_us,infer_T%d_floor_us,train_T%d_us,train_T%d_floor_us", lengths[t],
                lengths[t], lengths[t], lengths[t]);
    for (int pass = 2; lb_fused_variants[pass / 2]; pass++)
        for (int c = 0; c < 4; c++)
            fprintf(to, ",%s_%s_%s", lb_fused_variants[pass / 2], pass % 2 ? "backward" : "forward",
                    ((const char *const[]){"step_us", "product_us", "exchange_us", "plan"})[c]);
    fputc('\n', to);
    for (int h = 0; h < HIDDENS; h++)
        for (int b = 0; b < BATCHES; b++)
            print_cell(to, &view, hiddens[h], batches[b]);
}

/* The predictions are written down, so that a run can test the model. They must agree with it. */
TEST(predictions_on_paper_are_those_of_the_model)
{
    char *rows = NULL, data[1 << 14] = "";
    size_t size = 0;
    FILE *memory = open_memstream(&rows, &size);
    FILE *file = fopen(LB_SOURCE_DIR "/cuda/predictions.csv", "r");
    assert_non_null(memory);
    assert_non_null(file);
    print_predictions(memory);
    fclose(memory);
    assert_in_range(fread(data, 1, sizeof(data), file), 1, sizeof(data) - 1);
    fclose(file);
    if (strcmp(data, rows) != 0) {
        fputs(rows, stdout); /* too long for a message */
        fail_msg("cuda/predictions.csv should be as printed above");
    }
    free(rows);
}

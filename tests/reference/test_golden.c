/* Compares implementations with golden files made by PyTorch (golden/make_golden.py): by its
 * nn.LSTM, and for cells that it does not have by its operations and its automatic differentiation.
 */
#include <jansson.h>

#include "device/weight_packing.h"
#include "model/registry.h"
#include "tests/helpers/conformance_trial.h"
#include "tests/helpers/test.h"

extern const struct lb_impl lb_impl_cpu_ref;

enum { MAX_LAYER_DIRS = 4 };

/* A golden file, with its inputs as an implementation takes them. */
struct golden {
    json_t *json;
    struct lb_problem problem;
    size_t layer_dirs;
    struct lb_inputs inputs;
    void *weights[LB_WEIGHT_COUNT][MAX_LAYER_DIRS]; /* w_ih, w_hh, b_ih, b_hh, w_cell */
};

static int64_t whole(const json_t *json, const char *key)
{
    json_t *value = json_object_get(json, key);
    if (!json_is_integer(value))
        fail_msg("golden file lacks %s", key);
    return json_integer_value(value);
}

/* A list of numbers, stored in the dtype; the caller frees it. count may be NULL. */
static void *stored(enum lb_dtype dtype, const json_t *list, size_t *count)
{
    size_t n = json_array_size(list);
    char *storage = malloc(n * lb_dtype_size(dtype) + 1);
    assert_true(storage && n > 0);
    for (size_t i = 0; i < n; i++) {
        double value = json_number_value(json_array_get(list, i));
        assert_true(value ==
                    lb_round(dtype, value)); /* no rounding: the file holds values of the dtype */
        lb_store(dtype, storage + i * lb_dtype_size(dtype), &value, 1);
    }
    if (count)
        *count = n;
    return storage;
}

/* The mask, which the file holds per layer and direction. */
static void *stored_mask(enum lb_dtype dtype, const json_t *list, size_t layer_dirs)
{
    char *all = NULL;
    for (size_t e = 0; e < layer_dirs; e++) {
        size_t count;
        void *one = stored(dtype, json_array_get(list, e), &count);
        size_t bytes = count * lb_dtype_size(dtype);
        all = realloc(all, layer_dirs * bytes);
        assert_non_null(all);
        memcpy(all + e * bytes, one, bytes);
        free(one);
    }
    return all;
}

static void open_golden(struct golden *g, const char *name)
{
    static const char *const parts[] = {"w_ih", "w_hh", "b_ih", "b_hh", "w_cell"};
    char path[512];
    json_error_t error;
    *g = (struct golden){0};
    snprintf(path, sizeof(path), "%s/tests/golden/%s", LB_SOURCE_DIR, name);
    g->json = json_load_file(path, 0, &error);
    if (!g->json)
        fail_msg("%s:%d: %s", path, error.line, error.text);
    const char *dtype = json_string_value(json_object_get(g->json, "dtype"));
    g->problem = (struct lb_problem){.seq_len = whole(g->json, "seq_len"),
                                     .batch = whole(g->json, "batch"),
                                     .input = whole(g->json, "input"),
                                     .hidden = whole(g->json, "hidden"),
                                     .layers = whole(g->json, "layers"),
                                     .directions = whole(g->json, "directions"),
                                     .dtype = strcmp(dtype, "f64") == 0 ? LB_F64 : LB_F32,
                                     .pass = LB_TRAIN};
    const char *cell = json_string_value(json_object_get(g->json, "cell"));
    for (uint8_t kind = 0; cell && kind < LB_CELL_COUNT; kind++)
        if (strcmp(cell, lb_cell_name((enum lb_cell_kind)kind)) == 0)
            g->problem.cell = kind;
    if (g->problem.cell == LB_CELL_PROJECTION)
        g->problem.projection = (int32_t)whole(g->json, "projection");
    g->layer_dirs = (size_t)(g->problem.layers * g->problem.directions);
    assert_true(g->layer_dirs <= MAX_LAYER_DIRS);
    for (int t = LB_X; t <= LB_DCN; t++)
        if (t != LB_MASK)
            g->inputs.at[t] =
                stored(g->problem.dtype,
                       json_object_get(g->json, lb_tensor_name((enum lb_tensor)t)), NULL);
    for (size_t i = 0; i < LB_WEIGHT_COUNT; i++)
        for (size_t e = 0; json_object_get(g->json, parts[i]) && e < g->layer_dirs; e++)
            g->weights[i][e] = stored(g->problem.dtype,
                                      json_array_get(json_object_get(g->json, parts[i]), e), NULL);
    const json_t *mask = json_object_get(g->json, "mask");
    g->inputs.at[LB_MASK] = mask ? stored_mask(g->problem.dtype, mask, g->layer_dirs) : NULL;
    g->inputs.weights = lb_weights_of(&g->weights[0][0], MAX_LAYER_DIRS);
}

static void close_golden(struct golden *g)
{
    for (size_t i = 0; i < LB_WEIGHT_COUNT; i++)
        for (size_t e = 0; e < g->layer_dirs; e++)
            free(g->weights[i][e]);
    for (int t = LB_X; t <= LB_DCN; t++)
        free(g->inputs.at[t]);
    json_decref(g->json);
}

/* Largest |result - golden| over the tensor's largest |golden|. */
static double distance(enum lb_dtype dtype, const void *result, const json_t *list)
{
    double worst = 0, size = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        double golden = json_number_value(json_array_get(list, i)), value;
        lb_load(dtype, (const char *)result + i * lb_dtype_size(dtype), &value, 1);
        worst = isfinite(value) ? fmax(worst, fabs(value - golden)) : (double)INFINITY;
        size = fmax(size, fabs(golden));
    }
    return worst / size;
}

/* The largest distance over all tensors. */
static double worst_distance(const struct golden *g, const struct lb_results *r)
{
    void *const *const gradients[] = {r->gradients.dw_ih, r->gradients.dw_hh, r->gradients.db_ih,
                                      r->gradients.db_hh, r->gradients.dw_cell};
    static const char *const gradient_keys[] = {"dw_ih", "dw_hh", "db_ih", "db_hh", "dw_cell"};
    double worst = 0;
    for (int t = LB_Y; t < LB_TENSOR_COUNT; t++)
        worst = fmax(worst, distance(g->problem.dtype, r->at[t],
                                     json_object_get(g->json, lb_tensor_name((enum lb_tensor)t))));
    for (size_t i = 0; i < LB_WEIGHT_COUNT; i++)
        for (size_t e = 0; json_object_get(g->json, gradient_keys[i]) && e < g->layer_dirs; e++)
            worst = fmax(worst,
                         distance(g->problem.dtype, gradients[i][e],
                                  json_array_get(json_object_get(g->json, gradient_keys[i]), e)));
    return worst;
}

static double run_golden(const struct lb_impl *impl, const struct golden *g)
{
    struct lb_results results = {0};
    struct lb_error err = {""};
    struct lb_exec_config config = {.threads = 1,
                                    .variant = impl->variants ? impl->variants[0] : NULL};
    if (lb_results_create(&g->problem, &results, &err) != LB_OK ||
        trial_run(impl, &g->problem, &config, &g->inputs, &results, &err) != LB_OK)
        fail_msg("%s: %s", impl->name, err.text);
    double worst = worst_distance(g, &results);
    lb_results_destroy(&results);
    return worst;
}

/* A few roundings of the dtype in which PyTorch computed the file. */
static double allowed(enum lb_dtype dtype)
{
    return dtype == LB_F64 ? 1e-14 : 4e-6;
}

/* Every implementation on the host that supports the golden file's problem gives its values. */
static void all_match(const char *name, int cell)
{
    struct lb_exec_config config = {.threads = 1};
    size_t compared = 0;
    struct golden g;
    open_golden(&g, name);
    assert_int_equal(g.problem.cell, cell);
    assert_true(g.problem.input != g.problem.hidden); /* which their exchange would not show */
    double most = allowed(g.problem.dtype);
    if (cell == LB_CELL_LAYERNORM) /* TOLERANCES.md */
        most *= 1 + 6 / (double)g.problem.hidden;
    for (const struct lb_registration *listed = lb_impl_table; listed->name; listed++) {
        if (!listed->impl || listed->impl->memory != LB_HOST || !listed->impl->backward ||
            lb_impl_supports(listed->impl, &g.problem, &config, NULL) != LB_OK)
            continue;
        double worst = run_golden(listed->impl, &g);
        if (!(worst <= most))
            fail_msg("%s, %s: off by %g of a tensor's size", listed->name, name, worst);
        compared++;
    }
    assert_true(compared > 0);
    close_golden(&g);
}

TEST(implementations_match_pytorch)
{
    for (int i = 0; i < 8; i++) {
        char name[64];
        snprintf(name, sizeof(name), "lstm_%s_L%d_D%d.json", i & 4 ? "f64" : "f32", 1 + (i & 1),
                 1 + (i >> 1 & 1));
        all_match(name, LB_CELL_STANDARD);
    }
}

TEST(every_cell_matches_pytorch)
{
    for (int cell = LB_CELL_STANDARD + 1; cell < LB_CELL_COUNT; cell++) {
        char name[64];
        snprintf(name, sizeof(name), "cell_%s.json", lb_cell_name((enum lb_cell_kind)cell));
        all_match(name, cell);
    }
}

/* Files whose numbers of a cell, or of the gates f and g, are exchanged are found. */
TEST(exchanged_weights_do_not_match)
{
    static const struct {
        const char *file;
        size_t weight, from, bytes;
    } cases[] = {
        {"cell_peephole.json", LB_W_CELL, 0, 4 * sizeof(double)},
        {"cell_layernorm.json", LB_W_CELL, 0, 4 * sizeof(double)},
        {"lstm_f32_L1_D1.json", LB_W_IH, 4 * 5 * sizeof(float), 4 * 5 * sizeof(float)},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const size_t bytes = cases[i].bytes;
        struct golden g;
        char kept[4 * 5 * sizeof(double)];
        open_golden(&g, cases[i].file);
        char *weights = (char *)g.weights[cases[i].weight][0] + cases[i].from;
        memcpy(kept, weights, bytes);
        memcpy(weights, weights + bytes, bytes);
        memcpy(weights + bytes, kept, bytes);
        assert_true(run_golden(&lb_impl_cpu_ref, &g) > 1e-2);
        close_golden(&g);
    }
}

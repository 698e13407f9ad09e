/* cpu_blas: recurrent products and cells in kernels of this project, gradients over all steps by
 * OpenBLAS. f32 and f64, tanh activations, any number of threads. README.md says what was tried. */
#include <cblas.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "cpu_blas.h"

/* Multiply-adds of a step that make a thread worth its barrier. */
static const double work_per_thread = 32768;

/* Rows of input products made at a time: many enough that a pass over the weights pays, few enough
 * that they are still in the cache when their step comes. */
enum { CHUNK_ROWS = 96, CHUNK_BYTES = 2 << 20 };

/* How many times step covers n. */
static size_t cover(size_t n, size_t step)
{
    return (n + step - 1) / step;
}

size_t lb_cpu_input(const struct lb_cpu_blas *blas, size_t entry)
{
    return entry < blas->s.D ? (size_t)blas->problem.input : blas->s.wide;
}

/* Elements of an entry's packed weights for an input size. */
static size_t weight_count(const struct lb_cpu_blas *blas, size_t input)
{
    const struct lb_cpu_sizes *s = &blas->s;
    size_t forward = s->gates * (input + s->H + 1);
    size_t backward = s->gates * (input + s->quads * 4 * s->lanes);
    return forward + (lb_has_backward(&blas->problem) ? backward : 0);
}

/* Elements of packed weights before an entry's; entry L*D: of all. */
static size_t weights_before(const struct lb_cpu_blas *blas, size_t entry)
{
    size_t first = entry < blas->s.D ? entry : blas->s.D, later = entry - first;
    return first * weight_count(blas, (size_t)blas->problem.input) +
           later * weight_count(blas, blas->s.wide);
}

/* Likewise of gradients. */
static size_t gradients_before(const struct lb_cpu_blas *blas, size_t entry)
{
    const struct lb_cpu_sizes *s = &blas->s;
    size_t first = entry < s->D ? entry : s->D, later = entry - first;
    return s->gates *
           (first * ((size_t)blas->problem.input + s->H + 1) + later * (s->wide + s->H + 1));
}

struct lb_cpu_weights lb_cpu_weights_of(const struct lb_cpu_blas *blas, size_t entry)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_weights w;
    w.w_ih = lb_cpu_at(blas, blas->buffers.weights, weights_before(blas, entry));
    w.w_hh = lb_cpu_at(blas, w.w_ih, s->gates * lb_cpu_input(blas, entry));
    w.bias = lb_cpu_at(blas, w.w_hh, s->gates * s->H);
    w.back_hh = lb_cpu_at(blas, w.bias, s->gates);
    w.back_ih = lb_cpu_at(blas, w.back_hh, s->gates * s->quads * 4 * s->lanes);
    return w;
}

struct lb_cpu_gradients lb_cpu_gradients_of(const struct lb_cpu_blas *blas, size_t entry)
{
    const struct lb_cpu_sizes *s = &blas->s;
    struct lb_cpu_gradients g;
    g.dw_ih = lb_cpu_at(blas, blas->buffers.gradients, gradients_before(blas, entry));
    g.dw_hh = lb_cpu_at(blas, g.dw_ih, s->gates * lb_cpu_input(blas, entry));
    g.db = lb_cpu_at(blas, g.dw_hh, s->gates * s->H);
    return g;
}

static enum lb_status cpu_blas_supports(const struct lb_problem *p, const struct lb_place *place,
                                        struct lb_error *why)
{
    (void)place;
    if (p->dtype != LB_F32 && p->dtype != LB_F64)
        return lb_fail(why, LB_UNSUPPORTED, "dtype %s: it has products in f32 and f64",
                       lb_dtype_name(p->dtype));
    if (p->math != LB_IEEE)
        return lb_fail(why, LB_UNSUPPORTED, "math %s: it computes f32 in full precision",
                       lb_math_name(p->math));
    if (p->act != LB_ACT_TANH)
        return lb_fail(why, LB_UNSUPPORTED, "act-%s: its cell has tanh only", lb_act_name(p->act));
    const int64_t sides[] = {p->seq_len * p->batch, 4 * p->hidden + 64, p->input,
                             p->directions * p->hidden};
    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
        if (sides[i] > INT_MAX)
            return lb_fail(why, LB_UNSUPPORTED, "a matrix side of %lld: OpenBLAS takes at most %d",
                           (long long)sides[i], INT_MAX);
    return LB_OK;
}

static struct lb_cpu_sizes sizes_of(const struct lb_problem *p, size_t lanes)
{
    struct lb_cpu_sizes s = {.T = (size_t)p->seq_len,
                             .B = (size_t)p->batch,
                             .H = (size_t)p->hidden,
                             .D = (size_t)p->directions,
                             .L = (size_t)p->layers,
                             .lanes = lanes};
    s.entries = s.L * s.D;
    s.rows = s.T * s.B;
    s.wide = s.D * s.H;
    s.panels = cover(s.H, lanes);
    s.quads = cover(s.panels, 4);
    s.gates = 4 * lanes * s.panels;
    return s;
}

/* As many threads as asked for, or one where a step is too short to be shared. */
static size_t choose_threads(const struct lb_cpu_sizes *s, size_t asked)
{
    double work = (double)s->B * (double)s->gates * (double)s->H;
    return asked > 1 && work < work_per_thread * (double)asked ? 1 : asked;
}

/* "0.3.21" of "OpenBLAS 0.3.21 DYNAMIC_ARCH ...". */
static void library_version(char *text, size_t size)
{
    const char *config = openblas_get_config();
    const char *space = strchr(config, ' ');
    snprintf(text, size, "%s", space ? space + 1 : config);
    text[strcspn(text, " ")] = '\0';
}

static void describe(struct lb_cpu_blas *blas, int asked)
{
    char version[32], threads[96], gradients[96] = "";
    library_version(version, sizeof(version));
    if (blas->threads < (size_t)asked)
        snprintf(threads, sizeof(threads), "1 thread of %d: a step is too short to share", asked);
    else if (asked > 1)
        snprintf(threads, sizeof(threads), "%d threads, pinned, hidden units shared", asked);
    else
        snprintf(threads, sizeof(threads), "1 thread");
    if (lb_has_backward(&blas->problem))
        snprintf(gradients, sizeof(gradients), ", dW and dx by OpenBLAS %s %s", version,
                 openblas_get_corename());
    snprintf(blas->chosen, sizeof(blas->chosen), "own %s kernels, panels of %zu units%s, %s",
             blas->kernels->name, blas->s.lanes, gradients, threads);
}

static enum lb_status cpu_blas_create(void *self, const struct lb_problem *problem,
                                      const struct lb_place *place, struct lb_error *err)
{
    struct lb_cpu_blas *blas = self;
    enum lb_status st = LB_OK;
    blas->problem = *problem;
    blas->elem = lb_dtype_size(problem->dtype);
    blas->kernels = lb_cpu_kernels_best(problem->dtype);
    blas->s = sizes_of(problem, blas->kernels->lanes);
    blas->threads = choose_threads(&blas->s, (size_t)place->threads);
    openblas_set_num_threads(1); /* the team's threads call it, each for its part */
    if (blas->threads > 1)
        LB_TRY(lb_team_open(place->threads, &blas->team, err));
    size_t by_bytes = CHUNK_BYTES / (blas->s.gates * blas->elem);
    size_t rows = by_bytes > CHUNK_ROWS ? by_bytes : CHUNK_ROWS;
    blas->chunk = cover(rows, blas->s.B);
    blas->chunk = blas->chunk < blas->s.T ? blas->chunk : blas->s.T;
    describe(blas, place->threads);
done:
    return st;
}

/* Places all arrays; with zeroed buffers this measures. */
static void lay_out(struct lb_cpu_blas *blas, size_t *reserve, size_t *workspace)
{
    const struct lb_cpu_sizes *s = &blas->s;
    bool trains = lb_trains(&blas->problem), backward = lb_has_backward(&blas->problem);
    size_t lower = !trains && s->L > 2 ? 2 : s->L - 1, kept = 0, used = 0;
    size_t gates = (trains ? s->entries * s->rows : blas->chunk * s->B) * s->gates;
    size_t *at = trains ? &kept : &used;
    char *scratch = blas->buffers.workspace, *base = trains ? blas->buffers.reserve : scratch;
    blas->pointers = lb_take(scratch, &used, blas->threads * 3 * s->B * sizeof(void *));
    blas->gates = lb_take(base, at, gates * blas->elem);
    blas->lower = lb_take(base, at, lower * s->rows * s->wide * blas->elem);
    blas->cells = trains ? lb_take(base, at, s->entries * s->rows * s->H * blas->elem) : NULL;
    if (backward) {
        blas->between = lb_take(scratch, &used, (s->L > 1 ? s->rows * s->wide : 0) * blas->elem);
        blas->first = lb_take(scratch, &used, s->B * s->gates * blas->elem);
    }
    *reserve = kept;
    *workspace = used;
}

static enum lb_status cpu_blas_sizes(void *self, struct lb_sizes *sizes, struct lb_error *err)
{
    struct lb_cpu_blas *blas = self;
    const struct lb_cpu_sizes *s = &blas->s;
    double largest = (double)s->entries * (double)s->rows * (double)s->gates;
    if (largest > 0x1p58) /* bytes of all would pass what a size_t holds */
        return lb_fail(err, LB_OOM, "gates of all steps: %.3g elements are more than any memory",
                       largest);
    sizes->weights = weights_before(blas, s->entries) * blas->elem;
    if (lb_has_backward(&blas->problem))
        sizes->gradients = gradients_before(blas, s->entries) * blas->elem;
    lay_out(blas, &sizes->reserve, &sizes->workspace);
    return LB_OK;
}

/* Place of canonical gate row g*H + unit among the packed ones. */
static size_t packed_row(const struct lb_cpu_blas *blas, size_t g, size_t unit)
{
    size_t lanes = blas->s.lanes;
    return unit / lanes * 4 * lanes + g * lanes + unit % lanes;
}

/* from [count] -> every stride-th element of to. */
static void spread(const struct lb_cpu_blas *blas, char *to, size_t stride, const char *from,
                   size_t count)
{
    if (blas->elem == sizeof(float))
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * stride * sizeof(float), from + i * sizeof(float), sizeof(float));
    else
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * stride * sizeof(double), from + i * sizeof(double), sizeof(double));
}

/* from [4H, columns] -> to [panels, columns, 4, lanes]; units that are not there stay 0. */
static void pack_forward(const struct lb_cpu_blas *blas, char *to, const void *from, size_t columns)
{
    const struct lb_cpu_sizes *s = &blas->s;
    memset(to, 0, s->gates * columns * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++) {
            size_t panel = unit / s->lanes, lane = unit % s->lanes;
            spread(blas, lb_cpu_at(blas, to, (panel * columns * 4 + g) * s->lanes + lane),
                   4 * s->lanes, lb_cpu_at(blas, from, (g * s->H + unit) * columns), columns);
        }
}

/* w_hh [4H, H] -> to [quads, gates, 4*lanes]. */
static void pack_backward(const struct lb_cpu_blas *blas, char *to, const void *w_hh)
{
    const struct lb_cpu_sizes *s = &blas->s;
    size_t width = 4 * s->lanes;
    memset(to, 0, s->quads * s->gates * width * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            for (size_t first = 0; first < s->H; first += width) {
                size_t count = s->H - first < width ? s->H - first : width;
                size_t row = first / width * s->gates + packed_row(blas, g, unit);
                memcpy(lb_cpu_at(blas, to, row * width),
                       lb_cpu_at(blas, w_hh, (g * s->H + unit) * s->H + first), count * blas->elem);
            }
}

/* w_ih [4H, I_l] -> to [gates, I_l]: rows in the order of packed gates. */
static void pack_rows(const struct lb_cpu_blas *blas, char *to, const void *w_ih, size_t input)
{
    const struct lb_cpu_sizes *s = &blas->s;
    memset(to, 0, s->gates * input * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++)
            memcpy(lb_cpu_at(blas, to, packed_row(blas, g, unit) * input),
                   lb_cpu_at(blas, w_ih, (g * s->H + unit) * input), input * blas->elem);
}

static void pack_bias(const struct lb_cpu_blas *blas, char *to, const void *b_ih, const void *b_hh)
{
    const struct lb_cpu_sizes *s = &blas->s;
    enum lb_dtype dtype = blas->problem.dtype;
    memset(to, 0, s->gates * blas->elem);
    for (size_t g = 0; g < 4; g++)
        for (size_t unit = 0; unit < s->H; unit++) {
            double ih, hh;
            lb_load(dtype, lb_cpu_at(blas, b_ih, g * s->H + unit), &ih, 1);
            lb_load(dtype, lb_cpu_at(blas, b_hh, g * s->H + unit), &hh, 1);
            ih += hh;
            lb_store(dtype, lb_cpu_at(blas, to, packed_row(blas, g, unit)), &ih, 1);
        }
}

static enum lb_status cpu_blas_prepare(void *self, const struct lb_buffers *buffers,
                                       const struct lb_weights *weights, struct lb_error *err)
{
    struct lb_cpu_blas *blas = self;
    size_t reserve, workspace;
    (void)err;
    blas->buffers = *buffers;
    lay_out(blas, &reserve, &workspace);
    for (size_t e = 0; e < blas->s.entries; e++) {
        struct lb_cpu_weights w = lb_cpu_weights_of(blas, e);
        pack_forward(blas, w.w_ih, weights->w_ih[e], lb_cpu_input(blas, e));
        pack_forward(blas, w.w_hh, weights->w_hh[e], blas->s.H);
        pack_bias(blas, w.bias, weights->b_ih[e], weights->b_hh[e]);
        if (lb_has_backward(&blas->problem)) {
            pack_backward(blas, w.back_hh, weights->w_hh[e]);
            pack_rows(blas, w.back_ih, weights->w_ih[e], lb_cpu_input(blas, e));
        }
    }
    return LB_OK;
}

static enum lb_status cpu_blas_forward(void *self, const struct lb_forward_io *io,
                                       struct lb_error *err)
{
    const struct lb_cpu_blas *blas = self;
    (void)err;
    lb_team_run(blas->team, lb_cpu_forward_work,
                &(struct lb_cpu_call){.blas = blas, .forward = io});
    return LB_OK;
}

static enum lb_status cpu_blas_backward(void *self, const struct lb_backward_io *io,
                                        struct lb_error *err)
{
    const struct lb_cpu_blas *blas = self;
    (void)err;
    lb_team_run(blas->team, lb_cpu_backward_work,
                &(struct lb_cpu_call){.blas = blas, .backward = io});
    return LB_OK;
}

static enum lb_status cpu_blas_gradients(void *self, const struct lb_gradients *gradients,
                                         struct lb_error *err)
{
    const struct lb_cpu_blas *blas = self;
    const struct lb_cpu_sizes *s = &blas->s;
    (void)err;
    for (size_t e = 0; e < s->entries; e++) {
        struct lb_cpu_gradients from = lb_cpu_gradients_of(blas, e);
        const struct {
            void *to;
            const char *from;
            size_t columns;
        } parts[] = {
            {gradients->dw_ih[e], from.dw_ih, lb_cpu_input(blas, e)},
            {gradients->dw_hh[e], from.dw_hh, s->H},
            {gradients->db_ih[e], from.db, 1},
            {gradients->db_hh[e], from.db, 1},
        };
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
            for (size_t row = 0; row < 4 * s->H; row++)
                memcpy(lb_cpu_at(blas, parts[i].to, row * parts[i].columns),
                       lb_cpu_at(blas, parts[i].from,
                                 packed_row(blas, row / s->H, row % s->H) * parts[i].columns),
                       parts[i].columns * blas->elem);
    }
    return LB_OK;
}

static const char *cpu_blas_chosen(const void *self)
{
    return ((const struct lb_cpu_blas *)self)->chosen;
}

static void cpu_blas_destroy(void *self)
{
    lb_team_close(((struct lb_cpu_blas *)self)->team);
}

const struct lb_impl lb_impl_cpu_blas = {
    .abi = LB_IMPL_ABI,
    .name = "cpu_blas",
    .summary = "packed weights, vectorised cell, OpenBLAS for gradients",
    .memory = LB_HOST,
    .traits = LB_DETERMINISTIC,
    .state_size = sizeof(struct lb_cpu_blas),
    .supports = cpu_blas_supports,
    .create = cpu_blas_create,
    .sizes = cpu_blas_sizes,
    .prepare = cpu_blas_prepare,
    .forward = cpu_blas_forward,
    .backward = cpu_blas_backward,
    .gradients = cpu_blas_gradients,
    .chosen = cpu_blas_chosen,
    .destroy = cpu_blas_destroy,
};

/* The comparison of a result with the oracle's answer, piece by piece. */
#include "reference/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reference/tolerance.h"

enum { GATES = 4, WEIGHT_PIECES = 4 * GATES, STATES = 2 };

size_t lb_slice_count(const struct lb_problem *problem)
{
    size_t entries = lb_layer_dir_count(problem);
    size_t forward = 1 + STATES * entries;
    return lb_has_backward(problem) ? 2 * forward + WEIGHT_PIECES * entries : forward;
}

/* Pieces of y, hn, cn, or of dx, dh0, dc0. */
static struct lb_slice row_piece(const struct lb_comparison *c, size_t index, bool gradient)
{
    const struct lb_problem *p = &c->answer->problem;
    const struct lb_oracle *net = &c->answer->net;
    size_t H = (size_t)p->hidden, T = (size_t)p->seq_len, rows = c->answer->rows;
    struct lb_slice piece = {.gate = -1,
                             .gradient = gradient,
                             .places = c->batch,
                             .rows = rows,
                             .class_of = c->class_of};
    if (index == 0) {
        size_t wide = (size_t)p->directions * H;
        piece.tensor = gradient ? "dx" : "y";
        piece.steps = T;
        piece.width = gradient ? (size_t)p->input : wide;
        piece.result = gradient ? c->results->dx : c->results->y;
        piece.right = gradient ? net->dx : net->y + (size_t)(p->layers - 1) * T * rows * wide;
        return piece;
    }
    static const char *const names[2][STATES] = {{"hn", "cn"}, {"dh0", "dc0"}};
    const void *const results[2][STATES] = {{c->results->hn, c->results->cn},
                                            {c->results->dh0, c->results->dc0}};
    const double *const right[2][STATES] = {{net->hn, net->cn}, {net->dh0, net->dc0}};
    size_t which = (index - 1) % STATES;
    piece.entry = (index - 1) / STATES;
    piece.tensor = names[gradient][which];
    piece.steps = 1;
    piece.width = H;
    piece.right = right[gradient][which] + piece.entry * rows * H;
    piece.result = (const char *)results[gradient][which] +
                   piece.entry * c->batch * H * lb_dtype_size(p->dtype);
    return piece;
}

/* Pieces of the weight gradients: one gate's rows of a matrix or a bias. */
static struct lb_slice weight_piece(const struct lb_comparison *c, size_t index)
{
    static const char *const names[] = {"dw_ih", "dw_hh", "db_ih", "db_hh"};
    const struct lb_problem *p = &c->answer->problem;
    const struct lb_gradients *g = &c->results->gradients;
    size_t H = (size_t)p->hidden, entry = index / WEIGHT_PIECES;
    size_t which = index / GATES % 4, gate = index % GATES;
    size_t input = (size_t)lb_layer_input(p, (int64_t)entry / p->directions);
    void *const results[] = {g->dw_ih[entry], g->dw_hh[entry], g->db_ih[entry], g->db_hh[entry]};
    const double *right = c->dw + lb_gradient_offset(p, entry);
    const double *const rights[] = {right, right + 4 * H * input, right + 4 * H * (input + H),
                                    right + 4 * H * (input + H)};
    size_t columns = which == 0 ? input : which == 1 ? H : 1;
    return (struct lb_slice){
        .tensor = names[which],
        .entry = entry,
        .gate = (int)gate,
        .gradient = true,
        .summed = true,
        .steps = 1,
        .places = 1,
        .rows = 1,
        .width = H * columns,
        .result = (const char *)results[which] + gate * H * columns * lb_dtype_size(p->dtype),
        .right = rights[which] + gate * H * columns,
    };
}

struct lb_slice lb_slice_at(const struct lb_comparison *comparison, size_t index)
{
    size_t forward = 1 + STATES * lb_layer_dir_count(&comparison->answer->problem);
    if (index < 2 * forward)
        return row_piece(comparison, index % forward, index >= forward);
    return weight_piece(comparison, index - 2 * forward);
}

enum { LANES = 8, BLOCK = 512 };

/* Running maxima and sums, in lanes so that the loop over them is one of vectors. */
struct lanes {
    double max[LANES], squares[LANES], right_max[LANES], right_squares[LANES];
};

static void compare_block(const double *result, const double *right, size_t count,
                          struct lanes *lanes)
{
    for (size_t i = 0; i < count; i += LANES) {
        size_t n = count - i < LANES ? count - i : LANES;
        for (size_t j = 0; j < n; j++) {
            double error = fabs(result[i + j] - right[i + j]), size = fabs(right[i + j]);
            lanes->max[j] = error > lanes->max[j] ? error : lanes->max[j]; /* passes over a NaN */
            lanes->squares[j] += error * error;                            /* and this does not */
            lanes->right_max[j] = size > lanes->right_max[j] ? size : lanes->right_max[j];
            lanes->right_squares[j] += size * size;
        }
    }
}

/* Where place b of step s starts in the result, and in what it should be. */
static const void *result_row(const struct lb_slice *piece, size_t s, size_t b, size_t size)
{
    return (const char *)piece->result + (s * piece->places + b) * piece->width * size;
}

static const double *right_row(const struct lb_slice *piece, size_t s, size_t b)
{
    size_t row = piece->class_of ? (size_t)piece->class_of[b] : b;
    return piece->right + (s * piece->rows + row) * piece->width;
}

struct lb_deviation lb_slice_measure(const struct lb_slice *piece, enum lb_dtype dtype)
{
    struct lb_deviation sum = {.count = piece->steps * piece->places * piece->width};
    struct lanes lanes = {0};
    double block[BLOCK];
    size_t size = lb_dtype_size(dtype);
    for (size_t s = 0; s < piece->steps; s++)
        for (size_t b = 0; b < piece->places; b++) {
            const char *result = result_row(piece, s, b, size);
            const double *right = right_row(piece, s, b);
            for (size_t first = 0; first < piece->width; first += BLOCK) {
                size_t n = piece->width - first < BLOCK ? piece->width - first : BLOCK;
                lb_load(dtype, result + first * size, block, n);
                compare_block(block, right + first, n, &lanes);
            }
        }
    for (size_t j = 0; j < LANES; j++) {
        sum.max_abs = fmax(sum.max_abs, lanes.max[j]);
        sum.right_max = fmax(sum.right_max, lanes.right_max[j]);
        sum.sum_squares += lanes.squares[j];
        sum.right_squares += lanes.right_squares[j];
    }
    return sum;
}

/* An element of a piece: the first that is not finite, or else the one that is farthest off. */
struct worst_element {
    size_t step, place, column;
    double value, right;
};

static struct worst_element find_worst_element(const struct lb_slice *piece, enum lb_dtype dtype)
{
    struct worst_element worst = {0};
    double largest = -1, value;
    size_t size = lb_dtype_size(dtype);
    for (size_t s = 0; s < piece->steps; s++)
        for (size_t b = 0; b < piece->places; b++) {
            const char *result = result_row(piece, s, b, size);
            const double *right = right_row(piece, s, b);
            for (size_t j = 0; j < piece->width; j++) {
                lb_load(dtype, result + j * size, &value, 1);
                double error = isfinite(value) ? fabs(value - right[j]) : (double)INFINITY;
                if (error <= largest)
                    continue;
                worst = (struct worst_element){s, b, j, value, right[j]};
                largest = error;
                if (!isfinite(value))
                    return worst;
            }
        }
    return worst;
}

/* "dw_ih of layer 1, direction 0, gate f [row 3, column 7]" or "y [t 3, b 0, column 7]". */
static void name_element(const struct lb_comparison *c, const struct lb_slice *piece,
                         const struct worst_element *at, char *text, size_t size)
{
    size_t D = (size_t)c->answer->problem.directions, H = (size_t)c->answer->problem.hidden;
    char entry[64] = "", place[96];
    if (piece->steps == 1 && !(strcmp(piece->tensor, "y") == 0 || strcmp(piece->tensor, "dx") == 0))
        snprintf(entry, sizeof(entry), " of layer %zu, direction %zu", piece->entry / D,
                 piece->entry % D);
    if (piece->summed) {
        size_t columns = piece->width / H, first_row = (size_t)piece->gate * H;
        snprintf(place, sizeof(place), ", gate %c [%zu, %zu]", "ifgo"[piece->gate],
                 first_row + at->column / columns, at->column % columns);
    } else if (entry[0])
        snprintf(place, sizeof(place), " [b %zu, column %zu]", at->place, at->column);
    else
        snprintf(place, sizeof(place), " [t %zu, b %zu, column %zu]", at->step, at->place,
                 at->column);
    snprintf(text, size, "%s%s%s", piece->tensor, entry, place);
}

/* Writes why a piece is wrong. */
static void explain(const struct lb_comparison *c, const struct lb_slice *piece,
                    const struct lb_deviation *now, const struct lb_tolerance *allowed,
                    struct lb_check *check)
{
    struct worst_element at = find_worst_element(piece, c->answer->problem.dtype);
    char name[160];
    name_element(c, piece, &at, name, sizeof(name));
    if (!isfinite(at.value))
        snprintf(check->reason, sizeof(check->reason), "%s is %s, should be %.6g: %s", name,
                 isnan(at.value) ? "NaN" : "infinite", at.right,
                 isnan(at.value) ? "not written, or computed from NaN" : "an overflow");
    else if (now->max_abs > allowed->max_abs)
        snprintf(check->reason, sizeof(check->reason),
                 "%s is %.9g, should be %.9g: off by %.3g, allowed %.3g", name, at.value, at.right,
                 now->max_abs, allowed->max_abs);
    else
        snprintf(check->reason, sizeof(check->reason),
                 "off by %.3g in norm, allowed %.3g of %.3g; the worst element is %s",
                 sqrt(now->sum_squares), allowed->norm, sqrt(now->right_squares), name);
}

/* max that a NaN gets through. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

void lb_compare(const struct lb_comparison *comparison, struct lb_check *check)
{
    struct lb_problem p = comparison->answer->problem;
    if (!comparison->dw) /* the answer may know of a backward that the result has not */
        p.pass = LB_INFER;
    *check = (struct lb_check){.right = true};
    for (size_t i = 0; i < lb_slice_count(&p); i++) {
        struct lb_slice piece = lb_slice_at(comparison, i);
        struct lb_deviation now = lb_slice_measure(&piece, p.dtype);
        struct lb_tolerance allowed =
            lb_tolerance_of(comparison, &piece, &comparison->answer->deviations[i], &now);
        double error = isfinite(now.sum_squares) ? now.max_abs : (double)NAN;
        double norm = isfinite(now.sum_squares) ? sqrt(now.sum_squares) : (double)NAN;
        check->err_max_abs = larger(check->err_max_abs, error);
        if (now.right_max > 0) {
            check->err_max_rel = larger(check->err_max_rel, error / now.right_max);
            check->err_norm = larger(check->err_norm, norm / sqrt(now.right_squares));
        }
        if (check->right && !(error <= allowed.max_abs && norm <= allowed.norm)) {
            check->right = false;
            check->in_gradient = piece.gradient;
            explain(comparison, &piece, &now, &allowed, check);
        }
    }
}

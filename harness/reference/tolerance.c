/* How far a result may be from the oracle. */
#include "reference/tolerance.h"

#include <math.h>
#include <string.h>

/* A result may be this many times as far from the oracle as the faithful evaluation is, in its
 * worst element and in norm, and in addition a few roundings of the piece's natural size. README.md
 * has the measurements behind these numbers. */
static const double max_factor = 8, norm_factor = 4, max_roundings = 8, norm_roundings = 4;

/* The error of n elements is a sample of n: what it says is uncertain by 1/sqrt(n), and more, since
 * elements share errors that came before them. So tolerances are 1 + this/sqrt(n) times as wide. */
static const double few_elements = 6;

/* Sum of squares of rows [steps, R, width], a part of rows that are stride apart, where a row has
 * the step. */
static double active_squares(const struct lb_expected *answer, const double *rows, size_t stride,
                             size_t width)
{
    double sum = 0;
    for (size_t t = 0; t < (size_t)answer->problem.seq_len; t++)
        for (size_t r = 0; r < answer->rows; r++) {
            const double *row = rows + (t * answer->rows + r) * stride;
            if (answer->lengths && t >= (size_t)answer->lengths[r])
                break; /* lengths descend */
            for (size_t j = 0; j < width; j++)
                sum += row[j] * row[j];
        }
    return sum;
}

void lb_measure_layer_dirs(const struct lb_expected *answer, struct lb_layer_dir_size *sizes)
{
    const struct lb_problem *p = &answer->problem;
    const struct lb_oracle *net = &answer->net;
    size_t T = (size_t)p->seq_len, H = (size_t)p->hidden, D = (size_t)p->directions;
    size_t rows = T * answer->rows, wide = D * H, entries = (size_t)p->layers * D;
    double steps = 0;
    for (size_t r = 0; r < answer->rows; r++)
        steps += answer->lengths ? answer->lengths[r] : (double)T;
    for (size_t e = 0; e < entries; e++) {
        size_t l = e / D, input = (size_t)lb_layer_input(p, (int64_t)l);
        const double *in = l == 0 ? net->x : net->y + (l - 1) * rows * wide;
        const double *y = net->y + l * rows * wide + e % D * H;
        const double *da = net->gates + e * rows * 4 * H;
        double h = active_squares(answer, y, wide, H);
        for (size_t i = 0; i < answer->rows * H; i++)
            h += net->h0[e * answer->rows * H + i] * net->h0[e * answer->rows * H + i];
        double in_squares = active_squares(answer, in, input, input);
        double da_squares = active_squares(answer, da, 4 * H, 4 * H);
        sizes[e] = (struct lb_layer_dir_size){
            .steps = steps,
            .gradients = sqrt(da_squares / (steps * 4 * (double)H)),
            .input = sqrt(in_squares / (steps * (double)input)),
            .state = sqrt(h / ((steps + (double)answer->rows) * (double)H)),
        };
    }
}

/* The size that a piece's elements have unless terms happen to cancel, each row counted once: where
 * a piece has few elements, what is right may be small by chance, and its error is not. */
static double natural_size(const struct lb_expected *answer, const struct lb_slice *piece)
{
    if (!piece->gradient) /* x, h0, c0 and gates are of size 1 */
        return 0.25;
    const struct lb_layer_dir_size *size = &answer->layer_dir_sizes[piece->entry];
    if (!piece->summed) /* sums over 4H products with weights of size 1.4 over the root of H */
        return 2 * size->gradients;
    double right = strcmp(piece->tensor, "dw_ih") == 0   ? size->input
                   : strcmp(piece->tensor, "dw_hh") == 0 ? size->state
                                                         : 1;
    return sqrt(size->steps) * size->gradients * right;
}

/* How often the row counts that counts most. */
static double largest_count(const struct lb_comparison *c)
{
    int32_t largest = 1;
    for (size_t r = 0; c->counts && r < c->answer->rows; r++)
        largest = c->counts[r] > largest ? c->counts[r] : largest;
    return largest;
}

struct lb_tolerance lb_tolerance_of(const struct lb_comparison *comparison,
                                    const struct lb_slice *piece,
                                    const struct lb_deviation *faithful,
                                    const struct lb_deviation *now)
{
    const struct lb_expected *answer = comparison->answer;
    double roundoff = lb_dtype_roundoff(answer->problem.dtype), walk = 0, times = 1;
    double norm = sqrt(now->right_squares), faithful_norm = sqrt(faithful->sum_squares);
    if (piece->summed) {
        /* Equal rows are rounded alike, so their errors add up; and a sum is rounded after each of
         * its terms, alike for equal terms, in float at least. */
        double sum_roundoff = answer->problem.dtype == LB_F64 ? 0x1p-53 : 0x1p-24;
        times = largest_count(comparison);
        walk = times * sqrt(answer->layer_dir_sizes[piece->entry].steps) * sum_roundoff;
        faithful_norm *= times;
    } else if (faithful->right_squares > 0) {
        faithful_norm *=
            norm / sqrt(faithful->right_squares); /* of the rows to that of the batch */
    }
    double size = times * natural_size(answer, piece), root = sqrt((double)now->count);
    double few = 1 + few_elements / root;
    return (struct lb_tolerance){
        .max_abs = few * (max_factor * times * faithful->max_abs +
                          (max_roundings * roundoff + walk) * fmax(now->right_max, size)),
        .norm = few * (norm_factor * faithful_norm +
                       (norm_roundings * roundoff + walk) * fmax(norm, size * root)),
    };
}

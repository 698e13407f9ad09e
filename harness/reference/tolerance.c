/* How far a result may be from the oracle. */
#include "reference/tolerance.h"

#include <math.h>
#include <string.h>

/* A result may be this many times as far from the oracle as the rounded evaluation is, in its worst
 * element and in norm, and in addition a few roundings of the slice's natural size. TOLERANCES.md
 * has the measurements behind these numbers. */
static const double max_factor = 8, norm_factor = 4, max_roundings = 8, norm_roundings = 4;

/* The errors of n elements are a sample of n, so the largest and the norm of them are uncertain by
 * 1/sqrt(n), and by more because elements share the errors made before them. Tolerances are
 * therefore 1 + few_elements/sqrt(n) times as wide. */
static const double few_elements = 6;

/* Sum of squares of the first `width` columns of rows [T, R, stride], over the steps that each row
 * has. */
static double active_squares(const struct lb_oracle *net, const double *rows, size_t stride,
                             size_t width)
{
    size_t R = (size_t)net->problem.batch;
    double sum = 0;
    for (size_t t = 0; t < (size_t)net->problem.seq_len; t++)
        for (size_t r = 0; r < R; r++) {
            const double *row = rows + (t * R + r) * stride;
            if (net->lengths && t >= (size_t)net->lengths[r])
                break; /* lengths descend */
            for (size_t j = 0; j < width; j++)
                sum += row[j] * row[j];
        }
    return sum;
}

void lb_measure_layer_dirs(const struct lb_oracle *net, struct lb_layer_dir_size *sizes)
{
    const struct lb_problem *p = &net->problem;
    size_t T = (size_t)p->seq_len, R = (size_t)p->batch, H = (size_t)p->hidden;
    size_t D = (size_t)p->directions, P = (size_t)lb_h_size(p), rows = T * R, y_width = D * P;
    double steps = 0;
    for (size_t r = 0; r < R; r++)
        steps += net->lengths ? net->lengths[r] : (double)T;
    for (size_t e = 0; e < lb_layer_dir_count(p); e++) {
        size_t l = e / D, input = (size_t)lb_layer_input(p, (int64_t)l);
        const double *in = l == 0 ? net->x : net->y + (l - 1) * rows * y_width;
        const double *y = net->y + l * rows * y_width + e % D * P;
        const double *da = net->gates + e * rows * 4 * H;
        double h = active_squares(net, y, y_width, P);
        for (size_t i = 0; i < R * P; i++)
            h += net->h0[e * R * P + i] * net->h0[e * R * P + i];
        double in_squares = active_squares(net, in, input, input);
        double da_squares = active_squares(net, da, 4 * H, 4 * H);
        sizes[e] = (struct lb_layer_dir_size){
            .steps = steps,
            .gradients = sqrt(da_squares / (steps * 4 * (double)H)),
            .input = sqrt(in_squares / (steps * (double)input)),
            .state = sqrt(h / ((steps + (double)R) * (double)P)),
        };
    }
}

/* The magnitude that a slice's elements have unless terms happen to cancel, each row counted once.
 * The expected values of a few elements may be small by chance, while their errors are not. The
 * constants are below the usual magnitude: a smaller one makes the tolerance stricter. */
static double natural_size(const struct lb_tolerance_basis *basis, const struct lb_slice *slice)
{
    if (!slice->gradient) /* x, h0, c0 and gates are of size 1, outputs somewhat below */
        return 0.25;
    const struct lb_layer_dir_size *size = &basis->sizes[slice->layer_dir];
    if (!slice->summed) /* sums of 4H products with weights of size 1.4/sqrt(H) are 2.8 times it */
        return 2 * size->gradients;
    double operand = strcmp(slice->tensor, "dw_ih") == 0   ? size->input
                     : strcmp(slice->tensor, "dw_hh") == 0 ? size->state
                                                           : 1;
    return sqrt(size->steps) * size->gradients * operand;
}

struct lb_tolerance lb_tolerance_of(const struct lb_tolerance_basis *basis,
                                    const struct lb_slice *slice,
                                    const struct lb_deviation *rounded,
                                    const struct lb_deviation *now)
{
    double roundoff = lb_dtype_roundoff(basis->dtype), sum_rounding = 0, times = 1;
    double norm = sqrt(now->expected_squares), rounded_norm = sqrt(rounded->sum_squares);
    if (slice->summed) {
        /* Equal rows are rounded alike, so their errors add up. Besides, the sum is rounded after
         * each of its terms, alike for equal terms, in float or better. */
        double sum_roundoff = basis->dtype == LB_F64 ? 0x1p-53 : 0x1p-24;
        times = basis->largest_count;
        sum_rounding = times * sqrt(basis->sizes[slice->layer_dir].steps) * sum_roundoff;
        rounded_norm *= times;
    } else if (rounded->expected_squares > 0) {
        /* From the norm of the distinct rows to the norm of the batch that was dealt from them. */
        rounded_norm *= norm / sqrt(rounded->expected_squares);
    }
    double size = times * natural_size(basis, slice), root = sqrt((double)now->count);
    double few = 1 + few_elements / root;
    return (struct lb_tolerance){
        .max_abs =
            few * (max_factor * times * rounded->max_abs +
                   (max_roundings * roundoff + sum_rounding) * fmax(now->expected_max, size)),
        .norm = few * (norm_factor * rounded_norm +
                       (norm_roundings * roundoff + sum_rounding) * fmax(norm, size * root)),
    };
}

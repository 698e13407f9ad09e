/* The comparison of a result with the expected one, slice by slice. */
#include "reference/verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reference/expected.h"

/* Whether the tensor is the gradient of a vector that only other cells than the standard one have.
 */
static bool is_cell_vector(const char *tensor)
{
    return strcmp(tensor, "dw_peephole") == 0 || strcmp(tensor, "dgain") == 0 ||
           strcmp(tensor, "dbias") == 0;
}

/* "dw_ih of layer 1, direction 0, gate f [3, 7]" or "y [t 3, b 0, column 7]". */
static void name_element(const struct lb_problem *p, const struct lb_slice *slice,
                         const struct lb_slice_element *at, char *text, size_t size)
{
    size_t D = (size_t)p->directions, H = (size_t)p->hidden, column = at->column;
    bool whole_tensor = strcmp(slice->tensor, "y") == 0 || strcmp(slice->tensor, "dx") == 0;
    char layer_dir[64] = "", index[96];
    if (!whole_tensor)
        snprintf(layer_dir, sizeof(layer_dir), " of layer %zu, direction %zu", slice->layer_dir / D,
                 slice->layer_dir % D);
    if (strcmp(slice->tensor, "dw_hr") == 0)
        snprintf(index, sizeof(index), " [%zu, %zu]", at->column / H, at->column % H);
    else if (slice->summed && is_cell_vector(slice->tensor))
        snprintf(index, sizeof(index), ", %c [%zu]", "ifgoc"[slice->gate], column);
    else if (slice->summed) {
        size_t columns = slice->width / H, first_row = (size_t)slice->gate * H;
        snprintf(index, sizeof(index), ", gate %c [%zu, %zu]", "ifgo"[slice->gate],
                 first_row + at->column / columns, at->column % columns);
    } else if (!whole_tensor)
        snprintf(index, sizeof(index), " [b %zu, column %zu]", at->batch_row, at->column);
    else
        snprintf(index, sizeof(index), " [t %zu, b %zu, column %zu]", at->step, at->batch_row,
                 at->column);
    snprintf(text, size, "%s%s%s", slice->tensor, layer_dir, index);
}

/* Writes why a slice is wrong. */
static void explain(const struct lb_problem *p, const struct lb_slice *slice,
                    const struct lb_deviation *now, const struct lb_tolerance *allowed,
                    struct lb_check *check)
{
    struct lb_slice_element at = lb_slice_worst_element(slice, p->dtype);
    char name[160];
    name_element(p, slice, &at, name, sizeof(name));
    if (!isfinite(at.value))
        snprintf(check->reason, sizeof(check->reason), "%s is %s, should be %.6g: %s", name,
                 isnan(at.value) ? "NaN" : "infinite", at.expected,
                 isnan(at.value) ? "not written, or computed from NaN" : "an overflow");
    else if (now->max_abs > allowed->max_abs)
        snprintf(check->reason, sizeof(check->reason),
                 "%s is %.9g, should be %.9g: off by %.3g, allowed %.3g", name, at.value,
                 at.expected, now->max_abs, allowed->max_abs);
    else
        snprintf(check->reason, sizeof(check->reason),
                 "off by %.3g in norm, allowed %.3g of %.3g; the worst element is %s",
                 sqrt(now->sum_squares), allowed->norm, sqrt(now->expected_squares), name);
}

/* The maximum, which propagates NaN. */
static double larger(double a, double b)
{
    return a > b || isnan(a) ? a : b;
}

/* The share of the allowed error that is used. It is 0 for an error of 0, even where none is
 * allowed. */
static double share(double error, double allowed)
{
    return error == 0 ? 0 : error / allowed;
}

static double largest_count(const struct lb_comparison *c)
{
    int32_t largest = 1;
    for (size_t r = 0; c->counts && r < c->expected->rows; r++)
        largest = c->counts[r] > largest ? c->counts[r] : largest;
    return largest;
}

void lb_compare(const struct lb_comparison *c, struct lb_check *check)
{
    struct lb_problem p = c->expected->problem;
    const struct lb_slice_source source = {&c->expected->net, c->dw, c->results, c->batch,
                                           c->class_of};
    const struct lb_tolerance_basis basis = {p.dtype, c->expected->layer_dir_sizes,
                                             largest_count(c)};
    if (!c->dw) /* expected results with a backward also serve a pass without one */
        p.pass = LB_INFER;
    *check = (struct lb_check){.right = true};
    for (size_t i = 0; i < lb_slice_count(&p); i++) {
        struct lb_slice slice = lb_slice_at(&source, i);
        struct lb_deviation now = lb_slice_measure(&slice, p.dtype);
        struct lb_tolerance allowed =
            lb_tolerance_of(&basis, &slice, &c->expected->deviations[i], &now);
        double error = isfinite(now.sum_squares) ? now.max_abs : (double)NAN;
        double norm = isfinite(now.sum_squares) ? sqrt(now.sum_squares) : (double)NAN;
        check->err_max_abs = larger(check->err_max_abs, error);
        if (now.expected_max > 0) {
            check->err_max_rel = larger(check->err_max_rel, error / now.expected_max);
            double relative = norm / sqrt(now.expected_squares);
            check->err_norm = larger(check->err_norm, relative);
            if (slice.gradient)
                check->gradient_err_norm = larger(check->gradient_err_norm, relative);
        }
        check->tolerance_used = larger(check->tolerance_used, share(error, allowed.max_abs));
        check->tolerance_used = larger(check->tolerance_used, share(norm, allowed.norm));
        if (check->right && !(error <= allowed.max_abs && norm <= allowed.norm)) {
            check->right = false;
            check->in_gradient = slice.gradient;
            explain(&p, &slice, &now, &allowed, check);
        }
    }
}

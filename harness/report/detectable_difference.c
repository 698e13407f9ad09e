/* The smallest slowdown that a comparison would have found. */
#include "report/detectable_difference.h"

#include <math.h>
#include <stdlib.h>

/* The times of both sides' units (processes or blocks), as logarithms. */
struct units {
    double *base, *now; /* [n], [m] */
    double *moved;      /* [m] scratch: now, shifted */
    size_t n, m;
    bool paired;
};

/* The p-value of a slowdown once every time of `now` is shifted; 1 where the estimate is none. */
static enum lb_status p_of(const struct units *units, double shift, double *p, struct lb_error *err)
{
    struct lb_shift found;
    for (size_t i = 0; i < units->m; i++)
        units->moved[i] = units->now[i] + shift - (units->paired ? units->base[i] : 0);
    enum lb_status st = units->paired
                            ? lb_shift_paired(units->moved, units->m, &found, err)
                            : lb_shift(units->base, units->n, units->moved, units->m, &found, err);
    /* A shift downwards may be significant too, but it is no slowdown. */
    *p = st == LB_OK && found.estimate > 0 ? found.p : 1;
    return st;
}

/* Bisects for the smallest significant shift in (low, high], to 1e-6. low is not significant;
 * *least is infinite when high is not either. */
static enum lb_status bisect(const struct units *units, double p_limit, double low, double high,
                             double *least, struct lb_error *err)
{
    enum lb_status st = LB_OK;
    double p;
    LB_TRY(p_of(units, high, &p, err));
    *least = INFINITY;
    if (p > p_limit)
        return LB_OK;
    while (high - low > 1e-6) {
        double middle = (low + high) / 2;
        LB_TRY(p_of(units, middle, &p, err));
        if (p > p_limit)
            low = middle;
        else
            high = middle;
    }
    *least = high;
done:
    return st;
}

enum lb_status lb_detectable_slowdown(const struct lb_run_comparison *comparison,
                                      const struct lb_pair *pair, double p_limit, double *least,
                                      struct lb_error *err)
{
    enum lb_status st = LB_OK;
    struct units units = {.n = pair->base_units, .m = pair->now_units};
    double low = INFINITY, high = -INFINITY;
    units.paired = comparison->interleaved && units.n == units.m && units.n >= LB_SHIFT_MIN_PAIRS;
    units.base = malloc((units.n + 2 * units.m) * sizeof(*units.base));
    if (!units.base)
        return lb_fail(err, LB_OOM, "out of memory for %zu units", units.n + units.m);
    units.now = units.base + units.n;
    units.moved = units.now + units.m;
    LB_TRY(lb_log_times(pair->base, &comparison->times, units.base, err));
    LB_TRY(lb_log_times(pair->now, &comparison->times, units.now, err));
    for (size_t i = 0; i < units.n + units.m; i++) {
        low = fmin(low, units.base[i]);
        high = fmax(high, units.base[i]);
    }
    /* Shifted by more than the range, every unit of one side is above every unit of the other. */
    double range = high - low + 1e-3;
    LB_TRY(bisect(&units, p_limit, -range, range, least, err));
    *least = fmax(*least, log1p(comparison->margin) - pair->shift.estimate);
done:
    free(units.base);
    return st;
}

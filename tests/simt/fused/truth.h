/* truth.h: an LSTM layer's inputs in the layout of the fused kernels, the oracle's answers,
 * and what a kernel's are worth beside them. */
#ifndef LB_SIMT_FUSED_TRUTH_H
#define LB_SIMT_FUSED_TRUTH_H

#include "api/problem.h"
#include "simt.h"

#include <cstdint>
#include <string>
#include <vector>

namespace simt_fused
{

struct shape {
    int seq_len, batch, hidden, directions;
    bool ragged;
    int cut = 0;            /* a launch ends with this step and another goes on; 0: one does all */
    bool saturated = false; /* unit 0 counts its steps in c, so that its h rounds to 1 */
    bool count = false;     /* count what accesses cost, and look for no races */
};

/* All in double unless a type is given; what kernels read in a dtype is rounded to it already.
 * Shapes as in cuda/fused/common/args.h. */
struct truth {
    lb_problem problem;
    std::vector<int32_t> lengths;            /* [B]; empty when not ragged */
    std::vector<double> wide_pre, wide_bias; /* [T, B, D, H, 4]  [D, H, 4] */
    std::vector<float> pre, bias;            /* the same, rounded */
    std::vector<double> w_hh;                /* [D, 4H, H] */
    std::vector<double> h0, c0;              /* [D, B, H] */
    std::vector<double> y, hn, cn;           /* [T, B, D, H]  [D, B, H]  [D, B, H] */
    std::vector<double> gates;               /* [T, B, D, H, 4] activated; NaN past a row's end */
    std::vector<double> cells;               /* [T, B, D, H] likewise */

    std::vector<double> dy, dhn, dcn; /* [T, B, D, H]  [D, B, H]  [D, B, H] */
    std::vector<double> dgates;       /* [T, B, D, H, 4], zero past a row's end */
    std::vector<double> dh0, dc0;     /* [D, B, H] */
};

truth make_truth(const shape &s, lb_dtype dtype, lb_act act = LB_ACT_TANH);

/* values in a 2-byte dtype */
std::vector<uint16_t> stored(lb_dtype dtype, const std::vector<double> &values);

/* What came of a run, of one launch or several. */
struct verdict {
    simt::outcome outcome;
    std::string worst; /* tensor of the largest error in units of its limit */
    double excess = 0; /* that error; wrong above 1, infinite where a value is no number */
    double milliseconds = 0;
    std::vector<unsigned char> bits; /* of the results, where they must not depend on the seed */

    bool matches() const
    {
        return excess <= 1;
    }
    bool ok() const
    {
        return outcome.ok() && matches();
    }
    const char *note() const
    {
        return "";
    }
    /* got [expected.size()]: may be off by limit times the largest expected value, or 1/4 if that
     * is less. An expected NaN is a place that nobody reads. */
    void compare(const char *name, const double *got, const std::vector<double> &expected,
                 double limit);
};

} // namespace simt_fused

#endif

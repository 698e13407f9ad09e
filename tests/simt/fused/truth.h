/* The inputs of an LSTM layer in the layout of the fused kernels, the oracle's results for them,
 * and the comparison of a kernel's results with these. */
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
    int cut = 0; /* one launch ends before this step and another continues; 0: one launch */
    bool saturated = false; /* unit 0 adds 1 to c in each step, so that its h rounds to 1 */
    bool count = false;     /* count what accesses cost instead of looking for races */
};

/* Inputs and expected results, in double where no other type is given. Values that kernels read in
 * a dtype are already rounded to it. cuda/fused/common/args.h explains the shapes. */
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

/* Returns the values in a 2-byte dtype. */
std::vector<uint16_t> stored(lb_dtype dtype, const std::vector<double> &values);

/* The outcome of one or several launches. */
struct verdict {
    simt::outcome outcome;
    std::string worst; /* the tensor with the largest error relative to its limit */
    double excess = 0; /* that error; above 1 it is wrong, and it is infinite for a NaN */
    double milliseconds = 0;
    std::vector<unsigned char> bits; /* of results that must not depend on the seed */

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
    /* Compares got [expected.size()], whose elements may be off by `limit` times the largest
     * expected magnitude, which counts as 1/4 if it is less. An element that should be NaN is not
     * compared. */
    void compare(const char *name, const double *got, const std::vector<double> &expected,
                 double limit);
};

} // namespace simt_fused

#endif

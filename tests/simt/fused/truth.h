/* The inputs of an LSTM layer in the layout of the fused kernels, the oracle's results for them,
 * and the comparison of a kernel's results with these. */
#ifndef LB_SIMT_FUSED_TRUTH_H
#define LB_SIMT_FUSED_TRUTH_H

#include "api/problem.h"

#include <cstdint>
#include <vector>

namespace simt_fused
{

struct shape {
    int seq_len, batch, hidden, directions;
    bool ragged;
};

/* Inputs and expected results. Values that kernels read in
 * a dtype are already rounded to it. cuda/fused/common/args.h explains the shapes. */
struct truth {
    lb_problem problem;
    std::vector<int32_t> lengths;  /* [B]; empty when not ragged */
    std::vector<double> pre, bias; /* [T, B, D, H, 4]  [D, H, 4] */
    std::vector<double> w_hh;      /* [D, 4H, H] */
    std::vector<double> h0, c0;    /* [D, B, H] */
    std::vector<double> y, hn, cn; /* [T, B, D, H]  [D, B, H]  [D, B, H] */
    std::vector<double> gates;     /* [T, B, D, H, 4] activated; NaN past a row's end */
    std::vector<double> cells;     /* [T, B, D, H] likewise */

    std::vector<double> dy, dhn, dcn; /* [T, B, D, H]  [D, B, H]  [D, B, H] */
    std::vector<double> dgates;       /* [T, B, D, H, 4], zero past a row's end */
    std::vector<double> dh0, dc0;     /* [D, B, H] */
};

/* saturated: unit 0 adds 1 to c in each step, so that its h rounds to 1. */
truth make_truth(const shape &s, lb_dtype dtype, lb_act act, bool saturated);

} // namespace simt_fused

#endif

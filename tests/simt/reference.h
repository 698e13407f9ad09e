/* The expected results of the small LSTM kernels, computed in double by simple code. */
#ifndef LB_SIMT_REFERENCE_H
#define LB_SIMT_REFERENCE_H

#include <vector>

namespace simt_test
{

/* The recurrence of one layer. Gates are in the order i f g o.
 *   pre [T, B, 4, H]  w_hh [4, H, H]  h0, c0 [B, H]  ->  y [T, B, H] */
std::vector<double> lstm_reference(int seq_len, int batch, int hidden,
                                   const std::vector<float> &pre, const std::vector<float> &w_hh,
                                   const std::vector<float> &h0, const std::vector<float> &c0);

/* Returns h of one cell from its gates i f g o, and replaces c by the new c. */
double lstm_cell_reference(const double gate[4], double &c);

} // namespace simt_test

#endif

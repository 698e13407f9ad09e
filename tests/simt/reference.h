/* reference.h: what the LSTM kernels must give, in double and written to be read. */
#ifndef LB_SIMT_REFERENCE_H
#define LB_SIMT_REFERENCE_H

#include <vector>

namespace simt_test
{

/* One layer, the recurrent part. Gate order i f g o.
 *   pre [T, B, 4, H]  w_hh [4, H, H]  h0, c0 [B, H]  ->  y [T, B, H] */
std::vector<double> lstm_reference(int seq_len, int batch, int hidden,
                                   const std::vector<float> &pre, const std::vector<float> &w_hh,
                                   const std::vector<float> &h0, const std::vector<float> &c0);

/* One cell: gates i f g o and c, to h; c becomes the new one. */
double lstm_cell_reference(const double gate[4], double &c);

} // namespace simt_test

#endif

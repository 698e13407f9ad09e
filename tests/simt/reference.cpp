/* reference.cpp: the LSTM in double. */
#include "reference.h"

#include <cmath>

namespace simt_test
{

static double sigmoid(double x)
{
    return 1 / (1 + std::exp(-x));
}

double lstm_cell_reference(const double gate[4], double &c)
{
    c = sigmoid(gate[1]) * c + sigmoid(gate[0]) * std::tanh(gate[2]);
    return sigmoid(gate[3]) * std::tanh(c);
}

std::vector<double> lstm_reference(int seq_len, int batch, int hidden,
                                   const std::vector<float> &pre, const std::vector<float> &w_hh,
                                   const std::vector<float> &h0, const std::vector<float> &c0)
{
    std::vector<double> h(h0.begin(), h0.end()), c(c0.begin(), c0.end()), y;
    y.reserve(static_cast<size_t>(seq_len) * h.size());
    for (int t = 0; t < seq_len; t++) {
        std::vector<double> h_next(h.size());
        for (int b = 0; b < batch; b++) {
            for (int u = 0; u < hidden; u++) {
                double gate[4];
                for (int q = 0; q < 4; q++) {
                    gate[q] = pre[((t * batch + b) * 4 + q) * hidden + u];
                    for (int k = 0; k < hidden; k++)
                        gate[q] += w_hh[(q * hidden + u) * hidden + k] * h[b * hidden + k];
                }
                h_next[b * hidden + u] = lstm_cell_reference(gate, c[b * hidden + u]);
            }
        }
        h = h_next;
        y.insert(y.end(), h.begin(), h.end());
    }
    return y;
}

} // namespace simt_test

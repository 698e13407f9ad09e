/* The inputs of the small kernels under test, equal for the emulator and for a device. nvcc
 * compiles this too. */
#ifndef LB_SIMT_CASE_INPUTS_H
#define LB_SIMT_CASE_INPUTS_H

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace simt_test
{

struct shape {
    int seq_len, batch, hidden, blocks, threads;
};

/* Draws numbers in [-scale, scale), equal on every machine. */
class draws
{
  public:
    explicit draws(uint64_t seed) : state_(seed * 2654435761u + 88172645463325252u)
    {
    }
    float next(float scale)
    {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return (static_cast<float>(state_ >> 40) / 8388608.0f - 1.0f) * scale;
    }
    std::vector<float> vector(size_t count, float scale)
    {
        std::vector<float> values(count);
        for (float &v : values)
            v = next(scale);
        return values;
    }

  private:
    uint64_t state_;
};

/* pre [T, B, 4, H], w_hh [4, H, H], h0, c0 [B, H] */
struct lstm_inputs {
    std::vector<float> pre, w_hh, h0, c0;
};

inline lstm_inputs make_lstm_inputs(const shape &s)
{
    draws draw(1);
    lstm_inputs in;
    size_t hidden = static_cast<size_t>(s.hidden), state = hidden * static_cast<size_t>(s.batch);
    in.pre = draw.vector(static_cast<size_t>(s.seq_len) * state * 4, 1);
    in.w_hh = draw.vector(4 * hidden * hidden, 2 / std::sqrt(static_cast<float>(s.hidden)));
    in.h0 = draw.vector(state, 1);
    in.c0 = draw.vector(state, 1);
    return in;
}

/* a [16, K], b [8, K] (mma_tile, K = H) or [K, 8] (mma_formats, K = 16) */
struct mma_inputs {
    std::vector<float> a, b;
};

inline mma_inputs make_mma_inputs(int depth)
{
    draws draw(2);
    mma_inputs in;
    in.a = draw.vector(16 * static_cast<size_t>(depth), 1);
    in.b = draw.vector(8 * static_cast<size_t>(depth), 1);
    return in;
}

/* pre [tiles, 4, items], c [tiles, items] */
struct bulk_inputs {
    std::vector<float> pre, c;
};

inline bulk_inputs make_bulk_inputs(size_t tiles, size_t items)
{
    draws draw(3);
    bulk_inputs in;
    in.pre = draw.vector(tiles * 4 * items, 2);
    in.c = draw.vector(tiles * items, 1);
    return in;
}

} // namespace simt_test

#endif

/* Runs a cluster kernel on the emulator: copies inputs to its memory, launches, compares results.
 */
#include "cluster_run.h"

#include "timing.h"

#include <utility>

namespace simt_cluster
{

namespace
{

using halves = std::vector<uint16_t>;
using simt_fused::stored;
using simt_fused::truth;

/* Compares results, which may be off by two roundings of the dtype. */
class comparison
{
  public:
    comparison(lb_dtype dtype, verdict &to) : dtype_(dtype), to_(to)
    {
    }

    void check(const char *name, const uint16_t *got, const std::vector<double> &expected)
    {
        std::vector<double> wide(expected.size());
        lb_load(dtype_, got, wide.data(), wide.size());
        compare(name, wide, expected);
    }

    void check(const char *name, const float *got, const std::vector<double> &expected)
    {
        compare(name, std::vector<double>(got, got + expected.size()), expected);
    }

  private:
    void compare(const char *name, const std::vector<double> &wide,
                 const std::vector<double> &expected)
    {
        to_.compare(name, wide.data(), expected, 2 * lb_dtype_roundoff(dtype_));
    }

    lb_dtype dtype_;
    verdict &to_;
};

halves packed_weights(const subject &s, const truth &r)
{
    size_t halves_each = lb_cluster_weight_bytes(&s.tile) / 2;
    halves w_hh = stored(s.dtype, r.w_hh);
    halves packed(halves_each * static_cast<size_t>(r.problem.directions));
    const lb_weight_layout layout =
        (s.forward ? lb_cluster_forward_layout
                   : lb_cluster_backward_layout)(&s.tile, static_cast<int>(r.problem.hidden));
    size_t matrix = 4 * static_cast<size_t>(r.problem.hidden * r.problem.hidden);
    for (size_t d = 0; d < static_cast<size_t>(r.problem.directions); d++)
        lb_weight_pack(&layout, 2, w_hh.data() + d * matrix, packed.data() + d * halves_each);
    return packed;
}

simt::launch_config launch_of(const subject &s, const shape &size, uint64_t seed)
{
    simt::launch_config config = {s.name};
    int clusters = (size.batch + s.tile.columns - 1) / s.tile.columns;
    config.grid.x = static_cast<unsigned>(clusters * s.tile.blocks);
    config.grid.y = static_cast<unsigned>(size.directions);
    config.block.x = static_cast<unsigned>(32 * s.tile.warps);
    config.cluster = static_cast<unsigned>(s.tile.blocks);
    config.shared_bytes =
        s.forward ? lb_cluster_forward_shared(&s.tile) : lb_cluster_backward_shared(&s.tile);
    config.seed = seed;
    config.count = size.count;
    return config;
}

template <class Args> void set_sizes(Args &a, const truth &r)
{
    a.seq_len = static_cast<int>(r.problem.seq_len);
    a.batch = static_cast<int>(r.problem.batch);
    a.hidden = static_cast<int>(r.problem.hidden);
    a.directions = static_cast<int>(r.problem.directions);
    a.from = 0, a.to = a.seq_len;
    a.carry = simt::device_array<float>(2 * r.h0.size(), "carry");
    a.lengths = r.lengths.empty() ? nullptr : simt::device_copy(r.lengths, "lengths");
}

/* Runs all steps: in one launch, or in two that meet at step `cut`. Backward runs the later steps
 * first. */
template <class Args>
simt::outcome launch_cut(const simt::launch_config &config, void (*kernel)(Args), Args a, int cut,
                         bool backward)
{
    if (cut == 0)
        return simt::launch(config, [=] { kernel(a); });
    Args first = a;
    first.to = a.from = cut;
    if (backward)
        std::swap(first, a);
    simt::outcome outcome = simt::launch(config, [=] { kernel(first); });
    return outcome.ok() ? simt::launch(config, [=] { kernel(a); }) : outcome;
}

void run_forward(const subject &s, const truth &r, const simt::launch_config &config, int cut,
                 verdict &v)
{
    lb_fused_forward_args a = {};
    set_sizes(a, r);
    auto *y = simt::device_array<uint16_t>(r.y.size(), "y");
    auto *hn = simt::device_array<uint16_t>(r.hn.size(), "hn");
    auto *cn = simt::device_array<uint16_t>(r.cn.size(), "cn");
    float *pre = simt::device_copy(r.pre, "pre");
    a.pre = pre;
    a.weights = simt::device_copy(packed_weights(s, r), "weights");
    a.bias = simt::device_copy(r.bias, "bias");
    a.h0 = simt::device_copy(stored(s.dtype, r.h0), "h0");
    a.c0 = simt::device_copy(stored(s.dtype, r.c0), "c0");
    a.y = y, a.hn = hn, a.cn = cn;
    a.gates = pre; /* pre and gates are one array, as implementations have it */
    float *cells = simt::device_array<float>(r.cells.size(), "cells");
    a.cells = cells;
    v.outcome = launch_cut(config, s.forward, a, cut, false);
    comparison with(s.dtype, v);
    with.check("y", y, r.y);
    with.check("hn", hn, r.hn);
    with.check("cn", cn, r.cn);
    if (s.train) {
        with.check("gates", pre, r.gates);
        with.check("cells", cells, r.cells);
    }
}

void run_backward(const subject &s, const truth &r, const simt::launch_config &config, int cut,
                  verdict &v)
{
    lb_fused_backward_args a = {};
    set_sizes(a, r);
    auto narrowed = [](const std::vector<double> &values) {
        return std::vector<float>(values.begin(), values.end());
    };
    auto *dgates = simt::device_array<uint16_t>(r.dgates.size(), "dgates");
    auto *dh0 = simt::device_array<uint16_t>(r.dh0.size(), "dh0");
    auto *dc0 = simt::device_array<uint16_t>(r.dc0.size(), "dc0");
    a.gates = simt::device_copy(narrowed(r.gates), "gates");
    a.cells = simt::device_copy(narrowed(r.cells), "cells");
    a.weights = simt::device_copy(packed_weights(s, r), "weights");
    a.c0 = simt::device_copy(stored(s.dtype, r.c0), "c0");
    a.dy = simt::device_copy(stored(s.dtype, r.dy), "dy");
    a.dhn = simt::device_copy(stored(s.dtype, r.dhn), "dhn");
    a.dcn = simt::device_copy(stored(s.dtype, r.dcn), "dcn");
    a.dgates = dgates, a.dh0 = dh0, a.dc0 = dc0;
    v.outcome = launch_cut(config, s.backward, a, cut, true);
    comparison with(s.dtype, v);
    with.check("dgates", dgates, r.dgates);
    with.check("dh0", dh0, r.dh0);
    with.check("dc0", dc0, r.dc0);
}

} // namespace

verdict run(const subject &s, const shape &size, uint64_t seed)
{
    truth r = simt_fused::make_truth(size, s.dtype);
    verdict v;
    simt::device_reset();
    v.milliseconds = simt_test::milliseconds_of([&] {
        (s.forward ? run_forward : run_backward)(s, r, launch_of(s, size, seed), size.cut, v);
    });
    return v;
}

} // namespace simt_cluster

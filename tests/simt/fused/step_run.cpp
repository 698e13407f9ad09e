/* Runs step kernels on the emulator: copies inputs to its memory, launches, compares results. */
#include "step_run.h"

#include "calls.h"
#include "timing.h"

#include <algorithm>
#include <cstring>

namespace simt_step
{

namespace
{

using bytes = std::vector<unsigned char>;
using doubles = std::vector<double>;
using simt_fused::truth;

lb_dtype real_of(lb_dtype dtype)
{
    return dtype == LB_F64 ? LB_F64 : LB_F32;
}

/* Copies values to device memory as the dtype. */
void *copy_as(lb_dtype dtype, const doubles &values, const char *name)
{
    bytes stored(values.size() * lb_dtype_size(dtype));
    lb_store(dtype, stored.data(), values.data(), values.size());
    void *copy = simt::device_allocate(stored.size(), name, true);
    memcpy(copy, stored.data(), stored.size());
    return copy;
}

void *poison(lb_dtype dtype, size_t count, const char *name)
{
    return simt::device_allocate(count * lb_dtype_size(dtype), name, false);
}

/* Returns by how much a result may be off where values are up to 1: two roundings of f16 and bf16,
 * whose sums are f32; else the rounding of products and sums in the precision of the dtype. */
double limit_of(const subject &s)
{
    if (s.dtype == LB_F32 && s.math == LB_TF32)
        return 2 * lb_dtype_roundoff(LB_F16); /* TF32 has as many bits */
    bool halves = s.dtype == LB_F16 || s.dtype == LB_BF16;
    return (halves ? 2 : 16) * lb_dtype_roundoff(s.dtype);
}

/* One case: its arrays and its verdict. */
class trial
{
  public:
    trial(const subject &s, const truth &r, bool count, verdict &v)
        : s_(s), r_(r), v_(v), count_(count), real_(real_of(s.dtype))
    {
    }

    void forward(uint64_t seed);
    void backward(uint64_t seed);

  private:
    const subject &s_;
    const truth &r_;
    verdict &v_;
    bool count_;
    lb_dtype real_;
    simt::written written_; /* by the step before, which the next may begin without */

    template <class Args> void set_common(Args &a) const;
    template <class Kernel, class Args>
    bool launch(Kernel kernel, const Args &a, int step, bool first, uint64_t seed);
    void check(const char *name, lb_dtype dtype, const void *got, const doubles &expected);
};

void trial::check(const char *name, lb_dtype dtype, const void *got, const doubles &expected)
{
    doubles wide(expected.size());
    lb_load(dtype, got, wide.data(), wide.size());
    v_.compare(name, wide.data(), expected, limit_of(s_));
}

/* Sets sizes, lengths and packed weights. */
template <class Args> void trial::set_common(Args &a) const
{
    const lb_problem &p = r_.problem;
    bool back = s_.backward != nullptr;
    size_t each = lb_step_weight_bytes(&s_.tile, back, s_.dtype, p.hidden);
    size_t directions = static_cast<size_t>(p.directions), matrix = r_.w_hh.size() / directions;
    bytes w_hh(r_.w_hh.size() * lb_dtype_size(s_.dtype));
    lb_store(s_.dtype, w_hh.data(), r_.w_hh.data(), r_.w_hh.size());
    auto *packed =
        static_cast<unsigned char *>(simt::device_allocate(each * directions, "weights", true));
    const lb_weight_layout layout = lb_step_layout(&s_.tile, back, s_.dtype, s_.math, p.hidden);
    for (size_t d = 0; d < directions; d++)
        lb_weight_pack(&layout, lb_dtype_size(s_.dtype),
                       w_hh.data() + d * matrix * lb_dtype_size(s_.dtype), packed + d * each);
    a.weights = packed;
    a.seq_len = a.to = static_cast<int>(p.seq_len);
    a.batch = static_cast<int>(p.batch);
    a.hidden = static_cast<int>(p.hidden);
    a.directions = static_cast<int>(p.directions);
    a.lengths = r_.lengths.empty() ? nullptr : simt::device_copy(r_.lengths, "lengths");
    a.carry = poison(real_, 2 * r_.h0.size(), "carry");
}

/* The blocks of both directions that the emulator has room for at the same time. */
constexpr unsigned most_blocks = 64; /* whole clusters */

/* Launches one step, which begins before the one before has written anything. Returns false when
 * the emulator found something wrong. */
template <class Kernel, class Args>
bool trial::launch(Kernel kernel, const Args &a, int step, bool first, uint64_t seed)
{
    simt::launch_config config = {s_.name};
    int units = lb_step_units(&s_.tile, s_.backward != nullptr);
    int across = (a.hidden + units - 1) / units;
    int down = (a.batch + s_.tile.columns - 1) / s_.tile.columns;
    unsigned blocks = static_cast<unsigned>(across * down * s_.tile.blocks);
    config.cluster = static_cast<unsigned>(s_.tile.blocks);
    config.grid.y = static_cast<unsigned>(a.directions);
    config.block.x = static_cast<unsigned>(lb_step_threads(&s_.tile));
    config.shared_bytes = lb_step_shared(&s_.tile);
    config.seed = seed;
    bool relu = s_.act == LB_ACT_RELU;
    config.count = count_;
    const simt::written before = written_;
    config.follows = first ? nullptr : &before;
    written_.clear();
    /* Clusters share nothing, so that many of them may run one part after the other. */
    for (unsigned from = 0; from < blocks && v_.outcome.ok(); from += most_blocks) {
        simt::written part;
        config.leaves = &part;
        config.grid.x = std::min(most_blocks, blocks - from);
        v_.outcome.add(simt::launch(config, [=] {
            simt::self->block_index.x += from;
            kernel(a, step, relu);
        }));
        written_.insert(written_.end(), part.begin(), part.end());
    }
    return v_.outcome.ok();
}

void trial::forward(uint64_t seed)
{
    lb_fused_forward_args a = {};
    set_common(a);
    void *pre = copy_as(real_, r_.wide_pre, "pre");
    a.pre = pre;
    a.bias = copy_as(real_, r_.wide_bias, "bias");
    a.h0 = copy_as(s_.dtype, r_.h0, "h0");
    a.c0 = copy_as(s_.dtype, r_.c0, "c0");
    a.y = poison(s_.dtype, r_.y.size(), "y");
    a.hn = poison(s_.dtype, r_.hn.size(), "hn");
    a.cn = poison(s_.dtype, r_.cn.size(), "cn");
    if (s_.train) {
        a.gates = pre; /* pre and gates are one array, as implementations have it */
        a.cells = poison(real_, r_.cells.size(), "cells");
    }
    for (int step = 0; step < a.seq_len; step++)
        if (!launch(s_.forward, a, step, step == 0, seed + static_cast<uint64_t>(step)))
            return;
    check("y", s_.dtype, a.y, r_.y);
    check("hn", s_.dtype, a.hn, r_.hn);
    check("cn", s_.dtype, a.cn, r_.cn);
    if (s_.train) {
        check("gates", real_, a.gates, r_.gates);
        check("cells", real_, a.cells, r_.cells);
    }
}

void trial::backward(uint64_t seed)
{
    lb_fused_backward_args a = {};
    set_common(a);
    a.gates = copy_as(real_, r_.gates, "gates");
    a.cells = copy_as(real_, r_.cells, "cells");
    a.c0 = copy_as(s_.dtype, r_.c0, "c0");
    a.dy = copy_as(s_.dtype, r_.dy, "dy");
    a.dhn = copy_as(s_.dtype, r_.dhn, "dhn");
    a.dcn = copy_as(s_.dtype, r_.dcn, "dcn");
    a.dgates = poison(s_.dtype, r_.dgates.size(), "dgates");
    a.dh0 = poison(s_.dtype, r_.dh0.size(), "dh0");
    a.dc0 = poison(s_.dtype, r_.dc0.size(), "dc0");
    for (int step = a.seq_len - 1; step >= -1; step--)
        if (!launch(s_.backward, a, step, step == a.seq_len - 1,
                    seed + static_cast<uint64_t>(step + 1)))
            return;
    check("dgates", s_.dtype, a.dgates, r_.dgates);
    check("dh0", s_.dtype, a.dh0, r_.dh0);
    check("dc0", s_.dtype, a.dc0, r_.dc0);
}

} // namespace

verdict run(const subject &s, const shape &size, uint64_t seed)
{
    truth r = simt_fused::make_truth(size, s.dtype, s.act);
    verdict v;
    simt::device_reset();
    v.milliseconds = simt_test::milliseconds_of([&] {
        trial t(s, r, size.count, v);
        if (s.forward)
            t.forward(seed);
        else
            t.backward(seed);
    });
    return v;
}

} // namespace simt_step

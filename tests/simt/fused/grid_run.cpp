/* Runs a grid kernel on the emulator: copies inputs to its memory, launches, compares results. */
#include "grid_run.h"

#include "cuda/common/ptx.cuh"
#include "timing.h"

namespace simt_grid
{

namespace
{

using bytes = std::vector<unsigned char>;
using doubles = std::vector<double>;
using simt_fused::truth;

lb_dtype dtype_of(lb_grid_math math)
{
    return math == LB_GRID_F16 ? LB_F16 : math == LB_GRID_BF16 ? LB_BF16 : LB_F32;
}

/* Returns by how much a result may be off, from the unit roundoff of the operands. */
double limit_of(lb_grid_math math)
{
    if (math == LB_GRID_TF32)
        return 2 * lb_dtype_roundoff(LB_F16); /* TF32 has as many bits */
    return (math == LB_GRID_F32 ? 16 : 2) * lb_dtype_roundoff(dtype_of(math));
}

/* What a missing block does: it waits until another block gives up, or for a long time. It writes
 * all the time, so that the emulator does not report a livelock. */
void do_other_things(const lb_fused_fault *fault, uint32_t *elsewhere)
{
    using simt::scope;
    for (uint32_t n = 0; n < 1 << 16 && !lb_ptx::load_relaxed<scope::gpu>(&fault->raised); n++)
        lb_ptx::store_relaxed<scope::gpu>(elsewhere, n);
}

/* One case: its arrays and its verdict. */
class trial
{
  public:
    trial(const subject &s, const truth &r, const manner &m, bool count, verdict &v)
        : subject_(s), truth_(r), manner_(m), verdict_(v), count_(count), dtype_(dtype_of(s.math))
    {
        int batch = static_cast<int>(r.problem.batch);
        split_ = lb_grid_split_of(&s.tile, batch, m.groups);
        lb_fused_fault before = {};
        if (m.given_up)
            before = {1, 0, m.missing, 1};
        fault_ = simt::device_copy(std::vector<lb_fused_fault>(1, before), "fault");
    }

    void forward(uint64_t seed);
    void backward(uint64_t seed);

  private:
    const subject &subject_;
    const truth &truth_;
    const manner &manner_;
    verdict &verdict_;
    bool count_;
    lb_dtype dtype_;
    lb_grid_split split_;
    lb_fused_fault *fault_;

    int hidden() const
    {
        return static_cast<int>(truth_.problem.hidden);
    }

    int directions() const
    {
        return static_cast<int>(truth_.problem.directions);
    }

    unsigned char *stored(const doubles &values, const char *name) const
    {
        bytes storage(values.size() * lb_dtype_size(dtype_));
        lb_store(dtype_, storage.data(), values.data(), values.size());
        return simt::device_copy(storage, name);
    }

    static float *real(const doubles &values, const char *name)
    {
        return simt::device_copy(std::vector<float>(values.begin(), values.end()), name);
    }

    unsigned char *room(size_t count, const char *name) const
    {
        return simt::device_array<unsigned char>(count * lb_dtype_size(dtype_), name);
    }

    unsigned char *weights() const
    {
        size_t each = lb_grid_weight_bytes(&subject_.tile, hidden());
        size_t count = truth_.w_hh.size() / static_cast<size_t>(directions());
        bytes w_hh(truth_.w_hh.size() * lb_dtype_size(dtype_));
        bytes packed(each * static_cast<size_t>(directions()));
        lb_store(dtype_, w_hh.data(), truth_.w_hh.data(), truth_.w_hh.size());
        const lb_weight_layout layout =
            (subject_.forward ? lb_grid_forward_layout
                              : lb_grid_backward_layout)(&subject_.tile, subject_.math, hidden());
        for (size_t d = 0; d < static_cast<size_t>(directions()); d++)
            lb_weight_pack(&layout, lb_dtype_size(dtype_),
                           w_hh.data() + d * count * lb_dtype_size(dtype_),
                           packed.data() + d * each);
        return simt::device_copy(packed, "weights");
    }

    void compare(const char *name, const doubles &got, const doubles &expected)
    {
        verdict_.compare(name, got.data(), expected, limit_of(subject_.math));
    }

    /* Checks that a NaN has reached all of its row one step later, and no other row. */
    void check_spread(const char *name, const unsigned char *results, doubles expected)
    {
        size_t batch = static_cast<size_t>(truth_.problem.batch), width = expected.size();
        size_t times = static_cast<size_t>(truth_.problem.seq_len);
        width /= batch * times;
        doubles got(expected.size());
        lb_load(dtype_, results, got.data(), got.size());
        verdict_.spread = true;
        for (size_t i = 0; i < expected.size(); i++) {
            size_t time = i / width / batch, step = subject_.forward ? time : times - 1 - time;
            if (i / width % batch != static_cast<size_t>(manner_.spoiled) || step < 1)
                continue;
            expected[i] = NAN;
            if (step > 1)
                verdict_.spread = verdict_.spread && std::isnan(got[i]);
        }
        compare(name, got, expected);
    }

    /* Checks that the loud row's dh0 are infinite, with the signs of the weights of unit 0's g. */
    void check_loud(const unsigned char *dh0)
    {
        size_t units = static_cast<size_t>(hidden()), row = static_cast<size_t>(manner_.loud);
        doubles got(truth_.dh0.size());
        lb_load(dtype_, dh0, got.data(), got.size());
        verdict_.spread = true;
        for (size_t u = 0; u < units; u++)
            verdict_.spread =
                verdict_.spread &&
                got[row * units + u] == std::copysign(HUGE_VAL, truth_.w_hh[2 * units * units + u]);
    }

    void check(const char *name, const unsigned char *got, const doubles &expected)
    {
        doubles wide(expected.size());
        lb_load(dtype_, got, wide.data(), wide.size());
        compare(name, wide, expected);
        verdict_.bits.insert(verdict_.bits.end(), got,
                             got + expected.size() * lb_dtype_size(dtype_));
    }

    void check(const char *name, const float *got, const doubles &expected)
    {
        compare(name, doubles(got, got + expected.size()), expected);
    }

    template <class Args> void set(Args &a)
    {
        auto &layer = a.layer;
        layer.seq_len = static_cast<int>(truth_.problem.seq_len);
        layer.batch = static_cast<int>(truth_.problem.batch);
        layer.hidden = hidden();
        layer.directions = directions();
        layer.lengths =
            truth_.lengths.empty() ? nullptr : simt::device_copy(truth_.lengths, "lengths");
        layer.fault = fault_;
        layer.weights = weights();
        a.rows = split_.rows;
        a.spin_limit = manner_.spin_limit;
    }

    /* Runs steps [from, to) with exchange buffers that are zero. */
    template <class Args>
    void launch(void (*kernel)(Args), Args a, int from, int to, size_t shared, size_t exchange,
                uint64_t seed)
    {
        simt::launch_config config = {subject_.name};
        unsigned beside = manner_.apart ? 1 : static_cast<unsigned>(directions());
        config.grid = {static_cast<unsigned>(lb_grid_blocks(&subject_.tile, hidden())),
                       static_cast<unsigned>(split_.groups), beside};
        config.block.x = static_cast<unsigned>(32 * subject_.tile.warps);
        config.shared_bytes = shared;
        config.seed = seed;
        config.count = count_;
        a.layer.from = from, a.layer.to = to;
        a.layer.scratch = simt::device_copy(bytes(exchange), "exchange");
        int missing = manner_.missing;
        uint32_t *elsewhere = simt::device_copy(std::vector<uint32_t>(1), "elsewhere");
        for (; a.direction < directions(); a.direction += static_cast<int>(beside)) {
            verdict_.outcome.add(simt::launch(config, [=] {
                if (static_cast<int>(simt::linear_block()) != missing)
                    kernel(a);
                else if (simt::linear_thread() == 0)
                    do_other_things(a.layer.fault, elsewhere);
            }));
        }
    }
};

void trial::forward(uint64_t seed)
{
    const subject &s = subject_;
    const truth &r = truth_;
    lb_grid_forward_args a = {};
    set(a);
    unsigned char *y = room(r.y.size(), "y");
    unsigned char *hn = room(r.hn.size(), "hn"), *cn = room(r.cn.size(), "cn");
    std::vector<float> spoiled = r.pre;
    if (manner_.spoiled >= 0) /* unit 0 at time 1, in one direction */
        spoiled[static_cast<size_t>((r.problem.batch + manner_.spoiled) * 4 * hidden())] = NAN;
    float *pre = simt::device_copy(spoiled, "pre");
    float *cells = simt::device_array<float>(r.cells.size(), "cells");
    a.layer.pre = pre,
    a.layer.gates = pre; /* pre and gates are one array, as implementations have it */
    a.layer.cells = s.train ? cells : nullptr;
    a.layer.bias = simt::device_copy(r.bias, "bias");
    a.layer.h0 = stored(r.h0, "h0"), a.layer.c0 = stored(r.c0, "c0");
    a.layer.y = y, a.layer.hn = hn, a.layer.cn = cn;
    a.layer.carry = simt::device_array<float>(r.cn.size(), "carry");
    size_t shared = lb_grid_forward_shared(&s.tile, s.math, split_.chunks);
    size_t exchange = lb_grid_forward_exchange(&s.tile, s.math, hidden(), &split_, directions());
    if (manner_.cut > 0)
        launch(s.forward, a, 0, manner_.cut, shared, exchange, seed);
    launch(s.forward, a, manner_.cut, a.layer.seq_len, shared, exchange, seed);
    verdict_.fault = *fault_;
    if (manner_.spoiled >= 0)
        return check_spread("y", y, r.y);
    check("y", y, r.y);
    check("hn", hn, r.hn);
    check("cn", cn, r.cn);
    if (s.train) {
        check("gates", pre, r.gates);
        check("cells", cells, r.cells);
    }
}

void trial::backward(uint64_t seed)
{
    const subject &s = subject_;
    const truth &r = truth_;
    lb_grid_backward_args a = {};
    set(a);
    unsigned char *dgates = room(r.dgates.size(), "dgates");
    unsigned char *dh0 = room(r.dh0.size(), "dh0"), *dc0 = room(r.dc0.size(), "dc0");
    doubles dy = r.dy, dcn = r.dcn, gates = r.gates, cells = r.cells;
    if (manner_.spoiled >= 0) /* unit 0 at time T - 2, in one direction */
        dy[static_cast<size_t>(((r.problem.seq_len - 2) * r.problem.batch + manner_.spoiled) *
                               hidden())] = NAN;
    if (manner_.loud >= 0) { /* i and o are 1, g and c are 0: the gradient of g is dy + dhn + dcn */
        size_t at = static_cast<size_t>(manner_.loud * hidden());
        gates[4 * at] = gates[4 * at + 3] = 1;
        gates[4 * at + 2] = cells[at] = 0;
        dy[at] = dcn[at] = 65504;
    }
    a.layer.gates = real(gates, "gates"), a.layer.cells = real(cells, "cells");
    a.layer.c0 = stored(r.c0, "c0"), a.layer.dy = stored(dy, "dy");
    a.layer.dhn = stored(r.dhn, "dhn"), a.layer.dcn = stored(dcn, "dcn");
    a.layer.dgates = dgates, a.layer.dh0 = dh0, a.layer.dc0 = dc0;
    a.layer.carry = simt::device_array<float>(2 * r.dh0.size(), "carry");
    size_t shared = lb_grid_backward_shared(&s.tile, s.math, split_.chunks);
    size_t exchange = lb_grid_backward_exchange(&s.tile, s.math, hidden(), &split_, directions());
    launch(s.backward, a, manner_.cut, a.layer.seq_len, shared, exchange, seed);
    if (manner_.cut > 0)
        launch(s.backward, a, 0, manner_.cut, shared, exchange, seed);
    verdict_.fault = *fault_;
    if (manner_.spoiled >= 0)
        return check_spread("dgates", dgates, r.dgates);
    if (manner_.loud >= 0)
        return check_loud(dh0);
    check("dgates", dgates, r.dgates);
    check("dh0", dh0, r.dh0);
    check("dc0", dc0, r.dc0);
}

} // namespace

verdict run(const subject &s, const shape &size, const manner &how, uint64_t seed)
{
    truth r = simt_fused::make_truth(size, dtype_of(s.math));
    verdict v;
    simt::device_reset();
    v.milliseconds = simt_test::milliseconds_of([&] {
        trial t(s, r, how, size.count, v);
        if (s.forward)
            t.forward(seed);
        else
            t.backward(seed);
    });
    return v;
}

manner with_groups(int groups)
{
    manner m;
    m.groups = groups;
    return m;
}

manner cut_at(int step)
{
    manner m;
    m.cut = step;
    return m;
}

/* spin_limit is just high enough that no schedule of a complete launch reaches it. */
manner without_block(int block)
{
    manner m;
    m.missing = block;
    m.spin_limit = 1000;
    return m;
}

/* No wait reaches its own limit: only the fault record of another block can end it. */
manner after_giving_up(int block)
{
    manner m;
    m.missing = block;
    m.given_up = true;
    return m;
}

manner with_spoiled(int row)
{
    manner m;
    m.spoiled = row;
    return m;
}

manner with_loud(int row)
{
    manner m;
    m.loud = row;
    return m;
}

simt_test::names detectors(const simt_fused::mutant<mutated> &m, uint64_t seed)
{
    const manner &how = m.kernel.how;
    verdict v = run(m.kernel.kernel, m.size, how, seed);
    simt_test::names by = simt_test::caught_by(v.outcome, how.missing >= 0 || v.matches());
    if (how.missing >= 0 && (!v.fault.raised || v.fault.awaited != how.missing))
        by.insert("report");
    if ((how.spoiled >= 0 || how.loud >= 0) && !v.spread)
        by.insert("spread");
    return by;
}

} // namespace simt_grid

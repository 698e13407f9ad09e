/* Runs a fused kernel on the emulator: copies inputs to its memory, launches, compares results. */
#include "run.h"

#include "calls.h"
#include "cuda/common/ptx.cuh"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <set>
#include <sys/mman.h>

namespace simt_fused
{

namespace
{

using bytes = std::vector<unsigned char>;
using doubles = std::vector<double>;

/* Returns by how much a result may be off where values are up to 1: two roundings of f16, bf16 and
 * TF32, whose sums are f32; else the rounding of products and sums in the precision of the dtype.
 */
double limit_of(const subject &s)
{
    if (s.dtype == LB_F32 && s.math == LB_TF32)
        return 2 * lb_dtype_roundoff(LB_F16); /* TF32 has as many bits */
    bool halves = s.dtype == LB_F16 || s.dtype == LB_BF16;
    return (halves ? 2 : 16) * lb_dtype_roundoff(s.dtype);
}

/* What a missing block does: it waits until another block gives up, or for a long time. It writes
 * all the time, so that the emulator does not report a livelock. */
void do_other_things(const lb_fused_fault *fault, uint32_t *elsewhere)
{
    using simt::scope;
    for (uint32_t n = 0; n < 1 << 16 && !lb_ptx::load_relaxed<scope::gpu>(&fault->raised); n++)
        lb_ptx::store_relaxed<scope::gpu>(elsewhere, n);
}

unsigned ceil_div(int value, int unit)
{
    return static_cast<unsigned>((value + unit - 1) / unit);
}

/* One case: its arrays and its verdict. */
class trial
{
  public:
    trial(const check_case &c, uint64_t seed)
        : case_(c), s_(c.kernel), how_(c.how), seed_(seed),
          r_(make_truth(c.size, s_.dtype, s_.act, how_.saturated)),
          real_(s_.dtype == LB_F64 ? LB_F64 : LB_F32)
    {
        /* A multiple of 4, because the exchange buffers of grid kernels are zero, as before
         * state 1. */
        size_t step = r_.y.size() / static_cast<size_t>(c.size.seq_len);
        if (how_.late)
            before_ = static_cast<int>((size_t{1} << 32) / step / 4 * 4 + 4);
    }
    ~trial()
    {
        for (const simt::span &m : mapped_)
            munmap(m.begin, m.bytes);
    }

    void forward();
    void backward();
    verdict result;

  private:
    const check_case &case_;
    const subject &s_;
    const manner &how_;
    uint64_t seed_;
    truth r_;
    lb_dtype real_;
    simt::written written_;    /* by the step before, which the next may begin without */
    void *exchange_ = nullptr; /* of grid kernels: zero before the first launch */
    int before_ = 0;           /* steps in front of the first one that is computed */
    std::vector<simt::span> mapped_;

    void *copy(lb_dtype dtype, const doubles &values, const char *name) const;
    void *stored(const doubles &values, const char *name) const
    {
        return copy(s_.dtype, values, name);
    }
    void *sequence(lb_dtype dtype, const doubles &values, const char *name, bool poisoned = false);
    size_t skipped_bytes(lb_dtype dtype, const doubles &values) const;
    static void *poison(lb_dtype dtype, const doubles &like, const char *name)
    {
        return simt::device_allocate(like.size() * lb_dtype_size(dtype), name, false);
    }
    void *weights(const lb_weight_layout &layout) const;
    template <class Args> void set_common(Args &a) const;
    void check(const char *name, lb_dtype dtype, const void *got, const doubles &expected);
    void check_sequence(const char *name, lb_dtype dtype, const void *got, const doubles &expected);
    void check_spread(const char *name, const void *results, doubles expected);
    void check_loud(const void *dh0);

    lb_weight_layout layout_of(const cluster_kernel &k) const;
    lb_weight_layout layout_of(const grid_kernel &k) const;
    lb_weight_layout layout_of(const step_kernel &k) const;

    simt::launch_config config_of(int warps, size_t shared) const;
    template <class Args> void launch(const cluster_kernel &k, void (*kernel)(Args), Args a);
    template <class Args> void launch(const grid_kernel &k, void (*kernel)(Args), Args a);
    template <class Args>
    void launch(const step_kernel &k, void (*kernel)(Args, int, bool), const Args &a);
    template <class Args>
    void launch_step(const step_kernel &k, void (*kernel)(Args, int, bool), const Args &a, int step,
                     bool first);
    template <class Family, class Kernel, class Args>
    void launch_parts(const Family &family, Kernel kernel, Args a);
};

/* Copies values to device memory as the dtype. */
void *trial::copy(lb_dtype dtype, const doubles &values, const char *name) const
{
    bytes storage(values.size() * lb_dtype_size(dtype));
    lb_store(dtype, storage.data(), values.data(), values.size());
    return simt::device_copy(storage, name);
}

/* Returns the bytes of the steps before the first one in an array [T, ...] that has these values
 * behind them. */
size_t trial::skipped_bytes(lb_dtype dtype, const doubles &values) const
{
    size_t steps = static_cast<size_t>(case_.size.seq_len), before = static_cast<size_t>(before_);
    return before * (values.size() / steps) * lb_dtype_size(dtype);
}

/* Returns an array [T, ...] with values, or poison, in its last steps. The steps before them are
 * memory that nobody has touched, so that it takes no room, and race detection leaves it out. */
void *trial::sequence(lb_dtype dtype, const doubles &values, const char *name, bool poisoned)
{
    if (before_ == 0)
        return poisoned ? poison(dtype, values, name) : copy(dtype, values, name);
    size_t skipped = skipped_bytes(dtype, values);
    size_t size = skipped + values.size() * lb_dtype_size(dtype);
    void *memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        throw std::bad_alloc();
    mapped_.push_back({static_cast<unsigned char *>(memory), size});
    if (!poisoned)
        lb_store(dtype, mapped_.back().begin + skipped, values.data(), values.size());
    return memory;
}

void *trial::weights(const lb_weight_layout &layout) const
{
    size_t size = lb_dtype_size(s_.dtype), directions = static_cast<size_t>(case_.size.directions);
    size_t each = layout.elements * size, matrix = r_.w_hh.size() / directions * size;
    bytes w_hh(r_.w_hh.size() * size), packed(directions * each);
    lb_store(s_.dtype, w_hh.data(), r_.w_hh.data(), r_.w_hh.size());
    for (size_t d = 0; d < directions; d++)
        pack_weights(layout, size, w_hh.data() + d * matrix, packed.data() + d * each);
    return simt::device_copy(packed, "weights");
}

template <class Args> void trial::set_common(Args &a) const
{
    a.seq_len = before_ + case_.size.seq_len, a.batch = case_.size.batch;
    a.hidden = case_.size.hidden, a.directions = case_.size.directions;
    a.weights = weights(std::visit([&](const auto &k) { return layout_of(k); }, s_.kernel));
    a.lengths = r_.lengths.empty() ? nullptr : simt::device_copy(r_.lengths, "lengths");
    a.carry = simt::device_allocate(2 * r_.h0.size() * lb_dtype_size(real_), "carry", false);
    lb_fused_fault before = {};
    if (how_.given_up)
        before = {1, 0, how_.missing, 1};
    a.fault = simt::device_copy(std::vector<lb_fused_fault>(1, before), "fault");
}

/* ---- Comparison ------------------------------------------------------------------------------ */

void trial::check(const char *name, lb_dtype dtype, const void *got, const doubles &expected)
{
    doubles wide(expected.size());
    lb_load(dtype, got, wide.data(), wide.size());
    result.compare(name, wide, expected, limit_of(s_));
    auto *first = static_cast<const unsigned char *>(got);
    result.bits.insert(result.bits.end(), first, first + wide.size() * lb_dtype_size(dtype));
}

void trial::check_sequence(const char *name, lb_dtype dtype, const void *got,
                           const doubles &expected)
{
    const auto *bytes_of = static_cast<const unsigned char *>(got);
    check(name, dtype, bytes_of + skipped_bytes(dtype, expected), expected);
}

/* Checks that a NaN has reached all of its row one step later, and no other row. */
void trial::check_spread(const char *name, const void *results, doubles expected)
{
    size_t batch = static_cast<size_t>(case_.size.batch), width = expected.size();
    size_t times = static_cast<size_t>(case_.size.seq_len);
    width /= batch * times;
    doubles got(expected.size());
    lb_load(s_.dtype, results, got.data(), got.size());
    result.spread = true;
    for (size_t i = 0; i < expected.size(); i++) {
        size_t time = i / width / batch, step = s_.backward() ? times - 1 - time : time;
        if (i / width % batch != static_cast<size_t>(how_.spoiled) || step < 1)
            continue;
        expected[i] = NAN;
        if (step > 1)
            result.spread = result.spread && std::isnan(got[i]);
    }
    result.compare(name, got, expected, limit_of(s_));
}

/* Checks that the loud row's dh0 are infinite, with the signs of the weights of unit 0's g. */
void trial::check_loud(const void *dh0)
{
    size_t units = static_cast<size_t>(case_.size.hidden), row = static_cast<size_t>(how_.loud);
    doubles got(r_.dh0.size());
    lb_load(s_.dtype, dh0, got.data(), got.size());
    result.spread = true;
    for (size_t u = 0; u < units; u++)
        result.spread =
            result.spread &&
            got[row * units + u] == std::copysign(HUGE_VAL, r_.w_hh[2 * units * units + u]);
}

/* ---- Launches -------------------------------------------------------------------------------- */

lb_weight_layout trial::layout_of(const cluster_kernel &k) const
{
    return lb_cluster_layout(&k.tile, !k.forward, case_.size.hidden);
}

lb_weight_layout trial::layout_of(const grid_kernel &k) const
{
    return lb_grid_layout(&k.tile, k.math, !k.forward, case_.size.hidden);
}

lb_weight_layout trial::layout_of(const step_kernel &k) const
{
    return lb_step_layout(&k.tile, !k.forward, s_.dtype, s_.math, case_.size.hidden);
}

simt::launch_config trial::config_of(int warps, size_t shared) const
{
    simt::launch_config config = {s_.name.c_str()};
    config.grid.y = static_cast<unsigned>(case_.size.directions);
    config.block.x = static_cast<unsigned>(32 * warps);
    config.shared_bytes = shared;
    config.seed = seed_;
    config.count = how_.count;
    return config;
}

template <class Args> void trial::launch(const cluster_kernel &k, void (*kernel)(Args), Args a)
{
    simt::launch_config config = config_of(k.tile.warps, lb_cluster_shared(&k.tile, !k.forward));
    a.rows = how_.rows > 0 ? how_.rows : k.tile.columns;
    config.cluster = static_cast<unsigned>(k.tile.blocks);
    config.grid.x = ceil_div(a.batch, a.rows) * config.cluster;
    result.outcome.add(simt::launch(config, [=] { kernel(a); }));
}

template <class Args> void trial::launch(const grid_kernel &k, void (*kernel)(Args), Args a)
{
    const lb_grid_split split = lb_grid_split_of(&k.tile, a.batch, how_.groups);
    simt::launch_config config =
        config_of(k.tile.warps, lb_grid_shared(&k.tile, k.math, !k.forward, split.chunks));
    int beside = how_.apart ? 1 : a.directions, missing = how_.missing;
    config.grid = {static_cast<unsigned>(lb_grid_blocks(&k.tile, a.hidden)),
                   static_cast<unsigned>(split.groups), static_cast<unsigned>(beside)};
    size_t exchange = lb_grid_exchange(&k.tile, k.math, !k.forward, a.hidden, &split, a.directions);
    uint32_t *elsewhere = simt::device_copy(std::vector<uint32_t>(1), "elsewhere");
    if (!exchange_)
        exchange_ = simt::device_copy(bytes(exchange), "exchange");
    a.scratch = exchange_;
    a.rows = split.rows;
    a.spin_limit = how_.spin_limit;
    for (; a.direction < a.directions; a.direction += beside) {
        result.outcome.add(simt::launch(config, [=] {
            if (static_cast<int>(simt::linear_block()) != missing)
                kernel(a);
            else if (simt::linear_thread() == 0)
                do_other_things(a.fault, elsewhere);
        }));
    }
}

/* The blocks of both directions that the emulator has room for at the same time. */
constexpr unsigned most_blocks = 64; /* whole clusters */

/* Launches one step, which begins before the one before has written anything. */
template <class Args>
void trial::launch_step(const step_kernel &k, void (*kernel)(Args, int, bool), const Args &a,
                        int step, bool first)
{
    simt::launch_config config = config_of(lb_step_threads(&k.tile) / 32, lb_step_shared(&k.tile));
    config.cluster = static_cast<unsigned>(k.tile.blocks);
    unsigned blocks = ceil_div(a.hidden, lb_step_units(&k.tile, !k.forward)) *
                      ceil_div(a.batch, k.tile.columns) * config.cluster;
    config.seed = seed_ + static_cast<uint64_t>(k.backward ? step + 1 : step);
    bool relu = s_.act == LB_ACT_RELU;
    const simt::written before = written_;
    config.follows = first ? nullptr : &before;
    written_.clear();
    /* Clusters share nothing, so that many of them may run one part after the other. */
    for (unsigned from = 0; from < blocks && result.outcome.ok(); from += most_blocks) {
        simt::written part;
        config.leaves = &part;
        config.grid.x = std::min(most_blocks, blocks - from);
        result.outcome.add(simt::launch(config, [=] {
            simt::self->block_index.x += from;
            kernel(a, step, relu);
        }));
        written_.insert(written_.end(), part.begin(), part.end());
    }
}

/* Backward computes the gradients of the initial state in the step -1, where a launch begins at 0.
 */
template <class Args>
void trial::launch(const step_kernel &k, void (*kernel)(Args, int, bool), const Args &a)
{
    for (int step = a.from; k.forward && step < a.to && result.outcome.ok(); step++)
        launch_step(k, kernel, a, step, step == a.from);
    int last = a.from > 0 ? a.from : -1;
    for (int step = a.to - 1; k.backward && step >= last && result.outcome.ok(); step--)
        launch_step(k, kernel, a, step, step == a.to - 1);
}

/* Runs all steps in one launch, or in two that meet at step `cut`. Backward runs the later steps
 * first. */
template <class Family, class Kernel, class Args>
void trial::launch_parts(const Family &family, Kernel kernel, Args a)
{
    int cut = how_.cut, ends[] = {before_, before_ + cut, a.seq_len};
    for (int part = cut > 0 ? 0 : 1; part < 2 && result.outcome.ok(); part++) {
        int at = family.backward && cut > 0 ? 1 - part : part;
        a.from = ends[at], a.to = ends[at + 1];
        launch(family, kernel, a);
    }
    result.fault = *a.fault;
}

void trial::forward()
{
    lb_fused_forward_args a = {};
    set_common(a);
    if (how_.spoiled >= 0) /* unit 0 at time 1, in one direction */
        r_.pre[static_cast<size_t>((a.batch + how_.spoiled) * 4 * a.hidden)] = NAN;
    void *pre = sequence(real_, r_.pre, "pre");
    a.pre = pre;
    a.bias = copy(real_, r_.bias, "bias");
    a.h0 = stored(r_.h0, "h0"), a.c0 = stored(r_.c0, "c0");
    a.y = sequence(s_.dtype, r_.y, "y", true);
    a.hn = poison(s_.dtype, r_.hn, "hn"), a.cn = poison(s_.dtype, r_.cn, "cn");
    a.gates = pre; /* pre and gates are one array, as implementations have it */
    a.cells = s_.train ? sequence(real_, r_.cells, "cells", true) : nullptr;
    if (before_ > 0) { /* as the launch before left the state */
        auto *first = static_cast<unsigned char *>(a.y) + skipped_bytes(s_.dtype, r_.y);
        lb_store(s_.dtype, first - r_.h0.size() * lb_dtype_size(s_.dtype), r_.h0.data(),
                 r_.h0.size());
        a.carry = copy(real_, r_.c0, "carry");
    }
    std::visit([&](const auto &k) { launch_parts(k, k.forward, a); }, s_.kernel);
    if (how_.spoiled >= 0)
        return check_spread("y", a.y, r_.y);
    check_sequence("y", s_.dtype, a.y, r_.y);
    check("hn", s_.dtype, a.hn, r_.hn);
    check("cn", s_.dtype, a.cn, r_.cn);
    if (s_.train) {
        check_sequence("gates", real_, a.gates, r_.gates);
        check_sequence("cells", real_, a.cells, r_.cells);
    }
}

void trial::backward()
{
    lb_fused_backward_args a = {};
    set_common(a);
    if (how_.spoiled >= 0) /* unit 0 at time T - 2, in one direction */
        r_.dy[static_cast<size_t>(((a.seq_len - 2) * a.batch + how_.spoiled) * a.hidden)] = NAN;
    if (how_.loud >= 0) { /* i and o are 1, g and c are 0: the gradient of g is dy + dhn + dcn */
        size_t at = static_cast<size_t>(how_.loud * a.hidden);
        r_.gates[4 * at] = r_.gates[4 * at + 3] = 1;
        r_.gates[4 * at + 2] = r_.cells[at] = 0;
        r_.dy[at] = r_.dcn[at] = 65504;
    }
    a.gates = sequence(real_, r_.gates, "gates");
    void *cells = sequence(real_, r_.cells, "cells");
    a.cells = cells;
    if (before_ > 0) {
        auto *first = static_cast<unsigned char *>(cells) + skipped_bytes(real_, r_.cells);
        lb_store(real_, first - r_.c0.size() * lb_dtype_size(real_), r_.c0.data(), r_.c0.size());
    }
    a.c0 = stored(r_.c0, "c0"), a.dy = sequence(s_.dtype, r_.dy, "dy");
    a.dhn = stored(r_.dhn, "dhn"), a.dcn = stored(r_.dcn, "dcn");
    a.dgates = sequence(s_.dtype, r_.dgates, "dgates", true);
    a.dh0 = poison(s_.dtype, r_.dh0, "dh0"), a.dc0 = poison(s_.dtype, r_.dc0, "dc0");
    std::visit([&](const auto &k) { launch_parts(k, k.backward, a); }, s_.kernel);
    if (how_.spoiled >= 0)
        return check_spread("dgates", a.dgates, r_.dgates);
    if (how_.loud >= 0)
        return check_loud(a.dh0);
    check_sequence("dgates", s_.dtype, a.dgates, r_.dgates);
    if (before_ > 0)
        return; /* gradients of the state are in carry, in part */
    check("dh0", s_.dtype, a.dh0, r_.dh0);
    check("dc0", s_.dtype, a.dc0, r_.dc0);
}

} // namespace

void verdict::compare(const char *name, const doubles &got, const doubles &expected, double limit)
{
    double largest = 0.25, most = 0;
    for (double e : expected)
        largest = std::fmax(largest, std::fabs(e));
    for (size_t i = 0; i < expected.size(); i++) {
        double error = std::isnan(expected[i]) ? 0 : std::fabs(got[i] - expected[i]);
        most = std::isnan(error) ? HUGE_VAL : std::fmax(most, error);
    }
    if (most / (limit * largest) >= excess) {
        excess = most / (limit * largest);
        worst = name;
    }
}

void pack_weights(const lb_weight_layout &layout, size_t size, const void *matrix, void *packed)
{
    char *to = static_cast<char *>(packed);
    for (uint64_t i = 0; i < layout.elements; i++, to += size) {
        int64_t source = lb_weight_source(&layout, i);
        uint32_t bits;
        if (source < 0) {
            memset(to, 0, size);
            continue;
        }
        memcpy(to, static_cast<const char *>(matrix) + static_cast<size_t>(source) * size, size);
        if (!layout.tf32)
            continue;
        memcpy(&bits, to, sizeof(bits));
        bits = lb_weight_tf32(bits);
        memcpy(to, &bits, sizeof(bits));
    }
}

verdict run(const check_case &c, uint64_t seed)
{
    simt::device_reset();
    trial t(c, seed);
    if (c.kernel.backward())
        t.backward();
    else
        t.forward();
    return t.result;
}

/* Returns the names of all detectors that catch a mutant under one seed. */
static std::set<std::string> detectors(const mutant &m, uint64_t seed)
{
    const manner &how = m.broken.how;
    verdict v = run(m.broken, seed);
    std::set<std::string> by;
    for (const simt::finding &f : v.outcome.findings)
        by.insert(simt::fault_name(f.kind));
    if (how.missing < 0 && !v.matches())
        by.insert("mismatch");
    if (how.missing >= 0 && (!v.fault.raised || v.fault.awaited != how.missing))
        by.insert("report");
    if ((how.spoiled >= 0 || how.loud >= 0) && !v.spread)
        by.insert("spread");
    return by;
}

int test_mutants(const std::vector<mutant> &mutants, int only)
{
    const uint64_t seeds = simt::check_mode ? 2 : 8;
    int failures = 0, looked_at = 0;
    for (const mutant &m : mutants) {
        std::string expected = simt::check_mode ? m.check : m.fast, all;
        if ((only && only != m.number) || expected == "-")
            continue;
        std::set<std::string> by;
        for (uint64_t seed = 1; seed <= seeds && !by.count(expected); seed++)
            by.merge(detectors(m, seed));
        for (const std::string &d : by)
            all += " " + d;
        bool caught = by.count(expected) != 0;
        failures += !caught;
        looked_at++;
        printf("%s %d (%s): expected %s, caught by%s\n", caught ? "ok" : "FAILED", m.number,
               m.breaks, expected.c_str(), by.empty() ? " none" : all.c_str());
    }
    printf("%d mutants, %d not caught\n", looked_at, failures);
    return failures || !looked_at;
}

} // namespace simt_fused

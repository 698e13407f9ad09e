/* case_lstm.cpp: runs the persistent LSTM kernels on whole sequences and compares them with the
 * reference. */
#include "case_support.h"
#include "kernels/lstm_cluster.cuh"
#include "kernels/lstm_grid.cuh"
#include "reference.h"

namespace simt_test
{

namespace
{

using lstm_kernel = void (*)(lstm_args);

const fault_kernel<lstm_kernel> grid_kernels[] = {
    {0, lstm_grid_kernel<0>},   {1, lstm_grid_kernel<1>},   {2, lstm_grid_kernel<2>},
    {3, lstm_grid_kernel<3>},   {5, lstm_grid_kernel<5>},   {6, lstm_grid_kernel<6>},
    {10, lstm_grid_kernel<10>}, {11, lstm_grid_kernel<11>}, {12, lstm_grid_kernel<12>},
    {13, lstm_grid_kernel<13>},
};

const fault_kernel<lstm_kernel> counter_kernels[] = {
    {0, lstm_counter_kernel<0>},   {4, lstm_counter_kernel<4>},   {14, lstm_counter_kernel<14>},
    {15, lstm_counter_kernel<15>}, {16, lstm_counter_kernel<16>}, {17, lstm_counter_kernel<17>},
    {18, lstm_counter_kernel<18>}, {19, lstm_counter_kernel<19>},
};

const fault_kernel<lstm_kernel> cluster_kernels[] = {
    {0, lstm_cluster_kernel<0>},   {7, lstm_cluster_kernel<7>},   {8, lstm_cluster_kernel<8>},
    {20, lstm_cluster_kernel<20>}, {21, lstm_cluster_kernel<21>}, {22, lstm_cluster_kernel<22>},
};

const fault_kernel<lstm_kernel> async_kernels[] = {
    {0, lstm_async_kernel<0>},   {23, lstm_async_kernel<23>}, {24, lstm_async_kernel<24>},
    {25, lstm_async_kernel<25>}, {26, lstm_async_kernel<26>}, {27, lstm_async_kernel<27>},
    {28, lstm_async_kernel<28>}, {29, lstm_async_kernel<29>}, {30, lstm_async_kernel<30>},
};

/* The rounding errors of T steps with f32 sums of H products are far below this; the errors of a
 * wrong or stale h are far above. */
constexpr double tolerance = 1e-5;

run_result run_lstm(const char *name, lstm_kernel kernel, bool cluster, const shape &s,
                    uint64_t seed)
{
    size_t state = static_cast<size_t>(s.batch) * s.hidden;
    size_t steps = static_cast<size_t>(s.seq_len);
    lstm_inputs in = make_lstm_inputs(s);
    std::vector<double> y =
        lstm_reference(s.seq_len, s.batch, s.hidden, in.pre, in.w_hh, in.h0, in.c0);

    simt::device_reset();
    lstm_args a = {};
    a.pre = simt::device_copy(in.pre, "pre");
    a.w_hh = simt::device_copy(in.w_hh, "w_hh");
    a.h0 = simt::device_copy(in.h0, "h0");
    a.c0 = simt::device_copy(in.c0, "c0");
    a.y = simt::device_array<float>(steps * state, "y");
    a.exchange = simt::device_array<float>(2 * state, "exchange");
    a.counter = simt::device_copy(std::vector<uint32_t>(1, 0), "counter");
    a.seq_len = s.seq_len;
    a.batch = s.batch;
    a.hidden = s.hidden;

    simt::launch_config config = {name};
    config.grid.x = static_cast<unsigned>(s.blocks);
    config.block.x = static_cast<unsigned>(s.threads);
    config.cluster = cluster ? config.grid.x : 1;
    config.shared_bytes = lstm_shared_bytes(s.hidden / s.blocks, s.batch, s.hidden, cluster);
    config.seed = seed;
    return run_and_compare(
        config, [=] { kernel(a); }, a.y, y, tolerance);
}

} // namespace

run_result run_lstm_grid(int fault, const shape &s, uint64_t seed)
{
    return run_lstm("lstm_grid", choose_fault(grid_kernels, fault), false, s, seed);
}

run_result run_lstm_counter(int fault, const shape &s, uint64_t seed)
{
    return run_lstm("lstm_counter", choose_fault(counter_kernels, fault), false, s, seed);
}

run_result run_lstm_cluster(int fault, const shape &s, uint64_t seed)
{
    return run_lstm("lstm_cluster", choose_fault(cluster_kernels, fault), true, s, seed);
}

run_result run_lstm_async(int fault, const shape &s, uint64_t seed)
{
    return run_lstm("lstm_async", choose_fault(async_kernels, fault), true, s, seed);
}

} // namespace simt_test

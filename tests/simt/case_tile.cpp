/* case_tile.cpp: runs the tensor-core kernels and the kernel that streams cells by bulk copies. */
#include "case_support.h"
#include "kernels/bulk_cell.cuh"
#include "kernels/mma_formats.cuh"
#include "kernels/mma_tile.cuh"
#include "reference.h"

namespace simt_test
{

namespace
{

using mma_kernel = void (*)(const __nv_bfloat16 *, const __nv_bfloat16 *, float *, int);
using formats_kernel = void (*)(const float *, const float *, float *);
using bulk_kernel = void (*)(bulk_args);

const fault_kernel<mma_kernel> mma_kernels[] = {
    {0, mma_tile_kernel<0>},   {9, mma_tile_kernel<9>},   {31, mma_tile_kernel<31>},
    {32, mma_tile_kernel<32>}, {33, mma_tile_kernel<33>}, {34, mma_tile_kernel<34>},
};

const fault_kernel<formats_kernel> formats_kernels[] = {
    {0, mma_formats_kernel<0>},
    {41, mma_formats_kernel<41>},
    {42, mma_formats_kernel<42>},
};

const fault_kernel<bulk_kernel> bulk_kernels[] = {
    {0, bulk_cell_kernel<0>},   {35, bulk_cell_kernel<35>}, {36, bulk_cell_kernel<36>},
    {37, bulk_cell_kernel<37>}, {38, bulk_cell_kernel<38>}, {39, bulk_cell_kernel<39>},
    {40, bulk_cell_kernel<40>},
};

std::vector<__nv_bfloat16> rounded(const std::vector<float> &values)
{
    std::vector<__nv_bfloat16> halves;
    halves.reserve(values.size());
    for (float v : values)
        halves.push_back(__float2bfloat16(v));
    return halves;
}

} // namespace

run_result run_mma_tile(int fault, const shape &s, uint64_t seed)
{
    constexpr int rows = 16, columns = 8;
    const int depth = s.hidden;
    mma_inputs in = make_mma_inputs(depth);
    auto a = rounded(in.a), b = rounded(in.b);
    std::vector<double> reference(rows * columns, 0);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            for (int k = 0; k < depth; k++)
                reference[i * columns + j] +=
                    static_cast<double>(__bfloat162float(a[i * depth + k])) *
                    __bfloat162float(b[j * depth + k]);

    simt::device_reset();
    const __nv_bfloat16 *device_a = simt::device_copy(a, "a"),
                        *device_b = simt::device_copy(b, "b");
    float *d = simt::device_array<float>(rows * columns, "d");
    mma_kernel kernel = choose_fault(mma_kernels, fault);
    simt::launch_config config = {"mma_tile"};
    config.block.x = 32;
    config.shared_bytes = 2 * sizeof(mma_stage);
    config.seed = seed;
    auto body = [=] { kernel(device_a, device_b, d, depth); };
    return run_and_compare(config, body, d, reference, 1e-5 * depth);
}

run_result run_mma_formats(int fault, const shape &, uint64_t seed)
{
    constexpr int rows = 16, columns = 8, depth = 16;
    mma_inputs in = make_mma_inputs(depth);
    using rounding = float (*)(float);
    const rounding rounded_to[] = {
        [](float x) { return __half2float(__float2half_rn(x)); },
        [](float x) { return __bfloat162float(__float2bfloat16_rn(x)); },
        [](float x) { return __uint_as_float(lb_ptx::to_tf32(x)); },
    };
    std::vector<double> reference;
    for (rounding round : rounded_to) {
        for (int i = 0; i < rows * columns; i++) {
            double sum = 0;
            for (int k = 0; k < depth; k++)
                sum += static_cast<double>(round(in.a[i / columns * depth + k])) *
                       round(in.b[k * columns + i % columns]);
            reference.push_back(sum);
        }
    }

    simt::device_reset();
    float *a = simt::device_copy(in.a, "a"), *b = simt::device_copy(in.b, "b");
    float *d = simt::device_array<float>(reference.size(), "d");
    formats_kernel kernel = choose_fault(formats_kernels, fault);
    simt::launch_config config = {"mma_formats"};
    config.block.x = 32;
    config.seed = seed;
    return run_and_compare(
        config, [=] { kernel(a, b, d); }, d, reference, 1e-5);
}

run_result run_bulk_cell(int fault, const shape &s, uint64_t seed)
{
    const size_t tiles = static_cast<size_t>(s.seq_len), items = bulk_items;
    bulk_inputs in = make_bulk_inputs(tiles, items);
    std::vector<double> h_and_c(2 * tiles * items);
    for (size_t i = 0; i < tiles * items; i++) {
        double gate[4], cell = in.c[i];
        for (size_t q = 0; q < 4; q++)
            gate[q] = in.pre[(i / items * 4 + q) * items + i % items];
        h_and_c[i] = lstm_cell_reference(gate, cell);
        h_and_c[tiles * items + i] = cell;
    }

    simt::device_reset();
    bulk_args args = {};
    args.pre = simt::device_copy(in.pre, "pre");
    args.c = simt::device_copy(in.c, "c");
    args.h = simt::device_array<float>(2 * tiles * items, "h and c_next");
    args.c_next = args.h + tiles * items;
    args.tiles = s.seq_len;
    bulk_kernel kernel = choose_fault(bulk_kernels, fault);
    simt::launch_config config = {"bulk_cell"};
    config.block.x = static_cast<unsigned>(s.threads);
    config.shared_bytes = sizeof(bulk_shared);
    config.seed = seed;
    return run_and_compare(
        config, [=] { kernel(args); }, args.h, h_and_c, 1e-6);
}

} // namespace simt_test

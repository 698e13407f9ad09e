/* Compares the emulator with a real device: runs the recorded cases on the device with the same
 * inputs and compares the results with those of the emulator. Exit codes: 0 they agree, 1 they
 * differ, 77 there is no device.
 *
 *   calibrate RECORDED.TXT */
#include "case_inputs.h"
#include "kernels/bulk_cell.cuh"
#include "kernels/lstm_cluster.cuh"
#include "kernels/lstm_grid.cuh"
#include "kernels/mma_formats.cuh"
#include "kernels/mma_tile.cuh"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

using namespace simt_test;

constexpr int exit_skipped = 77;

static void must(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}

/* Device memory is freed with the process: a run allocates a few hundred kilobytes. */
template <class T> static T *to_device(const std::vector<T> &values)
{
    void *copy = nullptr;
    must(cudaMalloc(&copy, values.size() * sizeof(T)), "cudaMalloc");
    must(cudaMemcpy(copy, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
         "cudaMemcpy");
    return static_cast<T *>(copy);
}

static std::vector<float> from_device(const float *values, size_t count)
{
    std::vector<float> copy(count);
    must(cudaDeviceSynchronize(), "kernel");
    must(cudaMemcpy(copy.data(), values, count * sizeof(float), cudaMemcpyDeviceToHost),
         "cudaMemcpy");
    return copy;
}

template <class... Parameters, class... Arguments>
static void launch(void (*kernel)(Parameters...), const shape &s, size_t shared_bytes,
                   cudaLaunchAttributeID kind, Arguments... arguments)
{
    cudaLaunchAttribute attribute = {};
    attribute.id = kind;
    if (kind == cudaLaunchAttributeClusterDimension)
        attribute.val.clusterDim = {static_cast<unsigned>(s.blocks), 1, 1};
    else
        attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(static_cast<unsigned>(s.blocks));
    config.blockDim = dim3(static_cast<unsigned>(s.threads));
    config.dynamicSmemBytes = shared_bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    must(cudaLaunchKernelEx(&config, kernel, arguments...), "launch");
}

static std::vector<float> run_lstm(void (*kernel)(lstm_args), const shape &s, bool cluster)
{
    lstm_inputs in = make_lstm_inputs(s);
    size_t state = in.h0.size(), count = state * static_cast<size_t>(s.seq_len);
    lstm_args a = {};
    a.pre = to_device(in.pre);
    a.w_hh = to_device(in.w_hh);
    a.h0 = to_device(in.h0);
    a.c0 = to_device(in.c0);
    a.y = to_device(std::vector<float>(count, NAN));
    a.exchange = to_device(std::vector<float>(2 * state, NAN));
    a.counter = to_device(std::vector<uint32_t>(1, 0));
    a.seq_len = s.seq_len;
    a.batch = s.batch;
    a.hidden = s.hidden;
    launch(kernel, s, lstm_shared_bytes(s.hidden / s.blocks, s.batch, s.hidden, cluster),
           cluster ? cudaLaunchAttributeClusterDimension : cudaLaunchAttributeCooperative, a);
    return from_device(a.y, count);
}

static std::vector<float> run_grid(const shape &s)
{
    return run_lstm(lstm_grid_kernel<0>, s, false);
}

static std::vector<float> run_counter(const shape &s)
{
    return run_lstm(lstm_counter_kernel<0>, s, false);
}

static std::vector<float> run_mma_tile(const shape &s)
{
    mma_inputs in = make_mma_inputs(s.hidden);
    auto rounded = [](const std::vector<float> &values) {
        std::vector<__nv_bfloat16> halves;
        for (float v : values)
            halves.push_back(__float2bfloat16(v));
        return halves;
    };
    const __nv_bfloat16 *a = to_device(rounded(in.a)), *b = to_device(rounded(in.b));
    float *d = to_device(std::vector<float>(128, NAN));
    launch(mma_tile_kernel<0>, s, 2 * sizeof(mma_stage), cudaLaunchAttributeCooperative, a, b, d,
           s.hidden);
    return from_device(d, 128);
}

static std::vector<float> run_mma_formats(const shape &s)
{
    mma_inputs in = make_mma_inputs(16);
    const float *a = to_device(in.a), *b = to_device(in.b);
    float *d = to_device(std::vector<float>(3 * 128, NAN));
    launch(mma_formats_kernel<0>, s, 0, cudaLaunchAttributeCooperative, a, b, d);
    return from_device(d, 3 * 128);
}

static std::vector<float> run_cluster(const shape &s)
{
    return run_lstm(lstm_cluster_kernel<0>, s, true);
}

static std::vector<float> run_async(const shape &s)
{
    return run_lstm(lstm_async_kernel<0>, s, true);
}

static std::vector<float> run_bulk_cell(const shape &s)
{
    size_t count = static_cast<size_t>(s.seq_len) * bulk_items;
    bulk_inputs in = make_bulk_inputs(static_cast<size_t>(s.seq_len), bulk_items);
    bulk_args a = {};
    a.pre = to_device(in.pre);
    a.c = to_device(in.c);
    a.h = to_device(std::vector<float>(2 * count, NAN));
    a.c_next = a.h + count;
    a.tiles = s.seq_len;
    launch(bulk_cell_kernel<0>, s, sizeof(bulk_shared), cudaLaunchAttributeCooperative, a);
    return from_device(a.h, 2 * count);
}

/* limit: of |device - emulator|, because expf, tanhf and tensor-core sums round differently on the
 * device. */
struct device_case {
    const char *name;
    int compute_capability; /* the lowest major compute capability */
    float limit;
    std::vector<float> (*run)(const shape &);
};

static const device_case cases[] = {
    {"lstm_grid", 8, 1e-5f, run_grid},       {"lstm_counter", 8, 1e-5f, run_counter},
    {"lstm_cluster", 9, 1e-5f, run_cluster}, {"lstm_async", 9, 1e-5f, run_async},
    {"mma_tile", 8, 1e-4f, run_mma_tile},    {"mma_formats", 8, 1e-5f, run_mma_formats},
    {"bulk_cell", 9, 1e-6f, run_bulk_cell},
};

/* Runs one recorded case. Returns false where the device differs. */
static bool compare(const std::string &name, const shape &s, const std::vector<float> &recorded,
                    int major)
{
    for (const device_case &c : cases) {
        if (name != c.name)
            continue;
        if (major < c.compute_capability) {
            printf("%s: needs compute capability %d\n", c.name, c.compute_capability);
            return true;
        }
        std::vector<float> got = c.run(s);
        float worst = got.size() == recorded.size() ? 0 : HUGE_VALF;
        for (size_t i = 0; i < got.size() && i < recorded.size(); i++) {
            float error = std::fabs(got[i] - recorded[i]);
            worst = std::isnan(error) ? HUGE_VALF : std::max(worst, error);
        }
        printf("%s: greatest difference %.3g, limit %.3g\n", c.name, worst, c.limit);
        return worst <= c.limit;
    }
    printf("%s: recorded, but unknown here\n", name.c_str());
    return false;
}

int main(int argc, char **argv)
{
    std::ifstream file(argc == 2 ? argv[1] : "");
    if (!file) {
        fprintf(stderr, "usage: calibrate RECORDED.TXT\n");
        return 2;
    }
    int devices = 0, major = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        printf("SKIPPED: no CUDA device\n");
        return exit_skipped;
    }
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
    bool agree = true;
    size_t seen = 0;
    for (std::string name; file >> name; seen++) {
        shape s;
        size_t count = 0;
        file >> s.seq_len >> s.batch >> s.hidden >> s.blocks >> s.threads >> count;
        std::vector<float> recorded(count);
        for (float &value : recorded)
            file >> value;
        agree = compare(name, s, recorded, major) && agree;
    }
    return agree && seen == sizeof cases / sizeof *cases ? 0 : 1;
}

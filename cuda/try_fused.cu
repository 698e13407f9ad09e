/* One file to try the fused kernels with: runs every tile of a family that takes the layer on
 * random inputs, compares y of the forward pass with the CPU, and prints the time of a step.
 * From the top of the repository:
 *
 *   nvcc -O3 -arch=sm_90 -I. -Iharness -o try_fused cuda/try_fused.cu cuda/fused/grid/pack.c \
 *       cuda/fused/cluster/pack.c cuda/fused/common/weight_layout.c
 *   ./try_fused cluster|grid forward|backward T B H,... [ROWS...]
 *
 * -DLB_FUSED_PRODUCT=0 or -DLB_FUSED_EXCHANGE=0 leaves a part of each step out, whose cost is the
 * time that this saves. -DLB_FUSED_TRACE prints when each part of a step is done. */
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>

#ifdef LB_FUSED_TRACE
namespace lb_recurrence
{
enum class part;
__device__ inline void trace(int step, part done);
} // namespace lb_recurrence
#endif

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "cuda/fused/cluster/launch.cu"
#include "cuda/fused/common/weights.cu"
#include "cuda/fused/grid/launch.cu"

using half = __half;

#ifdef LB_FUSED_TRACE
/* When the first lane of a warp came to a part of a step, in clocks of its SM. */
enum { TRACE_BLOCKS = 160, TRACE_WARPS = 16, TRACE_STEPS = 32, PARTS = 6 };
__device__ uint32_t times[TRACE_BLOCKS][TRACE_WARPS][TRACE_STEPS][PARTS];

__device__ inline void lb_recurrence::trace(int step, part done)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (threadIdx.x % 32 == 0 && block < TRACE_BLOCKS)
        times[block][threadIdx.x / 32][step % TRACE_STEPS][static_cast<int>(done)] =
            static_cast<uint32_t>(clock64());
}
#endif

enum lb_status lb_fail(struct lb_error *err, enum lb_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (err)
        vsnprintf(err->text, sizeof(err->text), format, arguments);
    va_end(arguments);
    return status;
}

static void check(cudaError_t error)
{
    if (error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorName(error));
}

template <class T> static T *upload(const std::vector<T> &host)
{
    T *device = nullptr;
    check(cudaMalloc(&device, host.size() * sizeof(T)));
    check(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
    return device;
}

/* A layer with one direction, in f16, on the host: shapes as in lb_fused_forward_args. */
struct layer {
    int seq_len, batch, hidden;
    std::vector<half> w; /* [4H, H] */
    std::vector<float> pre, bias;
    std::vector<half> h0, c0;
    int checked;                    /* steps */
    std::vector<float> first, last; /* y [checked, H] of the first and the last batch row */

    layer(int t, int b, int h) : seq_len(t), batch(b), hidden(h), checked(std::min(t, 4))
    {
        std::mt19937 random(1);
        std::uniform_real_distribution<float> uniform(-1, 1);
        auto draw = [&](auto &values, size_t count, float scale) {
            values.resize(count);
            for (auto &v : values)
                v = uniform(random) * scale;
        };
        float scale = 1 / std::sqrt(static_cast<float>(h));
        draw(w, 4 * static_cast<size_t>(h) * h, scale);
        draw(pre, 4 * static_cast<size_t>(t) * b * h, 1);
        draw(bias, 4 * h, scale);
        draw(h0, b * h, 1), draw(c0, b * h, 1);
        first = expected(0), last = expected(b - 1);
    }

    std::vector<float> expected(int row) const
    {
        std::vector<float> y, h(hidden), c(hidden), next(hidden);
        for (int u = 0; u < hidden; u++)
            h[u] = __half2float(h0[row * hidden + u]), c[u] = __half2float(c0[row * hidden + u]);
        for (int t = 0; t < checked; t++) {
            for (int u = 0; u < hidden; u++) {
                double g[4];
                for (int q = 0; q < 4; q++) {
                    const half *of = &w[(static_cast<size_t>(q) * hidden + u) * hidden];
                    g[q] = pre[((static_cast<size_t>(t) * batch + row) * hidden + u) * 4 + q] +
                           bias[u * 4 + q];
                    for (int k = 0; k < hidden; k++)
                        g[q] += __half2float(of[k]) * h[k];
                }
                auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
                c[u] = static_cast<float>(sigmoid(g[1]) * c[u] + sigmoid(g[0]) * std::tanh(g[2]));
                next[u] = __half2float(
                    __float2half_rn(static_cast<float>(sigmoid(g[3]) * std::tanh(c[u]))));
            }
            h = next;
            y.insert(y.end(), h.begin(), h.end());
        }
        return y;
    }
};

/* The layer on the device. */
struct device_layer {
    lb_fused_forward_args forward = {};
    lb_fused_backward_args backward = {};
    half *w, *y, *packed = nullptr;
    void *scratch;
    static constexpr size_t scratch_bytes = 64 << 20;

    explicit device_layer(const layer &l)
    {
        size_t cells = static_cast<size_t>(l.seq_len) * l.batch * l.hidden;
        size_t states = static_cast<size_t>(l.batch) * l.hidden;
        w = upload(l.w), y = upload(std::vector<half>(cells));
        check(cudaMalloc(&scratch, scratch_bytes));
        half *in = upload(l.h0), *also = upload(l.c0);
        half *out = upload(std::vector<half>(states)), *more = upload(std::vector<half>(states));
        float *carry = upload(std::vector<float>(2 * states));
        float *pre = upload(l.pre), *kept = upload(std::vector<float>(cells));
        auto *fault = upload(std::vector<lb_fused_fault>(1));
        forward.pre = pre, forward.bias = upload(l.bias), forward.h0 = in, forward.c0 = also;
        forward.y = y, forward.hn = out, forward.cn = more, forward.carry = carry;
        forward.scratch = scratch, forward.fault = fault;
        forward.seq_len = forward.to = l.seq_len, forward.batch = l.batch;
        forward.hidden = l.hidden, forward.directions = 1;
        backward.gates = pre, backward.cells = kept, backward.c0 = also, backward.dy = y;
        backward.dhn = in, backward.dcn = also;
        backward.dgates = upload(std::vector<half>(4 * cells));
        backward.dh0 = out, backward.dc0 = more, backward.carry = carry;
        backward.scratch = scratch, backward.fault = fault;
        backward.seq_len = backward.to = l.seq_len, backward.batch = l.batch;
        backward.hidden = l.hidden, backward.directions = 1;
    }

    const void *args(bool of_backward) const
    {
        return of_backward ? static_cast<const void *>(&backward) : &forward;
    }

    void take_weights(const lb_weight_layout &layout)
    {
        lb_error err = {};
        check(cudaFree(packed));
        check(cudaMalloc(&packed, layout.elements * sizeof(half)));
        if (lb_fused_pack(LB_F16, &layout, w, packed, nullptr, &err) != LB_OK)
            throw std::runtime_error(err.text);
        forward.weights = backward.weights = packed;
    }
};

/* The largest error of y in the rows and steps that are checked. */
static float error_of(const layer &l, const device_layer &d)
{
    std::vector<half> y(static_cast<size_t>(l.checked) * l.batch * l.hidden);
    check(cudaMemcpy(y.data(), d.y, y.size() * sizeof(half), cudaMemcpyDeviceToHost));
    float worst = 0;
    for (int row : {0, l.batch - 1}) {
        const std::vector<float> &right = row == 0 ? l.first : l.last;
        for (int t = 0; t < l.checked; t++)
            for (int u = 0; u < l.hidden; u++) {
                size_t at = (static_cast<size_t>(t) * l.batch + row) * l.hidden + u;
                float error = std::fabs(__half2float(y[at]) - right[t * l.hidden + u]);
                worst = error <= worst ? worst : error; /* NaN counts */
            }
    }
    return worst;
}

template <class Launch> static float step_us(int steps, const Launch &launch)
{
    float best = INFINITY, ms;
    cudaEvent_t from, to;
    check(cudaEventCreate(&from));
    check(cudaEventCreate(&to));
    for (int i = 0; i < 5; i++) {
        check(cudaEventRecord(from));
        launch();
        check(cudaEventRecord(to));
        check(cudaEventSynchronize(to));
        check(cudaEventElapsedTime(&ms, from, to));
        best = std::min(best, ms * 1e3f / steps);
    }
    return best;
}

#ifdef LB_FUSED_TRACE
/* Prints how many clocks after the beginning of a step its parts are done: the mean, the least and
 * the most of all warps, over the last TRACE_STEPS steps. Each time that is kept adds some 40
 * clocks. */
static void print_trace(int warps)
{
    static const char *const names[PARTS] = {"begun", "arrived", "multiplied",
                                             "met",   "sent",    "stored"};
    static uint32_t t[TRACE_BLOCKS][TRACE_WARPS][TRACE_STEPS][PARTS];
    check(cudaMemcpyFromSymbol(t, times, sizeof(t)));
    for (int p = 1; p < PARTS; p++) {
        double sum = 0, most = 0, least = INFINITY;
        int count = 0;
        for (int b = 0; b < TRACE_BLOCKS; b++)
            for (int w = 0; w < warps; w++)
                for (const auto &step : t[b][w]) {
                    if (!step[0] || !step[p])
                        continue;
                    double clocks = static_cast<int32_t>(step[p] - step[0]);
                    sum += clocks, count++;
                    most = std::max(most, clocks), least = std::min(least, clocks);
                }
        if (count > 0)
            printf("    %-10s %5.0f clocks, %.0f to %.0f\n", names[p], sum / count, least, most);
    }
    memset(t, 0, sizeof(t));
    check(cudaMemcpyToSymbol(times, t, sizeof(t)));
}
#else
static void print_trace(int)
{
}
#endif

static void try_cluster(const layer &l, device_layer &d, bool backward, int rows)
{
#define FIGURES(...) {__VA_ARGS__},
    static const std::vector<lb_cluster_tile> tiles[] = {{LB_CLUSTER_FORWARD_TILES(FIGURES)},
                                                         {LB_CLUSTER_BACKWARD_TILES(FIGURES)}};
    for (const lb_cluster_tile &tile : tiles[backward]) {
        lb_cluster_kernel k = {};
        lb_error err = {};
        int clusters = 0;
        k.tile = tile, k.dtype = LB_F16, k.backward = backward,
        k.rows = std::min(rows ? rows : 99, tile.columns);
        if (lb_cluster_reach(&tile) < l.hidden || lb_cluster_reach(&tile) >= 2 * l.hidden)
            continue;
        d.take_weights(lb_cluster_layout(&tile, backward, l.hidden));
        if (lb_cluster_ready(&k, &clusters, &err) != LB_OK) {
            printf("  %s\n", err.text);
            continue;
        }
        auto launch = [&] {
            if (lb_cluster_launch(&k, d.args(backward), nullptr, &err) != LB_OK)
                printf("  %s\n", err.text);
        };
        float us = step_us(l.seq_len, launch);
        printf("cluster %s H%d B%d: %d x %d warps, split %d, %d resident, %d columns, %d rows: "
               "%.3f us, %d clusters at a time, error %.1e\n",
               backward ? "backward" : "forward", l.hidden, l.batch, tile.blocks, tile.warps,
               tile.split, tile.resident, tile.columns, k.rows, us, clusters,
               backward ? 0 : error_of(l, d));
        print_trace(tile.warps);
    }
}

static void try_grid(const layer &l, device_layer &d, bool backward)
{
    int device, sm_count;
    check(cudaGetDevice(&device));
    check(cudaDeviceGetAttribute(&sm_count, cudaDevAttrMultiProcessorCount, device));
    static const lb_grid_tile tiles[] = {LB_GRID_HALF_TILES(FIGURES)};
    for (const lb_grid_tile &tile : tiles) {
        lb_grid_kernel k = {};
        lb_error err = {};
        int resident = 0, blocks = lb_grid_blocks(&tile, l.hidden), room = sm_count / blocks;
        if (l.hidden > lb_grid_reach(&tile, LB_GRID_F16) || room < 1)
            continue;
        k.tile = tile, k.math = LB_GRID_F16, k.backward = backward, k.beside = true;
        k.split = lb_grid_split_of(&tile, l.batch, room);
        d.take_weights(lb_grid_layout(&tile, LB_GRID_F16, backward, l.hidden));
        if (lb_grid_exchange(&tile, LB_GRID_F16, backward, l.hidden, &k.split, 1) >
            d.scratch_bytes) {
            printf("  %d units: no room for the exchange\n", tile.units);
            continue;
        }
        if (lb_grid_ready(&k, blocks * k.split.groups, &resident, &err) != LB_OK) {
            printf("  %s\n", err.text);
            continue;
        }
        auto launch = [&] {
            if (lb_grid_clear(&k, l.hidden, 1, d.forward.scratch, nullptr, &err) != LB_OK ||
                lb_grid_launch(&k, d.args(backward), nullptr, &err) != LB_OK)
                printf("  %s\n", err.text);
        };
        float us = step_us(l.seq_len, launch);
        printf("grid %s H%d B%d: %d units, %d resident, %d columns, %d groups x %d rows, %d "
               "chunks: %.3f us, error %.1e\n",
               backward ? "backward" : "forward", l.hidden, l.batch, tile.units, tile.resident,
               tile.columns, k.split.groups, k.split.rows, k.split.chunks, us,
               backward ? 0 : error_of(l, d));
        print_trace(tile.warps);
    }
}

/* Keeps all SMs busy for so many of their clocks. */
__global__ void busy_kernel(long long clocks)
{
    long long start = clock64();
    while (clock64() - start < clocks) {
    }
}

/* Brings the device to the clock that it has under load, and prints it: steps that are timed on an
 * idle device are up to a sixth slower. */
static void warm_up()
{
    constexpr long long clocks = 80000000;
    float us = step_us(1, [] { busy_kernel<<<264, 256>>>(clocks); });
    printf("clock %.3f GHz\n", static_cast<double>(clocks) / us / 1e3);
}

int main(int count, char **words)
try {
    if (count < 6) {
        fprintf(stderr, "usage: try_fused cluster|grid forward|backward T B H,... [ROWS]...\n");
        return 2;
    }
    bool backward = strcmp(words[2], "backward") == 0;
    for (char *h = strtok(words[5], ","); h; h = strtok(nullptr, ",")) {
        layer l(atoi(words[3]), atoi(words[4]), atoi(h));
        device_layer d(l);
        warm_up();
        for (int i = 6; i == 6 || i < count; i++) {
            if (strcmp(words[1], "cluster") == 0)
                try_cluster(l, d, backward, i < count ? atoi(words[i]) : 0);
            else
                try_grid(l, d, backward);
        }
        fflush(stdout);
    }
    check(cudaDeviceSynchronize());
    return 0;
} catch (const std::exception &error) {
    fprintf(stderr, "%s\n", error.what());
    return 1;
}

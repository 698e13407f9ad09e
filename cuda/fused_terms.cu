/* One file that measures terms of the cost model alone: the exchange of family cluster, that of
 * family grid, the way of a word through the L2 cache, and the launch of a step. From the
 * top of the repository:
 *
 *   nvcc -O3 -arch=sm_90a -I. -Iharness -o fused_terms cuda/fused_terms.cu cuda/fused/grid/pack.c \
 *       cuda/fused/common/weight_layout.c
 *
 * A line is FAMILY PASS SIZE: KERNEL: MEDIAN us, QUARTILE to QUARTILE, of one step, where KERNEL is
 * what try_fused prints of the same tile. `predictions.py` compares the lines with the model. It
 * exits with 1 where a block has received a wrong word or has waited too long. */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "cuda/fused/common/fused_launch.cuh"
#include "cuda/fused_terms.cuh"

using lb_fused_launch::shape;
using lb_terms::cluster_exchange_kernel;
using lb_terms::grid_exchange_kernel;

enum { FEW = 200, MANY = 2200, REPEATS = 9, PAIRS = 1024, BUFFER_BYTES = 32 << 20 };
static constexpr size_t alone = 120 << 10; /* shared memory with which a block has its SM alone */

enum lb_status lb_fail(struct lb_error *err, enum lb_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(err->text, sizeof(err->text), format, arguments);
    va_end(arguments);
    return status;
}

static void check(cudaError_t error)
{
    if (error != cudaSuccess)
        throw std::runtime_error(cudaGetErrorName(error));
}

static void check(enum lb_status status, const lb_error &err)
{
    if (status != LB_OK)
        throw std::runtime_error(err.text);
}

struct bench {
    cudaStream_t stream = nullptr;
    cudaEvent_t from = nullptr, to = nullptr;
    lb_fused_fault *fault = nullptr;
    unsigned char *buffer = nullptr; /* [BUFFER_BYTES] */
    int sms = 0;

    bench()
    {
        check(cudaStreamCreate(&stream));
        check(cudaEventCreate(&from));
        check(cudaEventCreate(&to));
        check(cudaMalloc(&fault, sizeof(*fault)));
        check(cudaMemset(fault, 0, sizeof(*fault)));
        check(cudaMalloc(&buffer, BUFFER_BYTES));
        check(cudaMemset(buffer, 0, BUFFER_BYTES));
        check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    }

    template <class... Parameters>
    void launch(void (*kernel)(Parameters...), const shape &s, const Parameters &...arguments) const
    {
        lb_error err;
        auto function = reinterpret_cast<lb_fused_launch::any_kernel>(kernel);
        check(lb_fused_launch::enqueue(function, s, stream, &err, arguments...), err);
    }

    /* Returns how many blocks or clusters of the shape run at the same time; 0: none. */
    template <class... Parameters> int ready(void (*kernel)(Parameters...), const shape &s) const
    {
        lb_error err;
        int resident = 0;
        auto function = reinterpret_cast<lb_fused_launch::any_kernel>(kernel);
        enum lb_status st = lb_fused_launch::ask_resident(function, s, &resident, &err);
        check(st == LB_UNSUPPORTED ? LB_OK : st, err);
        return st == LB_OK ? resident : 0;
    }

    /* Returns the us of what `run` enqueues, once it is over and nothing was wrong. */
    template <class Run> double time(const Run &run, int rounds) const
    {
        float ms;
        lb_fused_fault found;
        check(cudaEventRecord(from, stream));
        run(rounds);
        check(cudaEventRecord(to, stream));
        check(cudaMemcpyAsync(&found, fault, sizeof(found), cudaMemcpyDeviceToHost, stream));
        check(cudaStreamSynchronize(stream));
        check(cudaEventElapsedTime(&ms, from, to));
        if (found.raised)
            throw std::runtime_error("block " + std::to_string(found.block) +
                                     " has a wrong word of block " + std::to_string(found.awaited) +
                                     " or none, in step " + std::to_string(found.step));
        return ms * 1e3;
    }

    /* Returns the us of one of the rounds that run(rounds) enqueues: the beginning, which a long
     * and a short run have in common, cancels. */
    template <class Run> double round_us(const Run &run) const
    {
        double few = time(run, FEW);
        return (time(run, MANY) - few) / (MANY - FEW);
    }
};

/* Prints the end of a line. */
static void print(std::vector<double> us)
{
    size_t n = us.size();
    std::sort(us.begin(), us.end());
    printf(": %.3f us, %.3f to %.3f\n", us[n / 2], us[n / 4], us[n - 1 - n / 4]);
    fflush(stdout);
}

template <class Run> static void print_rounds(const bench &b, const Run &run)
{
    std::vector<double> us;
    for (int i = 0; i < REPEATS; i++)
        us.push_back(b.round_us(run));
    print(us);
}

/* All clusters of a batch exchange h at the same time, where the device has room for them. */
template <class Tile> static void cluster_terms(const bench &b, int batch)
{
    for (int rows = Tile::columns; rows >= Tile::columns / 4; rows /= 2) {
        int clusters = (batch + rows - 1) / rows;
        const shape s = {"cluster",
                         {clusters * Tile::blocks, 1, 1},
                         Tile::threads,
                         lb_cluster_shared(&Tile::figures, false),
                         Tile::blocks};
        lb_fused_forward_args a = {};
        a.batch = batch, a.hidden = Tile::units, a.rows = rows, a.directions = 1;
        a.fault = b.fault;
        if (b.ready(cluster_exchange_kernel<Tile, true>, s) < clusters ||
            b.ready(cluster_exchange_kernel<Tile, false>, s) < clusters)
            continue;
        auto run = [&](auto kernel) {
            return [&, kernel](int rounds) {
                a.to = rounds;
                b.launch(kernel, s, a);
            };
        };
        b.time(run(cluster_exchange_kernel<Tile, true>), FEW);
        printf("cluster forward H%d B%d: %d x %d warps, split %d, %d resident, %d columns, %d rows",
               Tile::units, batch, Tile::blocks, Tile::warps, Tile::split, Tile::resident,
               Tile::columns, rows);
        print_rounds(b, run(cluster_exchange_kernel<Tile, false>));
    }
}

template <class Tile> static void grid_terms(const bench &b, int hidden, int batch)
{
    const lb_grid_tile &tile = Tile::figures;
    int blocks = lb_grid_blocks(&tile, hidden), room = b.sms / blocks;
    if (room < 1 || hidden > lb_grid_reach(&tile, LB_GRID_F16))
        return;
    lb_grid_split split = lb_grid_split_of(&tile, batch, room);
    size_t exchange = lb_grid_exchange(&tile, LB_GRID_F16, false, hidden, &split, 1);
    const shape s = {"grid", {blocks, split.groups, 1}, Tile::threads, alone, 0, true};
    lb_fused_forward_args a = {};
    a.batch = batch, a.hidden = hidden, a.directions = 1;
    a.h0 = b.buffer + exchange, a.scratch = b.buffer, a.fault = b.fault;
    a.rows = split.rows, a.spin_limit = LB_GRID_SPIN_LIMIT;
    auto run = [&](auto kernel) {
        b.ready(kernel, s);
        return [&, kernel](int rounds) {
            a.to = a.seq_len = rounds;
            check(cudaMemsetAsync(b.buffer, 0, exchange, b.stream));
            b.launch(kernel, s, a);
        };
    };
    b.time(run(grid_exchange_kernel<Tile, true>), FEW);
    printf("grid forward H%d B%d: %d units, %d resident, %d columns, %d groups x %d rows, %d "
           "chunks",
           hidden, batch, Tile::units, Tile::resident, Tile::columns, split.groups, split.rows,
           split.chunks);
    print_rounds(b, run(grid_exchange_kernel<Tile, false>));
}

/* Each of many pairs of SMs uses two addresses of its own; a round is two ways. */
static void pair_terms(const bench &b)
{
    shape s = {"pair", {b.sms, 1, 1}, 32, alone};
    std::vector<double> us;
    b.ready(lb_terms::pair_kernel, s);
    for (int i = 0; i < PAIRS; i++) {
        int first = i % b.sms, second = (first + 1 + i / b.sms * 17 % (b.sms - 1)) % b.sms;
        auto word = [&](int number) {
            int line = number * 100003 % (BUFFER_BYTES / 256); /* a prime: all over the buffer */
            return reinterpret_cast<uint32_t *>(b.buffer + line * 256);
        };
        uint32_t *mine = word(2 * i), *theirs = word(2 * i + 1);
        us.push_back(b.round_us([&](int rounds) {
            check(cudaMemsetAsync(mine, 0, sizeof(*mine), b.stream));
            check(cudaMemsetAsync(theirs, 0, sizeof(*theirs), b.stream));
            b.launch(lb_terms::pair_kernel, s, mine, theirs, first, second, rounds, b.fault);
        }) / 2);
    }
    printf("cache store to poll: %d pairs of SMs", PAIRS);
    print(us);
}

/* Launches of a block per SM, one after the other as nodes of a graph, or in a stream, where they
 * take what the host takes if that is longer. */
static void launch_terms(const bench &b, bool follows, bool graph)
{
    auto enqueue = [&](int rounds) {
        shape s = {"step", {b.sms, 1, 1}, 256, 0};
        int *count = reinterpret_cast<int *>(b.buffer);
        for (int i = 0; i < rounds; i++) {
            s.follows = follows && i > 0;
            b.launch(lb_terms::launch_kernel, s, count, i, b.fault);
        }
    };
    cudaGraphExec_t ready[2] = {};
    for (int rounds : {FEW, MANY}) {
        cudaGraph_t captured;
        check(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
        enqueue(rounds);
        check(cudaStreamEndCapture(b.stream, &captured));
        check(cudaGraphInstantiate(&ready[rounds == MANY], captured, 0));
        check(cudaGraphDestroy(captured));
    }
    printf("step forward: %s%s", follows ? "dependent" : "node", graph ? "" : " in a stream");
    print_rounds(b, [&](int rounds) {
        if (graph)
            check(cudaGraphLaunch(ready[rounds == MANY], b.stream));
        else
            enqueue(rounds);
    });
    check(cudaGraphExecDestroy(ready[0]));
    check(cudaGraphExecDestroy(ready[1]));
}

int main()
try {
    const bench b;
    for (int batch : {16, 64}) {
#define CLUSTER_TERMS(...) cluster_terms<lb_cluster::tile<__VA_ARGS__>>(b, batch);
        LB_CLUSTER_FORWARD_TILES(CLUSTER_TERMS)
#define GRID_TERMS(...) grid_terms<lb_grid::tile<__VA_ARGS__>>(b, hidden, batch);
        for (int hidden : {256, 512, 768, 1024}) {
            LB_GRID_HALF_TILES(GRID_TERMS)
        }
    }
    pair_terms(b);
    for (bool graph : {true, false})
        for (bool follows : {false, true})
            launch_terms(b, follows, graph);
    return 0;
} catch (const std::exception &error) {
    fprintf(stderr, "%s\n", error.what());
    return 1;
}

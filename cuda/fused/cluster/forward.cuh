/* The forward cluster kernel: the recurrence of a layer's whole sequence in one launch. Weights
 * stay in registers and shared memory. */
#ifndef LB_CLUSTER_FORWARD_CUH
#define LB_CLUSTER_FORWARD_CUH

#include "cuda/fused/cluster/cluster.cuh"

namespace lb_cluster
{

/* Dynamic shared memory of a block; lb_cluster_shared returns its size. */
template <class Tile> struct forward_shared {
    static constexpr int h_bytes = Tile::units * Tile::columns * 2;
    static constexpr int sums = Tile::warps * (Tile::split - 1) * Tile::cells * lanes;
    uint4 *weights;   /* [warps, spilled, 32] */
    unsigned char *h; /* [2, units / 16, cells] slices; states use the two buffers in turn */
    /* [warps, split - 1, cells, 32] sums for a warp from the others of its group */
    float4 *swapped;
    uint64_t *full; /* [2] */

    __device__ inline explicit forward_shared(unsigned char *at)
    {
        weights = reinterpret_cast<uint4 *>(at);
        h = at + Tile::warps * Tile::spilled * lanes * sizeof(uint4);
        swapped = reinterpret_cast<float4 *>(h + 2 * h_bytes);
        full = reinterpret_cast<uint64_t *>(swapped + sums);
    }
};

#ifdef LB_PTX_SM90

/* What a thread keeps from step to step. */
template <class Tile> struct forward_thread {
    cell_place place;
    int live; /* columns that are batch rows */
    cell_row rows[Tile::cells];
    float c[Tile::cells], h[Tile::cells];
    float4 bias, pre[Tile::cells]; /* pre: of the next step */
    stationary<Tile> weights;
    /* Addresses of h in the blocks that this lane sends to. */
    uint32_t peer[(Tile::blocks + 7) / 8];
};

/* Returns h before the first step: h0, or y as the previous launch wrote it. For a row that has
 * ended the value is not used. */
template <class T>
__device__ inline T first_h(const lb_fused_forward_args &a, const cell_place &p, int row, int unit)
{
    size_t at = static_cast<size_t>(p.direction) * a.batch + row;
    const T *h = static_cast<const T *>(a.h0);
    if (a.from > 0) {
        int time = time_of({row, length_of(a, row)}, p, a.from - 1);
        at = (static_cast<size_t>(time) * a.batch + row) * a.directions + p.direction;
        h = static_cast<const T *>(a.y);
    }
    return h[at * a.hidden + unit];
}

/* Loads h of all units before the first step into both buffers, with zeros in the padding, which no
 * block sends. A barrier must follow. */
template <class T, class Tile>
__device__ inline void load_h0(const lb_fused_forward_args &a, const cell_place &p,
                               unsigned char *h)
{
    int first_row = p.row - p.column;
    for (int i = threadIdx.x; i < Tile::units * Tile::columns; i += Tile::threads) {
        int t = i / 32 % 4, column = i / 4 % 8, slice = i / 128;
        int unit = i % 4 + t * 4 + slice / Tile::cells * 16;
        int row = first_row + column + slice % Tile::cells * 8;
        T value = convert_to_storage<T>(0.0f);
        if (unit < a.hidden && row < a.batch)
            value = first_h<T>(a, p, row, unit);
        T *to = reinterpret_cast<T *>(h + slice * slice_bytes + place_in_slice(t, column)) + i % 4;
        to[0] = value;
        to[Tile::units * Tile::columns] = value;
    }
}

/* Loads the pre-activations of `step`, one step before they are used. */
template <class Tile>
__device__ inline void load_pre(const lb_fused_forward_args &a, forward_thread<Tile> &t, int step)
{
    for (int i = 0; i < Tile::cells; i++) {
        t.pre[i] = make_float4(0, 0, 0, 0);
        if (step >= t.rows[i].length || step >= a.to)
            continue;
        size_t at = sequence_index(a, t.place, t.rows[i], step);
        t.pre[i] = __ldcs(static_cast<const float4 *>(a.pre) + at);
    }
}

template <class T, class Tile>
__device__ inline void load_state(const lb_fused_forward_args &a, forward_thread<Tile> &t)
{
    t.bias = make_float4(0, 0, 0, 0);
    if (t.place.unit < a.hidden)
        t.bias = static_cast<const float4 *>(a.bias)[t.place.direction * a.hidden + t.place.unit];
    for (int i = 0; i < Tile::cells; i++) {
        t.rows[i] = find_row(a, t.place, i);
        t.c[i] = t.h[i] = 0; /* a row has at least one step, which computes h */
        if (t.rows[i].length == 0)
            continue;
        size_t at = state_index(a, t.place, t.rows[i].row);
        t.c[i] = convert_to_real(static_cast<const T *>(a.c0)[at]);
        if (a.from > 0 && t.rows[i].length > a.from)
            t.c[i] = static_cast<const float *>(a.carry)[at];
    }
}

/* Adds to `own` this warp's sums from all warps of its group, and gives the other warps theirs. One
 * buffer is enough: a warp returns here only with the next h, part of which the other warps sent
 * after they had read the buffer. */
template <class Tile>
__device__ inline void swap_sums(float (&own)[Tile::cells][4],
                                 const float (&sum)[Tile::split][Tile::cells][4], float4 *sums,
                                 const cell_place &p)
{
    int member = p.warp % Tile::split;
    for (int m = 0; m < Tile::split; m++) {
        /* This warp's number among the others of the receiver's group. */
        int from = member < m ? member : member - 1;
        float4 *to =
            sums + ((p.warp - member + m) * (Tile::split - 1) + from) * Tile::cells * lanes;
        for (int i = 0; i < Tile::cells; i++) {
            const float(&s)[4] = sum[m][i];
            if (m != member)
                to[i * lanes + p.lane] = make_float4(s[0], s[1], s[2], s[3]);
            for (int e = 0; e < 4; e++)
                own[i][e] = m == 0 || m == member ? s[e] : own[i][e];
        }
    }
    if (Tile::split == 1)
        return;
    lb_ptx::barrier_sync(1 + p.warp / Tile::split, Tile::split * lanes);
    const float4 *from = sums + p.warp * (Tile::split - 1) * Tile::cells * lanes;
    for (int o = 0; o < Tile::split - 1; o++) {
        for (int i = 0; i < Tile::cells; i++) {
            float4 s = from[(o * Tile::cells + i) * lanes + p.lane];
            own[i][0] += s.x, own[i][1] += s.y, own[i][2] += s.z, own[i][3] += s.w;
        }
    }
}

/* Computes one step of a cell and returns the activated gates. Past a row's end the state does not
 * change. */
template <class Tile>
__device__ inline float4 step_cell(forward_thread<Tile> &t, const float4 &sum, int i, int step)
{
    float4 g;
    g.x = fast_functions::sigmoid(sum.x + t.pre[i].x + t.bias.x);
    g.y = fast_functions::sigmoid(sum.y + t.pre[i].y + t.bias.y);
    g.z = fast_functions::tangent(sum.z + t.pre[i].z + t.bias.z);
    g.w = fast_functions::sigmoid(sum.w + t.pre[i].w + t.bias.w);
    float c = g.y * t.c[i] + g.x * g.z;
    if (step < t.rows[i].length) {
        t.c[i] = c;
        t.h[i] = g.w * fast_functions::tangent(c);
    }
    return g;
}

/* Sends h of the warp's 4 units x 8 columns to every block of the cluster, this one included. A
 * packet has 16 bytes: 4 units of 2 columns. Four shuffles build each packet in 8 lanes, and each
 * of these lanes sends it to one or two blocks. */
template <class T, class Tile>
__device__ inline void send_h(const forward_thread<Tile> &t, int i, int slot)
{
    const cell_place &p = t.place;
    uint32_t mine = bits_of_pair<T>(t.h[i], 0);
    uint32_t next = __shfl_xor_sync(~0u, mine, 8);
    uint32_t two = p.lane & 8 ? next | mine << 16 : mine | next << 16;
    uint32_t other = __shfl_xor_sync(~0u, two, 16);
    uint32_t low = p.lane & 16 ? other : two, high = p.lane & 16 ? two : other;
    uint32_t low_by = __shfl_xor_sync(~0u, low, 4), high_by = __shfl_xor_sync(~0u, high, 4);
    bool odd = p.lane & 4;
    const float packet[4] = {
        __uint_as_float(odd ? low_by : low), __uint_as_float(odd ? high_by : high),
        __uint_as_float(odd ? low : low_by), __uint_as_float(odd ? high : high_by)};

    using shared = forward_shared<Tile>;
    int four = p.rank * Tile::warps + p.warp; /* number of these four units in the cluster */
    int offset =
        (four / 4 * Tile::cells + i) * slice_bytes + place_in_slice(four % 4, p.lane % 4 * 2);
    uint32_t full = 2 * shared::h_bytes + shared::sums * sizeof(float4);
    for (int q = 0; q < (Tile::blocks + 7) / 8; q++)
        if (p.lane / 4 + 8 * q < Tile::blocks && 8 * i + p.lane % 4 * 2 < t.live)
            lb_ptx::store_async(t.peer[q] + slot * shared::h_bytes + offset, packet,
                                t.peer[q] + full + slot * sizeof(uint64_t));
}

template <class T, class Tile, bool train>
__device__ inline void store_step(const lb_fused_forward_args &a, const forward_thread<Tile> &t,
                                  const float4 &gates, int i, int step)
{
    const cell_row &r = t.rows[i];
    if (r.length == 0)
        return;
    size_t at = sequence_index(a, t.place, r, step);
    bool past = step >= r.length;
    static_cast<T *>(a.y)[at] = convert_to_storage<T>(past ? 0.0f : t.h[i]);
    if (train && !past) {
        __stcs(static_cast<float4 *>(a.gates) + at, gates);
        __stcs(static_cast<float *>(a.cells) + at, t.c[i]);
    }
}

template <class T, class Tile>
__device__ inline void store_state(const lb_fused_forward_args &a, const forward_thread<Tile> &t)
{
    for (int i = 0; i < Tile::cells; i++) {
        if (t.rows[i].length == 0)
            continue;
        size_t at = state_index(a, t.place, t.rows[i].row);
        if (t.rows[i].length > a.to)
            static_cast<float *>(a.carry)[at] = t.c[i];
        if (t.rows[i].length > a.to || t.rows[i].length <= a.from)
            continue;
        static_cast<T *>(a.hn)[at] = convert_to_storage<T>(t.h[i]);
        static_cast<T *>(a.cn)[at] = convert_to_storage<T>(t.c[i]);
    }
}

/* Computes one step: the matrix product with h, then the cells. It sends the new h before it stores
 * anything else. No barrier of the block is needed: a warp sends after it has read h, and no peer
 * writes to this buffer again before all warps have sent. */
template <class T, class Tile, bool train>
__device__ inline void forward_step(const lb_fused_forward_args &a, forward_thread<Tile> &t,
                                    const forward_shared<Tile> &s, int step)
{
    using shared = forward_shared<Tile>;
    float sum[Tile::split][Tile::cells][4], own[Tile::cells][4];
    constexpr int slices = Tile::fragments / Tile::split;
    int first = t.place.warp % Tile::split * slices * Tile::cells * slice_bytes;
    int state = step - a.from;
    /* Where spilled weights keep shared memory busy, columns without a batch row are not read. */
    bool reads = Tile::spilled == 0 || Tile::cells > 1 || t.place.lane / 4 < t.live;
    multiply_slices<T, slices>(sum, t.weights, s.h + state % 2 * shared::h_bytes + first,
                               t.place.lane, reads);
    trace(step, part::multiplied);
    swap_sums<Tile>(own, sum, s.swapped, t.place);
    trace(step, part::met);
    float4 gates[Tile::cells];
    __syncwarp(); /* all lanes have read h, whichever of them sends */
    for (int i = 0; i < Tile::cells; i++) {
        gates[i] = step_cell(t, gather_gates(own[i], t.place.lane), i, step);
        if (LB_FUSED_EXCHANGE && step + 1 < a.to)
            send_h<T, Tile>(t, i, (state + 1) % 2);
    }
    trace(step, part::sent);
    for (int i = 0; i < Tile::cells; i++)
        store_step<T, Tile, train>(a, t, gates[i], i, step);
}

template <class T, class Tile, bool train>
__device__ inline void forward_run(const lb_fused_forward_args &a)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    forward_shared<Tile> s(memory);
    forward_thread<Tile> t;
    t.place = find_place<Tile>(a);
    t.live = live_columns(a, t.place);
    const cell_place &p = t.place;
    int warp_of_all = (p.direction * Tile::blocks + p.rank) * Tile::warps + p.warp;
    t.weights.load(a.weights, warp_of_all, p.warp, p.lane, s.weights);
    load_state<T, Tile>(a, t);
    load_pre<Tile>(a, t, a.from);
    load_h0<T, Tile>(a, t.place, s.h);
    for (int q = 0; q < (Tile::blocks + 7) / 8; q++)
        t.peer[q] = lb_ptx::map_shared_address(lb_ptx::shared_address(s.h),
                                               (t.place.lane / 4 + 8 * q) % Tile::blocks);
    arrivals h = {s.full, (t.live + 1) / 2 * 2 * Tile::units * 2u}; /* columns are sent in pairs */
    int last_sent = a.to - a.from - 1; /* the last state that is read from shared memory */
    if (threadIdx.x == 0)
        h.open(last_sent);
    lb_ptx::cluster_arrive(); /* barriers and state 0 stand in all blocks before anyone sends */
    lb_ptx::cluster_wait();
    for (int step = a.from; step < a.to; step++) {
        trace(step, part::begun);
        if (LB_FUSED_EXCHANGE && step > a.from)
            h.wait(step - a.from, last_sent);
        trace(step, part::arrived);
        forward_step<T, Tile, train>(a, t, s, step);
        trace(step, part::stored);
        load_pre<Tile>(a, t, step + 1);
    }
    store_state<T, Tile>(a, t);
}

#endif

/* fused_cluster_forward_kernel: computes y and the final state of steps [from, to) from the
 * pre-activations; with `train` it also writes the activated gates and the cells.
 * lb_fused_forward_args has the shapes.
 *   grid (blocks * ceil(B / columns), D) in clusters of (blocks), block (32 * warps).
 *   Dynamic shared memory: lb_cluster_shared.
 *   Cost per step and block: 2 * 16 * units * columns * warps flops on the tensor cores; it reads
 *   units * columns * 2 * warps / split bytes of h and 512 * warps * spilled bytes of weights from
 *   shared memory, and sends 8 * warps * columns bytes to each peer; h and what is sent are fewer
 *   where columns have no batch row. Per cell it reads 16 bytes of global memory and writes 2, with
 *   `train` 20 more.
 * It is compiled for every architecture, because host code names it. Before sm_90, and where shared
 * memory is too small, its body is empty. */
template <class T, class Tile, bool train>
__global__ void __launch_bounds__(Tile::threads, 1)
    fused_cluster_forward_kernel(lb_fused_forward_args a)
{
#ifdef LB_PTX_SM90
    if constexpr (lb_cluster_shared(&Tile::figures, false) <= shared_limit)
        forward_run<T, Tile, train>(a);
#endif
}

} // namespace lb_cluster

#endif

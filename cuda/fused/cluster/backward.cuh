/* The backward cluster kernel: the gradients of the pre-activations of a layer's whole sequence in
 * one launch. Transposed weights stay in registers and shared memory. Matrix products over all
 * steps compute dW, dx and db afterwards. */
#ifndef LB_CLUSTER_BACKWARD_CUH
#define LB_CLUSTER_BACKWARD_CUH

#include "cuda/fused/cluster/cluster.cuh"

namespace lb_cluster
{

/* Dynamic shared memory of a block; lb_cluster_shared returns its size. */
template <class Tile> struct backward_shared {
    static constexpr int sums = Tile::cells * Tile::own_units * 8; /* floats from one block */
    static constexpr int sums_bytes = Tile::blocks * sums * 4;
    static constexpr int operand_bytes = Tile::warps * Tile::cells * slice_bytes;
    uint4 *weights;        /* [warps, spilled, 32] */
    float *sums_of;        /* [2, blocks, cells, own units, 8] parts of dh from each block */
    unsigned char *dgates; /* [2, warps, cells] slices: 4 gates of a warp's 4 units */
    uint64_t *full;        /* [2] */

    __device__ inline explicit backward_shared(unsigned char *at)
    {
        weights = reinterpret_cast<uint4 *>(at);
        at += Tile::warps * Tile::spilled * lanes * sizeof(uint4);
        sums_of = reinterpret_cast<float *>(at);
        dgates = at + 2 * sums_bytes;
        full = reinterpret_cast<uint64_t *>(dgates + 2 * operand_bytes);
    }
};

#ifdef LB_PTX_SM90

/* What a thread keeps from step to step. Steps run from a.to - 1 down to a.from. */
template <class T, class Tile> struct backward_thread {
    cell_place place;
    int live; /* columns that are batch rows */
    cell_row rows[Tile::cells];
    float dh[Tile::cells], dc[Tile::cells];
    cell_inputs<T> next[Tile::cells]; /* of the next step, which is earlier in time */
    stationary<Tile> weights;
    uint32_t sums_at; /* address of sums_of */
};

template <class T, class Tile>
__device__ inline void load_gradients(const lb_fused_backward_args &a, backward_thread<T, Tile> &t)
{
    for (int i = 0; i < Tile::cells; i++) {
        t.rows[i] = find_row(a, t.place, i);
        t.dh[i] = t.dc[i] = 0;
        t.next[i] = {};
        if (t.rows[i].length == 0)
            continue;
        size_t at = state_index(a, t.place, t.rows[i].row);
        bool begun = t.rows[i].length > a.to; /* in the previous launch */
        const float *carry = static_cast<const float *>(a.carry);
        t.dh[i] = begun ? carry[at] : convert_to_real(static_cast<const T *>(a.dhn)[at]);
        t.dc[i] =
            begun ? carry[at + state_size(a)] : convert_to_real(static_cast<const T *>(a.dcn)[at]);
    }
}

/* Loads the inputs of `step`, one step before they are used. c is the c_prev of the step computed
 * before, except at the end of a row and at the first step of a launch. */
template <class T, class Tile>
__device__ inline void load_inputs(const lb_fused_backward_args &a, backward_thread<T, Tile> &t,
                                   int step)
{
    for (int i = 0; i < Tile::cells; i++) {
        const cell_row &r = t.rows[i];
        const float *cells = static_cast<const float *>(a.cells);
        cell_inputs<T> &in = t.next[i];
        if (step < a.from || step >= r.length)
            continue;
        size_t at = sequence_index(a, t.place, r, step);
        in.gates = __ldcs(static_cast<const float4 *>(a.gates) + at);
        in.dy = static_cast<const T *>(a.dy)[at];
        in.c = step == min(r.length, a.to) - 1 ? cells[at] : in.c_prev;
        if (step > 0)
            in.c_prev = cells[sequence_index(a, t.place, r, step - 1)];
        else
            in.c_prev =
                convert_to_real(static_cast<const T *>(a.c0)[state_index(a, t.place, r.row)]);
    }
}

/* Returns the gradients of a cell's pre-activations i f g o; past a row's end they are zero. */
template <class T, class Tile>
__device__ inline float4 step_back(backward_thread<T, Tile> &t, int i, int step)
{
    if (step >= t.rows[i].length)
        return make_float4(0, 0, 0, 0);
    return cell_back<fast_functions>(t.next[i], t.dh[i], t.dc[i]);
}

/* Stores a cell's four gradients, 8 bytes, to this block's operand and to global memory. */
template <class T, class Tile>
__device__ inline void store_dgates(const lb_fused_backward_args &a,
                                    const backward_thread<T, Tile> &t, const float4 &d, int i,
                                    int step, unsigned char *operand)
{
    const cell_place &p = t.place;
    uint2 packed = make_uint2(bits_of_pair<T>(d.x, d.y), bits_of_pair<T>(d.z, d.w));
    int offset = (p.warp * Tile::cells + i) * slice_bytes + place_in_slice(p.lane / 8, p.column);
    *reinterpret_cast<uint2 *>(operand + offset) = packed;
    const cell_row &r = t.rows[i];
    if (r.length == 0)
        return;
    size_t at = sequence_index(a, p, r, step);
    static_cast<uint2 *>(a.dgates)[at] = packed;
}

/* Sends a row tile's sums to the blocks that own its 16 units. Neighbouring lanes first exchange
 * sums, so that each lane has 4 columns of one unit: 16 bytes, one message. */
template <class T, class Tile>
__device__ inline void send_sums(const backward_thread<T, Tile> &t, const float (&sum)[4], int m,
                                 int i, int slot)
{
    using shared = backward_shared<Tile>;
    const cell_place &p = t.place;
    float packet[4];
    gather_columns(sum, p.lane, packet);
    int unit = (p.warp * (Tile::blocks / 4) + m) * 16 + p.lane / 4 + p.lane % 2 * 8;
    int offset = p.rank * shared::sums + (i * Tile::own_units + unit % Tile::own_units) * 8 +
                 p.lane % 4 / 2 * 4;
    if (8 * i + p.lane % 4 / 2 * 4 >= t.live)
        return; /* and ask for no address: a peer that waits for nothing more may be gone */
    uint32_t to = lb_ptx::map_shared_address(t.sums_at, unit / Tile::own_units);
    uint32_t full = to + 2 * (shared::sums_bytes + shared::operand_bytes);
    lb_ptx::store_async(to + slot * shared::sums_bytes + offset * 4, packet,
                        full + slot * sizeof(uint64_t));
}

/* Adds the parts of dh of this thread's cells from all blocks, always in the same order. A row
 * whose last step is still to come keeps its dhn. */
template <class T, class Tile>
__device__ inline void collect_sums(backward_thread<T, Tile> &t, const float *sums, int step)
{
    using shared = backward_shared<Tile>;
    const cell_place &p = t.place;
    for (int i = 0; i < Tile::cells; i++) {
        int offset = (i * Tile::own_units + p.warp * 4 + p.lane / 8) * 8 + p.column;
        if (step >= t.rows[i].length)
            continue;
        float sum = 0;
#pragma unroll
        for (int block = 0; block < Tile::blocks; block++)
            sum += sums[block * shared::sums + offset];
        t.dh[i] = sum;
    }
}

/* Computes one step: the gradients of the block's cells become its operand, which is multiplied by
 * the transposed weights of all units, and the sums are sent to the blocks that own the units. The
 * one barrier makes the operand complete. After it all warps have also read the previous sums, so
 * that peers may write there again. The operand has two buffers, because a slow warp may still read
 * one while the next step begins. */
template <class T, class Tile>
__device__ inline void backward_step(const lb_fused_backward_args &a, backward_thread<T, Tile> &t,
                                     const backward_shared<Tile> &s, int step, int state)
{
    unsigned char *operand = s.dgates + state % 2 * backward_shared<Tile>::operand_bytes;
    for (int i = 0; i < Tile::cells; i++)
        store_dgates<T, Tile>(a, t, step_back(t, i, step), i, step, operand);
    load_inputs<T, Tile>(a, t, step - 1);
    __syncthreads();
    trace(step, part::met);
    float sum[Tile::blocks / 4][Tile::cells][4];
    multiply_slices<T, Tile::warps>(sum, t.weights, operand, t.place.lane, true);
    for (int m = 0; m < Tile::blocks / 4; m++)
        for (int i = 0; i < Tile::cells; i++)
            if (LB_FUSED_EXCHANGE)
                send_sums(t, sum[m][i], m, i, state % 2);
    trace(step, part::sent);
}

/* Stores dh and dc: as gradients of the initial state, or in carry for the next launch. */
template <class T, class Tile>
__device__ inline void store_gradients(const lb_fused_backward_args &a,
                                       const backward_thread<T, Tile> &t)
{
    for (int i = 0; i < Tile::cells; i++) {
        size_t at = state_index(a, t.place, t.rows[i].row);
        if (t.rows[i].length > a.from && a.from > 0) {
            static_cast<float *>(a.carry)[at] = t.dh[i];
            static_cast<float *>(a.carry)[at + state_size(a)] = t.dc[i];
        } else if (t.rows[i].length > 0 && a.from == 0) {
            static_cast<T *>(a.dh0)[at] = convert_to_storage<T>(t.dh[i]);
            static_cast<T *>(a.dc0)[at] = convert_to_storage<T>(t.dc[i]);
        }
    }
}

template <class T, class Tile> __device__ inline void backward_run(const lb_fused_backward_args &a)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    using shared = backward_shared<Tile>;
    shared s(memory);
    backward_thread<T, Tile> t;
    t.place = find_place<Tile>(a);
    t.live = live_columns(a, t.place);
    t.sums_at = lb_ptx::shared_address(s.sums_of);
    const cell_place &p = t.place;
    int warp_of_all = (p.direction * Tile::blocks + p.rank) * Tile::warps + p.warp;
    t.weights.load(a.weights, warp_of_all, p.warp, p.lane, s.weights);
    load_gradients<T, Tile>(a, t);
    load_inputs<T, Tile>(a, t, a.to - 1);
    unsigned quads = (t.live + 3) / 4; /* columns are sent in fours */
    arrivals sums = {s.full, quads * 16 * Tile::own_units * Tile::blocks};
    int states = a.to - a.from;
    if (threadIdx.x == 0)
        sums.open(states);
    lb_ptx::cluster_arrive(); /* barriers stand in all blocks before anyone sends */
    lb_ptx::cluster_wait();
    for (int state = 1; state <= states; state++) {
        int step = a.to - state;
        trace(step, part::begun);
        backward_step<T, Tile>(a, t, s, step, state);
        if (LB_FUSED_EXCHANGE)
            sums.wait(state, states);
        trace(step, part::arrived);
        collect_sums(t, s.sums_of + state % 2 * Tile::blocks * shared::sums, step);
    }
    store_gradients<T>(a, t);
}

#endif

/* fused_cluster_backward_kernel: computes the gradients of the pre-activations of steps [from, to)
 * and of the initial state from dy and from what the training forward wrote.
 * lb_fused_backward_args has the shapes.
 *   grid (blocks * ceil(B / columns), D) in clusters of (blocks), block (32 * warps).
 *   Dynamic shared memory: lb_cluster_shared.
 *   Cost per step and block: the flops of the forward kernel; it sends 4 * units * columns bytes
 *   and receives as many. Per cell it reads 22 bytes of global memory and writes 8.
 * It is compiled for every architecture, because host code names it. Before sm_90, and where shared
 * memory is too small, its body is empty. */
template <class T, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    fused_cluster_backward_kernel(lb_fused_backward_args a)
{
#ifdef LB_PTX_SM90
    if constexpr (lb_cluster_shared(&Tile::figures, true) <= shared_limit)
        backward_run<T, Tile>(a);
#endif
}

} // namespace lb_cluster

#endif

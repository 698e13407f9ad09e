/* The kernels of fused_terms.cu: each runs one term of a step alone, by the functions of the fused
 * kernels. A kernel whose template parameter `check` is true compares every word that it has
 * received; without it nothing stands between arrival and the next send. What is wrong is written
 * to the fault record, as by a wait of family grid that gives up. */
#ifndef LB_FUSED_TERMS_CUH
#define LB_FUSED_TERMS_CUH

#include "cuda/fused/cluster/forward.cuh"
#include "cuda/fused/grid/forward.cuh"
#include "cuda/fused/step/step.cuh"

namespace lb_terms
{

using lb_grid::waiting;
using lb_ptx::scope;

/* Returns the made-up h of a cell: in [0, 1), and exact in f16. */
__device__ inline float value_of(int state, int unit, int row)
{
    return static_cast<float>((state * 37 + unit * 5 + row * 331) % 2048) / 2048;
}

/* Returns the h of two neighbouring units as they are sent. */
__device__ inline uint32_t pair_of(int state, int unit, int row)
{
    return lb_recurrence::bits_of_pair<__half>(value_of(state, unit, row),
                                               value_of(state, unit + 1, row));
}

/* ---- Family cluster ----------------------------------------------------------------------------
 */

#ifdef LB_PTX_SM90

/* Compares all that a block has received of a state, read as the product reads it. */
template <class Tile>
__device__ inline void compare_h(const lb_fused_forward_args &a,
                                 const lb_cluster::forward_thread<Tile> &t, const unsigned char *h,
                                 int state)
{
    const lb_cluster::cell_place &p = t.place;
    for (int slice = 0; slice < Tile::fragments * Tile::cells; slice++) {
        int unit = slice / Tile::cells * 16 + p.lane % 4 * 4;
        int column = slice % Tile::cells * 8 + p.lane / 4, row = p.row - p.column + column;
        uint32_t b[2];
        if (column >= t.live)
            continue;
        lb_cluster::load_operand(b, h + slice * lb_cluster::slice_bytes, p.lane, true);
        if (b[0] != pair_of(state, unit, row) || b[1] != pair_of(state, unit + 2, row))
            waiting{a.fault, 0}.give_up(unit / Tile::own_units, state);
    }
}

template <class Tile, bool check>
__device__ inline void exchange_in_cluster(const lb_fused_forward_args &a)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    lb_cluster::forward_shared<Tile> s(memory);
    lb_cluster::forward_thread<Tile> t;
    t.place = lb_cluster::find_place<Tile>(a);
    t.live = lb_cluster::live_columns(a, t.place);
    for (int q = 0; q < (Tile::blocks + 7) / 8; q++)
        t.peer[q] = lb_ptx::map_shared_address(lb_ptx::shared_address(s.h),
                                               (t.place.lane / 4 + 8 * q) % Tile::blocks);
    lb_cluster::arrivals h = {s.full, (t.live + 1) / 2 * 2 * Tile::units * 2u};
    if (threadIdx.x == 0)
        h.open(a.to);
    lb_ptx::cluster_arrive();
    lb_ptx::cluster_wait();
    for (int state = 0; state <= a.to; state++) {
        if (state > 0)
            h.wait(state, a.to);
        if (check && state > 0)
            compare_h(a, t, s.h + state % 2 * s.h_bytes, state);
        __syncwarp();
        for (int i = 0; i < Tile::cells && state < a.to; i++) {
            t.h[i] = value_of(state + 1, t.place.unit, t.place.row + 8 * i);
            lb_cluster::send_h<__half, Tile>(t, i, (state + 1) % 2);
        }
    }
}

#endif

/* cluster_exchange_kernel: a.to states of h, each sent by st.async from every block of a cluster to
 * all of them, with one wait on an mbarrier per state. It isolates the all-to-all inside a cluster:
 * latency and bytes, with the addresses and messages of the product.
 *   grid, block, clusters and shared memory are those of fused_cluster_forward_kernel. */
template <class Tile, bool check>
__global__ void __launch_bounds__(Tile::threads, 1) cluster_exchange_kernel(lb_fused_forward_args a)
{
#ifdef LB_PTX_SM90
    exchange_in_cluster<Tile, check>(a);
#endif
}

/* ---- Family grid -------------------------------------------------------------------------------
 */

/* f16 whose product adds up what a lane has received, so that the sums tell each word and the order
 * of the packets; without `check` it does nothing. */
template <bool check> struct received_math : lb_grid::f16_math {
    static __device__ inline void add(float &sum, uint32_t pair)
    {
        sum = 2 * sum + static_cast<float>(pair % 65536) + static_cast<float>(pair / 65536) / 4;
    }
    static __device__ inline void multiply(sums &s, const uint32_t (&)[2][4], const operand &b)
    {
        for (int w = 0; check && w < 4; w++)
            add(s.v[w], b.x[w]);
    }
};

/* Whether a warp has received the packets of a state that it must. */
template <class Math, class Tile>
__device__ inline bool received(const lb_grid::forward_thread<Math, Tile> &t,
                                const lb_grid::warp_sums<Math, Tile> &sum, int state, int chunk)
{
    const lb_grid::block_place &p = t.place;
    lb_grid::warp_sums<Math, Tile> right = {};
    bool same = true;
    for (int q = 0; q < Tile::packets; q++) {
        int packet = q * Tile::warps + p.warp;
        int unit = packet * lb_grid::deep<Math> + p.lane % 4 * Math::lane_units;
        for (int i = 0; i < Tile::eights && packet < t.packets(); i++) {
            int column = i * 8 + p.lane / 4, row = p.first_row + chunk * Tile::columns + column;
            bool sent = column < lb_grid::live_columns<Tile>(p, chunk) && unit < t.units_sent;
            for (int w = 0; w < 4; w++)
                Math::add(right.of[q % Tile::window % sum.chains][0][i].v[w],
                          sent ? pair_of(state, unit + 2 * w, row) : 0);
        }
    }
    for (int chain = 0; chain < sum.chains; chain++)
        for (int i = 0; i < Tile::eights; i++)
            for (int w = 0; w < 4; w++)
                same &= sum.of[chain][0][i].v[w] == right.of[chain][0][i].v[w];
    return same;
}

/* grid_exchange_kernel: steps [0, to) of family grid without product and cells: each block
 * waits for h of all units and sends that of its own. It isolates the all-gather through the
 * L2 cache, with its order of listening, requests, barrier and stores.
 *   h0 [B, H] of any values, scratch zeros of lb_grid_exchange bytes; grid and block
 * are those of fused_grid_forward_kernel; all blocks must be resident. */
template <class Tile, bool check>
__global__ void __launch_bounds__(Tile::threads, 1) grid_exchange_kernel(lb_fused_forward_args a)
{
    using Math = received_math<check>;
    LB_DYNAMIC_SHARED(uint32_t, gave_up); /* [2], as in the product */
    lb_grid::forward_thread<Math, Tile> t;
    const lb_grid::block_place &p = t.place;
    t.place = lb_grid::find_place<Tile>(a);
    t.wait = {a.fault, a.spin_limit};
    t.units_sent = p.blocks * Tile::units;
    t.exchange =
        static_cast<unsigned char *>(a.scratch) +
        static_cast<size_t>(p.group * LB_GRID_COPIES + p.rank % LB_GRID_COPIES) * t.copy_bytes();
    for (int n = 0; n < Tile::cells_thread; n++)
        t.sent[n] =
            sent_to(t, lb_grid::find_cell<Tile>(p, a.hidden, 0, threadIdx.x + n * Tile::threads));
    if (threadIdx.x < 2)
        gave_up[threadIdx.x] = 0;
    lb_grid::window_of_h<Math, Tile> h(t);
    lb_grid::turn now = {0, 0, false};
    for (int buffer = 0; now.step < a.to; buffer = 1 - buffer) {
        const lb_grid::turn next = lb_grid::turn_after<Math, Tile>(a, p, now);
        lb_grid::warp_sums<Math, Tile> sum = {};
        if (!lb_grid::multiply<Math, Tile>(a, t, h, now, next, nullptr, sum))
            lb_ptx::store_relaxed<scope::cta>(&gave_up[buffer], 1u);
        else if (check && now.step > 0 && !received(t, sum, now.step, now.chunk))
            t.wait.give_up(p.first_block, now.step);
        __syncthreads();
        if (gave_up[buffer])
            return;
        for (int n = 0; n < Tile::cells_thread; n++) {
            int at = threadIdx.x + n * Tile::threads;
            if (at >= Tile::cells) /* the whole warp */
                break;
            lb_grid::cell_place c = lb_grid::find_cell<Tile>(p, a.hidden, now.chunk, at);
            uint32_t word =
                lb_grid::word_of<Math>(value_of(now.step + 1, c.unit, c.row), now.step + 1);
            if (lb_grid::is_sent(a, t, c, now.step, now.chunk))
                lb_grid::send_word(t, t.sent[n] + lb_grid::sent_offset(t, now.step + 1, now.chunk),
                                   word);
        }
        now = next;
    }
}

/* ---- Second-level cache and launches -----------------------------------------------------------
 */

/* pair_kernel: blocks `first` and `second` store 1, 2, ... `rounds` for each other in turn, and
 * each polls for what the other stores. It isolates the way of one word from one SM to another
 * through the L2 cache; a round is two of them. words: *to_first and *to_second are zero
 * and in lines of their own.  grid (SMs), block (32) with so much shared memory that a block has an
 * SM for itself; all other blocks end at once. */
__global__ void pair_kernel(uint32_t *to_first, uint32_t *to_second, int first, int second,
                            int rounds, lb_fused_fault *fault)
{
    int block = static_cast<int>(blockIdx.x);
    bool leads = block == first;
    const uint32_t *mine = leads ? to_first : to_second;
    const waiting wait = {fault, LB_GRID_SPIN_LIMIT};
    if (threadIdx.x != 0 || (!leads && block != second))
        return;
    for (int i = 1; i <= rounds; i++) {
        uint32_t word = static_cast<uint32_t>(i);
        if (leads)
            lb_ptx::store_relaxed<scope::gpu>(to_second, word);
        for (uint32_t polls = 0; lb_ptx::load_relaxed<scope::gpu>(mine) != word; polls++)
            if (!wait.goes_on(polls, leads ? second : first, i))
                return;
        if (!leads)
            lb_ptx::store_relaxed<scope::gpu>(to_first, word);
    }
}

/* launch_kernel: does nothing but wait for the launch before it, as a step of family step does. It
 * isolates the launch of a step. One thread checks that launches come one after the other: *count
 * is `number`, or anything where that is 0, and becomes number + 1. */
__global__ void launch_kernel(int *count, int number, lb_fused_fault *fault)
{
    lb_step::follow_previous_step();
    if (blockIdx.x != 0 || threadIdx.x != 0)
        return;
    if (number > 0 && *count != number)
        waiting{fault, 0}.give_up(0, number);
    *count = number + 1;
}

} // namespace lb_terms

#endif

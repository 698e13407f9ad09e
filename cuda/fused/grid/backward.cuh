/* The backward grid kernel: the gradients of the pre-activations of a layer's whole sequence in one
 * launch. Transposed weights stay in registers and shared memory, and blocks exchange partial sums
 * of dh through the second-level cache. Matrix products over all steps compute dW, dx and db
 * afterwards.
 */
#ifndef LB_FUSED_GRID_BACKWARD_CUH
#define LB_FUSED_GRID_BACKWARD_CUH

#include "cuda/fused/grid/grid.cuh"

namespace lb_grid
{

/* Dynamic shared memory of a block; lb_grid_backward_shared returns its size. */
template <class Math, class Tile> struct backward_shared {
    static constexpr int packets = 4 * Tile::units / deep<Math>; /* of the block's gate gradients */
    static constexpr int operand_bytes = packets * Tile::eights * slice_bytes;
    static constexpr int chunk_bytes = Tile::cells * 8; /* added for each chunk */
    static constexpr int bytes =
        Tile::warps * Tile::spilled * lanes * 16 + Tile::threads * 16 + operand_bytes + 2 * 4;
    uint4 *weights;        /* [warps, spilled, 32] */
    float4 *parts;         /* [shares, quads] sums of dh over a share of the blocks */
    unsigned char *dgates; /* [packets, eights] slices: 4 gates of each own unit */
    uint32_t *gave_up;     /* [2] the first says whether a thread of this block gave up */
    int *lengths;          /* [chunks, cells]; 0: the cell is padding */
    float *dc;             /* [chunks, cells] */

    __device__ inline explicit backward_shared(unsigned char *at, int chunks)
    {
        weights = reinterpret_cast<uint4 *>(at);
        parts = reinterpret_cast<float4 *>(weights + Tile::warps * Tile::spilled * lanes);
        dgates = reinterpret_cast<unsigned char *>(parts + Tile::threads);
        gave_up = reinterpret_cast<uint32_t *>(dgates + operand_bytes);
        lengths = reinterpret_cast<int *>(gave_up + 2);
        dc = reinterpret_cast<float *>(lengths + chunks * Tile::cells);
    }
};

/* What a thread keeps from step to step. Steps go from to - 1 down to from. */
template <class Math, class Tile> struct backward_thread {
    static constexpr int quads =
        Tile::cells / 4; /* packets that a block sends to each other block */
    static constexpr int shares = Tile::threads / quads;
    static_assert(Tile::threads % quads == 0, "all threads collect");
    block_place place;
    waiting wait;
    unsigned char *exchange; /* this group's [2, chunks, to, from, quads] packets */
    stationary<Tile> weights;
    cell_inputs next[Tile::cells_thread]; /* of the next chunk */

    /* Returns the address of the sums from block `from` to block `to`. */
    __device__ inline unsigned char *sums(int state, int chunk, int to, int from) const
    {
        size_t buffer = state % 2 * place.chunks + chunk;
        return exchange + ((buffer * place.blocks + to) * place.blocks + from) * quads * 16;
    }
};

/* ---- Sums of dh -------------------------------------------------------------------------------
 */

/* The last bit of a sum is its epoch. */
constexpr uint32_t last_bit = 1;

/* Sends a row tile's sums to the blocks that own its 16 units. Neighbouring lanes first exchange
 * sums, so that each lane has 4 columns of one unit: one packet of 16 bytes. */
template <class Math, class Tile>
__device__ inline void send_sums(const backward_thread<Math, Tile> &t, const float (&sum)[4],
                                 int row_tile, int eight, int state, int chunk)
{
    const block_place &p = t.place;
    float four[4];
    gather_columns(sum, p.lane, four);
    int unit = row_tile * 16 + p.lane / 4 + p.lane % 2 * 8, quad = p.lane % 4 / 2;
    if (8 * eight + 4 * quad >= live_columns<Tile>(p, chunk) || unit >= p.blocks * Tile::units)
        return;
    uint32_t packet[4];
    for (int e = 0; e < 4; e++)
        packet[e] = (__float_as_uint(four[e]) & ~last_bit) | epoch_of(state);
    int at = (eight * Tile::units + unit % Tile::units) * 2 + quad;
    lb_ptx::store_relaxed4<scope::gpu>(t.sums(state, chunk, unit / Tile::units, p.rank) + at * 16,
                                       packet);
}

/* Adds the sums for this block's units from this thread's share of the blocks, in the order of
 * blocks and each as soon as it has arrived, into parts. False when a wait gave up. */
template <class Math, class Tile>
__device__ inline bool collect_share(const backward_thread<Math, Tile> &t, int state, int chunk,
                                     int step, float4 *parts)
{
    using thread = backward_thread<Math, Tile>;
    constexpr int window = 8;
    const block_place &p = t.place;
    int quad = threadIdx.x % thread::quads, share = threadIdx.x / thread::quads;
    bool live = quad / 2 / Tile::units * 8 + quad % 2 * 4 < live_columns<Tile>(p, chunk);
    float4 sum = make_float4(0, 0, 0, 0);
    for (int first = share; first < p.blocks && live; first += window * thread::shares) {
        requests<window, last_bit> sums(epoch_of(state));
        auto from = [&](int n) { return first + n * thread::shares; };
        for (int n = 0; n < window; n++)
            sums.wanted |= from(n) < p.blocks ? 1u << n : 0;
        const unsigned char *base = t.sums(state, chunk, p.rank, first) + quad * 16;
        auto address = [&](int n) { return base + n * thread::shares * thread::quads * 16; };
        sums.load(0, address);
#pragma unroll
        for (int n = 0; n < window; n++) {
            if (!sums.await(n, t.wait, p.first_block + from(n), step, address))
                return false;
            float part[4];
            for (int w = 0; w < 4; w++)
                part[w] = __uint_as_float(sums.words[n][w] ^ sums.epoch);
            sum.x += part[0], sum.y += part[1], sum.z += part[2], sum.w += part[3];
        }
    }
    parts[threadIdx.x] = sum;
    return true;
}

/* Brings all parts of a chunk's dh to shared memory. False, for the whole block, when a wait gave
 * up. */
template <class Math, class Tile>
__device__ inline bool collect_sums(const backward_thread<Math, Tile> &t,
                                    const backward_shared<Math, Tile> &s, int state, int chunk,
                                    int step)
{
    if (!collect_share<Math, Tile>(t, state, chunk, step, s.parts))
        lb_ptx::store_relaxed<scope::cta>(s.gave_up, 1u);
    __syncthreads(); /* all parts stand; this block has read its sums and the operand before */
    return !*s.gave_up;
}

/* Returns dh of one cell: its parts are always added in the same order. */
template <class Math, class Tile>
__device__ inline float sum_parts(const float4 *parts, const cell_place &c)
{
    using thread = backward_thread<Math, Tile>;
    int at = ((c.column / 8 * Tile::units + c.own) * 2 + c.column % 8 / 4) * 4 + c.column % 4;
    const float *of = reinterpret_cast<const float *>(parts) + at;
    float sum = 0;
#pragma unroll
    for (int share = 0; share < thread::shares; share++)
        sum += of[share * thread::quads * 4];
    return sum;
}

/* ---- Cells ------------------------------------------------------------------------------------
 */

/* Loads the inputs of a chunk before the wait for its sums. */
template <class Math, class Tile>
__device__ inline void load_inputs(const lb_fused_backward_args &a, backward_thread<Math, Tile> &t,
                                   const backward_shared<Math, Tile> &s, int step, int chunk)
{
    using T = typename Math::stored;
    int direction = t.place.direction;
    for (int n = 0; n < Tile::cells_thread; n++) {
        int cell_at = threadIdx.x + n * Tile::threads;
        t.next[n] = {};
        if (cell_at >= Tile::cells || step >= s.lengths[chunk * Tile::cells + cell_at])
            continue;
        int length = s.lengths[chunk * Tile::cells + cell_at];
        cell_place c = find_cell<Tile>(t.place, a.hidden, chunk, cell_at);
        const float *cells = static_cast<const float *>(a.cells);
        cell_inputs &in = t.next[n];
        size_t at = sequence_index(a, direction, time_of(length, direction, step), c.row, c.unit);
        in.gates = __ldcs(static_cast<const float4 *>(a.gates) + at);
        in.dy = convert_to_real(static_cast<const T *>(a.dy)[at]);
        in.c = cells[at];
        if (step > 0)
            in.c_prev = cells[sequence_index(a, direction, time_of(length, direction, step - 1),
                                             c.row, c.unit)];
        else
            in.c_prev = convert_to_real(
                static_cast<const T *>(a.c0)[state_index(a, direction, c.row, c.unit)]);
    }
}

/* Stores a cell's four gradients, 8 or 16 bytes, to this block's operand and to global memory. */
template <class Math, class Tile>
__device__ inline void store_dgates(const lb_fused_backward_args &a, const block_place &p,
                                    const cell_place &c, int length, const float4 &d, int step,
                                    unsigned char *operand)
{
    constexpr int gate_bytes = 4 * sizeof(typename Math::stored);
    int first = 4 * c.own; /* of the depth */
    unsigned char *slice =
        operand + (first / deep<Math> * Tile::eights + c.column / 8) * slice_bytes;
    int lane = c.column % 8 * 4 + first % deep<Math> / Math::lane_units;
    unsigned char *to = slice + place_in_slice(lane) + first % Math::lane_units / 4 * gate_bytes;
    size_t at = 0;
    if (length > 0)
        at = sequence_index(a, p.direction, time_of(length, p.direction, step), c.row, c.unit);
    if constexpr (Math::word_units == 2) {
        uint2 packed = make_uint2(Math::bits(d.x) | Math::bits(d.y) << 16,
                                  Math::bits(d.z) | Math::bits(d.w) << 16);
        *reinterpret_cast<uint2 *>(to) = packed;
        if (length > 0)
            static_cast<uint2 *>(a.dgates)[at] = packed;
    } else {
        *reinterpret_cast<uint4 *>(to) =
            make_uint4(Math::bits(d.x), Math::bits(d.y), Math::bits(d.z), Math::bits(d.w));
        if (length > 0)
            static_cast<float4 *>(a.dgates)[at] = d;
    }
}

/* Computes the gate gradients of a chunk's cells into the operand. A row's last step takes dhn and
 * dcn, and the first step of a launch takes carry for rows that an earlier launch began. */
template <class Math, class Tile>
__device__ inline void step_cells(const lb_fused_backward_args &a,
                                  const backward_thread<Math, Tile> &t,
                                  const backward_shared<Math, Tile> &s, int step, int chunk)
{
    using T = typename Math::stored;
    const block_place &p = t.place;
    for (int n = 0; n < Tile::cells_thread; n++) {
        int at = threadIdx.x + n * Tile::threads;
        if (at >= Tile::cells)
            return;
        cell_place c = find_cell<Tile>(p, a.hidden, chunk, at);
        int length = s.lengths[chunk * Tile::cells + at];
        float &dc = s.dc[chunk * Tile::cells + at];
        float4 d = make_float4(0, 0, 0, 0);
        if (step < length) {
            size_t of = state_index(a, p.direction, c.row, c.unit);
            float dh;
            if (step == length - 1) {
                dh = convert_to_real(static_cast<const T *>(a.dhn)[of]);
                dc = convert_to_real(static_cast<const T *>(a.dcn)[of]);
            } else if (step == a.to - 1) {
                dh = static_cast<const float *>(a.carry)[of];
            } else {
                dh = sum_parts<Math, Tile>(s.parts, c);
            }
            d = cell_back<Math>(t.next[n], dh, dc);
        }
        store_dgates<Math, Tile>(a, p, c, length, d, step, s.dgates);
    }
}

/* ---- Matrix product----------------------------------------------------------------------------
 */

/* Multiplies own gate gradients by the transposed weights of all units, and sends the sums of each
 * row tile as soon as they are complete. */
template <class Math, class Tile>
__device__ inline void multiply(const backward_thread<Math, Tile> &t,
                                const backward_shared<Math, Tile> &s, int state, int chunk)
{
    constexpr int packets = backward_shared<Math, Tile>::packets;
    constexpr int row_tiles = Tile::fragments / 2 / packets; /* per warp */
    const block_place &p = t.place;
    typename Math::operand b[packets][Tile::eights];
    for (int k = 0; k < packets; k++)
        for (int i = 0; i < Tile::eights; i++)
            b[k][i] = Math::take(s.dgates + (k * Tile::eights + i) * slice_bytes, p.lane);
#pragma unroll
    for (int m = 0; m < row_tiles; m++) {
        int row_tile = m * Tile::warps + p.warp;
        if (row_tile * 16 >= p.blocks * Tile::units)
            continue;
        typename Math::sums sum[Tile::eights] = {};
        for (int k = 0; k < packets; k++) {
            uint32_t w[2][4];
            get_pair(t.weights, m * packets + k, w);
            for (int i = 0; i < Tile::eights; i++)
                Math::multiply(sum[i], w, b[k][i]);
        }
        for (int i = 0; i < Tile::eights; i++) {
            float d[4];
            sum[i].finish(d, p.lane);
            send_sums<Math, Tile>(t, d, row_tile, i, state, chunk);
        }
    }
}

/* ---- Run --------------------------------------------------------------------------------------
 */

template <class Math, class Tile>
__device__ inline void load_state(const lb_fused_backward_args &a, const block_place &p,
                                  const backward_shared<Math, Tile> &s)
{
    size_t states = state_size(a);
    for (int i = threadIdx.x; i < p.chunks * Tile::cells; i += Tile::threads) {
        cell_place cell = find_cell<Tile>(p, a.hidden, i / Tile::cells, i % Tile::cells);
        s.lengths[i] = length_of(a, cell);
        s.dc[i] = 0;
        if (s.lengths[i] > a.to)
            s.dc[i] = static_cast<const float *>(
                a.carry)[states + state_index(a, p.direction, cell.row, cell.unit)];
    }
}

/* Stores dh and dc after the last step: as gradients of the initial state, or in carry for the next
 * launch. */
template <class Math, class Tile>
__device__ inline void store_state(const lb_fused_backward_args &a, const block_place &p,
                                   const backward_shared<Math, Tile> &s, int chunk)
{
    using T = typename Math::stored;
    size_t states = state_size(a);
    for (int n = 0; n < Tile::cells_thread; n++) {
        int at = threadIdx.x + n * Tile::threads, of_all = chunk * Tile::cells + at;
        if (at >= Tile::cells || s.lengths[of_all] <= a.from)
            continue;
        cell_place c = find_cell<Tile>(p, a.hidden, chunk, at);
        size_t of = state_index(a, p.direction, c.row, c.unit);
        float dh = sum_parts<Math, Tile>(s.parts, c);
        if (a.from == 0) {
            static_cast<T *>(a.dh0)[of] = convert_to_storage<T>(dh);
            static_cast<T *>(a.dc0)[of] = convert_to_storage<T>(s.dc[of_all]);
        } else {
            static_cast<float *>(a.carry)[of] = dh;
            static_cast<float *>(a.carry)[states + of] = s.dc[of_all];
        }
    }
}

/* Computes one chunk of one step. Parts of dh are written before the first barrier and read after
 * it; the operand is written before the second barrier and read after it. False when a wait gave
 * up. */
template <class Math, class Tile>
__device__ inline bool backward_step(const lb_fused_backward_args &a,
                                     backward_thread<Math, Tile> &t,
                                     const backward_shared<Math, Tile> &s, int step, int chunk)
{
    int state = a.to - step; /* the state that this step computes */
    if (state > 1 && !collect_sums<Math, Tile>(t, s, state - 1, chunk, step))
        return false;
    if (state == 1)
        __syncthreads(); /* the operand of the chunk before has been read */
    step_cells<Math, Tile>(a, t, s, step, chunk);
    __syncthreads();
    int next = chunk + 1 < t.place.chunks ? chunk + 1 : 0;
    if (step - (next == 0) >= a.from)
        load_inputs<Math, Tile>(a, t, s, step - (next == 0), next);
    multiply<Math, Tile>(t, s, state, chunk);
    return true;
}

template <class Math, class Tile>
__device__ inline void backward_run(const lb_grid_backward_args &g)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    using thread = backward_thread<Math, Tile>;
    const lb_fused_backward_args &a = g.layer;
    thread t;
    t.place = find_place<Tile>(g);
    const block_place &p = t.place;
    backward_shared<Math, Tile> s(memory, p.chunks);
    t.wait = {a.fault, g.spin_limit};
    t.exchange = static_cast<unsigned char *>(a.scratch) + static_cast<size_t>(p.group) * 2 *
                                                               p.chunks * p.blocks * p.blocks *
                                                               thread::quads * 16;
    size_t warp = static_cast<size_t>(p.direction * p.blocks + p.rank) * Tile::warps + p.warp;
    t.weights.load(static_cast<const uint4 *>(a.weights) + warp * Tile::fragments * lanes,
                   s.weights + p.warp * Tile::spilled * lanes, p.lane);
    load_state<Math, Tile>(a, p, s);
    if (threadIdx.x == 0)
        *s.gave_up = 0;
    load_inputs<Math, Tile>(a, t, s, a.to - 1, 0);
    for (int step = a.to - 1; step >= a.from; step--)
        for (int chunk = 0; chunk < p.chunks; chunk++)
            if (!backward_step<Math, Tile>(a, t, s, step, chunk))
                return;
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        if (!collect_sums<Math, Tile>(t, s, a.to - a.from, chunk, a.from))
            return;
        store_state<Math, Tile>(a, p, s, chunk);
        __syncthreads(); /* the parts have been read */
    }
}

/* fused_grid_backward_kernel: computes the gradients of the pre-activations of steps [from, to) and
 * of the initial state from dy and from what the training forward wrote.
 * lb_fused_backward_args has the shapes.
 *   grid (ceil(H / units), groups, directions), block (32 * warps); all blocks must be resident.
 *   Dynamic shared memory: lb_grid_backward_shared.
 *   Cost per step, block and chunk: the flops of the forward kernel; it sends 4 * H * columns bytes
 *   through the second-level cache and receives as many. Per cell it reads 26 bytes of global
 *   memory and writes 8.
 * Where shared memory is too small for one chunk, its body is empty. */
template <class Math, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    fused_grid_backward_kernel(lb_grid_backward_args a)
{
    using shared = backward_shared<Math, Tile>;
    if constexpr (shared::bytes + shared::chunk_bytes <= shared_limit)
        backward_run<Math, Tile>(a);
}

} // namespace lb_grid

#endif

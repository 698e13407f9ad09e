/* The backward grid kernel: the gradients of the pre-activations of a layer's whole sequence in one
 * launch. Transposed weights stay in registers and shared memory, and blocks exchange partial sums
 * of dh through the L2 cache. Matrix products over all steps compute dW, dx and db afterwards. */
#ifndef LB_GRID_BACKWARD_CUH
#define LB_GRID_BACKWARD_CUH

#include "cuda/fused/grid/grid.cuh"

namespace lb_grid
{

/* Dynamic shared memory of a block; lb_grid_shared returns its size. */
template <class Math, class Tile> struct backward_shared {
    static constexpr int packets = 4 * Tile::units / deep<Math>; /* of the block's gate gradients */
    static constexpr int operand_bytes = packets * Tile::eights * slice_bytes;
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

/* ---- Messages ---------------------------------------------------------------------------------
 *
 * A message has four partial sums of dh, which a lane has after multiplying a row tile: two
 * neighbouring units of two neighbouring columns, or in f32 and TF32 one unit of four columns. What
 * a block sends to another block in one state is an array of messages. A message's index there is
 * its slot. */

constexpr uint32_t last_bit = 1; /* of a message's word that has an epoch */

/* What rounding to a 16-bit type needs. digits: its significant bits; smallest: its smallest normal
 * number; largest: a power of two above all finite numbers, or in bf16 the largest for which
 * round_to_even stays within f32. Sums travel multiplied by `scale`: in f16 they are several times
 * smaller than the gradients of gates that they come from, and 8 keeps them from falling below the
 * normal numbers before those do. */
template <class T> struct sum_format;

template <> struct sum_format<__half> {
    static constexpr int digits = 11;
    static constexpr float smallest = 0x1p-14f, largest = 0x1p16f, scale = 8;
};
template <> struct sum_format<__nv_bfloat16> {
    static constexpr int digits = 8;
    static constexpr float smallest = 0x1p-126f, largest = 0x1p104f, scale = 1;
};

/* How sums of 16-bit types travel: rounded to the type, two units of two columns in 8 bytes, which
 * are one access. The last bit of the first sum is the epoch, so that this sum has one bit less.
 * 16 slots are four pairs of units, for each of four pairs of columns: a line of 128 bytes, of
 * which one or two batch rows use one sector. */
template <class T> struct message {
    using format = sum_format<T>;
    static constexpr int words = 2, units = 2, columns = 2;
    static constexpr float scale = format::scale;

    template <class Tile> static __device__ inline int slot_of(int own, int column)
    {
        return (column / 8 * (Tile::units / 8) + own / 8) * 16 + column % 8 / 2 * 4 + own % 8 / 2;
    }
    template <class Tile> static __device__ inline int column_of(int slot)
    {
        return slot / (2 * Tile::units) * 8 + slot / 4 % 4 * 2;
    }
    /* Returns where the sums of a slot lie in shared memory: such that the cells of a warp, which
     * are four units of 8 columns, read them from different banks. */
    static __device__ inline int part_of(int slot)
    {
        return slot ^ (slot / 4 & 2);
    }

    /* Rounds to the nearest number of T whose last bit is 0, ties to even. To add and subtract 1.5
     * times a power of two rounds to multiples of 2^-23 of that power, and leaves infinite values
     * and NaN what they are. In bf16 it leaves the last bit to be cut off from 2^105 on. */
    static __device__ inline float round_to_even(float v)
    {
        constexpr float above = 1.5f * (1 << (25 - format::digits));
        float power = __uint_as_float(__float_as_uint(v) & 0x7f800000u);
        power = fminf(fmaxf(power, format::smallest), format::largest);
        return __fmaf_rn(power, -above, __fmaf_rn(power, above, v));
    }

    using packed = uint64_t;
    static __device__ inline packed pack(const float (&four)[4], uint32_t epoch)
    {
        uint32_t first = bits_of_pair<T>(round_to_even(four[0] * scale), four[1] * scale);
        uint64_t second = bits_of_pair<T>(four[2] * scale, four[3] * scale);
        return second << 32 | ((first & ~last_bit) | epoch); /* a NaN may have its last bit set */
    }
    static __device__ inline void store(unsigned char *to, packed bits)
    {
        lb_ptx::store_relaxed<scope::gpu>(reinterpret_cast<uint64_t *>(to), bits);
    }

    /* Returns the sums that a message has. */
    static __device__ inline float4 take(const uint32_t (&words)[2], uint32_t epoch)
    {
        uint32_t first = words[0] ^ epoch;
        return make_float4(real_of(first), real_of(first >> 16), real_of(words[1]),
                           real_of(words[1] >> 16));
    }

    static __device__ inline float real_of(uint32_t bits)
    {
        union {
            uint16_t bits;
            T value;
        } u = {static_cast<uint16_t>(bits)};
        return convert_to_real(u.value);
    }
};

/* How sums travel in f32: one unit of four columns in 16 bytes, which are four accesses. The last
 * bit of each sum is its epoch, which the sum gives up. */
template <> struct message<float> {
    static constexpr int words = 4, units = 1, columns = 4;
    static constexpr float scale = 1;

    template <class Tile> static __device__ inline int slot_of(int own, int column)
    {
        return (column / 8 * Tile::units + own) * 2 + column % 8 / 4;
    }
    template <class Tile> static __device__ inline int column_of(int slot)
    {
        return slot / (2 * Tile::units) * 8 + slot % 2 * 4;
    }
    static __device__ inline int part_of(int slot)
    {
        return slot;
    }

    struct packed {
        uint32_t words[4];
    };
    static __device__ inline packed pack(const float (&four)[4], uint32_t epoch)
    {
        packed p;
        for (int e = 0; e < 4; e++)
            p.words[e] = (__float_as_uint(four[e]) & ~last_bit) | epoch;
        return p;
    }
    static __device__ inline void store(unsigned char *to, const packed &p)
    {
        lb_ptx::store_relaxed4<scope::gpu>(to, p.words);
    }

    static __device__ inline float4 take(const uint32_t (&words)[4], uint32_t epoch)
    {
        return make_float4(__uint_as_float(words[0] ^ epoch), __uint_as_float(words[1] ^ epoch),
                           __uint_as_float(words[2] ^ epoch), __uint_as_float(words[3] ^ epoch));
    }
};

/* What a thread keeps from step to step. Steps go from to - 1 down to from. */
template <class Math, class Tile> struct backward_thread {
    using message = lb_grid::message<typename Math::stored>;
    static constexpr int quads = Tile::cells / 4; /* messages from each block to each other */
    static constexpr int message_bytes = 4 * message::words;
    static constexpr int shares = Tile::threads / quads;
    static constexpr int window = 8; /* messages that a thread requests at the same time */
    static constexpr bool asks_early = message::words == 2; /* f32 has no registers left for it */
    static_assert(Tile::threads % quads == 0, "all threads collect");
    block_place place;
    waiting wait;
    unsigned char *exchange; /* this group's [2, chunks, to, from, quads] messages */
    stationary<Tile> weights;
    cell_inputs<typename Math::stored> next[Tile::cells_thread]; /* of the next chunk */
    requests<window, last_bit, message::words> early;            /* of sums */
    bool asked = false; /* whether `early` has been requested for the next chunk */

    /* Returns the address of the sums from block `from` to block `to`. */
    __device__ inline unsigned char *sums(int state, int chunk, int to, int from) const
    {
        size_t buffer = state % 2 * place.chunks + chunk;
        return exchange +
               ((buffer * place.blocks + to) * place.blocks + from) * quads * message_bytes;
    }
};

/* ---- Sums of dh ------------------------------------------------------------------------------ */

/* The messages that a thread reads at the same time: of blocks first, first + shares and so on. */
template <class Math, class Tile> struct message_window {
    using thread = backward_thread<Math, Tile>;
    const unsigned char *base;
    int first, blocks;

    __device__ inline message_window(const thread &t, int state, int chunk, int first_block)
        : first(first_block), blocks(t.place.blocks)
    {
        int slot = threadIdx.x % thread::quads;
        base = t.sums(state, chunk, t.place.rank, first) + slot * t.message_bytes;
    }
    __device__ inline int from(int n) const
    {
        return first + n * thread::shares;
    }
    __device__ inline const unsigned char *operator()(int n) const
    {
        return base + n * thread::shares * thread::quads * thread::message_bytes;
    }
    template <class Requests> __device__ inline void request(Requests &sums, int state) const
    {
        sums = Requests(epoch_of(state));
        for (int n = 0; n < thread::window; n++)
            sums.wanted |= from(n) < blocks ? 1u << n : 0;
        sums.load(0, *this);
    }
};

/* Whether this thread's slot of a chunk has a column that is a batch row. */
template <class Math, class Tile>
__device__ inline bool has_columns(const backward_thread<Math, Tile> &t, int chunk)
{
    using thread = backward_thread<Math, Tile>;
    return thread::message::template column_of<Tile>(threadIdx.x % thread::quads) <
           live_columns<Tile>(t.place, chunk);
}

/* Requests the sums of a chunk before the product of the one before it: what has arrived by then
 * is read meanwhile, and what has not is requested again by collect_share. */
template <class Math, class Tile>
__device__ inline void ask_early(backward_thread<Math, Tile> &t, int state, int chunk)
{
    using thread = backward_thread<Math, Tile>;
    int share = threadIdx.x / thread::quads;
    t.asked = true;
    if (share < t.place.blocks && has_columns<Math, Tile>(t, chunk))
        message_window<Math, Tile>(t, state, chunk, share).request(t.early, state);
}

/* Adds the sums for this block's units from this thread's share of the blocks, in the order of
 * blocks and each as soon as it has arrived, into parts. False when a wait gave up. */
template <class Math, class Tile>
__device__ inline bool collect_share(backward_thread<Math, Tile> &t, int state, int chunk, int step,
                                     float4 *parts)
{
    using thread = backward_thread<Math, Tile>;
    const block_place &p = t.place;
    using message = typename thread::message;
    int share = threadIdx.x / thread::quads;
    bool live = has_columns<Math, Tile>(t, chunk);
    auto &sums = t.early;
    float4 sum = make_float4(0, 0, 0, 0);
    for (int first = share; first < p.blocks && live; first += thread::window * thread::shares) {
        message_window<Math, Tile> messages(t, state, chunk, first);
        if (!thread::asks_early || !t.asked)
            messages.request(sums, state);
        t.asked = false;
#pragma unroll
        for (int n = 0; n < thread::window; n++) {
            if (!sums.await(n, t.wait, p.first_block + messages.from(n), step, messages))
                return false;
            add(sum, message::take(sums.words[n], sums.epoch));
        }
    }
    t.asked = false;
    parts[message::part_of(threadIdx.x)] = sum;
    return true;
}

/* Brings all parts of a chunk's dh to shared memory. False, for the whole block, when a wait gave
 * up. */
template <class Math, class Tile>
__device__ inline bool collect_sums(backward_thread<Math, Tile> &t,
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
    using message = typename thread::message;
    int part = message::part_of(message::template slot_of<Tile>(c.own, c.column));
    int in_message = c.own % message::units * message::columns + c.column % message::columns;
    const float *of = reinterpret_cast<const float *>(parts + part) + in_message;
    float sum = 0;
#pragma unroll
    for (int share = 0; share < thread::shares; share++)
        sum += of[share * thread::quads * 4];
    return sum * (1 / message::scale);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

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
        cell_inputs<T> &in = t.next[n];
        size_t at = sequence_index(a, direction, length, step, c.row, c.unit);
        in.gates = __ldcs(static_cast<const float4 *>(a.gates) + at);
        in.dy = static_cast<const T *>(a.dy)[at];
        in.c = cells[at];
        if (step > 0)
            in.c_prev = cells[sequence_index(a, direction, length, step - 1, c.row, c.unit)];
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
    using T = typename Math::stored;
    constexpr int gate_bytes = 4 * sizeof(T);
    int first = 4 * c.own; /* of the depth */
    unsigned char *slice =
        operand + (first / deep<Math> * Tile::eights + c.column / 8) * slice_bytes;
    int lane = c.column % 8 * 4 + first % deep<Math> / Math::lane_units;
    unsigned char *to = slice + place_in_slice(lane) + first % Math::lane_units / 4 * gate_bytes;
    size_t at = 0;
    if (length > 0)
        at = sequence_index(a, p.direction, length, step, c.row, c.unit);
    if constexpr (Math::word_units == 2) {
        uint2 packed = make_uint2(bits_of_pair<T>(d.x, d.y), bits_of_pair<T>(d.z, d.w));
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

/* ---- Matrix product -------------------------------------------------------------------------- */

/* Some row tiles of a warp, whose products are computed side by side: each is a chain of mma that
 * wait for one another. While one group is sent, the next one is multiplied. */
template <class Math, class Tile> struct tile_group {
    static constexpr int packets = backward_shared<Math, Tile>::packets;
    static constexpr int row_tiles = Tile::fragments / 2 / packets; /* per warp */
    static constexpr int count = Math::staged || Tile::eights > 1 || row_tiles % 2 ? 1 : 2;
    static constexpr bool ahead = !Math::staged; /* f32 has no registers left for a second group */
    typename Math::sums sum[count][Tile::eights];

    /* Multiplies own gate gradients by the transposed weights of the group of row tile `first`. */
    __device__ inline void
    multiply(const stationary<Tile> &weights, int first,
             const typename Math::operand (&gradients)[packets][Tile::eights])
    {
        for (int n = 0; n < count; n++)
            for (int i = 0; i < Tile::eights; i++)
                sum[n][i] = {};
        for (int k = 0; k < packets; k++)
            for (int n = 0; n < count; n++) {
                uint32_t w[2][4];
                get_pair(weights, (first + n) * packets + k, w);
                for (int i = 0; i < Tile::eights; i++)
                    Math::multiply(sum[n][i], w, gradients[k][i]);
            }
    }
};

/* Where a lane sends the sums of its warp's row tiles, one after the other, to the blocks that own
 * their 16 units. Rows g and g + 8, of which a lane has sums, are units 2 g and 2 g + 1. */
template <class Math, class Tile> struct sending {
    using message = lb_grid::message<typename Math::stored>;
    /* Units from one row tile of a warp to the next. */
    static constexpr int apart = Tile::warps * 16;
    static constexpr int eight_bytes = 2 * Tile::units * 4 * message::words; /* of 8 columns */
    static_assert(apart % Tile::units == 0, "all row tiles of a warp have the same slots");
    unsigned char *to;
    int step; /* bytes from one row tile to the next */
    int unit, units, columns;
    uint32_t epoch;

    __device__ inline sending(const backward_thread<Math, Tile> &t, int state, int chunk)
    {
        const block_place &p = t.place;
        int column = p.lane % 4 * 2 / message::columns * message::columns;
        unit = p.warp * 16 + p.lane / 4 * 2 + (message::units == 1 ? p.lane % 2 : 0);
        units = p.blocks * Tile::units;
        columns = live_columns<Tile>(p, chunk) - column;
        epoch = epoch_of(state);
        to = t.sums(state, chunk, unit / Tile::units, p.rank) +
             message::template slot_of<Tile>(unit % Tile::units, column) * t.message_bytes;
        step = apart / Tile::units * p.blocks * t.quads * t.message_bytes;
    }

    /* Sends the sums of a group, whose first row tile of this warp is `first`. */
    __device__ inline void send(const tile_group<Math, Tile> &group, int lane, int first) const
    {
        for (int n = 0; n < group.count; n++) {
            for (int i = 0; i < Tile::eights; i++) {
                float four[4];
                group.sum[n][i].finish(four, lane);
                if (message::units == 1)
                    gather_columns(four, lane, four);
                typename message::packed bits = message::pack(four, epoch);
                if (8 * i < columns && unit + (first + n) * apart < units)
                    message::store(to + (first + n) * step + i * eight_bytes, bits);
            }
        }
    }
};

/* Multiplies own gate gradients by the transposed weights of all units, and sends the sums. */
template <class Math, class Tile>
__device__ inline void multiply(const backward_thread<Math, Tile> &t,
                                const backward_shared<Math, Tile> &s, int state, int chunk)
{
    using group = tile_group<Math, Tile>;
    const block_place &p = t.place;
    int row_tiles = (p.blocks * Tile::units + 15) / 16;
    typename Math::operand gradients[group::packets][Tile::eights];
    for (int k = 0; k < group::packets; k++)
        for (int i = 0; i < Tile::eights; i++)
            gradients[k][i] = Math::take(s.dgates + (k * Tile::eights + i) * slice_bytes, p.lane);
    const sending<Math, Tile> sums(t, state, chunk);
    group now;
    if constexpr (group::ahead) {
        if (p.warp >= row_tiles)
            return;
        int first = 0;
        now.multiply(t.weights, 0, gradients);
#pragma unroll
        for (int m = group::count; m < group::row_tiles; m += group::count) {
            if (m * Tile::warps + p.warp >= row_tiles)
                break;
            group next;
            next.multiply(t.weights, m, gradients);
            sums.send(now, p.lane, first);
            now = next, first = m;
        }
        sums.send(now, p.lane, first);
    } else {
#pragma unroll
        for (int m = 0; m < group::row_tiles; m++) {
            if (m * Tile::warps + p.warp >= row_tiles)
                continue;
            now.multiply(t.weights, m, gradients);
            sums.send(now, p.lane, m);
        }
    }
}

/* ---- Run ------------------------------------------------------------------------------------- */

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
    bool first = step == a.to - 1;
    int state = a.seq_len - step; /* the state that this step computes */
    if (!first && !collect_sums<Math, Tile>(t, s, state - 1, chunk, step))
        return false;
    if (first)
        __syncthreads(); /* the operand of the chunk before has been read */
    step_cells<Math, Tile>(a, t, s, step, chunk);
    __syncthreads();
    int next = chunk + 1 < t.place.chunks ? chunk + 1 : 0;
    int next_step = step - (next == 0);
    if (next_step >= a.from) {
        load_inputs<Math, Tile>(a, t, s, next_step, next);
        if (t.asks_early && t.place.chunks > 1 && next_step < a.to - 1)
            ask_early<Math, Tile>(t, a.seq_len - next_step - 1, next);
    }
    multiply<Math, Tile>(t, s, state, chunk);
    return true;
}

template <class Math, class Tile>
__device__ inline void backward_run(const lb_fused_backward_args &a)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    using thread = backward_thread<Math, Tile>;
    thread t;
    t.place = find_place<Tile>(a);
    const block_place &p = t.place;
    backward_shared<Math, Tile> s(memory, p.chunks);
    t.wait = {a.fault, a.spin_limit};
    t.exchange = static_cast<unsigned char *>(a.scratch) +
                 static_cast<size_t>(p.group) * 2 * p.chunks * p.blocks * p.blocks * thread::quads *
                     thread::message_bytes;
    size_t block_of_all = p.direction * p.blocks + p.rank;
    t.weights.load(a.weights, block_of_all * Tile::warps + p.warp, p.warp, p.lane, s.weights);
    t.weights.settle(p.lane);
    load_state<Math, Tile>(a, p, s);
    if (threadIdx.x == 0)
        *s.gave_up = 0;
    load_inputs<Math, Tile>(a, t, s, a.to - 1, 0);
    for (int step = a.to - 1; step >= a.from; step--)
        for (int chunk = 0; chunk < p.chunks; chunk++)
            if (!backward_step<Math, Tile>(a, t, s, step, chunk))
                return;
    for (int chunk = 0; chunk < p.chunks; chunk++) {
        if (!collect_sums<Math, Tile>(t, s, a.seq_len - a.from, chunk, a.from))
            return;
        store_state<Math, Tile>(a, p, s, chunk);
        __syncthreads(); /* the parts have been read */
    }
}

/* fused_grid_backward_kernel: computes the gradients of the pre-activations of steps [from, to) and
 * of the initial state from dy and from what the training forward wrote.
 * lb_fused_backward_args has the shapes.
 *   grid (ceil(H / units), groups, directions), block (32 * warps); all blocks must be resident.
 *   Dynamic shared memory: lb_grid_shared.
 *   Cost per step, block and chunk: the flops of the forward kernel; it sends 4 * H * columns bytes
 *   through the L2 cache, half as many in 16-bit types, and receives as many. Per cell it reads 26
 *   bytes of global memory and writes 8.
 * Where shared memory is too small for one chunk, its body is empty. */
template <class Math, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    fused_grid_backward_kernel(lb_fused_backward_args a)
{
    if constexpr (lb_grid_shared(&Tile::figures, Math::figure, true, 1) <= shared_limit)
        backward_run<Math, Tile>(a);
}

} // namespace lb_grid

#endif

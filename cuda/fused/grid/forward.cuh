/* The forward grid kernel: the recurrence of a layer's whole sequence in one launch. Weights stay
 * in registers and shared memory, and blocks exchange h through the L2 cache. */
#ifndef LB_GRID_FORWARD_CUH
#define LB_GRID_FORWARD_CUH

#include "cuda/fused/grid/grid.cuh"

namespace lb_grid
{

/* Dynamic shared memory of a block; lb_grid_shared returns its size. */
template <class Math, class Tile> struct forward_shared {
    static constexpr int sums = Tile::warps * Tile::cells; /* per buffer */
    static constexpr int staged = Math::staged ? Tile::warps * Tile::window * Tile::eights : 0;
    uint4 *weights;       /* [warps, spilled, 32] */
    float4 *partial;      /* [2, warps, cells] gates from a warp's part of the depth */
    float4 *pre;          /* [cells] of the next chunk; a thread reads only what it copied itself */
    unsigned char *stage; /* [warps, window, eights] slices */
    uint32_t *gave_up;    /* [2] whether a warp of this block gave up */
    int *lengths;         /* [chunks, cells]; 0: the cell is padding */
    float *c;             /* [chunks, cells] */

    __device__ inline forward_shared(unsigned char *at, int chunks)
    {
        weights = reinterpret_cast<uint4 *>(at);
        partial = reinterpret_cast<float4 *>(weights + Tile::warps * Tile::spilled * lanes);
        pre = partial + 2 * sums;
        stage = reinterpret_cast<unsigned char *>(pre + Tile::cells);
        gave_up = reinterpret_cast<uint32_t *>(stage + staged * slice_bytes);
        lengths = reinterpret_cast<int *>(gave_up + 2);
        c = reinterpret_cast<float *>(lengths + chunks * Tile::cells);
    }
};

template <class Math, class Tile> constexpr int ahead = lb_grid_ahead(&Tile::figures, Math::figure);

/* What a thread keeps from step to step. */
template <class Math, class Tile> struct forward_thread {
    block_place place;
    waiting wait;
    /* [2, chunks, packets, eights] slices: the copy that this block reads. */
    unsigned char *exchange;
    int units_sent; /* units of the group, with padding */
    stationary<Tile> weights;
    float4 pre[Tile::cells_thread];  /* with the bias, where Tile::roomy */
    float4 bias[Tile::cells_thread]; /* of the same cells in all chunks; where Tile::roomy */
    unsigned char *sent[Tile::cells_thread]; /* address of a cell's h, as sent_to returns it */
    /* Where Tile::roomy: bytes from `sent` to where h goes next; negative: h is not sent. */
    int sent_offset[Tile::cells_thread];

    __device__ inline int packets() const
    {
        return (units_sent + deep<Math> - 1) / deep<Math>;
    }
    /* Far below 2^31, because shared memory limits the number of chunks. */
    __device__ inline int copy_bytes() const
    {
        return 2 * place.chunks * packets() * Tile::eights * slice_bytes;
    }
    __device__ inline unsigned char *slice(int state, int chunk, int packet, int eight) const
    {
        int buffer = state % 2 * place.chunks + chunk;
        return exchange +
               static_cast<size_t>((buffer * packets() + packet) * Tile::eights + eight) *
                   slice_bytes;
    }
};

/* ---- Receiving h ----------------------------------------------------------------------------- */

/* Returns one unit of h before the first step of the launch: h0, or y as the previous launch wrote
 * it. Of a row that has ended it returns 0, which is not used. */
template <class T>
__device__ inline float first_h(const lb_fused_forward_args &a, int direction, int row, int unit)
{
    if (a.from == 0)
        return convert_to_real(static_cast<const T *>(a.h0)[state_index(a, direction, row, unit)]);
    int length = lb_recurrence::length_of(a, row);
    if (a.from >= length)
        return 0;
    return convert_to_real(
        static_cast<const T *>(a.y)[sequence_index(a, direction, length, a.from - 1, row, unit)]);
}

/* The same for this lane's part of a window of packets. */
template <class Math, class Tile>
__device__ inline void first_packets(const lb_fused_forward_args &a,
                                     const forward_thread<Math, Tile> &t, int chunk, int first,
                                     uint32_t (&words)[Tile::window * Tile::eights][4])
{
    using T = typename Math::stored;
    const block_place &p = t.place;
#pragma unroll
    for (int n = 0; n < Tile::window * Tile::eights; n++) {
        int packet = (first + n / Tile::eights) * Tile::warps + p.warp;
        int unit = packet * deep<Math> + p.lane % 4 * Math::lane_units;
        int column = n % Tile::eights * 8 + p.lane / 4;
        int row = p.first_row + chunk * Tile::columns + column;
        for (int e = 0; e < Math::lane_units; e++) {
            uint32_t &word = words[n][e / Math::word_units];
            float h = 0;
            if (row < p.first_row + p.rows && unit + e < a.hidden)
                h = first_h<T>(a, p.direction, row, unit + e);
            word = (e % Math::word_units ? word : 0) | Math::bits(h) << 16 * (e % Math::word_units);
        }
    }
}

/* This lane's part of a window of packets of h before a step. Each packet has `eights` slices of 8
 * columns. */
template <class Math, class Tile> struct window_of_h {
    static constexpr int count = Tile::window * Tile::eights;
    static constexpr uint32_t twice = Math::word_units == 2 ? 0x10001u : 1;
    static constexpr uint32_t spare = Math::spare * twice;
    const forward_thread<Math, Tile> &t;
    int first;
    const unsigned char *from; /* this lane's 16 bytes of the first slice */
    requests<count, spare> slices;

    __device__ inline explicit window_of_h(const forward_thread<Math, Tile> &thread)
        : t(thread), first(0), from(nullptr), slices(0)
    {
    }

    /* Turns to packets `first` to first + Tile::window - 1 of this warp, of the state before the
     * launch's first step, which is not read from the exchange. */
    __device__ inline void begin(const lb_fused_forward_args &a, int chunk, int first_packet)
    {
        first = first_packet;
        slices.wanted = slices.epoch = 0;
        first_packets<Math, Tile>(a, t, chunk, first, slices.words);
    }

    /* Turns to the same packets of a state that the group sends, which has the number of the step
     * that reads it. The words are still the old ones. */
    __device__ inline void turn_to(int state, int chunk, int first_packet)
    {
        const block_place &p = t.place;
        first = first_packet;
        from = t.slice(state, chunk, first * Tile::warps + p.warp, 0) + place_in_slice(p.lane);
        slices.epoch = epoch_of(state) * spare;
        slices.wanted = 0;
#pragma unroll
        for (int n = 0; n < count; n++) {
            int column = n % Tile::eights * 8 + p.lane / 4;
            bool sent = LB_FUSED_EXCHANGE && column < live_columns<Tile>(p, chunk) &&
                        unit(n) < t.units_sent;
            slices.wanted |= static_cast<uint32_t>(sent) << n;
        }
    }

    /* Waits until each block that sends packets of the window has sent one of its words. The
     * packets are requested only then: earlier requests would find nothing and delay later ones and
     * the stores that they wait for. False when the wait gave up. */
    __device__ inline bool listen(int step, int chunk) const
    {
        /* Blocks that send parts of one packet. */
        constexpr int senders = Tile::units < deep<Math> ? deep<Math> / Tile::units : 1;
        static_assert(Tile::window * senders <= lanes, "a lane listens to one block");
        const block_place &p = t.place;
        int packet = (first + p.lane / senders) * Tile::warps + p.warp;
        int in_packet = p.lane % senders * Tile::units, sent_unit = packet * deep<Math> + in_packet;
        bool listens = LB_FUSED_EXCHANGE && p.lane / senders < Tile::window &&
                       sent_unit < t.units_sent && live_columns<Tile>(p, chunk) > 0;
        const unsigned char *at = t.slice(step, chunk, listens ? packet : 0, 0) +
                                  chunk_in_slice(0, in_packet / Math::lane_units) * 16;
        int awaited = p.first_block + sent_unit / Tile::units;
        for (uint32_t round = 0;; round++) {
            uint32_t word = slices.epoch;
            if (listens)
                word = lb_ptx::load_relaxed<scope::gpu>(reinterpret_cast<const uint32_t *>(at));
            bool late = (word ^ slices.epoch) & spare;
            if (__all_sync(~0u, !late))
                return true;
            if (!__all_sync(~0u, !late || t.wait.goes_on(round, awaited, step)))
                return false;
        }
    }

    /* Requests packets q to `last` of the window. */
    __device__ inline void request(int q, int last)
    {
        const auto place = address();
#pragma unroll
        for (int n = 0; n < count; n++) {
            if (n / Tile::eights < q || n / Tile::eights > last)
                continue;
            for (int w = 0; w < 4; w++)
                slices.words[n][w] = slices.epoch;
            if (slices.wanted >> n & 1)
                lb_ptx::load_relaxed4<scope::gpu>(slices.words[n], place(n));
        }
    }

    /* Returns the first unit of slice n that this lane reads. */
    __device__ inline int unit(int n) const
    {
        int packet = (first + n / Tile::eights) * Tile::warps + t.place.warp;
        return packet * deep<Math> + t.place.lane % 4 * Math::lane_units;
    }

    __device__ inline auto address() const
    {
        const unsigned char *base = from;
        return [base](int n) {
            int slice = n / Tile::eights * Tile::warps * Tile::eights + n % Tile::eights;
            return base + slice * slice_bytes;
        };
    }

    /* Waits for packets q to `last` of the window. False when a wait of this warp gave up. */
    __device__ inline bool await(int q, int last, int step)
    {
        constexpr int blocks = Tile::warps * deep<Math> / Tile::units; /* from packet to packet */
        bool came = true;
#pragma unroll
        for (int n = 0; n < count; n++) {
            if (n / Tile::eights < q || n / Tile::eights > last)
                continue;
            int awaited = t.place.first_block + unit(0) / Tile::units + n / Tile::eights * blocks;
            if (!slices.await(n, t.wait, awaited, step, address()))
                came = false;
        }
        return __all_sync(~0u, came);
    }

    /* Returns word w of slice n, which came with `epoch`, as it was before it was sent. Where h was
     * NaN or infinite, this sets the highest bit of the exponent, which makes it NaN again. sent:
     * false for a launch's first state. */
    __device__ inline uint32_t take(int n, int w, uint32_t epoch, bool sent) const
    {
        uint32_t word = slices.words[n][w] ^ epoch;
        return word | ((word + (sent ? Math::above_one * twice : 0)) & spare);
    }
};

/* ---- Matrix product -------------------------------------------------------------------------- */

/* A warp's part of the sums over the depth, for all gates of own units and a chunk's columns. */
template <class Math, class Tile> struct warp_sums {
    static constexpr int tiles = Tile::rows * Tile::eights;
    /* Independent sums of the same tile, which hide the products' latency. */
    static constexpr int chains = tiles < 4 && !Math::staged ? 4 / tiles : 1;
    typename Math::sums of[chains][Tile::rows][Tile::eights];
};

/* A chunk of a step. */
struct turn {
    int step, chunk;
    bool early; /* its first packets are requested while the chunk before it is multiplied */
};

template <class Math, class Tile>
__device__ inline turn turn_after(const lb_fused_forward_args &a, const block_place &p,
                                  const turn &now)
{
    turn next = {now.step, now.chunk + 1, false};
    if (next.chunk == p.chunks)
        next.step++, next.chunk = 0;
    next.early = ahead<Math, Tile> && p.chunks > 1 && next.step > a.from && next.step < a.to;
    return next;
}

/* Adds the products of packet q of a window, whose first packet of this warp is `first`. */
template <class Math, class Tile>
__device__ inline void
multiply_packet(const forward_thread<Math, Tile> &t, const window_of_h<Math, Tile> &h, int first,
                int q, uint32_t epoch, bool sent, unsigned char *stage, warp_sums<Math, Tile> &sum)
{
    typename Math::operand b[Tile::eights];
    Math::receive([&](int i, int w) { return h.take(q * Tile::eights + i, w, epoch, sent); },
                  stage + q * Tile::eights * slice_bytes, t.place.lane, b);
    for (int m = 0; m < Tile::rows; m++) {
        uint32_t w[2][4];
        get_pair(t.weights, (first + q) * Tile::rows + m, w);
        for (int i = 0; i < Tile::eights; i++)
            Math::multiply(sum.of[q % sum.chains][m][i], w, b[i]);
    }
}

/* Computes a warp's part of the sums. With next.early it also requests the next chunk's first
 * window, into the registers of packets that have been multiplied. No test of a packet may follow
 * such a request, because the compiler makes it wait for all loads under way. False when a wait
 * gave up. */
template <class Math, class Tile>
__device__ inline bool multiply(const lb_fused_forward_args &a, const forward_thread<Math, Tile> &t,
                                window_of_h<Math, Tile> &h, const turn &now, const turn &next,
                                unsigned char *stage, warp_sums<Math, Tile> &sum)
{
    constexpr int last = Tile::window - 1;
#pragma unroll
    for (int first = 0; first < Tile::packets; first += Tile::window) {
        if (now.step == a.from) {
            h.begin(a, now.chunk, first);
        } else if (first > 0 || !now.early) {
            h.turn_to(now.step, now.chunk, first);
            if (!h.listen(now.step, now.chunk))
                return false;
            h.request(0, last);
        }
        uint32_t epoch = h.slices.epoch;
#pragma unroll
        for (int q = 0; q < Tile::window; q++) {
            if (q < 2 && !h.await(q, q == 0 ? 0 : last, now.step))
                return false;
            if (q == 1)
                trace(now.step, part::arrived);
            /* All lanes of the warp take the same branch. */
            if (LB_FUSED_PRODUCT && (first + q) * Tile::warps + t.place.warp < t.packets())
                multiply_packet(t, h, first, q, epoch, now.step > a.from, stage, sum);
            int done = q + 1; /* packets whose registers are free */
            if (!next.early || first + Tile::window < Tile::packets || done < ahead<Math, Tile>)
                continue;
            if (done == ahead<Math, Tile>)
                h.turn_to(next.step, next.chunk, 0);
            h.request(done == ahead<Math, Tile> ? 0 : q, q);
        }
    }
    return true;
}

/* Stores a warp's part of the sums in partial [cells]. */
template <class Math, class Tile>
__device__ inline void store_part(const forward_thread<Math, Tile> &t,
                                  const warp_sums<Math, Tile> &sum, float4 *partial)
{
    for (int m = 0; m < Tile::rows; m++) {
        for (int i = 0; i < Tile::eights; i++) {
            float d[4];
            sum.of[0][m][i].finish(d, t.place.lane);
            for (int chain = 1; chain < sum.chains; chain++) {
                float more[4];
                sum.of[chain][m][i].finish(more, t.place.lane);
                for (int e = 0; e < 4; e++)
                    d[e] += more[e];
            }
            partial[(m * Tile::eights + i) * lanes + t.place.lane] = gather_gates(d, t.place.lane);
        }
    }
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* Requests the pre-activations of a chunk before the wait for its h. */
template <class Math, class Tile>
__device__ inline void copy_pre(const lb_fused_forward_args &a, const forward_thread<Math, Tile> &t,
                                const forward_shared<Math, Tile> &s, int step, int chunk)
{
    for (int n = 0; n < Tile::cells_thread; n++) {
        int at = threadIdx.x + n * Tile::threads;
        if (at >= Tile::cells)
            continue;
        int length = s.lengths[chunk * Tile::cells + at];
        if (step >= length)
            continue;
        cell_place c = find_cell<Tile>(t.place, a.hidden, chunk, at);
        lb_ptx::copy_async<16>(
            s.pre + at, static_cast<const float4 *>(a.pre) +
                            sequence_index(a, t.place.direction, length, step, c.row, c.unit));
    }
    lb_ptx::copy_async_commit();
}

__device__ inline float4 bias_of(const lb_fused_forward_args &a, const block_place &p, int unit)
{
    return __ldg(static_cast<const float4 *>(a.bias) + p.direction * a.hidden + unit);
}

/* Waits for the pre-activations, and adds the bias where registers hold it: before the barrier,
 * because the time from the barrier to the sending of h is critical. A thread without an n-th cell
 * adds it too, to a number that nobody uses: a branch around the sum changes how all of the kernel
 * is scheduled. */
template <class Math, class Tile>
__device__ inline void take_pre(forward_thread<Math, Tile> &t, const forward_shared<Math, Tile> &s)
{
    lb_ptx::copy_async_wait<0>();
    for (int n = 0; n < Tile::cells_thread; n++) {
        int at = threadIdx.x + n * Tile::threads;
        if (at < Tile::cells)
            t.pre[n] = s.pre[at];
        if (Tile::roomy)
            add(t.pre[n], t.bias[n]);
    }
}

/* Returns the address of a cell's h in the first copy of state 0 of chunk 0. */
template <class Math, class Tile>
__device__ inline unsigned char *sent_to(const forward_thread<Math, Tile> &t, const cell_place &c)
{
    int lane = c.column % 8 * 4 + c.unit % deep<Math> / Math::lane_units;
    int word = c.unit % Math::lane_units / Math::word_units;
    return t.slice(0, 0, c.unit / deep<Math>, c.column / 8) + place_in_slice(lane) + word * 4 -
           t.place.rank % LB_GRID_COPIES * t.copy_bytes();
}

/* Computes what is equal in all steps and chunks for this thread's cells, where Tile::roomy. */
template <class Math, class Tile>
__device__ inline void prepare_cells(const lb_fused_forward_args &a, forward_thread<Math, Tile> &t)
{
    for (int n = 0; n < Tile::cells_thread && Tile::roomy; n++) {
        cell_place c = find_cell<Tile>(t.place, a.hidden, 0, threadIdx.x + n * Tile::threads);
        t.sent[n] = sent_to(t, c);
        t.bias[n] = make_float4(0, 0, 0, 0);
        if (c.at < Tile::cells && c.unit < a.hidden)
            add(t.bias[n], bias_of(a, t.place, c.unit)); /* the sum waits here, not in each step */
    }
}

/* Whether a thread sends h of a cell after a step. Nobody sends h of a column without a batch row
 * or of the sequence's last step. In 2-byte types the lane of an even unit sends h of the odd unit
 * after it too. Units that are padding are sent, because packets are read whole. */
template <class Math, class Tile>
__device__ inline bool is_sent(const lb_fused_forward_args &a, const forward_thread<Math, Tile> &t,
                               const cell_place &c, int step, int chunk)
{
    return LB_FUSED_EXCHANGE && step + 1 < a.seq_len &&
           c.column < live_columns<Tile>(t.place, chunk) &&
           (Math::word_units == 1 || c.own % 2 == 0);
}

/* Returns the bytes from the address that sent_to returns to that of a state and chunk. */
template <class Math, class Tile>
__device__ inline ptrdiff_t sent_offset(const forward_thread<Math, Tile> &t, int state, int chunk)
{
    return t.slice(state, chunk, 0, 0) - t.exchange;
}

/* Finds where h goes while that of other blocks is on its way, if registers are left for it. A lane
 * hands the number to itself, because the compiler would move the computation to its use, behind
 * the barrier, but moves no shuffle. */
template <class Math, class Tile>
__device__ inline void prepare_sending(const lb_fused_forward_args &a,
                                       forward_thread<Math, Tile> &t, const turn &now)
{
    for (int n = 0; n < Tile::cells_thread && Tile::roomy; n++) {
        cell_place c =
            find_cell<Tile>(t.place, a.hidden, now.chunk, threadIdx.x + n * Tile::threads);
        bool sends = is_sent(a, t, c, now.step, now.chunk);
        auto offset = static_cast<int>(sent_offset(t, now.step + 1, now.chunk)); /* below 2^31 */
        t.sent_offset[n] = __shfl_sync(~0u, sends ? offset : -1, t.place.lane);
    }
}

/* Returns h as it is sent, in words of 32 bits, as the reader reads them; in 2-byte types with that
 * of the next unit. h lies in [-1, 1], so that the highest bit of the exponent is free for the
 * epoch; NaN and infinity are sent as a value that no h can have. */
template <class Math> __device__ inline uint32_t word_of(float h, int state)
{
    uint32_t bits = Math::bits(h), size = bits & (Math::spare * 2 - 1);
    if ((size | (size + Math::above_one)) & Math::spare)
        bits = Math::spare - 1;
    bits ^= epoch_of(state) * Math::spare;
    if (Math::word_units == 2)
        bits |= __shfl_xor_sync(~0u, bits, 8) << 16;
    return bits;
}

/* Sends a word to the same place of all copies. */
template <class Math, class Tile>
__device__ inline void send_word(const forward_thread<Math, Tile> &t, unsigned char *to,
                                 uint32_t word)
{
    for (int copy = 0; copy < LB_GRID_COPIES; copy++)
        lb_ptx::store_relaxed<scope::gpu>(reinterpret_cast<uint32_t *>(to + copy * t.copy_bytes()),
                                          word);
}

template <class Math, class Tile>
__device__ inline void store_cell(const lb_fused_forward_args &a, int direction,
                                  const cell_place &cell, int length, int step, const float4 &g,
                                  float c, float h)
{
    using T = typename Math::stored;
    size_t at = sequence_index(a, direction, length, step, cell.row, cell.unit);
    static_cast<T *>(a.y)[at] = convert_to_storage<T>(h);
    if (step >= length)
        return;
    if (a.cells) {
        __stcs(static_cast<float4 *>(a.gates) + at, g);
        __stcs(static_cast<float *>(a.cells) + at, c);
    }
    if (step == length - 1) {
        size_t of = state_index(a, direction, cell.row, cell.unit);
        static_cast<T *>(a.hn)[of] = convert_to_storage<T>(h);
        static_cast<T *>(a.cn)[of] = convert_to_storage<T>(c);
    }
}

/* Computes a chunk's cells from partial [warps, cells], whose parts are always added in the same
 * order. It sends the new h before it stores anything else. */
template <class Math, class Tile>
__device__ inline void
step_cells(const lb_fused_forward_args &a, const forward_thread<Math, Tile> &t,
           const forward_shared<Math, Tile> &s, const float4 *partial, int step, int chunk)
{
    for (int n = 0; n < Tile::cells_thread; n++) {
        int at = threadIdx.x + n * Tile::threads;
        if (at >= Tile::cells)
            return; /* the whole warp */
        cell_place cell = find_cell<Tile>(t.place, a.hidden, chunk, at);
        int length = s.lengths[chunk * Tile::cells + at];
        float &kept = s.c[chunk * Tile::cells + at];
        float4 g = t.pre[n];
        if (!Tile::roomy && length > 0)
            add(g, bias_of(a, t.place, cell.unit));
#pragma unroll
        for (int w = 0; w < Tile::warps; w++)
            add(g, partial[w * Tile::cells + at]);
        g.x = Math::sigmoid(g.x), g.y = Math::sigmoid(g.y);
        g.z = Math::tangent(g.z), g.w = Math::sigmoid(g.w);
        float c = g.y * kept + g.x * g.z;
        float h = step < length ? g.w * Math::tangent(c) : 0.0f;
        uint32_t word = word_of<Math>(h, step + 1);
        if (Tile::roomy && t.sent_offset[n] >= 0)
            send_word(t, t.sent[n] + t.sent_offset[n], word);
        if (!Tile::roomy && is_sent(a, t, cell, step, chunk))
            send_word(t, sent_to(t, cell) + sent_offset(t, step + 1, chunk), word);
        trace(step, part::sent);
        if (length == 0)
            continue;
        kept = c; /* past a row's end the value is not used */
        store_cell<Math, Tile>(a, t.place.direction, cell, length, step, g, c, h);
    }
}

/* ---- Run ------------------------------------------------------------------------------------- */

template <class Math, class Tile>
__device__ inline void load_state(const lb_fused_forward_args &a, const block_place &p,
                                  const forward_shared<Math, Tile> &s)
{
    using T = typename Math::stored;
    for (int i = threadIdx.x; i < p.chunks * Tile::cells; i += Tile::threads) {
        cell_place cell = find_cell<Tile>(p, a.hidden, i / Tile::cells, i % Tile::cells);
        s.lengths[i] = length_of(a, cell);
        s.c[i] = 0;
        if (s.lengths[i] <= a.from)
            continue;
        size_t at = state_index(a, p.direction, cell.row, cell.unit);
        s.c[i] = a.from > 0 ? static_cast<const float *>(a.carry)[at]
                            : convert_to_real(static_cast<const T *>(a.c0)[at]);
    }
}

/* Stores c for the next launch. The threads that store c are not those that computed it, which
 * saves registers and needs a barrier. */
template <class Math, class Tile>
__device__ inline void store_carry(const lb_fused_forward_args &a, const block_place &p,
                                   const forward_shared<Math, Tile> &s)
{
    __syncthreads();
    for (int i = threadIdx.x; i < p.chunks * Tile::cells; i += Tile::threads) {
        cell_place cell = find_cell<Tile>(p, a.hidden, i / Tile::cells, i % Tile::cells);
        if (s.lengths[i] > a.to)
            static_cast<float *>(a.carry)[state_index(a, p.direction, cell.row, cell.unit)] =
                s.c[i];
    }
}

/* Reads what the thread keeps, and the first pre-activations. */
template <class Math, class Tile>
__device__ inline void begin(const lb_fused_forward_args &a, forward_thread<Math, Tile> &t,
                             const forward_shared<Math, Tile> &s)
{
    const block_place &p = t.place;
    t.wait = {a.fault, a.spin_limit};
    t.units_sent = p.blocks * Tile::units;
    t.exchange =
        static_cast<unsigned char *>(a.scratch) +
        static_cast<size_t>(p.group * LB_GRID_COPIES + p.rank % LB_GRID_COPIES) * t.copy_bytes();
    size_t block_of_all = p.direction * p.blocks + p.rank;
    t.weights.load(a.weights, block_of_all * Tile::warps + p.warp, p.warp, p.lane, s.weights);
    prepare_cells<Math, Tile>(a, t);
    load_state<Math, Tile>(a, p, s);
    if (threadIdx.x < 2)
        s.gave_up[threadIdx.x] = 0;
    for (int i = threadIdx.x; i < Tile::cells; i += Tile::threads)
        s.pre[i] = make_float4(0, 0, 0, 0);   /* stays where a row has no such step */
    copy_pre<Math, Tile>(a, t, s, a.from, 0); /* reads only lengths that this thread wrote */
}

/* Computes one chunk of one step: the matrix product with h, which it waits for, then the cells. It
 * sends the new h before it stores anything else. Parts are written before the barrier and read
 * after it, in two buffers in turn. False, for the whole block, when a wait gave up. That is tested
 * last, so that the test does not delay the cells; such a block has then sent one wrong h, and the
 * fault record makes the call fail. */
template <class Math, class Tile>
__device__ inline bool forward_step(const lb_fused_forward_args &a, forward_thread<Math, Tile> &t,
                                    const forward_shared<Math, Tile> &s, window_of_h<Math, Tile> &h,
                                    const turn &now, const turn &next, int buffer)
{
    const block_place &p = t.place;
    float4 *partial = s.partial + buffer * s.sums;
    unsigned char *stage = s.stage + p.warp * Tile::window * Tile::eights * slice_bytes;
    warp_sums<Math, Tile> sum = {};
    prepare_sending<Math, Tile>(a, t, now);
    if (!multiply<Math, Tile>(a, t, h, now, next, stage, sum))
        lb_ptx::store_relaxed<scope::cta>(&s.gave_up[buffer], 1u);
    store_part<Math, Tile>(t, sum, partial + p.warp * Tile::cells);
    trace(now.step, part::multiplied);
    take_pre<Math, Tile>(t, s);
    __syncthreads(); /* all parts stand, and this block has read all of this state */
    trace(now.step, part::met);
    step_cells<Math, Tile>(a, t, s, partial, now.step, now.chunk);
    return !s.gave_up[buffer];
}

template <class Math, class Tile> __device__ inline void forward_run(const lb_fused_forward_args &a)
{
    LB_DYNAMIC_SHARED(unsigned char, memory);
    forward_thread<Math, Tile> t;
    t.place = find_place<Tile>(a);
    forward_shared<Math, Tile> s(memory, t.place.chunks);
    begin<Math, Tile>(a, t, s);
    window_of_h<Math, Tile> h(t);
    turn now = {a.from, 0, false};
    for (int buffer = 0; now.step < a.to; buffer = 1 - buffer) {
        const turn next = turn_after<Math, Tile>(a, t.place, now);
        trace(now.step, part::begun);
        if (!forward_step<Math, Tile>(a, t, s, h, now, next, buffer))
            return;
        trace(now.step, part::stored);
        now = next;
        if (now.step < a.to)
            copy_pre<Math, Tile>(a, t, s, now.step, now.chunk);
    }
    store_carry<Math, Tile>(a, t.place, s);
}

/* fused_grid_forward_kernel: computes y and the final state of steps [from, to) from the
 * pre-activations; where `cells` is not NULL it also writes the activated gates and the cells.
 * lb_fused_forward_args has the shapes.
 *   grid (ceil(H / units), groups, directions), block (32 * warps); all blocks must be resident.
 *   Dynamic shared memory: lb_grid_shared.
 *   Cost per step, block and chunk: 8 * H * units * columns flops; it reads H * columns values of h
 *   through the L2 cache, and it writes 16 * cells * warps bytes of partial sums to shared memory
 *   and reads them. Per cell it reads 16 bytes of global memory and writes 2 or 4, with `cells` 20
 *   more.
 * Where shared memory is too small for one chunk, its body is empty. */
template <class Math, class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    fused_grid_forward_kernel(lb_fused_forward_args a)
{
    if constexpr (lb_grid_shared(&Tile::figures, Math::figure, false, 1) <= shared_limit)
        forward_run<Math, Tile>(a);
}

} // namespace lb_grid

#endif

/* test_ptx.cpp: each wrapper of cuda/common/ptx.cuh against a scalar model of its instruction.
 *
 * The models are written from the layouts in the PTX ISA manual, element by element, and share
 * nothing with the emulator's code. What orders memory is in test_order.cpp and test_async.cpp. */
#include "check.h"

#include <cmath>
#include <numeric>

#include "ptx_probe.cu" /* calls every wrapper, so each needs its counterpart for the host */

using namespace simt_test;
using lb_ptx::scope;

constexpr unsigned lanes = 32;

/* The element (row, column) of a fragment as the manual's tables give it, for register r,
 * element e of the register, lane l. 16-bit operands have two elements per register. */
struct place {
    int row, column;
};

static place a_16(int l, int r, int e)
{
    return {r == 0 || r == 2 ? l >> 2 : (l >> 2) + 8, (l & 3) * 2 + e + (r < 2 ? 0 : 8)};
}

static place b_16(int l, int r, int e)
{
    return {(l & 3) * 2 + e + (r == 0 ? 0 : 8), l >> 2};
}

static place a_tf32(int l, int r, int)
{
    return {r == 0 || r == 2 ? l >> 2 : (l >> 2) + 8, (l & 3) + (r < 2 ? 0 : 4)};
}

static place b_tf32(int l, int r, int)
{
    return {(l & 3) + (r == 0 ? 0 : 4), l >> 2};
}

static place c_any(int l, int r)
{
    return {r < 2 ? l >> 2 : (l >> 2) + 8, (l & 3) * 2 + (r & 1)};
}

/* The operands are small integers. They are exact in every format, so the product must be exact
 * too. */
static int a_value(int row, int k)
{
    return (row * 7 + k * 3) % 11 - 5;
}

static int b_value(int k, int column)
{
    return (k * 5 + column * 2) % 9 - 4;
}

static float product(int depth, int row, int column)
{
    float sum = static_cast<float>(row - column); /* c */
    for (int k = 0; k < depth; k++)
        sum += static_cast<float>(a_value(row, k) * b_value(k, column));
    return sum;
}

static uint32_t half_bits(int value)
{
    return __half_as_ushort(__int2half_rn(value));
}

static uint32_t bfloat_bits(int value)
{
    return __bfloat16_as_ushort(__int2bfloat16_rn(value));
}

static uint32_t float_bits(int value)
{
    return __float_as_uint(static_cast<float>(value));
}

struct mma_form {
    int elements, depth;
    uint32_t (*bits)(int);
    place (*a)(int, int, int);
    place (*b)(int, int, int);
};

template <class Multiply> static void check_mma(const mma_form &form, Multiply multiply)
{
    CHECK(clean(simt::launch(grid_of(1, lanes, 3), [=] {
        int l = threadIdx.x;
        uint32_t a[4] = {}, b[2] = {};
        float d[4];
        for (int e = 0; e < form.elements; e++) {
            for (int r = 0; r < 4; r++) {
                place p = form.a(l, r, e);
                a[r] |= form.bits(a_value(p.row, p.column)) << (16 * e);
            }
            for (int r = 0; r < 2; r++) {
                place p = form.b(l, r, e);
                b[r] |= form.bits(b_value(p.row, p.column)) << (16 * e);
            }
        }
        for (int r = 0; r < 4; r++)
            d[r] = static_cast<float>(c_any(l, r).row - c_any(l, r).column);
        multiply(d, a, b);
        for (int r = 0; r < 4; r++)
            CHECK(d[r] == product(form.depth, c_any(l, r).row, c_any(l, r).column));
    })));
}

TEST(mma_multiplies)
{
    check_mma({2, 16, half_bits, a_16, b_16},
              [](auto &d, auto &a, auto &b) { lb_ptx::mma<__half>(d, a, b); });
    check_mma({2, 16, bfloat_bits, a_16, b_16},
              [](auto &d, auto &a, auto &b) { lb_ptx::mma<__nv_bfloat16>(d, a, b); });
    check_mma({1, 8, float_bits, a_tf32, b_tf32},
              [](auto &d, auto &a, auto &b) { lb_ptx::mma<float>(d, a, b); });
}

TEST(mma_sums_in_f32)
{
    CHECK(clean(simt::launch(grid_of(1, lanes, 1), [] {
        uint32_t a[4], b[2];
        float d[4] = {1e8f, 1e8f, 1e8f, 1e8f};
        for (uint32_t &r : a)
            r = __float_as_uint(1.0f);
        for (uint32_t &r : b)
            r = __float_as_uint(3.0f);
        lb_ptx::mma<float>(d, a, b);
        for (float r : d)
            CHECK(r == 1e8f + 24.0f);
    })));
}

/* The tensor core would drop the low 13 bits, so an operand with such bits was not rounded. */
TEST(mma_tf32_refuses_an_operand_that_is_not_rounded)
{
    for (bool in_a : {false, true}) {
        simt::outcome o = simt::launch(grid_of(1, lanes, 1), [=] {
            uint32_t one = __float_as_uint(1.0f), more = one | 1;
            uint32_t a[4] = {one, one, one, in_a ? more : one}, b[2] = {one, in_a ? one : more};
            float d[4] = {};
            lb_ptx::mma<float>(d, a, b);
        });
        CHECK(o.has(simt::fault::misuse));
    }
}

TEST(to_tf32_rounds_to_nearest_ties_away)
{
    const float unit = std::ldexp(1.0f, -10); /* the spacing of TF32 at 1 */
    struct {
        float from, to;
    } const table[] = {
        {1, 1},
        {1 + unit * 0.49f, 1},
        {1 + unit * 0.5f, 1 + unit},
        {-1 - unit * 0.5f, -1 - unit},
        {1 + unit * 1.5f, 1 + 2 * unit},
        {2 - unit * 0.25f, 2},
        {HUGE_VALF, HUGE_VALF},
    };
    for (const auto &t : table)
        CHECK(__uint_as_float(lb_ptx::to_tf32(t.from)) == t.to);
    CHECK(std::isnan(__uint_as_float(lb_ptx::to_tf32(NAN))));
}

/* The element of matrix m at row i and column j is 64 m + 8 i + j. */
TEST(ldmatrix_deals_rows_to_lanes)
{
    CHECK(clean(simt::launch(grid_of(1, lanes, 2, 1, 512), [] {
        LB_DYNAMIC_SHARED(uint16_t, matrix);
        int l = threadIdx.x;
        for (int i = l; i < 256; i += lanes)
            matrix[i] = static_cast<uint16_t>(i);
        __syncwarp();
        uint32_t to[4];
        lb_ptx::ldmatrix(to, matrix + l * 8);
        for (int m = 0; m < 4; m++) {
            for (int e = 0; e < 2; e++) {
                int i = l >> 2, j = (l & 3) * 2 + e;
                CHECK((to[m] >> (16 * e) & 0xffff) == static_cast<uint32_t>(64 * m + 8 * i + j));
            }
        }
    })));
}

TEST(ldmatrix_wants_aligned_rows)
{
    simt::outcome o = simt::launch(grid_of(1, lanes, 1, 1, 1024), [] {
        LB_DYNAMIC_SHARED(uint16_t, matrix);
        uint32_t to[4];
        lb_ptx::ldmatrix(to, matrix + 1);
    });
    CHECK(o.has(simt::fault::misuse));
}

TEST(exp2_and_reciprocal_flush_denormals_and_keep_their_limits)
{
    CHECK(lb_ptx::exp2_approx(3.0f) == 8.0f && lb_ptx::exp2_approx(-1.0f) == 0.5f);
    CHECK(lb_ptx::exp2_approx(-130.0f) == 0.0f); /* 2^-130 is denormal */
    CHECK(lb_ptx::exp2_approx(-HUGE_VALF) == 0.0f && std::isinf(lb_ptx::exp2_approx(1000.0f)));
    CHECK(lb_ptx::reciprocal_approx(4.0f) == 0.25f && lb_ptx::reciprocal_approx(HUGE_VALF) == 0.0f);
    CHECK(lb_ptx::reciprocal_approx(3e38f) == 0.0f); /* its reciprocal is denormal */
    CHECK(std::isinf(lb_ptx::reciprocal_approx(1e-39f)));
    CHECK(std::isnan(lb_ptx::exp2_approx(NAN)) && std::isnan(lb_ptx::reciprocal_approx(NAN)));
}

/* Checks loads and stores of one scope and width, with a single thread. */
template <scope S, class T> static void check_strong()
{
    T *place = simt::device_copy(std::vector<T>{5, 0}, "place");
    CHECK(clean(simt::launch(grid_of(1, 1), [=] {
        CHECK(lb_ptx::load_relaxed<S>(place) == 5);
        lb_ptx::store_relaxed<S>(place, T{6});
        lb_ptx::store_relaxed<S>(place + 1, lb_ptx::load_relaxed<S>(place));
    })));
    CHECK(place[0] == 6 && place[1] == 6);
}

TEST(strong_operations_load_and_store)
{
    check_strong<scope::cta, uint32_t>();
    check_strong<scope::gpu, uint32_t>();
    check_strong<scope::gpu, uint64_t>();
}

TEST(copy_async_copies_and_fills_with_zeros)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        std::vector<unsigned char> source(64);
        std::iota(source.begin(), source.end(), static_cast<unsigned char>(1));
        unsigned char *from = simt::device_copy(source, "from");
        CHECK(clean(simt::launch(grid_of(1, 1, seed, 1, 64), [=] {
            LB_DYNAMIC_SHARED(unsigned char, to);
            lb_ptx::copy_async<16>(to, from);
            lb_ptx::copy_async_commit();
            lb_ptx::copy_async<16>(to + 16, from + 16, 6);
            lb_ptx::copy_async_commit();
            lb_ptx::copy_async_wait<1>();
            CHECK(to[0] == 1 && to[15] == 16);
            lb_ptx::copy_async_wait<0>();
            CHECK(to[16] == 17 && to[21] == 22 && to[22] == 0 && to[31] == 0);
        })));
    }
}

/* A launch that doubles an array, and one that adds to it and follows the first. What the second
 * does before it waits is done with what the first has not written yet. */
struct chain {
    int *values = simt::device_copy(std::vector<int>(64, 3), "values");
    int *sums = simt::device_array<int>(64, "sums");
    simt::outcome outcome;

    template <class Before> chain(uint64_t seed, const Before &before)
    {
        simt::written written;
        simt::launch_config config = grid_of(2, 32, seed, 1, 512);
        config.leaves = &written;
        int *to = values, *added = sums;
        CHECK(clean(simt::launch(config, [=] {
            lb_ptx::launch_dependents();
            to[blockIdx.x * 32 + threadIdx.x] *= 2;
        })));
        config.follows = &written;
        outcome = simt::launch(config, [=] {
            int i = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
            int early = before(to, added, i);
            lb_ptx::grid_dependency_wait();
            lb_ptx::grid_dependency_wait(); /* once more has no effect */
            added[i] = to[i] + early;
        });
    }
};

TEST(a_launch_that_waits_finds_what_the_one_before_has_written)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        chain c(seed, [](const int *, const int *, int) { return 1; });
        CHECK(clean(c.outcome));
        for (int i = 0; i < 64; i++)
            CHECK(c.values[i] == 6 && c.sums[i] == 7);
    }
}

TEST(a_launch_that_does_not_wait_finds_nothing)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        chain reads(seed, [](const int *values, const int *, int i) { return values[i]; });
        CHECK(reads.sums[0] != 12);
        CHECK(!simt::check_mode || reads.outcome.has(simt::fault::uninitialised));
        chain copies(seed, [](const int *values, const int *, int i) {
            LB_DYNAMIC_SHARED(int, to);
            int *own = to + 4 * threadIdx.x;
            lb_ptx::copy_async<16>(own, values + i / 4 * 4);
            lb_ptx::copy_async_commit();
            lb_ptx::grid_dependency_wait(); /* too late for the copy */
            lb_ptx::copy_async_wait<0>();
            return own[i % 4];
        });
        CHECK(copies.sums[0] != 12);
        CHECK(!simt::check_mode || copies.outcome.has(simt::fault::uninitialised));
        chain writes(seed, [](const int *, int *sums, int i) { return sums[i] = 1; });
        CHECK(writes.outcome.has(simt::fault::early));
    }
}

TEST(every_thread_of_a_launch_that_follows_waits)
{
    simt::written written;
    simt::launch_config config = grid_of(1, 32);
    config.follows = &written;
    simt::outcome o = simt::launch(config, [] {
        if (threadIdx.x != 3)
            lb_ptx::grid_dependency_wait();
    });
    CHECK(o.has(simt::fault::misuse));
}

/* In a cluster of three blocks, each sends its number to the other two, whose mbarriers wait for so
 * many bytes. */
TEST(stores_reach_the_peers_of_a_cluster_and_count_at_their_mbarriers)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        CHECK(clean(simt::launch(grid_of(6, 1, seed, 3, 256), [] {
            LB_DYNAMIC_SHARED(float, data); /* [3][4], and the mbarrier */
            uint64_t *full = one_arrival(data + 48);
            lb_ptx::cluster_arrive();
            lb_ptx::cluster_wait();
            lb_ptx::mbarrier_arrive_expect_bytes(full, 32);
            unsigned rank = lb_ptx::cluster_rank();
            CHECK(rank == blockIdx.x % 3);
            for (unsigned by : {1u, 2u}) {
                unsigned peer = (rank + by) % 3;
                uint32_t to =
                    lb_ptx::map_shared_address(lb_ptx::shared_address(data + 4 * rank), peer);
                lb_ptx::store_async(to, {1, 2, 3, 4.0f + blockIdx.x}, at_rank(peer, full));
            }
            lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            for (unsigned by : {1u, 2u}) {
                unsigned peer = (rank + by) % 3;
                CHECK(data[4 * peer] == 1 && data[4 * peer + 2] == 3);
                CHECK(data[4 * peer + 3] == 4.0f + blockIdx.x / 3 * 3 + peer);
            }
        })));
    }
}

TEST(mbarrier_ends_a_phase_at_its_counts)
{
    CHECK(clean(simt::launch(grid_of(1, 1, 0, 1, 64), [] {
        LB_DYNAMIC_SHARED(uint64_t, barrier);
        lb_ptx::mbarrier_init(barrier, 2);
        lb_ptx::fence_mbarrier_init();
        auto over = [&](unsigned parity) {
            return lb_ptx::mbarrier_try_wait<scope::cluster>(barrier, parity);
        };
        CHECK(!over(0) && over(1)); /* the phase before the first one counts as complete */
        lb_ptx::mbarrier_arrive_expect_bytes(barrier, 0);
        CHECK(!over(0));
        lb_ptx::mbarrier_arrive_expect_bytes(barrier, 0);
        CHECK(over(0) && !over(1));
        lb_ptx::mbarrier_wait<scope::cluster>(barrier, 0);
    })));
}

TEST(vectors_of_strong_accesses_keep_their_order_and_alignment)
{
    auto *words = simt::device_copy(std::vector<uint32_t>{0, 0, 0, 0, 1, 2, 3, 4}, "words");
    CHECK(clean(simt::launch(grid_of(1, 1), [=] {
        uint32_t four[4];
        lb_ptx::load_relaxed4<scope::gpu>(four, words + 4);
        for (uint32_t w = 0; w < 4; w++)
            CHECK(four[w] == w + 1);
        four[2] = 9;
        lb_ptx::store_relaxed4<scope::gpu>(words, four);
        CHECK(words[0] == 1 && words[1] == 2 && words[2] == 9 && words[3] == 4);
    })));
    CHECK(simt::launch(grid_of(1, 1), [=] {
              uint32_t four[4];
              lb_ptx::load_relaxed4<scope::gpu>(four, words + 1);
          }).has(simt::fault::misuse));
    CHECK(simt::launch(grid_of(1, 1), [=] {
              const uint32_t four[4] = {};
              lb_ptx::store_relaxed4<scope::gpu>(words + 2, four);
          }).has(simt::fault::misuse));
}

/* A vector access consists of four accesses, so a reader may see only some of the words of a
 * store. */
TEST(vectors_of_strong_accesses_are_not_one_access)
{
    bool torn = false;
    for (uint64_t seed = 1; seed < 64 && !torn; seed++) {
        auto *words = simt::device_copy(std::vector<uint32_t>(4), "words");
        auto *seen = simt::device_array<uint32_t>(4, "seen");
        CHECK(clean(simt::launch(grid_of(2, 1, seed), [=] {
            uint32_t four[4] = {1, 1, 1, 1};
            if (blockIdx.x == 0)
                return lb_ptx::store_relaxed4<scope::gpu>(words, four);
            lb_ptx::load_relaxed4<scope::gpu>(four, words);
            for (int w = 0; w < 4; w++)
                seen[w] = four[w];
        })));
        torn = seen[0] != seen[1] || seen[1] != seen[2] || seen[2] != seen[3];
    }
    CHECK(torn);
}

/* Warp 0 produces, warp 1 consumes, and warp 2 takes no part. */
TEST(barriers_of_some_warps_meet)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        CHECK(clean(simt::launch(grid_of(1, 96, seed, 1, 128), [] {
            LB_DYNAMIC_SHARED(unsigned, handed);
            unsigned lane = threadIdx.x % 32;
            if (threadIdx.x < 32)
                handed[lane] = lane;
            if (threadIdx.x < 64)
                lb_ptx::barrier_sync(3, 64);
            if (threadIdx.x / 32 == 1)
                CHECK(handed[31 - lane] == 31 - lane);
        })));
    }
}

/* The emulator's counts of wavefronts, sectors and lines, for layouts whose counts are known.
 * Kernels announce their accesses in check mode only. */
#include "check.h"

using namespace simt_test;
using lb_ptx::scope;
using simt::access_cost;

/* Returns the cost of one warp's accesses of a kind. The block has shared memory and one array
 * in global memory. */
template <class Body> static access_cost cost_of(const char *kind, const Body &body)
{
    simt::launch_config config = grid_of(1, 32, 0, 1, 16384);
    config.count = true;
    auto *global = simt::device_copy(std::vector<uint32_t>(4096), "global");
    simt::outcome o = simt::launch(config, [=] {
        LB_DYNAMIC_SHARED(unsigned char, shared);
        body(shared, global, static_cast<int>(threadIdx.x));
    });
    CHECK(clean(o));
    return o.costs[kind];
}

static bool is(const access_cost &c, uint64_t instructions, uint64_t units, uint64_t ideal)
{
    if (c.instructions != instructions || c.units != units || c.ideal != ideal)
        fprintf(stderr, "%lu instructions, %lu units, %lu ideal\n",
                static_cast<unsigned long>(c.instructions), static_cast<unsigned long>(c.units),
                static_cast<unsigned long>(c.ideal));
    return c.instructions == instructions && c.units == units && c.ideal == ideal;
}

/* Each lane stores a T at the offset place(lane), in bytes. */
template <class T, class Place> static access_cost shared_store(const Place &place)
{
    return cost_of("shared store", [=](unsigned char *shared, uint32_t *, int lane) {
        *reinterpret_cast<T *>(shared + place(lane)) = T();
    });
}

TEST(words_of_one_bank_take_a_wavefront_each)
{
    CHECK(is(shared_store<float>([](int lane) { return lane * 4; }), 1, 1, 1));
    CHECK(is(shared_store<float>([](int lane) { return lane * 8; }), 1, 2, 1));
    CHECK(is(shared_store<float>([](int lane) { return lane * 128; }), 1, 32, 1));
    CHECK(is(shared_store<float>([](int) { return 0; }), 1, 1, 1)); /* all lanes read one word */
}

/* The operand of the cluster kernels, without and with their exchange of columns. */
TEST(eight_bytes_are_served_by_half_warps)
{
    CHECK(is(shared_store<uint2>([](int lane) { return lane * 8; }), 1, 2, 2));
    CHECK(is(shared_store<uint2>([](int lane) { return lane % 4 * 64 + lane / 4 * 8; }), 1, 4, 2));
    CHECK(is(shared_store<uint2>(
                 [](int lane) { return lane % 4 * 64 + (lane / 4 ^ (lane & 2) * 2) * 8; }),
             1, 2, 2));
}

/* The slices of the grid kernels, in their former order and in the order of the lanes. */
TEST(sixteen_bytes_are_served_by_quarter_warps)
{
    CHECK(is(shared_store<uint4>([](int lane) { return lane * 16; }), 1, 4, 4));
    CHECK(
        is(shared_store<uint4>([](int lane) { return (lane % 4 * 8 + lane / 4) * 16; }), 1, 16, 4));
}

TEST(sectors_and_lines_of_global_memory_are_counted)
{
    auto load = [](int stride) {
        return cost_of("global load", [=](unsigned char *shared, uint32_t *global, int lane) {
            reinterpret_cast<uint32_t *>(shared)[lane] = global[lane * stride];
        });
    };
    access_cost dense = load(1), wide = load(8);
    CHECK(is(dense, 1, 4, 4) && dense.lines == 1 && dense.lines_ideal == 1);
    CHECK(is(wide, 1, 32, 4) && wide.lines == 8 && wide.lines_ideal == 1);
}

/* How often a waiting thread reads depends on the schedule, so its reads count once. */
TEST(a_wait_is_counted_once)
{
    CHECK(is(cost_of("global load strong",
                     [](unsigned char *, uint32_t *global, int lane) {
                         if (lane == 31)
                             lb_ptx::store_relaxed<scope::gpu>(global, 1u);
                         while (lb_ptx::load_relaxed<scope::gpu>(global) == 0) {
                         }
                     }),
             1, 1, 1));
}

/* Collectives between two executions of a source line separate them into two instructions. */
TEST(turns_of_a_loop_are_instructions_of_their_own)
{
    CHECK(is(cost_of("shared store",
                     [](unsigned char *shared, uint32_t *, int lane) {
                         for (int turn = 0; turn < 3; turn++) {
                             if (lane % 2 == turn % 2)
                                 reinterpret_cast<uint32_t *>(shared)[lane + 32 * turn] = 0;
                             __syncwarp();
                         }
                     }),
             3, 3, 3));
}

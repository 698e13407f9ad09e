/* test_runtime.cpp: the emulator's indices, barriers, shuffles, votes, atomics and memory, and
 * its messages when threads never meet. */
#include "check.h"

#include <set>

using namespace simt_test;
using lb_ptx::scope;

TEST(threads_see_their_indices)
{
    simt::launch_config config = grid_of(1, 1);
    config.grid = {2, 3, 1};
    config.block = {4, 2, 3};
    int *seen = simt::device_array<int>(6 * 24, "seen");
    CHECK(clean(simt::launch(config, [=] {
        unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        unsigned block = blockIdx.x + gridDim.x * blockIdx.y;
        seen[block * 24 + thread] = 1;
    })));
    for (int i = 0; i < 6 * 24; i++)
        CHECK(seen[i] == 1);
}

TEST(memory_starts_as_poison)
{
    float *global = simt::device_array<float>(1, "global");
    bool nan_global = false, nan_shared = false;
    simt::launch(grid_of(1, 1, 0, 1, 16), [&, global] {
        LB_DYNAMIC_SHARED(float, shared);
        nan_global = std::isnan(*global);
        nan_shared = std::isnan(*shared);
    });
    CHECK(nan_global && nan_shared);
}

TEST(cluster_arrival_does_not_wait)
{
    int *log = simt::device_copy(std::vector<int>(2, 0), "log");
    CHECK(clean(simt::launch(grid_of(2, 1, 0, 2), [=] {
        if (blockIdx.x == 0) {
            lb_ptx::cluster_arrive(); /* before the other block has stored, or even started */
            log[1] = 1;
            lb_ptx::cluster_wait();
            CHECK(log[0] == 1);
        } else {
            log[0] = 1;
            lb_ptx::cluster_arrive();
            lb_ptx::cluster_wait();
        }
    })));
    CHECK(log[1] == 1);
}

/* Runs three blocks of one thread each in a cluster; sleeps set their order. */
static simt::outcome in_a_cluster(const std::function<void(unsigned rank)> &body)
{
    return simt::launch(grid_of(3, 1, 0, 3), [=] { body(blockIdx.x); });
}

TEST(one_that_arrived_and_exited_does_not_stand_for_another)
{
    int *log = simt::device_copy(std::vector<int>(1, 0), "log");
    CHECK(clean(in_a_cluster([=](unsigned rank) {
        nap(20 * rank);
        if (rank == 2)
            log[0] = 1;
        lb_ptx::cluster_arrive();
        if (rank > 0) { /* block 0 has exited by now */
            lb_ptx::cluster_wait();
            CHECK(log[0] == 1);
        }
    })));
}

TEST(a_cluster_arrives_once_and_waits_once)
{
    auto sync_and = [](auto rest) {
        return in_a_cluster([=](unsigned) {
            cluster_sync();
            rest();
        });
    };
    CHECK(clean(sync_and([] { cluster_sync(); })));
    CHECK(sync_and([] { lb_ptx::cluster_wait(); }).has(simt::fault::misuse));
    CHECK(sync_and([] {
              lb_ptx::cluster_arrive();
              lb_ptx::cluster_arrive();
              lb_ptx::cluster_wait();
          }).has(simt::fault::misuse));
}

TEST(shuffles_and_votes_follow_their_definition)
{
    CHECK(clean(simt::launch(grid_of(1, 32, 3), [] {
        int lane = threadIdx.x, value = 100 + lane;
        CHECK(__shfl_sync(~0u, value, 37) == 105);
        CHECK(__shfl_down_sync(~0u, value, 3) == (lane < 29 ? value + 3 : value));
        CHECK(__shfl_xor_sync(~0u, value, 2) == 100 + (lane ^ 2));
        CHECK(__shfl_xor_sync(~0u, lane + 0.5, 1) == (lane ^ 1) + 0.5);
        CHECK(__all_sync(~0u, lane < 32) == 1 && __all_sync(~0u, lane < 31) == 0);
    })));
}

TEST(a_slow_lane_reads_what_its_own_shuffle_brought)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        CHECK(clean(simt::launch(grid_of(1, 32, seed), [] {
            int lane = threadIdx.x;
            for (int i = 0; i < 4; i++)
                CHECK(__shfl_xor_sync(~0u, 100 * i + lane, 16) == 100 * i + (lane ^ 16));
        })));
    }
}

/* All lanes vote, and then all but lane 31 meet, which exits at once or after some naps. */
template <class Meet> static simt::outcome without_the_last_lane(int naps, Meet meet)
{
    return litmus(grid_of(1, 32), [=](cells *) {
        CHECK(__all_sync(~0u, 1) == 1);
        if (threadIdx.x == 31)
            nap(naps);
        else
            meet();
    });
}

TEST(lanes_that_exited_do_not_vote)
{
    for (int naps : {0, 300}) {
        CHECK(clean(without_the_last_lane(naps, [] {
            for (int i = 0; i < 2; i++)
                CHECK(__all_sync(~0u, 1) == 1);
        })));
    }
}

TEST(a_lane_that_exited_cannot_be_read_from)
{
    for (int naps : {0, 300}) {
        CHECK(clean(without_the_last_lane(
            naps, [] { CHECK(__shfl_sync(~0u, 7 * threadIdx.x, 5) == 35); })));
        CHECK(
            without_the_last_lane(naps, [] { __shfl_sync(~0u, 1, 31); }).has(simt::fault::misuse));
    }
}

TEST(a_matrix_product_needs_all_lanes)
{
    auto product = [] {
        float d[4] = {1, 1, 1, 1};
        const uint32_t a[4] = {}, b[2] = {};
        lb_ptx::mma<__half>(d, a, b);
        CHECK(d[0] == 1 && d[3] == 1);
    };
    CHECK(clean(simt::launch(grid_of(1, 32, 1), product)));
    for (int naps : {0, 300})
        CHECK(without_the_last_lane(naps, product).has(simt::fault::misuse));
}

TEST(atomics_lose_nothing)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        unsigned *sum = simt::device_copy(std::vector<unsigned>(1, 0), "sum");
        unsigned *ticket = simt::device_array<unsigned>(128, "ticket");
        CHECK(clean(simt::launch(grid_of(2, 64, seed), [=] {
            unsigned id = blockIdx.x * 64 + threadIdx.x;
            ticket[id] = atomicAdd(&sum[0], 1u);
        })));
        std::set<unsigned> tickets(ticket, ticket + 128);
        CHECK(sum[0] == 128 && tickets.size() == 128);
    }
}

static std::vector<unsigned> arrival_order(uint64_t seed)
{
    unsigned *counter = simt::device_copy(std::vector<unsigned>(1, 0), "counter");
    unsigned *order = simt::device_array<unsigned>(128, "order");
    CHECK(clean(simt::launch(grid_of(2, 64, seed), [=] {
        order[atomicAdd(counter, 1u)] = blockIdx.x * 64 + threadIdx.x;
    })));
    return std::vector<unsigned>(order, order + 128);
}

TEST(a_seed_is_a_schedule)
{
    CHECK(arrival_order(7) == arrival_order(7));
    CHECK(arrival_order(7) != arrival_order(8));
}

TEST(exited_threads_are_not_waited_for)
{
    CHECK(clean(simt::launch(grid_of(1, 64, 1), [] {
        if (threadIdx.x >= 40)
            return;
        __syncthreads();
        __syncwarp();
    })));
}

static bool names_line(const simt::outcome &o, int line)
{
    return o.text().find("test_runtime.cpp:" + std::to_string(line)) != std::string::npos;
}

TEST(deadlock_names_where_threads_wait)
{
    int line = __LINE__ + 3;
    simt::outcome o = simt::launch(grid_of(2, 32, 1), [] {
        if (blockIdx.x == 0)
            lb_ptx::barrier_sync(2, 64);
        else if (threadIdx.x == 0)
            lb_ptx::barrier_sync(1, 64);
    });
    CHECK(o.has(simt::fault::deadlock) && names_line(o, line) && names_line(o, line + 2));
}

TEST(spinning_for_ever_is_found_out)
{
    uint32_t *flag = simt::device_copy(std::vector<uint32_t>(1, 0), "flag");
    simt::outcome o = simt::launch(grid_of(1, 1, 1), [=] {
        while (lb_ptx::load_relaxed<scope::gpu>(flag) == 0)
            __syncwarp();
    });
    CHECK(o.has(simt::fault::livelock));
}

TEST(a_lock_that_nobody_frees_is_found_out)
{
    uint32_t *lock = simt::device_copy(std::vector<uint32_t>(1, 1), "lock");
    CHECK(simt::launch(grid_of(2, 32, 1), [=] {
              while (atomicExch(lock, 1u) != 0) {
              }
          }).has(simt::fault::livelock));
}

TEST(a_divergent_barrier_is_found_out)
{
    simt::outcome o = simt::launch(grid_of(1, 32, 1), [] {
        if (threadIdx.x % 2)
            __syncthreads();
        __syncthreads(); /* this is the first barrier of the other threads */
    });
    CHECK(o.has(simt::fault::misuse));
}

TEST(a_mask_of_some_lanes_is_refused)
{
    simt::outcome o = simt::launch(grid_of(1, 32, 1), [] { __shfl_sync(0xffffu, 1, 0); });
    CHECK(o.has(simt::fault::misuse));
}

TEST(a_write_past_the_end_is_found_out)
{
    int *values = simt::device_array<int>(3, "values");
    simt::outcome o = simt::launch(grid_of(1, 4), [=] { values[threadIdx.x] = 1; });
    CHECK(o.has(simt::fault::bounds));
    CHECK(o.text().find("values+12 (of 12)") != std::string::npos);
}

/* A load and a store of a vector, plain ones and one with a cache hint. */
TEST(a_vector_that_is_not_aligned_is_found_out)
{
    auto *bytes = simt::device_copy(std::vector<unsigned char>(64), "bytes");
    auto load = [=](int at) { return *reinterpret_cast<const uint4 *>(bytes + at); };
    auto *to = reinterpret_cast<float4 *>(bytes + 40);
    CHECK(clean(simt::launch(grid_of(1, 1), [=] { bytes[32] = load(16).x != 0; })));
    simt::outcome o = simt::launch(grid_of(1, 1), [=] { bytes[32] = load(8).x != 0; });
    CHECK(o.has(simt::fault::misuse));
    CHECK(o.text().find("bytes+8 (of 64) is not aligned to 16 bytes") != std::string::npos);
    CHECK(simt::launch(grid_of(1, 1), [=] {
              *to = make_float4(1, 2, 3, 4);
          }).has(simt::fault::misuse));
    CHECK(simt::launch(grid_of(1, 1), [=] {
              __stcs(to, make_float4(1, 2, 3, 4));
          }).has(simt::fault::misuse));
}

TEST(a_peer_that_has_exited_cannot_be_mapped)
{
    simt::outcome o = simt::launch(grid_of(2, 1, 0, 2, 16), [] {
        LB_DYNAMIC_SHARED(int, shared);
        if (blockIdx.x == 1) {
            nap(1); /* block 0 exits in the meantime */
            lb_ptx::map_shared_address(lb_ptx::shared_address(shared), 0);
        }
    });
    CHECK(o.has(simt::fault::remote_exit));
}

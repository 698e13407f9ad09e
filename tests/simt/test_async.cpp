/* test_async.cpp: what the race detector finds in asynchronous copies, and mbarriers.
 * As in test_order.cpp, each correct case has a mutant. It runs in check mode. */
#include "check.h"

#include "cuda/common/ptx.cuh"

using namespace simt_test;
using lb_ptx::scope;
using simt::fault;

/* Returns the findings of several seeds together. */
template <class Body>
static simt::outcome under_seeds(unsigned blocks, unsigned threads, const Body &body)
{
    simt::outcome all;
    for (uint64_t seed = 0; seed < 6; seed++) {
        simt::outcome o = simt::launch(grid_of(blocks, threads, seed, blocks, 256), body);
        all.findings.insert(all.findings.end(), o.findings.begin(), o.findings.end());
    }
    return all;
}

static float *some_floats()
{
    return simt::device_copy(std::vector<float>(32, 1.0f), "some floats");
}

TEST(a_copy_is_read_after_its_wait)
{
    auto body = [](bool waits_first) {
        float *from = some_floats();
        return under_seeds(1, 1, [=] {
            LB_DYNAMIC_SHARED(float, to);
            lb_ptx::copy_async<16>(to, from);
            lb_ptx::copy_async_commit();
            if (waits_first)
                lb_ptx::copy_async_wait<0>();
            from[8] = to[0];
            lb_ptx::copy_async_wait<0>();
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

TEST(a_source_is_kept_until_its_copy_is_done)
{
    auto body = [](bool waits_first) {
        float *from = some_floats();
        return under_seeds(1, 1, [=] {
            LB_DYNAMIC_SHARED(float, to);
            lb_ptx::copy_async<16>(to, from);
            lb_ptx::copy_async_commit();
            if (waits_first)
                lb_ptx::copy_async_wait<0>();
            from[1] = 2;
            lb_ptx::copy_async_wait<0>();
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

/* When one lane has waited, the others know nothing of it until a barrier. */
TEST(a_wait_is_the_waiting_threads_own)
{
    auto body = [](bool meets) {
        float *from = some_floats();
        return under_seeds(1, 32, [=] {
            LB_DYNAMIC_SHARED(float, to);
            if (threadIdx.x < 8)
                lb_ptx::copy_async<16>(to + 4 * threadIdx.x, from + 4 * threadIdx.x);
            lb_ptx::copy_async_commit();
            lb_ptx::copy_async_wait<0>();
            if (meets)
                __syncwarp();
            CHECK(to[threadIdx.x] == 1.0f || !meets);
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

/* Thread 0 of each block initialises the mbarriers in the last words of shared memory and makes
 * them visible to the cluster. */
static uint64_t *barriers(float *shared)
{
    uint64_t *at = reinterpret_cast<uint64_t *>(shared + 48);
    if (threadIdx.x == 0)
        for (int i = 0; i < 2; i++)
            lb_ptx::mbarrier_init(at + i, 1);
    lb_ptx::fence_mbarrier_init();
    lb_ptx::cluster_sync();
    return at;
}

static uint32_t at_peer(const void *address)
{
    return lb_ptx::map_shared_address(lb_ptx::shared_address(address), 1 - lb_ptx::cluster_rank());
}

/* PTX ISA, "Program Order: Asynchronous Operations": complete-tx orders its own copy and nothing
 * else, so the receiver may not read what the sender wrote before it. */
TEST(completion_publishes_its_own_copy_alone)
{
    auto body = [](bool reads_other) {
        return under_seeds(2, 1, [=] {
            LB_DYNAMIC_SHARED(float, data);
            uint64_t *full = barriers(data);
            lb_ptx::mbarrier_arrive_expect_bytes(full, 4);
            lb_ptx::store_cluster(at_peer(data + 1), 5.0f);
            lb_ptx::store_async(at_peer(data), 4.0f, at_peer(full));
            lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            CHECK(data[0] == 4.0f);
            if (reads_other)
                data[2] = data[1];
            lb_ptx::cluster_sync();
        });
    };
    CHECK(clean(body(false)));
    CHECK(body(true).has(fault::race));
}

/* When the data of a sender have arrived, the reads that it made before sending are over. */
TEST(what_was_read_before_sending_may_be_overwritten)
{
    auto body = [](bool reads_first) {
        return under_seeds(2, 1, [=] {
            LB_DYNAMIC_SHARED(float, data);
            data[4] = 1;
            uint64_t *full = barriers(data);
            lb_ptx::mbarrier_arrive_expect_bytes(full, 4);
            float seen = reads_first ? data[4] : 0;
            lb_ptx::store_async(at_peer(data), seen, at_peer(full));
            if (!reads_first)
                seen = data[4];
            lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            lb_ptx::store_cluster(at_peer(data + 4), seen + data[0]);
            lb_ptx::cluster_sync();
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

TEST(an_arrival_publishes_at_its_scope)
{
    auto body = [](auto wait) {
        return under_seeds(2, 1, [=] {
            LB_DYNAMIC_SHARED(float, data);
            uint64_t *full = barriers(data);
            lb_ptx::store_cluster(at_peer(data), 5.0f);
            lb_ptx::mbarrier_arrive_cluster(at_peer(full));
            wait(full);
            CHECK(data[0] == 5.0f);
            lb_ptx::cluster_sync();
        });
    };
    CHECK(clean(body([](uint64_t *b) { lb_ptx::mbarrier_wait<scope::cluster>(b, 0); })));
    CHECK(body([](uint64_t *b) { lb_ptx::mbarrier_wait<scope::cta>(b, 0); }).has(fault::race));
}

TEST(an_mbarrier_is_used_after_its_initialisation)
{
    simt::outcome o = under_seeds(1, 64, [] {
        LB_DYNAMIC_SHARED(uint64_t, barrier);
        if (threadIdx.x == 0)
            lb_ptx::mbarrier_init(barrier, 64);
        if (threadIdx.x == 0 || threadIdx.x == 63) /* thread 63 has not met thread 0 since */
            lb_ptx::mbarrier_arrive(barrier);
    });
    CHECK(o.has(fault::race) || o.has(fault::misuse));
    o = under_seeds(1, 1, [] {
        LB_DYNAMIC_SHARED(uint64_t, barrier);
        lb_ptx::mbarrier_init(barrier, 1);
        *barrier = 0;
        lb_ptx::mbarrier_arrive(barrier);
    });
    CHECK(o.has(fault::misuse));
}

/* Among the seeds, a copy lands both before and after the accesses that follow it. */
TEST(copies_land_early_and_late)
{
    bool early = false, late = false;
    for (uint64_t seed = 0; seed < 16; seed++) {
        float *from = simt::device_copy(std::vector<float>(4, 7.0f), "from");
        simt::launch(grid_of(1, 1, seed, 1, 64), [&, from] {
            LB_DYNAMIC_SHARED(float, to);
            lb_ptx::copy_async<16>(to, from);
            lb_ptx::copy_async_commit();
            (to[0] == 7.0f ? early : late) = true; /* an intended race */
            lb_ptx::copy_async_wait<0>();
            CHECK(to[0] == 7.0f);
        });
    }
    CHECK(early && late);
}

/* test_async.cpp: what the race detector finds in asynchronous copies, and mbarriers.
 * As in test_order.cpp, each correct case has a mutant. It runs in check mode. */
#include "check.h"

using namespace simt_test;
using lb_ptx::scope;
using simt::fault;

/* A thread copies from global to shared memory and calls touch(from, to), before or after it has
 * waited. */
template <class Touch> static simt::outcome touched(bool waits_first, const Touch &touch)
{
    return litmus(grid_of(1, 1, 0, 1, 256), [=](cells *c) {
        LB_DYNAMIC_SHARED(uint32_t, to);
        lb_ptx::copy_async<16>(to, c->data);
        lb_ptx::copy_async_commit();
        if (waits_first)
            lb_ptx::copy_async_wait<0>();
        touch(c->data, to);
        lb_ptx::copy_async_wait<0>();
    });
}

TEST(a_copy_is_read_after_its_wait)
{
    auto read = [](const uint32_t *, const uint32_t *to) { CHECK(to[0] != 1); };
    CHECK(clean(touched(true, read)));
    CHECK(touched(false, read).has(fault::race));
}

TEST(a_source_is_kept_until_its_copy_is_done)
{
    auto write = [](uint32_t *from, const uint32_t *) { from[1] = 2; };
    CHECK(clean(touched(true, write)));
    CHECK(touched(false, write).has(fault::race));
}

/* When one lane has waited, the others know nothing of it until a barrier. */
TEST(a_wait_is_the_waiting_threads_own)
{
    auto body = [](bool meets) {
        return litmus(grid_of(1, 32, 0, 1, 256), [=](cells *c) {
            LB_DYNAMIC_SHARED(uint32_t, to);
            if (threadIdx.x == 0)
                lb_ptx::copy_async<16>(to, c->data);
            lb_ptx::copy_async_commit();
            lb_ptx::copy_async_wait<0>();
            if (meets)
                __syncwarp();
            CHECK(to[threadIdx.x % 4] == 0 || !meets);
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

/* In a cluster of two blocks of one thread each, runs body(data, full, c), where data are shared
 * memory and `full` is an mbarrier that waits for one store of a peer. */
template <class Body> static simt::outcome exchange(const Body &body)
{
    return litmus(grid_of(2, 1, 0, 2, 256), [=](cells *c) {
        LB_DYNAMIC_SHARED(float, data);
        uint64_t *full = one_arrival(data + 48);
        cluster_sync();
        lb_ptx::mbarrier_arrive_expect_bytes(full, 16);
        body(data, full, c);
    });
}

/* Sends 4 numbers to the same place in the other block. */
static void send(float *data, uint64_t *full, float first)
{
    unsigned peer = 1 - lb_ptx::cluster_rank();
    lb_ptx::store_async(at_rank(peer, data), {first, 1, 2, 3}, at_rank(peer, full));
}

/* PTX ISA, "Program Order: Asynchronous Operations": complete-tx orders its own copy and nothing
 * else, so the receiver may not read what the sender wrote before it. */
TEST(completion_publishes_its_own_copy_alone)
{
    auto body = [](bool reads_other) {
        return exchange([=](float *data, uint64_t *full, cells *c) {
            c->data[blockIdx.x] = 5;
            send(data, full, 4);
            lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            CHECK(data[0] == 4 && data[3] == 3);
            if (reads_other)
                c->data[2 + blockIdx.x] = c->data[1 - blockIdx.x];
        });
    };
    CHECK(clean(body(false)));
    CHECK(body(true).has(fault::race));
}

/* When the data of a sender have arrived, the reads that it made before sending are over. */
TEST(what_was_read_before_sending_may_be_overwritten)
{
    auto body = [](bool reads_first) {
        return exchange([=](float *data, uint64_t *full, cells *c) {
            uint32_t seen = reads_first ? c->data[blockIdx.x] : 0;
            send(data, full, static_cast<float>(seen));
            if (!reads_first)
                seen = c->data[blockIdx.x];
            lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            c->data[1 - blockIdx.x] = seen + 1;
        });
    };
    CHECK(clean(body(true)));
    CHECK(body(false).has(fault::race));
}

TEST(a_wait_acquires_at_its_scope)
{
    auto body = [](auto wait) {
        return exchange([=](float *data, uint64_t *full, cells *) {
            send(data, full, 4);
            wait(full);
            CHECK(data[0] == 4);
            cluster_sync();
        });
    };
    CHECK(clean(body([](uint64_t *b) { lb_ptx::mbarrier_wait<scope::cluster>(b, 0); })));
    CHECK(body([](uint64_t *b) { lb_ptx::mbarrier_wait<scope::cta>(b, 0); }).has(fault::race));
}

/* Block 0 sends to block 1, which must be known to have started, and must know before its exit that
 * the store has come, even where it has come in time. */
TEST(remote_memory_lives_from_start_to_exit)
{
    auto body = [](bool starts, bool waits) {
        return litmus(grid_of(2, 1, 0, 2, 256), [=](cells *) {
            LB_DYNAMIC_SHARED(float, data);
            uint64_t *full = one_arrival(data + 48);
            if (starts)
                cluster_sync();
            if (blockIdx.x == 0)
                return send(data, full, 4);
            lb_ptx::mbarrier_arrive_expect_bytes(full, 16);
            if (waits)
                lb_ptx::mbarrier_wait<scope::cluster>(full, 0);
            else
                nap(300);
        });
    };
    CHECK(clean(body(true, true)));
    CHECK(body(false, true).has(fault::remote_start));
    CHECK(body(true, false).has(fault::remote_exit));
}

TEST(an_mbarrier_is_used_after_its_initialisation)
{
    simt::outcome o = litmus(grid_of(1, 64, 0, 1, 256), [](cells *) {
        LB_DYNAMIC_SHARED(uint64_t, barrier);
        if (threadIdx.x == 0)
            one_arrival(barrier);
        if (threadIdx.x == 63) /* which has not met thread 0 since */
            lb_ptx::mbarrier_arrive_expect_bytes(barrier, 0);
    });
    CHECK(o.has(fault::race) || o.has(fault::misuse));
    o = litmus(grid_of(1, 1, 0, 1, 256), [](cells *) {
        LB_DYNAMIC_SHARED(uint64_t, barrier);
        one_arrival(barrier);
        *barrier = 0;
        lb_ptx::mbarrier_arrive_expect_bytes(barrier, 0);
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

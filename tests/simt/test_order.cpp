/* test_order.cpp: litmus tests that compare the race detector with the memory model. Each
 * correct case has a mutant that must be found, because a detector that finds nothing would
 * pass all correct ones. It runs in check mode. */
#include "litmus.h"

using namespace simt_test;
using lb_ptx::scope;
using simt::fault;

template <class Load> static void spin_then_read(cells *c, Load load)
{
    while (load(&c->flag[0]) == 0) {
    }
    CHECK(c->data[0] == 1);
}

static uint32_t acquire_gpu(const uint32_t *flag)
{
    return lb_ptx::load_acquire<scope::gpu>(flag);
}

static uint32_t relaxed_gpu(const uint32_t *flag)
{
    return lb_ptx::load_relaxed<scope::gpu>(flag);
}

static void acquiring_consumer(cells *c)
{
    spin_then_read(c, acquire_gpu);
}

TEST(release_and_acquire_order)
{
    auto producer = [](cells *c) {
        c->data[0] = 1;
        lb_ptx::store_release<scope::gpu>(&c->flag[0], 1u);
    };
    CHECK(clean(pair_of(false, producer, acquiring_consumer)));
    auto relaxed_consumer = [](cells *c) { spin_then_read(c, relaxed_gpu); };
    CHECK(pair_of(false, producer, relaxed_consumer).has(fault::race));
    auto relaxed_producer = [](cells *c) {
        c->data[0] = 1;
        lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
    };
    CHECK(pair_of(false, relaxed_producer, acquiring_consumer).has(fault::race));
}

TEST(fences_order_on_both_sides)
{
    auto producer = [](cells *c) {
        c->data[0] = 1;
        lb_ptx::fence_acq_rel<scope::gpu>();
        lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
    };
    auto consumer = [](cells *c) {
        while (relaxed_gpu(&c->flag[0]) == 0) {
        }
        __threadfence();
        CHECK(c->data[0] == 1);
    };
    CHECK(clean(pair_of(false, producer, consumer)));
    auto fence_too_early = [](cells *c) {
        __threadfence();
        c->data[0] = 1;
        lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
    };
    CHECK(pair_of(false, fence_too_early, consumer).has(fault::race));
}

TEST(a_block_fence_orders_one_block_only)
{
    auto producer = [](cells *c) {
        c->data[0] = 1;
        __threadfence_block();
        lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
    };
    CHECK(clean(pair_of(true, producer, acquiring_consumer)));
    CHECK(pair_of(false, producer, acquiring_consumer).has(fault::race));
}

TEST(a_block_atomic_is_strong_in_one_block_only)
{
    auto add = [](cells *c) { atomicAdd_block(&c->flag[0], 1u); };
    CHECK(clean(pair_of(true, add, add)));
    CHECK(pair_of(false, add, add).has(fault::race));
}

TEST(an_acquire_of_block_scope_hears_its_block_only)
{
    auto producer = [](cells *c) {
        c->data[0] = 1;
        lb_ptx::store_release<scope::gpu>(&c->flag[0], 1u);
    };
    auto consumer = [](cells *c) {
        while (lb_ptx::load_acquire<scope::cta>(&c->flag[0]) == 0) {
        }
        CHECK(c->data[0] == 1);
    };
    CHECK(clean(pair_of(true, producer, consumer)));
    CHECK(pair_of(false, producer, consumer).has(fault::race));
}

TEST(loads_publish_nothing)
{
    auto producer = [](cells *c) {
        lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
        c->data[0] = 1;
        __threadfence();
        relaxed_gpu(&c->flag[0]);
        lb_ptx::load_acquire<scope::sys>(&c->flag[0]);
    };
    auto consumer = [](cells *c) {
        while (acquire_gpu(&c->flag[0]) == 0) {
        }
        for (int i = 0; i < 50; i++) /* gives the producer time to finish */
            acquire_gpu(&c->flag[0]);
        c->data[0] = 2;
    };
    CHECK(pair_of(false, producer, consumer).has(fault::race));
}

/* Block 0 releases the flag, block 1 changes it, and block 2 acquires the value of block 1. */
template <class Change> static simt::outcome relay(Change change)
{
    simt::outcome all;
    for (uint64_t seed = 0; seed < 6; seed++) {
        cells *c = fresh();
        simt::outcome o = simt::launch(grid_of(3, 1, seed), [=] {
            if (blockIdx.x == 0) {
                c->data[0] = 1;
                lb_ptx::store_release<scope::gpu>(&c->flag[0], 1u);
            } else if (blockIdx.x == 1) {
                while (relaxed_gpu(&c->flag[0]) != 1) {
                }
                change(&c->flag[0]);
            } else {
                while (acquire_gpu(&c->flag[0]) != 2) {
                }
                CHECK(c->data[0] == 1);
            }
        });
        all.findings.insert(all.findings.end(), o.findings.begin(), o.findings.end());
    }
    return all;
}

TEST(an_atomic_carries_a_release_on_and_a_store_ends_it)
{
    CHECK(clean(relay([](uint32_t *flag) { atomicAdd(flag, 1u); })));
    CHECK(relay([](uint32_t *flag) {
              lb_ptx::store_relaxed<scope::gpu>(flag, 2u);
          }).has(fault::race));
}

/* All threads of block 0 write, and its thread 0 alone signals block 1. */
template <class Meet> static simt::outcome told_for_others(Meet meet)
{
    cells *c = fresh();
    return simt::launch(grid_of(2, 4, 3), [=] {
        if (blockIdx.x == 0) {
            c->data[threadIdx.x] = 1;
            meet();
            if (threadIdx.x == 0)
                lb_ptx::store_release<scope::gpu>(&c->flag[0], 1u);
        } else {
            while (acquire_gpu(&c->flag[0]) == 0) {
            }
            CHECK(c->data[threadIdx.x] == 1);
        }
    });
}

TEST(order_is_transitive_through_barriers)
{
    CHECK(clean(told_for_others([] { __syncthreads(); })));
    CHECK(told_for_others([] {}).has(fault::race));
}

TEST(shuffles_do_not_order_and_syncwarp_does)
{
    auto exchange = [](auto meet) {
        cells *c = fresh();
        return simt::launch(grid_of(1, 32, 4), [=] {
            if (threadIdx.x == 0)
                c->data[0] = 1;
            meet();
            if (threadIdx.x < 31)
                CHECK(c->data[0] == 1);
        });
    };
    CHECK(clean(exchange([] { __syncwarp(); })));
    CHECK(exchange([] { __shfl_sync(~0u, 1, 0); }).has(fault::race));
    auto exit_late = [](auto meet) {
        return [=] {
            for (int i = 0; threadIdx.x == 31 && i < 300; i++)
                __nanosleep(1);
            if (threadIdx.x < 31)
                meet();
        };
    };
    CHECK(clean(exchange(exit_late([] { __syncwarp(); }))));
    CHECK(exchange(exit_late([] { __shfl_sync(~0u, 1, 0); })).has(fault::race));
}

TEST(copies_by_memcpy_are_seen)
{
    using copier = void (*)(void *, const void *);
    static const copier copiers[] = {
        [](void *to, const void *from) { memcpy(to, from, 64); },
        [](void *to, const void *from) { std::memmove(to, from, 64); },
        [](void *to, const void *) { memset(to, 0, 64); },
    };
    for (copier copy : copiers) {
        for (bool ordered : {true, false}) {
            char *buffer = simt::device_copy(std::vector<char>(128), "buffer");
            simt::outcome o = simt::launch(grid_of(1, 64, 1), [=] {
                if (threadIdx.x == 0)
                    copy(buffer, buffer + 64);
                if (ordered)
                    __syncthreads();
                if (threadIdx.x == 63)
                    buffer[5] = 1;
            });
            CHECK(ordered ? clean(o) : o.has(fault::race));
        }
    }
}

struct large {
    int values[40];
};

TEST(copies_of_structures_are_seen)
{
    large *buffer = simt::device_copy(std::vector<large>(2), "buffer");
    simt::outcome o = simt::launch(grid_of(1, 64, 1), [=] {
        if (threadIdx.x == 0)
            buffer[0] = buffer[1];
        if (threadIdx.x == 63)
            buffer[0].values[33] = 1;
    });
    CHECK(o.has(fault::race));
}

TEST(neighbouring_bytes_are_apart)
{
    unsigned char *bytes = simt::device_array<unsigned char>(64, "bytes");
    CHECK(clean(simt::launch(grid_of(1, 64, 1), [=] { bytes[threadIdx.x] = 1; })));
    uint32_t *words = simt::device_copy(std::vector<uint32_t>(4, 0), "words");
    simt::outcome o = simt::launch(grid_of(1, 64, 1), [=] {
        if (threadIdx.x == 0)
            words[1] = 1;
        if (threadIdx.x == 63)
            reinterpret_cast<unsigned char *>(words)[6] = 1;
    });
    CHECK(o.has(fault::race));
}

TEST(poison_and_bounds_are_reported)
{
    float *values = simt::device_array<float>(4, "values");
    float *sink = simt::device_array<float>(4, "sink");
    simt::outcome o = simt::launch(grid_of(1, 1), [=] { sink[0] = values[2]; });
    CHECK(o.has(fault::uninitialised));
    CHECK(o.text().find("values+8 (of 16)") != std::string::npos);
    o = simt::launch(grid_of(1, 1), [=] { sink[1] = sink[4]; });
    CHECK(o.has(fault::bounds));
}

TEST(a_report_names_kernel_threads_and_both_lines)
{
    int *value = simt::device_copy(std::vector<int>(1, 0), "value");
    int line = __LINE__ + 3;
    simt::outcome o = simt::launch(grid_of(2, 32, 1), [=] {
        if (threadIdx.x == 7 && blockIdx.x == 0)
            *value = 1;
        if (threadIdx.x == 9 && blockIdx.x == 1)
            *value = 2;
    });
    std::string text = o.text();
    CHECK(o.has(fault::race));
    for (const std::string &part :
         {std::string("test kernel"), std::string("value+0 (of 4)"),
          std::string("block 0 thread 7"), std::string("block 1 thread 9"),
          "test_order.cpp:" + std::to_string(line), "test_order.cpp:" + std::to_string(line + 2)})
        CHECK(text.find(part) != std::string::npos);
}

TEST(a_weak_access_races_with_an_atomic)
{
    auto add = [](cells *c) { atomicAdd(&c->flag[0], 1u); };
    auto store = [](cells *c) { c->flag[0] = 5; };
    CHECK(pair_of(false, add, store).has(fault::race));
    auto volatile_store = [](cells *c) { *static_cast<volatile uint32_t *>(&c->flag[0]) = 5; };
    CHECK(clean(pair_of(false, add, volatile_store)));
}

/* One block writes into the other's shared memory. */
template <class Before, class After> static simt::outcome remote_write(Before before, After after)
{
    simt::outcome all;
    for (uint64_t seed = 0; seed < 6; seed++) {
        simt::outcome o = simt::launch(grid_of(2, 32, seed, 2, 16), [=] {
            LB_DYNAMIC_SHARED(float, shared);
            before();
            if (blockIdx.x == 0 && threadIdx.x == 0)
                lb_ptx::store_cluster(lb_ptx::map_shared_address(lb_ptx::shared_address(shared), 1),
                                      1.0f);
            after();
        });
        all.findings.insert(all.findings.end(), o.findings.begin(), o.findings.end());
    }
    return all;
}

TEST(remote_memory_lives_from_start_to_exit)
{
    auto meet = [] { lb_ptx::cluster_sync(); };
    auto pass = [] {};
    CHECK(clean(remote_write(meet, meet)));
    CHECK(remote_write(pass, meet).has(fault::remote_start));
    CHECK(remote_write(meet, pass).has(fault::remote_exit));
}

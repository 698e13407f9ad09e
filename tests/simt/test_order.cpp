/* test_order.cpp: litmus tests that compare the race detector with the memory model. Each
 * correct case has a mutant that must be found, because a detector that finds nothing would
 * pass all correct ones. It runs in check mode. */
#include "check.h"

using namespace simt_test;
using lb_ptx::scope;
using simt::fault;

static void set(uint32_t *word)
{
    lb_ptx::store_relaxed<scope::gpu>(word, 1u);
}

static void wait_for(const uint32_t *flag)
{
    while (lb_ptx::load_relaxed<scope::gpu>(flag) == 0) {
    }
}

/* Kernels know that data have arrived from the data themselves. */
TEST(relaxed_accesses_order_nothing_and_do_not_race)
{
    auto writes = [](auto write) {
        return [=](cells *c) {
            write(&c->data[0]);
            set(&c->flag[0]);
        };
    };
    auto consumer = [](cells *c) {
        wait_for(&c->flag[0]);
        wait_for(&c->data[0]);
    };
    CHECK(clean(pair_of(false, writes(set), consumer)));
    CHECK(pair_of(false, writes([](uint32_t *word) { *word = 1; }), consumer).has(fault::race));
}

TEST(a_block_scope_is_strong_in_one_block_only)
{
    auto store = [](cells *c) { lb_ptx::store_relaxed<scope::cta>(&c->flag[0], 1u); };
    CHECK(clean(pair_of(true, store, store)));
    CHECK(pair_of(false, store, store).has(fault::race));
}

/* Warp 0 writes and meets warp 1, which may then meet warp 2. */
TEST(order_is_transitive_through_barriers)
{
    auto chain = [](bool meets) {
        return litmus(grid_of(1, 96), [=](cells *c) {
            unsigned warp = threadIdx.x / 32;
            if (threadIdx.x == 0)
                c->data[0] = 1;
            if (warp < 2)
                lb_ptx::barrier_sync(1, 64);
            if (warp > 0 && meets)
                lb_ptx::barrier_sync(2, 64);
            if (warp == 2)
                CHECK(c->data[0] == 1 || !meets);
        });
    };
    CHECK(clean(chain(true)));
    CHECK(chain(false).has(fault::race));
}

TEST(a_cluster_barrier_orders_what_came_before_the_arrival)
{
    auto meet = [](bool early) {
        return litmus(grid_of(2, 32, 0, 2), [=](cells *c) {
            if (early)
                lb_ptx::cluster_arrive();
            if (threadIdx.x == 0)
                c->data[blockIdx.x] = 1;
            if (!early)
                lb_ptx::cluster_arrive();
            lb_ptx::cluster_wait();
            CHECK(c->data[1 - blockIdx.x] == 1 || early);
        });
    };
    CHECK(clean(meet(false)));
    CHECK(meet(true).has(fault::race));
}

TEST(shuffles_do_not_order_and_syncwarp_does)
{
    auto exchange = [](auto meet) {
        return litmus(grid_of(1, 32), [=](cells *c) {
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
            if (threadIdx.x == 31)
                nap(300);
            else
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
    CHECK(clean(pair_of(false, add, add)));
    CHECK(pair_of(false, add, store).has(fault::race));
}

/* ---- Strong accesses to a place that other accesses touch too -----------------------------------
 * Whether a pair of accesses races must not depend on accesses between them. */

/* Block 0 reads the counter, or the word beside it. Later block 1 counts, and then resets the
 * counter by a plain store. */
TEST(an_atomic_does_not_hide_a_read_by_another)
{
    auto look_at = [](int word) {
        auto reader = [=](cells *c) {
            lb_ptx::load_relaxed<scope::gpu>(&c->flag[word]);
            set(&c->flag[2]);
        };
        return pair_of(false, reader, [](cells *c) {
            wait_for(&c->flag[2]);
            atomicAdd(&c->flag[0], 1u);
            c->flag[0] = 0;
        });
    };
    CHECK(clean(look_at(1)));
    CHECK(look_at(0).has(fault::race));
}

/* One thread makes two accesses, first and then, and later another thread makes a third. The second
 * access must not hide a race of the first with the third. */
template <class First, class Second, class Third>
static void check_is_not_hidden(First first, Second second, Third third)
{
    for (bool races : {false, true}) {
        auto produce = [=](cells *c) {
            if (races)
                first(c);
            second(c);
            set(&c->flag[0]);
        };
        auto consume = [=](cells *c) {
            wait_for(&c->flag[0]);
            third(c);
        };
        simt::outcome o = pair_of(false, produce, consume);
        CHECK(races ? o.has(fault::race) : clean(o));
    }
}

TEST(a_strong_access_does_not_hide_its_threads_plain_or_narrow_one)
{
    auto add = [](cells *c) { atomicAdd(&c->data[0], 1u); };
    auto store = [](cells *c) { set(&c->data[0]); };
    check_is_not_hidden([](cells *c) { c->data[0] = 5; }, add, add);
    check_is_not_hidden([](cells *c) { lb_ptx::store_relaxed<scope::cta>(&c->data[0], 1u); }, add,
                        add);
    check_is_not_hidden([](cells *c) { CHECK(c->data[0] == 0); },
                        [](cells *c) { lb_ptx::load_relaxed<scope::gpu>(&c->data[0]); }, store);
}

TEST(strong_accesses_of_other_bytes_are_not_morally_strong)
{
    auto wide = [](cells *c) { atomicAdd(reinterpret_cast<unsigned long long *>(c->data), 1ull); };
    auto narrow = [](cells *c) { set(&c->data[0]); };
    auto beside = [](cells *c) { set(&c->data[2]); };
    CHECK(clean(pair_of(false, wide, wide)));
    CHECK(clean(pair_of(false, wide, beside)));
    CHECK(pair_of(false, wide, narrow).has(fault::race));
}

/* ---- Read-only loads ----------------------------------------------------------------------------
 */

/* What a read-only load reads must not change during the launch: by nobody, neither before nor
 * after the load, and not by a launch that this one follows. */
TEST(a_read_only_load_needs_memory_that_does_not_change)
{
    auto run = [](auto body) { return litmus(grid_of(1, 1), body); };
    CHECK(clean(run([](cells *c) { c->data[1] = __ldg(&c->data[0]); })));
    CHECK(run([](cells *c) {
              c->data[0] = 1;
              c->data[1] = __ldg(&c->data[0]);
          }).has(fault::misuse));
    CHECK(run([](cells *c) { c->data[0] = __ldg(&c->data[0]) + 1; }).has(fault::misuse));
}

TEST(a_read_only_load_finds_what_an_earlier_launch_has_written_unless_it_may_still_run)
{
    for (bool follows : {false, true}) {
        cells *c = simt::device_copy(std::vector<cells>(1), "cells");
        simt::written written;
        simt::launch_config config = grid_of(1, 1);
        config.leaves = &written;
        CHECK(clean(simt::launch(config, [=] { c->data[0] = 1; })));
        config.follows = follows ? &written : nullptr;
        simt::outcome o = simt::launch(config, [=] {
            lb_ptx::grid_dependency_wait();
            c->data[1] = __ldg(&c->data[0]);
        });
        CHECK(o.has(fault::misuse) == follows);
        CHECK(c->data[1] == 1);
    }
}

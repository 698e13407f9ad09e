/* test_strong.cpp: litmus tests, each with a mutant, for strong accesses to a place that
 * other accesses touch too. Whether a pair of accesses races must not depend on accesses between
 * them. It runs in check mode. */
#include "litmus.h"

using namespace simt_test;
using lb_ptx::scope;
using simt::fault;

static void wait_for(const uint32_t *flag, uint32_t value)
{
    while (lb_ptx::load_relaxed<scope::gpu>(flag) != value) {
    }
}

/* All blocks arrive at flag[0] by `arrive`, which tells whether the block is the last one. The
 * last block resets the flag by a plain store. */
template <class Arrive> static simt::outcome last_block_resets(Arrive arrive)
{
    simt::outcome all;
    for (uint64_t seed = 0; seed < 6; seed++) {
        cells *c = fresh();
        simt::outcome o = simt::launch(grid_of(3, 1, seed), [=] {
            if (arrive(c))
                c->flag[0] = 0;
        });
        all.findings.insert(all.findings.end(), o.findings.begin(), o.findings.end());
    }
    return all;
}

/* The last atomic observes the earlier ones, which therefore precede what follows it. Stores do
 * not observe one another. */
TEST(an_atomic_stands_for_those_it_observes_and_a_store_does_not)
{
    CHECK(clean(
        last_block_resets([](cells *c) { return atomicAdd(&c->flag[0], 1u) == gridDim.x - 1; })));
    CHECK(last_block_resets([](cells *c) {
              lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
              return atomicAdd(&c->data[0], 1u) == gridDim.x - 1;
          }).has(fault::race));
}

/* Blocks 0 and 1 set the flag or add to it. Later block 2 adds to it and then sets it by a plain
 * store. */
TEST(an_atomic_does_not_observe_what_was_overwritten)
{
    auto three = [](auto change) {
        return last_block_resets([=](cells *c) {
            if (blockIdx.x == 2) {
                wait_for(&c->data[0], 2);
                atomicAdd(&c->flag[0], 1u);
                return true;
            }
            change(&c->flag[0]);
            atomicAdd(&c->data[0], 1u);
            return false;
        });
    };
    CHECK(clean(three([](uint32_t *flag) { atomicAdd(flag, 1u); })));
    CHECK(three([](uint32_t *flag) {
              lb_ptx::store_relaxed<scope::gpu>(flag, 1u);
          }).has(fault::race));
}

/* Block 0 reads the counter, or the word beside it, and the other blocks count later. */
TEST(an_atomic_does_not_hide_a_read_by_another)
{
    auto look_at = [](int word) {
        return last_block_resets([=](cells *c) {
            if (blockIdx.x == 0) {
                lb_ptx::load_relaxed<scope::gpu>(&c->flag[word]);
                lb_ptx::store_relaxed<scope::gpu>(&c->flag[2], 1u);
                return false;
            }
            wait_for(&c->flag[2], 1);
            return atomicAdd(&c->flag[0], 1u) == gridDim.x - 2;
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
            lb_ptx::store_relaxed<scope::gpu>(&c->flag[0], 1u);
        };
        auto consume = [=](cells *c) {
            wait_for(&c->flag[0], 1);
            third(c);
        };
        simt::outcome o = pair_of(false, produce, consume);
        CHECK(races ? o.has(fault::race) : clean(o));
    }
}

TEST(a_strong_access_does_not_hide_its_threads_plain_or_narrow_one)
{
    auto add = [](cells *c) { atomicAdd(&c->data[0], 1u); };
    auto store = [](cells *c) { lb_ptx::store_relaxed<scope::gpu>(&c->data[0], 1u); };
    check_is_not_hidden([](cells *c) { c->data[0] = 5; }, add, add);
    check_is_not_hidden([](cells *c) { lb_ptx::store_relaxed<scope::cta>(&c->data[0], 1u); }, add,
                        add);
    check_is_not_hidden([](cells *c) { CHECK(c->data[0] == 0); },
                        [](cells *c) { lb_ptx::load_relaxed<scope::gpu>(&c->data[0]); }, store);
}

TEST(strong_accesses_of_other_bytes_are_not_morally_strong)
{
    auto wide = [](cells *c) { atomicAdd(reinterpret_cast<unsigned long long *>(c->data), 1ull); };
    auto narrow = [](cells *c) { lb_ptx::store_relaxed<scope::gpu>(&c->data[0], 1u); };
    auto beside = [](cells *c) { lb_ptx::store_relaxed<scope::gpu>(&c->data[2], 1u); };
    CHECK(clean(pair_of(false, wide, wide)));
    CHECK(clean(pair_of(false, wide, beside)));
    CHECK(pair_of(false, wide, narrow).has(fault::race));
}

/* What a read-only load reads must not change during the launch: by nobody, neither before nor
 * after the load, and not by a launch that this one follows. */
TEST(a_read_only_load_needs_memory_that_does_not_change)
{
    auto run = [](auto body) {
        cells *c = fresh();
        return simt::launch(grid_of(1, 1), [=] { body(c); });
    };
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
        cells *c = fresh();
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

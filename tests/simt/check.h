/* Named tests, one assertion, and what litmus tests share, for the tests in this folder. check.cpp
 * runs them. */
#ifndef LB_SIMT_CHECK_H
#define LB_SIMT_CHECK_H

#include "simt.h"

#include <cstdio>

#include "cuda/common/ptx.cuh"

namespace simt_test
{

/* TEST(name) { ... } defines a test and adds it to the program's list, which check.cpp runs. */
struct test {
    const char *name;
    void (*body)();
    test *next;

    static inline test *first = nullptr, **end = &first;
    test(const char *name_, void (*body_)()) : name(name_), body(body_), next(nullptr)
    {
        *end = this;
        end = &next;
    }
};
#define TEST(name)                                       \
    static void name();                                  \
    static simt_test::test entry_of_##name(#name, name); \
    static void name()

inline int failures;

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            simt_test::failures++;                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                           \
    } while (0)

/* Returns whether there are no findings, and prints them otherwise. */
inline bool clean(const simt::outcome &o)
{
    fputs(o.text().c_str(), stderr);
    return o.ok();
}

inline simt::launch_config grid_of(unsigned blocks, unsigned threads, uint64_t seed = 0,
                                   unsigned cluster = 1, size_t shared_bytes = 0)
{
    simt::launch_config config = {"test kernel"};
    config.grid.x = blocks;
    config.block.x = threads;
    config.seed = seed;
    config.cluster = cluster;
    config.shared_bytes = shared_bytes;
    return config;
}

/* Data and flags of one launch, which start with zeros. */
struct cells {
    uint32_t data[4], flag[4];
};

/* Runs body(cells *) under several seeds, and returns their findings together. */
template <class Body> simt::outcome litmus(simt::launch_config config, const Body &body)
{
    simt::outcome all;
    for (config.seed = 0; config.seed < 8; config.seed++) {
        cells *c = simt::device_copy(std::vector<cells>(1), "cells");
        all.add(simt::launch(config, [=] { body(c); }));
    }
    return all;
}

/* Runs the producer in block 0 and the consumer in block 1, or in warps 0 and 1 of one block, with
 * one thread each. */
template <class Producer, class Consumer>
simt::outcome pair_of(bool one_block, Producer producer, Consumer consumer)
{
    return litmus(grid_of(one_block ? 1 : 2, one_block ? 64 : 32), [=](cells *c) {
        unsigned side = one_block ? threadIdx.x / 32 : blockIdx.x;
        if (threadIdx.x % 32 == 0 && side == 0)
            producer(c);
        else if (threadIdx.x % 32 == 0)
            consumer(c);
    });
}

/* ---- For kernels of tests -------------------------------------------------------------------- */

/* Lets other threads run, several times. */
inline void nap(unsigned times, simt::site at = simt::site::here())
{
    for (; times > 0; times--)
        simt::yield(at);
}

inline void cluster_sync(simt::site at = simt::site::here())
{
    lb_ptx::cluster_arrive(at);
    lb_ptx::cluster_wait(at);
}

/* The address of the same variable in another block of the cluster. */
inline uint32_t at_rank(unsigned rank, const void *address)
{
    return lb_ptx::map_shared_address(lb_ptx::shared_address(address), rank);
}

/* Initialises an mbarrier in shared memory for one arrival per phase. */
inline uint64_t *one_arrival(void *shared)
{
    auto *barrier = static_cast<uint64_t *>(shared);
    lb_ptx::mbarrier_init(barrier, 1);
    lb_ptx::fence_mbarrier_init();
    return barrier;
}

} // namespace simt_test

#endif

/* What the litmus tests of the race detector share. They run in check mode. */
#ifndef LB_SIMT_LITMUS_H
#define LB_SIMT_LITMUS_H

#include "check.h"

#include "cuda/common/ptx.cuh"

namespace simt_test
{

/* Data and flags of one litmus test, which start with zeros. */
struct cells {
    uint32_t data[4], flag[4];
};

inline cells *fresh()
{
    return simt::device_copy(std::vector<cells>(1), "cells");
}

/* Runs the producer in block 0 and the consumer in block 1, or in warps 0 and 1 of one block, with
 * one thread each, under several seeds. */
template <class Producer, class Consumer>
simt::outcome pair_of(bool one_block, Producer producer, Consumer consumer)
{
    simt::outcome all;
    for (uint64_t seed = 0; seed < 6; seed++) {
        cells *c = fresh();
        simt::outcome o = simt::launch(grid_of(one_block ? 1 : 2, one_block ? 64 : 32, seed), [=] {
            unsigned side = one_block ? threadIdx.x / 32 : blockIdx.x;
            if (threadIdx.x % 32 != 0)
                return;
            if (side == 0)
                producer(c);
            else
                consumer(c);
        });
        all.findings.insert(all.findings.end(), o.findings.begin(), o.findings.end());
    }
    return all;
}

} // namespace simt_test

#endif

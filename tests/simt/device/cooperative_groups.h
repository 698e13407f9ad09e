/* cooperative_groups.h: replaces CUDA's header of this name when kernels are compiled for the
 * host. It has the parts of the CUDA C++ Programming Guide, "Cooperative Groups", that the
 * project's kernels use. */
#ifndef LB_SIMT_COOPERATIVE_GROUPS_H
#define LB_SIMT_COOPERATIVE_GROUPS_H

#include "device.h"

namespace cooperative_groups
{

struct thread_block {
    void sync(simt::site at = simt::site::here()) const
    {
        simt::block_barrier(0, 0, at);
    }
    unsigned thread_rank() const
    {
        return simt::linear_thread();
    }
    unsigned size() const
    {
        return blockDim.x * blockDim.y * blockDim.z;
    }
};

struct grid_group {
    bool is_valid() const
    {
        return true;
    }
    void sync(simt::site at = simt::site::here()) const
    {
        simt::grid_barrier(at);
    }
    unsigned num_blocks() const
    {
        return gridDim.x * gridDim.y * gridDim.z;
    }
    unsigned block_rank() const
    {
        return simt::linear_block();
    }
};

struct cluster_group {
    void sync(simt::site at = simt::site::here()) const
    {
        simt::cluster_barrier(at);
    }
    void barrier_arrive(simt::site at = simt::site::here()) const
    {
        simt::cluster_arrive(at);
    }
    void barrier_wait(simt::site at = simt::site::here()) const
    {
        simt::cluster_wait(at);
    }
    unsigned num_blocks() const
    {
        return simt::cluster_size;
    }
    unsigned block_rank() const
    {
        return simt::linear_block() % simt::cluster_size;
    }
    template <class T>
    T *map_shared_rank(T *address, unsigned rank, simt::site at = simt::site::here()) const
    {
        return static_cast<T *>(simt::map_shared(address, rank, at));
    }
};

inline thread_block this_thread_block()
{
    return {};
}

inline grid_group this_grid()
{
    return {};
}

inline cluster_group this_cluster()
{
    return {};
}

} // namespace cooperative_groups

#endif

/* The functions of cuda/common/ptx.cuh for the host, under the same names and the same path, which
 * is found first. That file describes them; comments here say only what differs on the host. */
#ifndef LB_PTX_CUH
#define LB_PTX_CUH

#include "device.h"
#include "simt_mma.h"

#define LB_PTX_SM90 1

/* The array is aligned to 128 bytes, as on the device. */
#define LB_DYNAMIC_SHARED(type, name) type *name = ::simt::dynamic_shared_array<type>()

namespace lb_ptx
{

using simt::scope;
using simt::site;

/* ---- Order ----------------------------------------------------------------------------------- */

template <scope S, class T> inline T load_relaxed(const T *from, site at = site::here())
{
    return simt::strong_load(from, S, at);
}

template <scope S, class T> inline void store_relaxed(T *to, T value, site at = site::here())
{
    simt::strong_store(to, value, S, at);
}

/* Reads the words one by one and lets other threads run in between. */
template <scope S>
inline void load_relaxed4(uint32_t (&to)[4], const void *from, site at = site::here())
{
    simt::check_alignment(from, 16, "load_relaxed4", at);
    for (int i = 0; i < 4; i++)
        to[i] = simt::strong_load(static_cast<const uint32_t *>(from) + i, S, at);
}

template <scope S>
inline void store_relaxed4(void *to, const uint32_t (&value)[4], site at = site::here())
{
    simt::check_alignment(to, 16, "store_relaxed4", at);
    for (int i = 3; i >= 0; i--)
        simt::strong_store(static_cast<uint32_t *>(to) + i, value[i], S, at);
}

/* ---- Barriers -------------------------------------------------------------------------------- */

inline void barrier_sync(unsigned id, unsigned count, site at = site::here())
{
    simt::block_barrier(id, count, at);
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

inline float flush_denormal(float x)
{
    return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x;
}

inline float exp2_approx(float x)
{
    return flush_denormal(std::exp2(flush_denormal(x)));
}

inline float reciprocal_approx(float x)
{
    return flush_denormal(1.0f / flush_denormal(x));
}

/* ---- Shared memory --------------------------------------------------------------------------- */

inline uint32_t shared_address(const void *address)
{
    return simt::shared_address(address);
}

template <int bytes>
inline void copy_async(void *to, const void *from, unsigned from_bytes = bytes,
                       site at = site::here())
{
    static_assert(bytes == 16, "the size that kernels use");
    simt::copy_async(to, from, from_bytes, bytes - from_bytes, at);
}

inline void copy_async_commit()
{
    simt::copy_async_commit();
}

template <int keep> inline void copy_async_wait()
{
    simt::copy_async_wait(keep);
}

/* ---- Launches that begin early --------------------------------------------------------------- */

inline void grid_dependency_wait(site at = site::here())
{
    simt::grid_dependency_wait(at);
}

/* The emulator begins each launch that follows another as early as it may. */
inline void launch_dependents()
{
}

/* ---- Clusters -------------------------------------------------------------------------------- */

inline uint32_t map_shared_address(uint32_t address, unsigned rank, site at = site::here())
{
    return simt::map_shared_address(address, rank, at);
}

inline unsigned cluster_rank()
{
    return simt::linear_block() % simt::cluster_size;
}

inline void cluster_arrive(site at = site::here())
{
    simt::cluster_arrive(at);
}

inline void cluster_wait(site at = site::here())
{
    simt::cluster_wait(at);
}

/* ---- mbarrier -------------------------------------------------------------------------------- */

inline void mbarrier_init(uint64_t *barrier, unsigned count, site at = site::here())
{
    simt::mbarrier_init(barrier, count, at);
}

inline void fence_mbarrier_init()
{
}

inline void mbarrier_arrive_expect_bytes(uint64_t *barrier, unsigned bytes, site at = site::here())
{
    simt::mbarrier_arrive_expect(barrier, bytes, at);
}

template <scope S>
inline bool mbarrier_try_wait(uint64_t *barrier, unsigned parity, site at = site::here())
{
    return simt::mbarrier_test(barrier, parity, S, at);
}

template <scope S>
inline void mbarrier_wait(uint64_t *barrier, unsigned parity, site at = site::here())
{
    while (!mbarrier_try_wait<S>(barrier, parity, at)) {
    }
}

/* ---- Asynchronous stores --------------------------------------------------------------------- */

inline void store_async(uint32_t to, const float (&value)[4], uint32_t barrier,
                        site at = site::here())
{
    simt::store_async(to, value, sizeof value, barrier, at);
}

} // namespace lb_ptx

#endif

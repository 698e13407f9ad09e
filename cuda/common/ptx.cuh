/* All inline PTX of the project.
 *
 * There is one function per instruction, named for it; the comment before it quotes the section of
 * the PTX ISA manual that describes the instruction. The emulator has a file of the same path in
 * tests/simt/device, so that a kernel runs on the CPU unchanged. A new function needs a twin there
 * and a test in tests/simt/test_ptx.cpp.
 *
 * An instruction that can reach another block of the cluster takes shared-memory addresses of 32
 * bits: shared_address() returns one of this block, and map_shared_address() the same address in
 * a peer. Functions that need sm_90 are declared only where LB_PTX_SM90 is defined. */
#ifndef LB_PTX_CUH
#define LB_PTX_CUH

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define LB_PTX_SM90 1
#endif

/* Declares `name`: the block's dynamic shared memory as an array of `type`. */
#define LB_DYNAMIC_SHARED(type, name)                                   \
    extern __shared__ __align__(128) unsigned char lb_dynamic_shared[]; \
    type *name = reinterpret_cast<type *>(lb_dynamic_shared)

namespace lb_ptx
{

/* The scope of a strong operation: the threads with which it is ordered. */
enum class scope { cta, cluster, gpu };

/* ---- Order: "ld", "st"; "Memory Consistency Model" ------------------------------------------- */

template <scope S, class T> __device__ inline T load_relaxed(const T *from);
template <scope S, class T> __device__ inline void store_relaxed(T *to, T value);

#define LB_PTX_STRONG(SCOPE, T, WIDTH, LETTER)                                             \
    template <> __device__ inline T load_relaxed<scope::SCOPE, T>(const T *from)           \
    {                                                                                      \
        T value;                                                                           \
        asm volatile("ld.relaxed." #SCOPE ".b" WIDTH " %0, [%1];"                          \
                     : "=" LETTER(value)                                                   \
                     : "l"(from)                                                           \
                     : "memory");                                                          \
        return value;                                                                      \
    }                                                                                      \
    template <> __device__ inline void store_relaxed<scope::SCOPE, T>(T * to, T value)     \
    {                                                                                      \
        asm volatile("st.relaxed." #SCOPE ".b" WIDTH " [%0], %1;" ::"l"(to), LETTER(value) \
                     : "memory");                                                          \
    }

LB_PTX_STRONG(cta, uint32_t, "32", "r")
LB_PTX_STRONG(gpu, uint32_t, "32", "r")
LB_PTX_STRONG(gpu, uint64_t, "64", "l")
#undef LB_PTX_STRONG

/* Access four words of global memory at once, aligned to 16 bytes. Each word is an access of its
 * own, and their order is not defined ("Vector Data-types" of the memory consistency model). */
template <scope S> __device__ inline void load_relaxed4(uint32_t (&to)[4], const void *from)
{
    static_assert(S == scope::gpu, "the scope that kernels use");
    asm volatile("ld.relaxed.gpu.global.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "l"(__cvta_generic_to_global(from))
                 : "memory");
}

template <scope S> __device__ inline void store_relaxed4(void *to, const uint32_t (&value)[4])
{
    static_assert(S == scope::gpu, "the scope that kernels use");
    asm volatile(
        "st.relaxed.gpu.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)),
        "r"(value[0]), "r"(value[1]), "r"(value[2]), "r"(value[3])
        : "memory");
}

/* ---- Barriers for some warps of a block: "barrier{.cta}" ------------------------------------- */

/* id is 1 to 15, as 0 is __syncthreads; count is a number of threads, a multiple of 32. */
__device__ inline void barrier_sync(unsigned id, unsigned count)
{
    asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}

/* ---- Arithmetic ------------------------------------------------------------------------------ */

/* "ex2": 2^x, relative error up to 2^-22; denormal arguments and results become zero. */
__device__ inline float exp2_approx(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* "rcp": 1 / x, relative error up to 2^-23; denormal arguments and results become zero. */
__device__ inline float reciprocal_approx(float x)
{
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* "cvt": rounds to the nearest TF32, ties away from zero. */
__device__ inline uint32_t to_tf32(float x)
{
    uint32_t y;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
    return y;
}

/* ---- Tensor cores: "mma", "Matrix Fragments for mma.m16n8k16 / m16n8k8" ---------------------- */

/* d [16, 8] f32 += a [16, K] b [K, 8]. K is 16 for T = __half and __nv_bfloat16, and 8 for T =
 * float, whose operands are what to_tf32 returns. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: rows g, g+8, g, g+8, at columns 2t, 2t, 2t+8, 2t+8, two neighbours per register;
 *      of TF32 at columns t, t, t+4, t+4
 *   b: rows 2t and 2t+8, two neighbours per register, or of TF32 rows t and t+4; at column g
 *   d: (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1). */
template <class T>
__device__ inline void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]);

#define LB_PTX_MMA(T, shape, type)                                                            \
    template <>                                                                               \
    __device__ inline void mma<T>(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) \
    {                                                                                         \
        asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "          \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                         \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));     \
    }
LB_PTX_MMA(__half, "m16n8k16", "f16")
LB_PTX_MMA(__nv_bfloat16, "m16n8k16", "bf16")
LB_PTX_MMA(float, "m16n8k8", "tf32")
#undef LB_PTX_MMA

/* ---- Shared memory --------------------------------------------------------------------------- */

/* "cvta" */
__device__ inline uint32_t shared_address(const void *address)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(address));
}

/* "ldmatrix": loads 4 matrices [8, 8] of 16-bit elements. Lane 8i + r passes the address of row r
 * of matrix i, 16 aligned bytes. Each lane receives element (lane / 4, 2 * (lane % 4)) of each
 * matrix and its right neighbour. */
__device__ inline void ldmatrix(uint32_t (&to)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* "cp.async": copies 16 bytes from global to shared memory, past the first-level cache, which would
 * not use them again. It reads `from_bytes` of them and fills up with zeros. */
template <int bytes>
__device__ inline void copy_async(void *to, const void *from, unsigned from_bytes = bytes)
{
    static_assert(bytes == 16, "the size that kernels use");
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(from_bytes)
                 : "memory");
}

/* "cp.async.commit_group" closes a group of copies; "cp.async.wait_group" waits until all groups
 * but the last `keep` are complete. */
__device__ inline void copy_async_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int keep> __device__ inline void copy_async_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(keep) : "memory");
}

#ifdef LB_PTX_SM90

/* ---- Launches that begin before the one before has ended: "griddepcontrol" ------------------- */

/* Waits until the launch before has ended and all that it wrote is visible. Returns at once where
 * this launch began after that, as it does without the attribute. */
__device__ inline void grid_dependency_wait()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}

/* Lets the next launch begin, once all blocks of this one have called this or have ended. */
__device__ inline void launch_dependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* ---- Clusters: "mapa", "barrier.cluster" ----------------------------------------------------- */

/* The address of the same variable in block `rank` of the cluster. */
__device__ inline uint32_t map_shared_address(uint32_t address, unsigned rank)
{
    uint32_t mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

__device__ inline unsigned cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

/* The barrier of all threads of all blocks of the cluster. Arriving releases, waiting acquires. */
__device__ inline void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ inline void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* ---- mbarrier: "mbarrier.init", ".arrive", ".expect_tx", ".try_wait" ------------------------- */

/* A phase completes after `count` arrivals and after all expected bytes have arrived. */
__device__ inline void mbarrier_init(uint64_t *barrier, unsigned count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(count)
                 : "memory");
}

/* "membar / fence": makes this thread's mbarrier.init visible to the cluster. */
__device__ inline void fence_mbarrier_init()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void mbarrier_arrive_expect_bytes(uint64_t *barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 _, [%0], %1;" ::"r"(
                     shared_address(barrier)),
                 "r"(bytes)
                 : "memory");
}

/* Returns whether the phase of this parity is complete, and may suspend the thread for a while
 * first. Acquires at scope S: cta for arrivals of this block, cluster for those of peers. */
template <scope S> __device__ inline bool mbarrier_try_wait(uint64_t *barrier, unsigned parity)
{
    static_assert(S == scope::cluster, "the scope that kernels use");
    unsigned over;
    asm volatile("{\n\t"
                 ".reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;\n\t"
                 "}"
                 : "=r"(over)
                 : "r"(shared_address(barrier)), "r"(parity)
                 : "memory");
    return over != 0;
}

template <scope S> __device__ inline void mbarrier_wait(uint64_t *barrier, unsigned parity)
{
    while (!mbarrier_try_wait<S>(barrier, parity)) {
    }
}

/* ---- Asynchronous stores: "st.async" --------------------------------------------------------- */

/* Stores 16 bytes to a peer's shared memory; when the store is performed, they count at the peer's
 * mbarrier. It is a weak operation and orders no other access. */
__device__ inline void store_async(uint32_t to, const float (&value)[4], uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(barrier)
                 : "memory");
}

#endif

} // namespace lb_ptx

#endif

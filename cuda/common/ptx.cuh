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

/* ---- Order: "ld", "st"; "Memory Consistency Model" --------------------------------------------
 */

/* The strong operations of one scope and width. Used through the templates below. */
template <scope S, class T> struct strong;

#define LB_PTX_STRONG(SCOPE, T, WIDTH, LETTER)                                                 \
    template <> struct strong<scope::SCOPE, T> {                                               \
        static __device__ inline T load_relaxed(const T *from)                                 \
        {                                                                                      \
            T value;                                                                           \
            asm volatile("ld.relaxed." #SCOPE ".b" WIDTH " %0, [%1];"                          \
                         : "=" LETTER(value)                                                   \
                         : "l"(from)                                                           \
                         : "memory");                                                          \
            return value;                                                                      \
        }                                                                                      \
        static __device__ inline void store_relaxed(T *to, T value)                            \
        {                                                                                      \
            asm volatile("st.relaxed." #SCOPE ".b" WIDTH " [%0], %1;" ::"l"(to), LETTER(value) \
                         : "memory");                                                          \
        }                                                                                      \
    };

LB_PTX_STRONG(cta, uint32_t, "32", "r")
LB_PTX_STRONG(gpu, uint32_t, "32", "r")
LB_PTX_STRONG(gpu, uint64_t, "64", "l")
#undef LB_PTX_STRONG

/* T: uint32_t or uint64_t. */
template <scope S, class T> __device__ inline T load_relaxed(const T *from)
{
    return strong<S, T>::load_relaxed(from);
}

template <scope S, class T> __device__ inline void store_relaxed(T *to, T value)
{
    strong<S, T>::store_relaxed(to, value);
}

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

/* ---- Barriers for some warps of a block: "barrier{.cta}" --------------------------------------
 */

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

/* d [16, 8] f32 = a [16, 16] b [16, 8] + c. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: rows g, g+8, g, g+8 at columns 2t, 2t, 2t+8, 2t+8, two neighbours per register
 *   b: rows 2t and 2t+8, two neighbours per register, at column g
 *   c, d: (g, 2t) (g, 2t+1) (g+8, 2t) (g+8, 2t+1).   d may alias c. */
#define LB_PTX_MMA_16(name, type)                                                           \
    __device__ inline void name(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2], \
                                const float(&c)[4])                                         \
    {                                                                                       \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 "         \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"  \
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                       \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]),    \
                       "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));                         \
    }
LB_PTX_MMA_16(mma_f16, "f16")
LB_PTX_MMA_16(mma_bf16, "bf16")
#undef LB_PTX_MMA_16

/* d [16, 8] f32 = a [16, 8] b [8, 8] + c. The operands are what to_tf32 returns.
 *   a: (g, t) (g+8, t) (g, t+4) (g+8, t+4)   b: (t, g) (t+4, g)   c, d: as above. */
__device__ inline void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                const float (&c)[4])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]),
                   "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

/* ---- Shared memory --------------------------------------------------------------------------- */

/* "cvta" */
__device__ inline uint32_t shared_address(const void *address)
{
    return static_cast<uint32_t>(__cvta_generic_to_shared(address));
}

/* "ldmatrix": loads 2 or 4 matrices [8, 8] of 16-bit elements. Lane 8i + r passes the address of
 * row r of matrix i, 16 aligned bytes. Each lane receives element (lane / 4, 2 * (lane % 4)) of
 * each matrix and its right neighbour. */
__device__ inline void ldmatrix(uint32_t (&to)[2], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(shared_address(row))
                 : "memory");
}

__device__ inline void ldmatrix(uint32_t (&to)[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

/* "cp.async": copies 4, 8 or 16 bytes from global to shared memory. It reads `from_bytes` of them
 * and fills up with zeros. */
template <int bytes>
__device__ inline void copy_async(void *to, const void *from, unsigned from_bytes = bytes)
{
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async moves 4, 8 or 16 bytes");
    if (bytes == 16) /* bypasses the first-level cache, which would not use it again */
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                     "l"(from), "r"(from_bytes)
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
                     "l"(from), "n"(bytes), "r"(from_bytes)
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
#include "cuda/common/ptx_sm90.cuh"
#endif

} // namespace lb_ptx

#endif

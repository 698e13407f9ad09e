/* The part of ptx.cuh that needs sm_90: clusters, mbarriers that count bytes and
 * asynchronous stores. Only ptx.cuh includes it, inside its namespace. */

/* ---- Launches that begin before the one before has ended: "griddepcontrol" --------------------
 */

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
template <scope S> __device__ inline bool mbarrier_try_wait(uint64_t *barrier, unsigned parity);

#define LB_PTX_TRY_WAIT(SCOPE)                                                                  \
    template <>                                                                                 \
    __device__ inline bool mbarrier_try_wait<scope::SCOPE>(uint64_t * barrier, unsigned parity) \
    {                                                                                           \
        unsigned over;                                                                          \
        asm volatile("{\n\t"                                                                    \
                     ".reg .pred p;\n\t"                                                        \
                     "mbarrier.try_wait.parity.acquire." #SCOPE                                 \
                     ".shared::cta.b64 p, [%1], %2;\n\t"                                        \
                     "selp.u32 %0, 1, 0, p;\n\t"                                                \
                     "}"                                                                        \
                     : "=r"(over)                                                               \
                     : "r"(shared_address(barrier)), "r"(parity)                                \
                     : "memory");                                                               \
        return over != 0;                                                                       \
    }
LB_PTX_TRY_WAIT(cta)
LB_PTX_TRY_WAIT(cluster)
#undef LB_PTX_TRY_WAIT

template <scope S> __device__ inline void mbarrier_wait(uint64_t *barrier, unsigned parity)
{
    while (!mbarrier_try_wait<S>(barrier, parity)) {
    }
}

/* ---- Asynchronous stores: "st.async" --------------------------------------------------------- */

/* Stores to a peer's shared memory; when the store is performed, its bytes count at the peer's
 * mbarrier. It is a weak operation and orders no other access. */
__device__ inline void store_async(uint32_t to, float value, uint32_t barrier)
{
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [%0], %1, [%2];" ::"r"(to),
        "f"(value), "r"(barrier)
        : "memory");
}

__device__ inline void store_async(uint32_t to, const float (&value)[4], uint32_t barrier)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
                 "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(barrier)
                 : "memory");
}

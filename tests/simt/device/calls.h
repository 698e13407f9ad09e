/* What device code on the host calls in the runtime. The other headers of this folder wrap these
 * functions in CUDA's names; kernels do not call them. */
#ifndef LB_SIMT_CALLS_H
#define LB_SIMT_CALLS_H

#include "../simt.h"

namespace simt
{

constexpr unsigned warp_lanes = 32;

/* Marks runtime code in a kernel's translation unit. It is not part of the kernel, so its
 * accesses are not checked. */
#define SIMT_RUNTIME __attribute__((no_sanitize("thread"), noinline))

/* The running CUDA thread, as far as device code may see it. */
struct identity {
    uint3 thread_index = {}, block_index = {};
    unsigned lane = 0;
};
extern identity *self; /* nullptr outside kernels */
extern dim3 grid_size, block_size;
extern unsigned cluster_size;
unsigned linear_block();
unsigned linear_thread();

void yield(site at); /* lets other threads run */
[[noreturn]] void fail(site at, const char *text, ...) __attribute__((format(printf, 2, 3)));

/* The scopes of PTX ISA, "Scope", that kernels use, from the narrowest to the widest. */
enum class scope { cta, cluster, gpu };

/* Barriers. For named ones see PTX ISA, "barrier{.cta}"; a count of 0 means the whole block. */
void block_barrier(unsigned id, unsigned count, site at);
void cluster_arrive(site at);
void cluster_wait(site at);

/* Warp collectives: all lanes that have not exited pass an operand. When all have arrived, `finish`
 * may compute with the slots, and then all lanes read all slots. */
struct alignas(16) lane_slot {
    unsigned char bytes[64];
};
struct collective {
    const char *name;
    bool orders_memory;               /* true for __syncwarp only */
    void (*finish)(lane_slot *slots); /* nullptr: nothing to compute; else no lane has exited */
};
struct meeting {
    uint32_t lanes; /* the lanes that passed an operand */
    lane_slot slots[warp_lanes];
};
const meeting &warp_exchange(const void *operand, size_t bytes, const collective &what, site at);

/* Announces a strong access: lets other threads run first, and checks. The access follows at once,
 * and then no other thread runs. */
enum class strong { load, store, update };
void strong_access(const void *address, size_t bytes, strong kind, scope s, site at);
void progress(); /* memory has changed, which may end a spinning loop */

/* Returns when all threads of the launch have called it: see follow.cpp. */
void grid_dependency_wait(site at);

/* A load whose memory nobody may write while the launch runs, nor the launch before if that may
 * still run. The load itself is announced like any other. */
void load_read_only(const void *address, size_t bytes, site at);

/* Ends the launch where an instruction needs an address that is aligned to so many bytes. */
void check_alignment(const void *address, size_t bytes, const char *what, site at);

/* A weak access by a wrapper on behalf of the thread, which the compiler does not announce. */
void weak_access(const void *address, size_t bytes, bool write, site at);

/* Shared memory. */
void *dynamic_shared();
template <class T> T *dynamic_shared_array()
{
    return static_cast<T *>(dynamic_shared());
}
uint32_t shared_address(const void *address); /* its 32-bit address, different for each block */
uint32_t map_shared_address(uint32_t address, unsigned rank, site at);

/* Asynchronous copies: see async.cpp. */
void copy_async(void *to, const void *from, size_t bytes, size_t zero_bytes, site at);
void copy_async_commit();
void copy_async_wait(unsigned keep);
void store_async(uint32_t to, const void *value, size_t bytes, uint32_t barrier, site at);

/* mbarriers: see mbarrier.cpp. */
void mbarrier_init(void *barrier, unsigned count, site at);
void mbarrier_arrive_expect(void *barrier, unsigned bytes, site at);
bool mbarrier_test(const void *barrier, unsigned parity, scope s, site at);

} // namespace simt

#endif

/* tsan_hooks.cpp: the functions that -fsanitize=thread makes every memory access call, and the one
 * that -fsanitize=alignment calls for an access that is not aligned to its type.
 *
 * The program is linked with these instead of the sanitizers' own libraries. The compiler does not
 * announce calls of memcpy, memmove and memset, so device/device.h redirects them here. */
#include "internal.h"

#include <cstring>

namespace simt
{

namespace
{

constexpr unsigned longest_stride = 128;

/* Lets another thread run before some of the accesses. */
void preempt()
{
    if (state.config.seed == 0 || state.accesses_to_preemption--)
        return;
    state.accesses_to_preemption = static_cast<unsigned>(random_bits() % longest_stride);
    thread *t = current();
    make_ready(t);
    wait(nullptr, t->waits_at);
}

void plain(void *address, size_t bytes, bool write, const void *program_counter)
{
    if (!self || !in_arena(address))
        return;
    if (state.check)
        preempt();
    announce(address, bytes, write ? strong::store : strong::load, -1, place_of(program_counter));
}

/* What the compiler says of an access, in the layout that GCC and Clang share. */
struct described_access {
    const char *file;
    uint32_t line, column;
    const struct {
        uint16_t kind, info;
        char name[1];
    } * type;
    unsigned char log_alignment, kind;
};

} // namespace

} // namespace simt

/* GCC and Clang define these names and argument lists. */
#define HOOK(name, n, write)                                   \
    void __tsan_##name##n(void *p)                             \
    {                                                          \
        simt::plain(p, n, write, __builtin_return_address(0)); \
    }
#define HOOKS(n)                   \
    HOOK(read, n, false)           \
    HOOK(write, n, true)           \
    HOOK(unaligned_read, n, false) \
    HOOK(unaligned_write, n, true)

extern "C" {

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

void __tsan_read_range(void *p, unsigned long n)
{
    simt::plain(p, n, false, __builtin_return_address(0));
}

void __tsan_write_range(void *p, unsigned long n)
{
    simt::plain(p, n, true, __builtin_return_address(0));
}

void __tsan_init()
{
}

/* A device refuses such an access: an ordinary load or store of a vector is one instruction. */
void __ubsan_handle_type_mismatch_v1(const simt::described_access *access, const void *address)
{
    simt::site at = {access->file, static_cast<int>(access->line)};
    if (simt::self)
        simt::check_alignment(address, size_t{1} << access->log_alignment, access->type->name, at);
}

/* Called for classes of the tests; kernels have no virtual functions. */
void __tsan_vptr_update(void **, void *)
{
}

/* memcpy is redirected here too. */
void *simt_memmove(void *to, const void *from, size_t n)
{
    simt::plain(const_cast<void *>(from), n, false, __builtin_return_address(0));
    simt::plain(to, n, true, __builtin_return_address(0));
    return memmove(to, from, n);
}

void *simt_memset(void *to, int value, size_t n)
{
    simt::plain(to, n, true, __builtin_return_address(0));
    return memset(to, value, n);
}
}

/* Stacks and the switch between them, for x86-64. */
#include "fiber.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

#if !defined(__x86_64__)
#error "the fiber switch is written for x86-64"
#endif

/* System V ABI: rbx, rbp and r12 to r15 belong to the caller, all else may be lost in a call. The
 * floating-point control words are never changed here, so they need no saving. */
asm(R"(
    .text
    .globl simt_switch
    .type simt_switch, @function
simt_switch:
    push %rbp
    push %rbx
    push %r12
    push %r13
    push %r14
    push %r15
    mov %rsp, (%rdi)
    mov %rsi, %rsp
    pop %r15
    pop %r14
    pop %r13
    pop %r12
    pop %rbx
    pop %rbp
    ret
    .size simt_switch, . - simt_switch
)");

namespace simt
{

namespace
{

constexpr size_t stack_bytes = size_t{64} << 10;
constexpr size_t guard_bytes = 4096;
constexpr unsigned stacks_a_slab = 128;
std::vector<unsigned char *> slabs;

unsigned char *new_slab()
{
    void *slab = mmap(nullptr, stack_bytes * stacks_a_slab, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (slab == MAP_FAILED) {
        perror("simt: stacks");
        exit(2);
    }
    for (unsigned i = 0; i < stacks_a_slab;
         i++) /* an overflow causes a fault instead of overwriting another stack */
        mprotect(static_cast<unsigned char *>(slab) + i * stack_bytes, guard_bytes, PROT_NONE);
    return static_cast<unsigned char *>(slab);
}

} // namespace

void *fiber_stack(unsigned i, void (*entry)())
{
    while (slabs.size() <= i / stacks_a_slab)
        slabs.push_back(new_slab());
    unsigned char *end = slabs[i / stacks_a_slab] + (i % stacks_a_slab + 1) * stack_bytes;
    /* The stack looks as if simt_switch had been called where `entry` begins: six saved
     * registers lie below the return address, and a word above it aligns the stack as it is
     * after a call. */
    void **top = reinterpret_cast<void **>(end) - 2;
    top[1] = nullptr;
    *top = reinterpret_cast<void *>(entry);
    for (int r = 0; r < 6; r++)
        *--top = nullptr;
    return top;
}

} // namespace simt

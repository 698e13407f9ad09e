/* fiber.h: stacks and the switch between them. */
#ifndef LB_SIMT_FIBER_H
#define LB_SIMT_FIBER_H

namespace simt
{

/* Saves the callee-saved registers and the stack pointer to *save, goes on at `to`. */
extern "C" void simt_switch(void **save, void *to);

/* A fresh stack that starts in entry, which must not return. Stacks are reused: number i's is
 * the same memory in every launch. */
void *fiber_stack(unsigned i, void (*entry)());

} // namespace simt

#endif

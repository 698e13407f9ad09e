/* Stacks and the switch between them. */
#ifndef LB_SIMT_FIBER_H
#define LB_SIMT_FIBER_H

namespace simt
{

/* Saves the callee-saved registers on the stack and the stack pointer in *save, and continues at
 * `to`. */
extern "C" void simt_switch(void **save, void *to);

/* Returns stack i, ready for a switch that calls `entry`, which must not return. Stack i uses
 * the same memory in every launch. */
void *fiber_stack(unsigned i, void (*entry)());

} // namespace simt

#endif

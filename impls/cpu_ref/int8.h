/* cpu_ref in int8: the scheme of api/int8.h, written to be read. */
#ifndef LB_CPU_REF_INT8_H
#define LB_CPU_REF_INT8_H

#include "api/impl.h"

size_t lb_cpu_ref_int8_weight_bytes(const struct lb_problem *p);
size_t lb_cpu_ref_int8_workspace_bytes(const struct lb_problem *p);

/* Quantises the weights of all layers and directions into buffers->weights. */
void lb_cpu_ref_int8_prepare(const struct lb_problem *p, const struct lb_buffers *buffers,
                             const struct lb_weights *weights);

void lb_cpu_ref_int8_forward(const struct lb_problem *p, const struct lb_buffers *buffers,
                             const struct lb_forward_io *io);

#endif

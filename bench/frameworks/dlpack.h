/* Hands memory of the harness to a framework as a DLPack capsule, without a copy.
 * Source of the layout: the DLPack specification, version 0 (DLManagedTensor, capsule name
 * "dltensor"), which NumPy, PyTorch, TensorFlow and JAX take. */
#ifndef LB_FRAMEWORKS_DLPACK_H
#define LB_FRAMEWORKS_DLPACK_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdint.h>

struct _object; /* Python's PyObject */

enum { LB_DLPACK_MAX_DIMENSIONS = 4 };

/* The specification's DLDataType. code: 2 float, 4 bfloat; bits of one element; lanes 1. */
struct lb_dlpack_type {
    uint8_t code, bits;
    uint16_t lanes;
};

/* A new capsule for memory [sizes[0], ..., sizes[count - 1]] in row-major order, with count at most
 * LB_DLPACK_MAX_DIMENSIONS. The memory must outlive every object that a framework makes of the
 * capsule. device_type: 1 host, 2 CUDA. The caller holds Python's lock and owns the capsule. NULL,
 * with a Python exception set, when memory runs out. */
struct _object *lb_dlpack_capsule(void *memory, const int64_t *sizes, int count,
                                  struct lb_dlpack_type type, int device_type, int device);

#ifdef __cplusplus
}
#endif
#endif

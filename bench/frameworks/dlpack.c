/* Hands memory of the harness to a framework as a DLPack capsule, without a copy. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "frameworks/dlpack.h"

/* The specification's DLTensor. */
struct tensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t dimensions;
    struct lb_dlpack_type dtype;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
};

/* The specification's DLManagedTensor, and behind it the arrays that it points to. */
struct managed {
    struct tensor tensor;
    void *context;
    void (*deleter)(struct managed *);
    int64_t shape[LB_DLPACK_MAX_DIMENSIONS], strides[LB_DLPACK_MAX_DIMENSIONS];
};

/* Frees the description alone: the tensor's memory belongs to the harness. */
static void free_managed(struct managed *managed)
{
    PyMem_RawFree(managed);
}

/* The destructor of a capsule. A framework that takes the tensor renames the capsule to
 * "used_dltensor" and calls the deleter itself. */
static void free_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        free_managed(PyCapsule_GetPointer(capsule, "dltensor"));
}

PyObject *lb_dlpack_capsule(void *memory, const int64_t *sizes, int count,
                            struct lb_dlpack_type type, int device_type, int device)
{
    struct managed *managed = PyMem_RawCalloc(1, sizeof(*managed));
    int64_t stride = 1;
    if (!managed)
        return PyErr_NoMemory();
    for (int i = count - 1; i >= 0; i--) {
        managed->shape[i] = sizes[i];
        managed->strides[i] = stride;
        stride *= sizes[i];
    }
    managed->tensor.data = memory;
    managed->tensor.device.type = device_type;
    managed->tensor.device.id = device;
    managed->tensor.dimensions = count;
    managed->tensor.dtype = type;
    managed->tensor.shape = managed->shape;
    managed->tensor.strides = managed->strides;
    managed->deleter = free_managed;
    PyObject *capsule = PyCapsule_New(managed, "dltensor", free_capsule);
    if (!capsule)
        free_managed(managed);
    return capsule;
}

/* The CUDA runtime, cuBLAS and cuDNN on the fake device. They have the functions that the
 * project calls, refuse what the libraries' manuals refuse, and compute on the host. */
#ifndef LB_FAKE_LIBRARIES_H
#define LB_FAKE_LIBRARIES_H

#include "fake_device.h"

/* ---- The CUDA runtime (fake_cudart.c) ------------------------------------------------------ */

struct fake_cudart_counts {
    int launches, clusters, cooperative, beyond_48k; /* shared memory beyond 48 KiB */
    int carved;  /* launches of kernels that ask for the maximum of shared memory per SM */
    int urgent;  /* launches with the highest priority of the device */
    int sharing; /* launches of clusters of which two blocks find shared memory on one SM */
    unsigned cluster_streams, cooperative_streams; /* bit i: there were some on stream i */
    int following;                                 /* programmatic dependent launches */
    int other_than_asked; /* with other threads or shared memory than those whose occupancy was
                             asked */
};

/* Resets streams, errors and the attributes of kernels to those of a new process. */
void fake_cudart_reset(void);
const struct fake_cudart_counts *fake_cudart_counts(void);

/* Sets the CUDA version of the driver, 1000 major + 10 minor, and the architecture for which
 * kernels were compiled, such as 80, until the next reset. code 0: the device's; -1: one it does
 * not run. */
void fake_cudart_set_versions(int driver, int code);

/* ---- cuBLAS (fake_cublas.c) ---------------------------------------------------------------- */

/* What the caller gets wrong: its arguments arrive changed. */
enum fake_cublas_mistake {
    FAKE_CUBLAS_NONE,
    FAKE_CUBLAS_NO_WORKSPACE,    /* no handle gets a workspace */
    FAKE_CUBLAS_SMALL_WORKSPACE, /* it is a byte smaller */
    FAKE_CUBLAS_SHORT_ROWS       /* a row of a GEMM's a is an element shorter */
};

/* As in a new process. GEMMs are refused without the workspace that the manual recommends. */
void fake_cublas_reset(enum fake_cublas_mistake mistake);

/* ---- cuDNN (fake_cudnn.c) ------------------------------------------------------------------ */

enum fake_cudnn_fault {
    FAKE_CUDNN_SOUND,
    FAKE_CUDNN_PROBE_FAILS,   /* asking for persist_static's sizes gives an internal error */
    FAKE_CUDNN_PROBE_REFUSES, /* asking for persist_static's sizes gives "not supported" */
    FAKE_CUDNN_CALL_FAILS,    /* each forward call fails */
    FAKE_CUDNN_MOVES_WEIGHTS, /* it places part 2, or the projection, outside the weights' space */
    FAKE_CUDNN_GROWS,         /* it needs more workspace once the lengths are known */
    /* What the caller gets wrong: an argument arrives changed. */
    FAKE_CUDNN_NO_PADDED_IO,    /* the RNN is described without padded input and output, */
    FAKE_CUDNN_WRONG_MATH,      /* with tensor cores whatever the dtype, */
    FAKE_CUDNN_NO_PROJECTION,   /* without its projection, */
    FAKE_CUDNN_OTHER_BATCH,     /* and built for a row more */
    FAKE_CUDNN_WIDE_STATES,     /* states are described a column wider */
    FAKE_CUDNN_OTHER_MATRIX,    /* another matrix is asked for than the projection's */
    FAKE_CUDNN_FULL_LENGTHS,    /* the last row of y is described as full */
    FAKE_CUDNN_SET_GRADIENTS,   /* weight gradients are to be set, not added */
    FAKE_CUDNN_SHORT_WEIGHTS,   /* the space of weights is a byte smaller */
    FAKE_CUDNN_SHORT_WORKSPACE, /* and so are the workspace */
    FAKE_CUDNN_SHORT_RESERVE    /* and the reserve space */
};

void fake_cudnn_reset(enum fake_cudnn_fault fault);

/* Sets how many nanoseconds of the device's clock a forward and a backward call of an algorithm
 * take. */
void fake_cudnn_set_time(int algorithm, double forward_ns, double backward_ns);

#endif

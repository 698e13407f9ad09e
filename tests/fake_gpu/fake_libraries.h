/* The libraries of a GPU on the fake device: the CUDA runtime, cuBLAS and cuDNN, as much of them as
 * the project calls. They refuse what the libraries' manuals refuse, and compute on the host. */
#ifndef LB_FAKE_LIBRARIES_H
#define LB_FAKE_LIBRARIES_H

#include "fake_device.h"

/* ---- The CUDA runtime (fake_cudart.c) ------------------------------------------------------ */

struct fake_cudart_counts {
    int launches, clusters, cooperative, beyond_48k; /* beyond 48 KiB of shared memory */
};

/* Streams, errors and what kernels were readied for are those of a new process. */
void fake_cudart_reset(void);
const struct fake_cudart_counts *fake_cudart_counts(void);

/* ---- cuBLAS (fake_cublas.c) ---------------------------------------------------------------- */

struct fake_cublas_counts {
    int gemms;
    int without_workspace; /* of these, with none of the caller's: cuBLAS would allocate one */
};

/* Later calls are counted anew, and the next handle can't be made when told so. */
void fake_cublas_reset(bool refuses_handles);
const struct fake_cublas_counts *fake_cublas_counts(void);

/* ---- cuDNN (fake_cudnn.c) ------------------------------------------------------------------ */

enum fake_cudnn_fault {
    FAKE_CUDNN_SOUND,
    FAKE_CUDNN_PROBE_FAILS,   /* asking for sizes: the algorithm persist_static fails inside */
    FAKE_CUDNN_PROBE_REFUSES, /* the same, but it says that it does not do this */
    FAKE_CUDNN_CALL_FAILS,    /* each forward call */
    FAKE_CUDNN_MOVES_WEIGHTS, /* places a part of the weights outside their space */
    FAKE_CUDNN_GROWS          /* wants more workspace once the lengths are known */
};

void fake_cudnn_reset(enum fake_cudnn_fault fault);

/* Nanoseconds on the device's clock that one call of an algorithm takes, forward and backward. */
void fake_cudnn_set_time(int algorithm, double forward_ns, double backward_ns);

/* The last refusal of the fake cuDNN in words; "" when there was none. */
const char *fake_cudnn_said(void);

#endif

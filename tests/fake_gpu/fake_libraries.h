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

/* Sets the CUDA version of the driver, 1000 major + 10 minor, until the next reset. */
void fake_cudart_set_driver(int version);

/* ---- cuBLAS (fake_cublas.c) ---------------------------------------------------------------- */

struct fake_cublas_counts {
    int gemms;
    int without_workspace; /* of these, without the caller's workspace: cuBLAS would allocate one */
    int with_small_workspace; /* with less of it than the manual recommends: they may be slow */
};

/* Resets the counts. refuses_handles: the next handle can't be created. */
void fake_cublas_reset(bool refuses_handles);
const struct fake_cublas_counts *fake_cublas_counts(void);

/* ---- cuDNN (fake_cudnn.c) ------------------------------------------------------------------ */

enum fake_cudnn_fault {
    FAKE_CUDNN_SOUND,
    FAKE_CUDNN_PROBE_FAILS,   /* asking for persist_static's sizes gives an internal error */
    FAKE_CUDNN_PROBE_REFUSES, /* asking for persist_static's sizes gives "not supported" */
    FAKE_CUDNN_CALL_FAILS,    /* each forward call fails */
    FAKE_CUDNN_MOVES_WEIGHTS, /* it places a part of the weights outside their space */
    FAKE_CUDNN_GROWS          /* it needs more workspace once the lengths are known */
};

void fake_cudnn_reset(enum fake_cudnn_fault fault);

/* Sets how many nanoseconds of the device's clock a forward and a backward call of an algorithm
 * take. */
void fake_cudnn_set_time(int algorithm, double forward_ns, double backward_ns);

#endif

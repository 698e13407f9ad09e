/* What the two files of cuda_naive share. */
#ifndef LB_CUDA_NAIVE_H
#define LB_CUDA_NAIVE_H

#include "impls/common/gpu_network.h"

/* Buffers of one layer and direction (layer_dir l*D + d). T and R as in gpu_network.h; P is the
 * size of h, which is H but for the cell projection. In training there are T+1 slots of the states
 * and T of what backward reads, in the order of the direction's own steps. In inference there are
 * two slots of the states, used in turn, and one of everything else. */
struct lb_naive_layer_dir {
    struct lb_gpu_weights weights; /* gradients in R */
    void *b_ih, *b_hh;             /* [4H] R */
    void *gates;                   /* [slots, 4, B, H] R: i f g o */
    void *inner;                   /* [slots, B, H] R: tanh(c) or relu(c) */
    void *c;                       /* [slots, B, H] R */
    void *h;                       /* [slots, B, P] T */
    void *y;  /* [T, B, D*P] T, of the whole layer; NULL in the last layer: the case's own */
    void *dy; /* likewise, its gradient */

    /* Only for the cells that are named; else NULL. */
    void *vectors;     /* R, peephole and layernorm: w_cell */
    void *unprojected; /* [slots, B, H] T, projection: o tanh(c) */
    void *normalised;  /* [slots, 5, B, H] R, layernorm: of i f g o c */
    void *factors;     /* [slots, 5, B] R, layernorm: what they were multiplied by */
};

/* Scratch of one step. */
struct lb_naive_scratch {
    void *first, *second; /* [B, H] R */
    void *stored;         /* [B, H] T */
    void *da[4];          /* [B, H] R: gradients of the pre-activations */
    void *da_stored;      /* [B, H] T */
    void *dh, *dh_next;   /* [B, H] R */
    void *dc, *dc_next;   /* [B, H] R */
    void *dx, *dx_other;  /* [B, widest I_l] R */

    /* Only for the cells that are named; else NULL. */
    void *mask;         /* [B, H] R, recurrent-dropout: of one layer_dir */
    void *masked;       /* [B, H] T, recurrent-dropout: mask h */
    void *dh_stored;    /* [B, P] T, projection */
    void *wide;         /* [B, D*H] T, residual */
    void *mean, *along; /* [B] R, layernorm */
};

struct lb_cuda_naive {
    struct lb_gpu_network net;             /* one stream: the case's stream; gradients in R */
    struct lb_naive_layer_dir *layer_dirs; /* [L*D] */
    struct lb_naive_scratch scratch;
    void *averages; /* [H] R, layernorm: 1/H each, by which a GEMM computes means */
};

enum lb_status lb_naive_forward(void *self, const struct lb_forward_io *io, struct lb_error *err);
enum lb_status lb_naive_backward(void *self, const struct lb_backward_io *io, struct lb_error *err);

#endif

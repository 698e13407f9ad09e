/* Arguments of the fused cluster kernels: one layer, one or two directions side by side.
 *
 * T, B, H, D as everywhere; T also stands for the storage type, f16 or bf16, where a type is meant.
 * Direction 1 walks each row from its own end. Nothing aliases unless it says so. */
#ifndef LB_FUSED_ARGS_H
#define LB_FUSED_ARGS_H

#include <stdint.h>

struct lb_fused_forward_args {
    const float *pre;       /* [T, B, D, H, 4] w_ih x, without biases, gates i f g o innermost */
    const void *weights;    /* [D] packed by lb_fused_pack_forward */
    const float *bias;      /* [D, H, 4] b_ih + b_hh */
    const void *h0, *c0;    /* [D, B, H] T */
    const int32_t *lengths; /* [B]; NULL: all rows are full */
    void *y;                /* [T, B, D, H] T, zero past a row's end */
    void *hn, *cn;          /* [D, B, H] T */
    float *gates;           /* training: [T, B, D, H, 4], activated; may be pre */
    float *cells;           /* training: [T, B, D, H] c after the step */
    int seq_len, batch, hidden;
};

struct lb_fused_backward_args {
    const float *gates, *cells; /* as forward left them */
    const void *weights;        /* [D] packed by lb_fused_pack_backward */
    const void *c0;             /* [D, B, H] T */
    const int32_t *lengths;     /* [B]; NULL: all rows are full */
    const void *dy;             /* [T, B, D, H] T, ignored past a row's end */
    const void *dhn, *dcn;      /* [D, B, H] T */
    void *dgates;               /* [T, B, D, H, 4] T, of the pre-activations; zero past the end */
    void *dh0, *dc0;            /* [D, B, H] T */
    int seq_len, batch, hidden;
};

#endif

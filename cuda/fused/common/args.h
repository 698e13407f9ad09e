/* Arguments of the fused kernels: one layer, with one or two directions side by side.
 *
 * T, B, H and D are the sizes as elsewhere. Where a type is meant, T is the storage type and R the
 * type of arithmetic: f64 for f64, else f32. Direction 1 starts at the end of each batch row.
 * Lengths descend. No array aliases another unless its comment says so.
 *
 * A launch computes the steps [from, to); one launch computes all steps or several do, in order. A
 * launch leaves the state of its last step in carry, unrounded, so that the results have the same
 * bits however many launches there are. */
#ifndef LB_FUSED_ARGS_H
#define LB_FUSED_ARGS_H

#include <stdint.h>

/* The first wait of a case that gave up; raised is 0 when none did. */
struct lb_fused_fault {
    uint32_t raised;
    int32_t block, awaited; /* blocks are counted from 0 over all dimensions of the grid */
    int32_t step;
};

struct lb_fused_forward_args {
    const void *pre;        /* [T, B, D, H, 4] R: w_ih x without biases; gates i f g o */
    const void *weights;    /* [D], packed by the family */
    const void *bias;       /* [D, H, 4] R: b_ih + b_hh */
    const void *h0, *c0;    /* [D, B, H] T; read when from is 0 */
    const int32_t *lengths; /* [B]; NULL: all rows are full */
    void *y;                /* [T, B, D, H] T, zero past a row's end; step from - 1 is read */
    void *hn, *cn;          /* [D, B, H] T; written with the last step of each row */
    void *gates;            /* training: [T, B, D, H, 4] R, activated; may alias pre */
    void *cells;            /* training: [T, B, D, H] R: c after each step */
    void *carry;            /* [D, B, H] R: c of rows that continue in the next launch */
    void *scratch;          /* defined by the family */
    struct lb_fused_fault *fault;
    int seq_len, batch, hidden, directions;
    int from, to;
    /* What the launchers of families fill in: */
    int rows;            /* cluster, grid: batch rows per cluster, or per group of blocks */
    int direction;       /* grid: the first direction; a launch computes one or both */
    uint32_t spin_limit; /* grid: reads of a missing packet after which a wait gives up */
};

struct lb_fused_backward_args {
    const void *gates, *cells; /* as the training forward wrote them */
    const void *weights;       /* [D], packed by the family */
    const void *c0;            /* [D, B, H] T */
    const int32_t *lengths;    /* [B]; NULL: all rows are full */
    const void *dy;            /* [T, B, D, H] T; ignored past a row's end */
    const void *dhn, *dcn;     /* [D, B, H] T; read with a row's last step */
    void *dgates;    /* [T, B, D, H, 4] T, of the pre-activations; zero past a row's end */
    void *dh0, *dc0; /* [D, B, H] T; written when from is 0 */
    void *carry;     /* [2, D, B, H] R: dh and dc of rows that an earlier launch began */
    void *scratch;   /* defined by the family */
    struct lb_fused_fault *fault;
    int seq_len, batch, hidden, directions;
    int from, to;        /* steps to - 1 down to from; the launch of the last steps comes first */
    int rows, direction; /* as above */
    uint32_t spin_limit;
};

#endif

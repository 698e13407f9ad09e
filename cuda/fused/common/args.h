/* Arguments of the fused kernels: one layer, one or two directions side by side.
 *
 * T, B, H, D as everywhere; T also stands for the storage type, where a type is meant, and R for
 * the type inside: f64 for f64, else f32. Direction 1 walks each row from its own end; lengths
 * descend. Nothing aliases unless it says so.
 *
 * A launch does steps [from, to) of the walk; steps are done in order, by one launch or by several.
 * What is running at a launch's end is kept in carry, unrounded, so that the bits are the same. */
#ifndef LB_FUSED_ARGS_H
#define LB_FUSED_ARGS_H

#include <stdint.h>

/* The first wait of a case that ended without what it waited for; raised is 0 where all was well.
 */
struct lb_fused_fault {
    uint32_t raised;
    int32_t block, awaited; /* in the launch, counted from 0 through all dimensions of the grid */
    int32_t step;
};

struct lb_fused_forward_args {
    const void *pre;        /* [T, B, D, H, 4] R w_ih x, without biases, gates i f g o innermost */
    const void *weights;    /* [D] packed by the family */
    const void *bias;       /* [D, H, 4] R b_ih + b_hh */
    const void *h0, *c0;    /* [D, B, H] T; read where from is 0 */
    const int32_t *lengths; /* [B]; NULL: all rows are full */
    void *y;                /* [T, B, D, H] T, zero past a row's end; steps before from are read */
    void *hn, *cn;          /* [D, B, H] T; a row's are written with its last step */
    void *gates;            /* training: [T, B, D, H, 4] R, activated; may be pre */
    void *cells;            /* training: [T, B, D, H] R c after the step */
    void *carry;            /* [D, B, H] R c of rows that go on */
    void *scratch;          /* the family's own */
    struct lb_fused_fault *fault;
    int seq_len, batch, hidden, directions;
    int from, to;
};

struct lb_fused_backward_args {
    const void *gates, *cells; /* as forward left them */
    const void *weights;       /* [D] packed by the family */
    const void *c0;            /* [D, B, H] T */
    const int32_t *lengths;    /* [B]; NULL: all rows are full */
    const void *dy;            /* [T, B, D, H] T, ignored past a row's end */
    const void *dhn, *dcn;     /* [D, B, H] T; read with a row's last step */
    void *dgates;              /* [T, B, D, H, 4] T, of the pre-activations; zero past the end */
    void *dh0, *dc0;           /* [D, B, H] T; written where from is 0 */
    void *carry;               /* [2, D, B, H] R dh and dc of rows that have begun */
    void *scratch;             /* the family's own */
    struct lb_fused_fault *fault;
    int seq_len, batch, hidden, directions;
    int from, to; /* steps to - 1 down to from; the launch with the last steps comes first */
};

#endif

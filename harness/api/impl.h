/* The contract between the harness and an implementation: one struct of function pointers.
 *
 * Life of a case: supports -> create -> sizes -> prepare -> (forward | backward)* -> gradients ->
 * destroy, all on one thread. The same struct is the plug-in interface: a shared object exports
 *     const struct lb_impl *lb_plugin(uint32_t abi);
 * and returns NULL when it was built for another abi. The program asks for its own number first,
 * then for each lower one: a plug-in that was built before a slot was appended goes on working, and
 * the slots that its number does not have count as NULL. */
#ifndef LB_IMPL_H
#define LB_IMPL_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Slots are appended, never reordered, and each is optional and raises the number: 2 has note, 3
 * check and lb_exec_config's graph. So does a change of a meaning, or of a struct that is handed
 * over other than at its end, after which lower numbers are refused (registry.c). */
#define LB_IMPL_ABI 3u

enum lb_memory {
    LB_HOST,  /* tensors live in host memory, calls return when the work is done */
    LB_DEVICE /* tensors live in device memory, calls only enqueue work on the stream */
};

enum lb_trait {
    LB_DETERMINISTIC = 1 << 0, /* same bits every run; the harness holds it to that */
    LB_CAPTURABLE = 1 << 1,    /* forward and backward may be captured into a CUDA graph */
    LB_REFERENCE = 1 << 2,     /* written to be read, not to be fast: planned for accordingly */
    LB_PLANS_ALONE = 1 << 3    /* create and sizes touch no device: what would run on one that is
                                  only described can be told */
};

/* Where and how a case runs. */
struct lb_exec_config {
    int device;          /* ordinal; meaningless on the host */
    void *stream;        /* cudaStream_t; NULL on the host */
    int threads;         /* host threads the implementation may use, at least 1 */
    const char *variant; /* one of variants; NULL when the implementation has none */
    bool graph;          /* calls are captured once and replayed: launches cost the device alone */
};

/* What the harness allocates for the implementation, in bytes; 0 where nothing is needed. */
struct lb_sizes {
    size_t weights;   /* packed weights, written by prepare */
    size_t gradients; /* weight gradients in the implementation's own layout */
    size_t reserve;   /* filled by a training forward, read (and possibly changed) by backward */
    size_t workspace; /* scratch, contents meaningless between calls */
};

/* Those buffers, 256-byte aligned, in the implementation's memory; valid until destroy. */
struct lb_buffers {
    void *weights, *gradients, *reserve, *workspace;
    const int32_t *lengths; /* [B] host memory, valid until destroy; NULL when not ragged */
};

/* Canonical weights in host memory, in the problem's dtype. Entry l*D + d is layer l, direction d.
 * Valid during the call only. */
struct lb_weights {
    const void *const *w_ih; /* each [4H, I_l] */
    const void *const *w_hh; /* each [4H, H] */
    const void *const *b_ih; /* each [4H] */
    const void *const *b_hh; /* each [4H] */
};

/* Canonical weight gradients in host memory, in the problem's dtype, same order and shapes. */
struct lb_gradients {
    void *const *dw_ih;
    void *const *dw_hh;
    void *const *db_ih;
    void *const *db_hh;
};

/* Tensors of a forward call, in the implementation's memory, in the problem's dtype; no aliasing.
 * Ragged: y is to be zero past a row's end, hn and cn are those of its last step. */
struct lb_forward_io {
    const void *x;       /* [T, B, I] */
    const void *h0, *c0; /* [L*D, B, H] */
    void *y;             /* [T, B, D*H] */
    void *hn, *cn;       /* [L*D, B, H] */
};

/* Tensors of a backward call; x, h0, c0 and y are those of the forward before it. All outputs are
 * overwritten. Ragged: dy is to be ignored, dx is to be zero past a row's end. */
struct lb_backward_io {
    const void *x;         /* [T, B, I] */
    const void *h0, *c0;   /* [L*D, B, H] */
    const void *y;         /* [T, B, D*H] */
    const void *dy;        /* [T, B, D*H] */
    const void *dhn, *dcn; /* [L*D, B, H] */
    void *dx;              /* [T, B, I] */
    void *dh0, *dc0;       /* [L*D, B, H] */
};

struct lb_impl {
    uint32_t abi;        /* LB_IMPL_ABI */
    const char *name;    /* [a-z0-9_]+, unique, at most 31 characters */
    const char *summary; /* one line for --list */
    enum lb_memory memory;
    uint32_t traits;   /* enum lb_trait, or-ed */
    size_t state_size; /* bytes of self; the harness allocates and zeroes it */

    /* (optional) NULL-terminated; the first, the default, is "auto". */
    const char *const *variants;

    /* Whether the problem can run at the place. Pure: no device needed, no memory kept.
     * LB_UNSUPPORTED fills why with one sentence that names the limit. */
    enum lb_status (*supports)(const struct lb_problem *problem, const struct lb_exec_config *place,
                               struct lb_error *why);

    /* Opens what the case needs. create, sizes and prepare may still answer LB_UNSUPPORTED: a
     * library's own status is the truth. problem and place stay valid until destroy. */
    enum lb_status (*create)(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *place, struct lb_error *err);
    enum lb_status (*sizes)(void *self, struct lb_sizes *sizes, struct lb_error *err);

    /* Converts the weights and keeps the buffers. Timed apart. */
    enum lb_status (*prepare)(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err);

    /* Timed. Neither allocates, synchronises, logs, nor converts weights. */
    enum lb_status (*forward)(void *self, const struct lb_forward_io *io, struct lb_error *err);

    /* (optional) Timed likewise; NULL: no backward or train. */
    enum lb_status (*backward)(void *self, const struct lb_backward_io *io, struct lb_error *err);

    /* (with backward) Brings the last backward's weight gradients to the canonical layout. */
    enum lb_status (*gradients)(void *self, const struct lb_gradients *gradients,
                                struct lb_error *err);

    /* (optional) What actually runs: algorithm, tiles, why. Asked after sizes (what would run) and
     * after prepare (what does); the text is valid until the next call or destroy. */
    const char *(*describe)(const void *self);

    /* Accepts a zeroed or half-built self. */
    void (*destroy)(void *self);

    /* (optional) Pure, as supports: one sentence on a problem that it can run at the place, such as
     * which choice is usual and why; "" when there is nothing to say. */
    void (*note)(const struct lb_problem *problem, const struct lb_exec_config *place,
                 struct lb_error *text);

    /* (optional) Asked when the work of forward or backward is done: LB_FAILED with what a kernel
     * found wrong while it ran, such as a wait that it gave up. */
    enum lb_status (*check)(const void *self, struct lb_error *err);
};

#ifdef __cplusplus
}
#endif
#endif

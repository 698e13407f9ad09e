/* The contract between the harness and an implementation: one struct of function pointers.
 *
 * For each case the harness calls supports -> create -> sizes -> prepare -> (forward | backward |
 * update)* -> gradients -> destroy, all on one thread. Of several instances each has a thread.
 *
 * The same struct is the plug-in interface. A shared object exports
 *     const struct lb_impl *lb_plugin(uint32_t abi);
 * which returns NULL when it was built for another abi, and may be called several times.
 */
#ifndef LB_IMPL_H
#define LB_IMPL_H

#include "problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The number of the interface, which stays 1 until the first release. The program refuses a plug-in
 * of another number or with a struct of another size. */
#define LB_IMPL_ABI 1u

enum lb_memory {
    LB_HOST,  /* tensors live in host memory; calls return when the work is done */
    LB_DEVICE /* tensors live in device memory; calls only enqueue work on the stream */
};

enum lb_trait {
    LB_DETERMINISTIC = 1 << 0, /* every run gives the same bits; the harness checks that */
    LB_CAPTURABLE = 1 << 1,    /* forward and backward may be captured into a CUDA graph */
    LB_REFERENCE = 1 << 2,     /* written to be read, not to be fast: a plan expects long times */
    LB_PLANS_ALONE = 1 << 3,   /* create and sizes touch no device, so that --device-model can say
                                  what would run on a device that this machine lacks */
    LB_THREADS_ONCE = 1 << 4,  /* the process keeps the number of threads of its first case, so the
                                  harness starts a process for each number of threads */
    LB_INSTANCES = 1 << 5, /* forward of several states may be called at once, each by the thread
                             that created it */
    LB_QUANTISES = 1 << 6, /* it computes int8; supports is not called for int8 otherwise */
    LB_QUANTISES_PLAINLY = 1 << 7, /* its int8 is the scheme of int8.h to the last integer, so that
                                     results are also compared with the evaluation of that scheme */
    LB_ROUNDS_OPERATIONS = 1 << 8  /* in f16 and bf16 it stores the result of each operation in that
                                      type, c among them, as frameworks do: results are compared
                                      with an evaluation that does so, and the row says it */
};

/* Where and how a case runs: device, stream, threads, variant. */
struct lb_exec_config {
    int device;          /* ordinal; meaningless on the host */
    void *stream;        /* cudaStream_t; NULL on the host */
    int threads;         /* host threads the implementation may use, at least 1 */
    const char *variant; /* one of variants; NULL when the implementation has none */
    bool graph;          /* calls are captured into a CUDA graph once and replayed, so that launches
                            cost no host time */
    bool forward_only;   /* of a training problem only forward is timed; backward is still called,
                            to check its results */
};

/* How many bytes the harness allocates for the implementation; 0 where nothing is needed. */
struct lb_sizes {
    size_t weights;   /* packed weights, written by prepare */
    size_t gradients; /* weight gradients in the implementation's own layout, all that the slot
                         gradients reads */
    size_t reserve;   /* filled by a training forward, read (and possibly changed) by backward */
    size_t workspace; /* scratch memory: its contents do not survive a call */
};

/* The buffers of those sizes, 256-byte aligned, in the implementation's memory (lb_memory); valid
 * until destroy. */
struct lb_buffers {
    void *weights, *gradients, *reserve, *workspace;
    const int32_t *lengths; /* [B] host memory, valid until destroy; NULL when not ragged */
    float x_max;            /* of int8: the largest |x| of all calls, as calibration finds it */
};

/* Canonical weights in host memory, in the problem's dtype. Element l*D + d of each table is layer
 * l, direction d. Valid during the call only. */
struct lb_weights {
    const void *const *w_ih; /* each [4H, I_l] */
    const void *const *w_hh; /* each [4H, H]; [4H, P] for the cell projection */
    const void *const *b_ih; /* each [4H] */
    const void *const *b_hh; /* each [4H] */

    /* Each the cell's own weights [P, H], [3, H] or [10, H], as problem.h says.
     * Not to be read for a cell that has none. */
    const void *const *w_cell;
};

/* Canonical weight gradients in host memory, in the problem's dtype, in the order and the shapes
 * of struct lb_weights. */
struct lb_gradients {
    void *const *dw_ih;
    void *const *dw_hh;
    void *const *db_ih;
    void *const *db_hh;
    void *const *dw_cell;
};

/* Tensors of an update, in the implementation's memory, in the canonical layout and the problem's
 * dtype; none overlap. The tables of pointers are in host memory. Valid until destroy. */
struct lb_update_io {
    struct lb_weights weights;     /* read */
    struct lb_gradients gradients; /* written */
};

/* Tensors of a forward call, in the implementation's memory, in the problem's dtype; none overlap.
 * For the cell projection y is [T, B, D*P], and h0 and hn are [L*D, B, P]; their gradients have the
 * same shapes. In a ragged batch y must be zero past a row's end, and hn and cn are those of the
 * row's last step. */
struct lb_forward_io {
    const void *x;       /* [T, B, I] */
    const void *h0, *c0; /* [L*D, B, H] */
    void *y;             /* [T, B, D*H] */
    void *hn, *cn;       /* [L*D, B, H] */
    const void *mask;    /* [L*D, B, H] of the cell recurrent-dropout, else NULL */
};

/* Tensors of a backward call; x, h0, c0 and y are those of the forward call before it. All outputs
 * are overwritten. In a ragged batch dy must be ignored and dx must be zero past a row's end. */
struct lb_backward_io {
    const void *x;         /* [T, B, I] */
    const void *h0, *c0;   /* [L*D, B, H] */
    const void *y;         /* [T, B, D*H] */
    const void *dy;        /* [T, B, D*H] */
    const void *dhn, *dcn; /* [L*D, B, H] */
    void *dx;              /* [T, B, I] */
    void *dh0, *dc0;       /* [L*D, B, H] */
    const void *mask;      /* as in the forward call before it */
};

struct lb_impl {
    uint32_t abi;        /* LB_IMPL_ABI */
    size_t struct_bytes; /* sizeof(struct lb_impl) */
    const char *name;    /* [a-z0-9_]+, unique, at most 31 characters */
    const char *summary; /* one line for --list */
    enum lb_memory memory;
    uint32_t traits;   /* enum lb_trait, or-ed */
    size_t state_size; /* bytes of self; the harness allocates and zeroes it */

    /* (optional) Names of ways to run, NULL-terminated; the first, the default, is "auto". */
    const char *const *variants;

    /* Tells whether the problem can run with the config. It calls no device and keeps no memory,
     * so that a plan can call it anywhere. LB_UNSUPPORTED: why names the limit in one sentence. */
    enum lb_status (*supports)(const struct lb_problem *problem,
                               const struct lb_exec_config *config, struct lb_error *why);

    /* Opens handles, streams and whatever else the case needs. problem and config stay valid until
     * destroy. create, sizes and prepare may still return LB_UNSUPPORTED: a library's own answer
     * overrides supports. */
    enum lb_status (*create)(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err);
    enum lb_status (*sizes)(void *self, struct lb_sizes *sizes, struct lb_error *err);

    /* Converts the weights, which are NaN when it has returned, and remembers the buffers. The
     * record's prepare_ns is the time of create, sizes, prepare and the first update together. */
    enum lb_status (*prepare)(void *self, const struct lb_buffers *buffers,
                              const struct lb_weights *weights, struct lb_error *err);

    /* Timed. It must not allocate, synchronise, log or convert weights. */
    enum lb_status (*forward)(void *self, const struct lb_forward_io *io, struct lb_error *err);

    /* (optional) Timed under the same rules; NULL: only the pass infer is supported. A case of the
     * pass forward is created with the pass train, and its backward is called to check forward. */
    enum lb_status (*backward)(void *self, const struct lb_backward_io *io, struct lb_error *err);

    /* (required with backward) Writes the last backward's weight gradients in the canonical
     * layout. It is not timed and converts only: backward has computed them. The harness calls it
     * while the tensors of the call and, on the host, the workspace are NaN. */
    enum lb_status (*gradients)(void *self, const struct lb_gradients *gradients,
                                struct lb_error *err);

    /* (optional) Describes what runs: algorithm, tiles, and why they were chosen. Called after
     * sizes (what would run) and after prepare (what runs). The text is valid until the next call.
     */
    const char *(*describe)(const void *self);

    /* Closes everything. Accepts a zeroed self and one that create left half-built. */
    void (*destroy)(void *self);

    /* (optional) Writes one sentence about a problem that supports accepts, such as which variant
     * is usual for it and why, into text [size]; "" when there is nothing to say. Like supports it
     * calls no device and keeps no memory. */
    void (*note)(const struct lb_problem *problem, const struct lb_exec_config *config, char *text,
                 size_t size);

    /* (optional) Called when the work of forward or backward is done. LB_FAILED, with a sentence,
     * when a kernel found an error while it ran, such as a wait that took too long. It is not timed
     * and writes no results. */
    enum lb_status (*check)(const void *self, struct lb_error *err);

    /* (optional) For an implementation that keeps weights or weight gradients in a layout of its
     * own: the conversions that a step of an optimizer needs besides its arithmetic. Writes the
     * last backward's weight gradients to io->gradients, and converts io->weights, which replace
     * those of prepare. Timed under the rules of forward and recorded as update_ns. NULL: an
     * optimizer can work in place, because the elements of both buffers correspond one to one.
     * Where a case has a backward pass, the harness calls prepare with NaN for all weights and then
     * update with the right ones, which are NaN again after it, so that whatever update leaves out
     * or leaves to a later call makes the results wrong. */
    enum lb_status (*update)(void *self, const struct lb_update_io *io, struct lb_error *err);

    /* (optional) The cells that it computes besides the standard one: 1u << LB_CELL_PEEPHOLE and so
     * on, or-ed. supports is only called for these cells and the standard one. */
    uint32_t cells;
};

#ifdef __cplusplus
}
#endif
#endif

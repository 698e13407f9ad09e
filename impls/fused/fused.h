/* What the files of the fused implementation share. */
#ifndef LB_FUSED_IMPL_H
#define LB_FUSED_IMPL_H

#include "api/impl.h"
#include "cuda/fused/cluster/cluster.h"
#include "cuda/fused/common/args.h"
#include "cuda/fused/grid/grid.h"
#include "cuda/fused/step/step.h"
#include "device/device.h"
#include "impls/common/gpu_network.h"
#include "machine/lower_bound.h"

/* The fields that lb_fused_forward_args and lb_fused_backward_args share; steps [first, end). */
#define LB_FUSED_COMMON_ARGS(problem, carry_of, scratch_of, fault_of, first, end) \
    .carry = (carry_of), .scratch = (scratch_of), .fault = (fault_of),            \
    .seq_len = (int)(problem)->seq_len, .batch = (int)(problem)->batch,           \
    .hidden = (int)(problem)->hidden, .directions = (int)(problem)->directions,   \
    .from = (int)(first), .to = (int)(end)

/* ---- Families ----------------------------------------------------------------------------------
 * A family is one way to run the recurrence of a layer: one file, and one line in choose.c. */

/* What plans are made from. */
struct lb_fused_view {
    const struct lb_problem *problem;
    const struct lb_device_info *device; /* an H100 where none is known */
    struct lb_machine machine;           /* an H100's figures where the device has none, but no
                                          * wider clusters than its architecture forms */
    bool graph;                          /* launches are replayed from a graph */
};

struct lb_fused_family;

/* One pass of a layer by one family and one of its tiles. A tile's index is the family's own. */
struct lb_fused_plan {
    const struct lb_fused_family *family;
    bool backward;
    int tile;
    int needed;   /* clusters or blocks of a layer, both directions together */
    int resident; /* clusters or blocks that the device runs at the same time: predicted, and after
                   * `ready` what the device says */
    double step_ns; /* predicted time of a step of the layer, all waves of clusters included */
    bool tuned;     /* step_ns was measured */
    /* Predicted, and parts of the predicted step_ns: the product with the reading of its operands,
     * and the exchange of h or its gradients, which is the launch in family step. */
    double product_ns, exchange_ns;
    union { /* what is launched, by family; `ready` finds its function in the table of kernels */
        struct lb_cluster_kernel cluster;
        struct lb_grid_kernel grid;
        struct lb_step_kernel step;
    } kernel;
};

/* Whether all layers of the problem run at once, each on SMs of its own. */
bool lb_fused_layers_fit(const struct lb_problem *problem, const struct lb_fused_plan *plan);

/* Returns the ns per step of all layers with this plan: in a wavefront, where they can. */
double lb_fused_layers_ns(const struct lb_problem *problem, const struct lb_fused_plan *plan);

enum { LB_FUSED_PLANS_MAX = 32, LB_FUSED_FAMILIES_MAX = 4 };

struct lb_fused_family {
    const char *name; /* the variant that takes this family only */
    bool cooperative; /* all blocks of a launch must be resident at once */

    /* Writes the plans of a pass that fit into plans [LB_FUSED_PLANS_MAX] and returns how many
     * there are. For 0, why names the limit in one sentence. It depends on its arguments alone. */
    int (*plan)(const struct lb_fused_view *view, bool backward, struct lb_fused_plan *plans,
                struct lb_error *why);

    /* Describes tiles and residency, without name and time: "8 of 8 clusters, ...". */
    void (*describe)(const struct lb_problem *problem, const struct lb_fused_plan *plan, char *text,
                     size_t size);

    /* The layout of one direction's recurrent weights w_hh [4H, H], in the problem's dtype, in the
     * order in which the pass reads them. */
    struct lb_weight_layout (*layout)(const struct lb_problem *problem,
                                      const struct lb_fused_plan *plan);

    /* (optional) Bytes of args.scratch: one layer's exchange buffers and flags in the workspace,
     * contents meaningless between calls. */
    size_t (*scratch_bytes)(const struct lb_problem *problem, const struct lb_fused_plan *plan);

    /* (optional) Enqueues the clearing of args.scratch of a layer, before the first steps of each
     * sequence. Later steps continue with what the launches before left there. */
    enum lb_status (*clear)(const void *kernel, int hidden, int directions, void *scratch,
                            void *stream, struct lb_error *err);

    /* Readies the kernel for launches by this process and asks the device how many blocks or
     * clusters it runs at a time. LB_UNSUPPORTED where it can't run. */
    enum lb_status (*ready)(struct lb_fused_plan *plan, struct lb_error *err);

    /* Enqueues steps [from, to) of a layer, both directions side by side, by plan->kernel, which
     * `ready` has prepared; capturable. args: lb_fused_forward_args or, where the plan is of the
     * backward pass, lb_fused_backward_args. */
    enum lb_status (*launch)(const void *kernel, const void *args, void *stream,
                             struct lb_error *err);
};

extern const struct lb_fused_family lb_fused_cluster, lb_fused_grid, lb_fused_step;

/* The families' names after "auto"; NULL at the end. */
#define LB_FUSED_VARIANTS                       \
    {                                           \
        "auto", "cluster", "grid", "step", NULL \
    }
extern const char *const lb_fused_variants[];

/* Bytes of one direction's packed recurrent weights, and of a layer's args.scratch, which is 0
 * where the plan has no family. */
size_t lb_fused_weight_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan);
size_t lb_fused_scratch_bytes(const struct lb_problem *problem, const struct lb_fused_plan *plan);

/* ---- Choice ---------------------------------------------------------------------------------- */

struct lb_fused_choice {
    struct lb_fused_plan forward, backward; /* backward: only of training */
    int fitting;                            /* forward plans that could have been taken */
    char others[160];                       /* the next best family, or why there is none */
    char note[200]; /* why tuned choices were not used, or which family the device refused */
};

/* The last family without plans, and why it has none; family is NULL where all have some. */
struct lb_fused_refusal {
    const char *family;
    struct lb_error why;
};

/* Writes all plans of a pass that fit, of all families or of the variant's one, into plans
 * [LB_FUSED_FAMILIES_MAX * LB_FUSED_PLANS_MAX] and returns their number. refusal may be NULL. */
int lb_fused_plans(const struct lb_fused_view *view, const char *variant, bool backward,
                   struct lb_fused_plan *plans, struct lb_fused_refusal *refusal);

/* Estimates how many clusters of `blocks` blocks, one per SM, a device runs at the same time: all
 * GPCs are full but one, which has the remaining SMs. An H100 ran 7 clusters of 16 blocks, as
 * estimated, and 15 of 8, where this estimate is 14. */
int lb_fused_resident_clusters(int sm_count, int blocks);

/* Finds the plan of a pass that was the fastest when measured on this device. Under --tune, plans
 * are measured where no result is known yet. Needs the device. LB_ABSENT: no result is known.
 * LB_INVALID, LB_IO: the file of tuned choices cannot be used. */
enum lb_status lb_fused_tune(const struct lb_fused_view *view, const char *variant, bool backward,
                             struct lb_fused_plan *plan, struct lb_error *err);

/* Steps of a chunk where a sequence runs in chunks, else seq_len. Several layers then run in a
 * wavefront, which needs one direction, room on the device for all of them at the same time, and
 * chunks that last far longer than a launch costs; it is not used with cooperative launches. With
 * one layer, the GEMMs of other chunks run beside its recurrence, on SMs that it leaves idle. */
int64_t lb_fused_chunk(const struct lb_fused_view *view, const struct lb_fused_choice *choice);

/* Returns the predicted time in ns of a call's GEMMs that run neither beside a recurrence nor in
 * it, and of what chunks of `chunk` steps cost. */
double lb_fused_gemms_ns(const struct lb_fused_view *view, int64_t chunk);

/* The view of a problem; device NULL stands for an H100. */
enum lb_status lb_fused_view_make(const struct lb_problem *problem,
                                  const struct lb_device_info *device, struct lb_fused_view *view,
                                  struct lb_error *err);

/* Chooses the plans with the lowest predicted time, of all families or of the variant's one. With
 * the pass forward, the time of the backward plan does not count. device NULL stands for an H100.
 * LB_UNSUPPORTED names the limit. */
enum lb_status lb_fused_choose(const struct lb_problem *problem,
                               const struct lb_device_info *device, const char *variant,
                               struct lb_fused_choice *choice, struct lb_error *why);

/* ---- A case ---------------------------------------------------------------------------------- */

/* Buffers of one layer, both directions together, and its sizes. T and R as in gpu_network.h: R is
 * the type of pre-activations, gates, cells and sums. The gates of a unit are neighbours: row 4 u +
 * q of a direction's matrices is row q H + u of the canonical ones. */
struct lb_fused_layer {
    int64_t input;       /* I_l */
    void *w_ih;          /* [D, H, 4, I_l] T */
    void *bias;          /* [D, H, 4] R */
    void *w_hh, *w_hh_t; /* [D] packed for the forward and the backward plan */
    void *gates;         /* [T, B, D, H, 4] R: pre-activations, in training then the gates */
    void *cells;         /* [T, B, D, H] R; NULL in inference */
    void *y;             /* [T, B, D, H] T; NULL on top: the case's own */
    void *dgates;        /* [T, B, D, H, 4] T */
    void *dy;            /* [T, B, D, H] T; NULL on top */
    void *dw_ih, *dw_hh; /* [D, H, 4, I_l], [D, H, 4, H] R */
    void *db;            /* [D, H, 4] T */
    void *carry;         /* [2, D, B, H] R: state between launches */
    void *sums;          /* [LB_CELL_PARTS, D, H, 4] R */
    void *scratch;       /* of the family */
};

struct lb_fused {
    struct lb_gpu_network net; /* not canonical: see struct lb_fused_layer */
    struct lb_fused_choice choice;
    int64_t chunk; /* steps of a chunk, see lb_fused_chunk; T: the sequence is not cut */
    struct lb_fused_layer *layers; /* [L] */
    const int32_t *lengths;        /* [B] on the host; NULL when not ragged */
    struct lb_fused_fault *fault;  /* on the device, zero until a wait ends without success */
    char description[512];
};

#endif

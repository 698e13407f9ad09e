/* The tensors of one case: inputs and results in host memory, with canonical shapes and in the
 * problem's dtype; and the input and output tensors in the memory of an implementation. P is the
 * size of h: H but for the cell projection. */
#ifndef LB_CASE_TENSORS_H
#define LB_CASE_TENSORS_H

#include "api/impl.h"
#include "device/host_memory.h"
#include "reference/input_data.h"

/* ---- In host memory. ------------------------------------------------------------------------ */

/* What a call reads. x past the end of a ragged row is not zero, and an implementation must not
 * read it. */
struct lb_inputs {
    void *at[LB_Y];            /* LB_X to LB_DCN; NULL where the problem has no such tensor */
    const int32_t *lengths;    /* [B] descending, lengths[0] = T; NULL when not ragged */
    float x_max;               /* the largest |x| of all sets of inputs */
    struct lb_weights weights; /* one block, as device/weight_packing.h places them */
};

/* What an implementation produced. */
struct lb_results {
    void *at[LB_TENSOR_COUNT];      /* LB_Y to LB_DC0; NULL where the problem has no such tensor */
    size_t counts[LB_TENSOR_COUNT]; /* elements of each; 0 where there is none */
    struct lb_gradients gradients;  /* one block of memory, which starts at dw_ih[0] */
    size_t weight_count;            /* elements of all gradients together */
    size_t element_bytes;           /* of the problem's dtype */
};

/* Allocates the results of the problem, filled with a poison pattern that is NaN in every dtype, so
 * that the comparison finds what an implementation leaves unwritten. LB_OOM; then *results is
 * zeroed. */
enum lb_status lb_results_create(const struct lb_problem *problem, struct lb_results *results,
                                 struct lb_error *err);
void lb_results_destroy(struct lb_results *results); /* accepts a zeroed one */

/* Fills all results with that poison again. */
void lb_results_poison(const struct lb_results *results);

/* A hash of all result bits, which tells whether two calls produced the same bits. */
uint64_t lb_results_hash(const struct lb_results *results);

/* ---- In the memory of an implementation, host or device. ----------------------------------- */

struct lb_tensors {
    const struct lb_space *space;
    /* Two buffers for each input, of which a call reads the first or the second; outputs are the
     * same in both, unless the state is carried. NULL where the pass has no such tensor. */
    void *at[LB_TIMED_SETS][LB_TENSOR_COUNT];
    size_t bytes[LB_TENSOR_COUNT];
    int buffer;         /* the buffer of the latest call, whose outputs the functions below mean */
    bool carries_state; /* hn and cn of each buffer are h0 and c0 of the other */
};

/* Allocates the tensors that the problem's pass needs. LB_OOM; then nothing stays allocated. */
enum lb_status lb_tensors_create(const struct lb_problem *problem, const struct lb_space *space,
                                 struct lb_tensors *tensors, struct lb_error *err);
void lb_tensors_destroy(struct lb_tensors *tensors); /* accepts a zeroed one */

/* Makes hn and cn of each buffer the h0 and c0 of the other, so that a call which reads one buffer
 * after a call that read the other begins where that one ended. */
void lb_tensors_carry_state(struct lb_tensors *tensors);

/* Bytes of all tensors together, with both buffers of inputs, and of inputs in one of them. */
size_t lb_tensors_bytes(const struct lb_tensors *tensors);
size_t lb_tensors_input_bytes(const struct lb_tensors *tensors);

/* Copies the inputs from the host into buffer 0 or 1, but for those that are NULL. */
enum lb_status lb_tensors_upload(const struct lb_tensors *tensors, int buffer,
                                 const struct lb_inputs *inputs, struct lb_error *err);

/* Fills a few places of memory of a space with NaN: enough to tell that a call wrote nothing, and
 * at so little cost that the caches stay as they are. NULL where bytes is 0. *random: state of
 * lb_random_next. */
enum lb_status lb_poison_some(const struct lb_space *space, void *memory, size_t bytes,
                              uint64_t *random, struct lb_error *err);

/* Copies the outputs to the host: y, hn, cn, dx, dh0 and dc0, not the weight gradients. */
enum lb_status lb_tensors_download(const struct lb_tensors *tensors,
                                   const struct lb_results *results, struct lb_error *err);

/* Tensors as arguments of forward and of backward. */
struct lb_forward_io lb_forward_io(void *const at[LB_TENSOR_COUNT]);
struct lb_backward_io lb_backward_io(void *const at[LB_TENSOR_COUNT]);

/* The tensors of lb_impl.update: canonical weights and weight gradients. */
struct lb_case_update {
    const struct lb_problem *problem;
    const struct lb_space *space;
    size_t bytes;              /* of each of the next two */
    void *weights, *gradients; /* all tensors, as device/weight_packing.h places them */
    void **tables;             /* the tables of io */
    struct lb_update_io io;
    uint64_t drawn; /* the space's hash of the right weights */
};

/* Bytes that lb_case_update_open allocates in the space. */
double lb_case_update_bytes(const struct lb_problem *problem);

/* Allocates the tensors and uploads the weights. problem must stay valid until close. LB_OOM, or
 * what the space returned. */
enum lb_status lb_case_update_open(const struct lb_problem *problem, const struct lb_space *space,
                                   const struct lb_weights *weights, struct lb_case_update *update,
                                   struct lb_error *err);
void lb_case_update_close(struct lb_case_update *update); /* accepts a zeroed one */

/* Uploads the weights and fills the gradients with NaN, so that what update leaves unwritten is
 * found. */
enum lb_status lb_case_update_renew(const struct lb_case_update *update,
                                    const struct lb_weights *weights, struct lb_error *err);

#endif

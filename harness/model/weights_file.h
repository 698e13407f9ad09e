/* The weights of a trained LSTM from a safetensors file, in place of drawn ones.
 *
 * The file holds the tensors of a PyTorch state dict: weight_ih_l0 [4H, I], weight_hh_l0 [4H, H],
 * bias_ih_l0 [4H], bias_hh_l0 [4H], the same for the reverse direction with _reverse behind it, and
 * l1, l2, ... for more layers, all behind a prefix such as "encoder.lstm."; gate order i f g o.
 * Biases may be missing: they are zero. bench/frameworks/to_safetensors.py converts other files.
 * Source of the format: the safetensors README: 8 bytes of header length, a JSON header with dtype,
 * shape and data_offsets per tensor, then the data, all little-endian. */
#ifndef LB_WEIGHTS_FILE_H
#define LB_WEIGHTS_FILE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The weights of one layer and direction. A file has those before LB_W_CELL. */
enum lb_weight {
    LB_W_IH,   /* [4H, I_l] */
    LB_W_HH,   /* [4H, H]; [4H, P] for the cell projection */
    LB_B_IH,   /* [4H] */
    LB_B_HH,   /* [4H] */
    LB_W_CELL, /* the cell's own weights; none for the standard cell */
    LB_WEIGHT_COUNT
};

struct lb_weights_file {
    int64_t input, hidden, layers, directions;
    double **values[LB_W_CELL]; /* each [L*D], of which each is a tensor in canonical shape */
    uint64_t hash;              /* of all values: two files with the same hash are equal */
};

/* Reads the LSTM whose tensors' names begin with prefix ("" for none).
 * LB_INVALID names the file and what is wrong: the byte of a damaged file, or the tensor that is
 * missing or has the wrong shape, with the names that there are. LB_IO, LB_OOM. */
enum lb_status lb_weights_file_read(const char *path, const char *prefix,
                                    struct lb_weights_file **out, struct lb_error *err);
void lb_weights_file_free(struct lb_weights_file *file); /* accepts NULL */

/* Whether the problem has the file's sizes and the standard cell. */
bool lb_weights_file_fits(const struct lb_weights_file *file, const struct lb_problem *problem);

/* The file of weights that is given for all cases (base/given_files.h). Read once; *file is NULL
 * when none is given. Errors as above. */
enum lb_status lb_weights_given(const struct lb_weights_file **file, struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

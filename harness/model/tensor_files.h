/* Tensors from files: sequences in NumPy's .npy format, and the weights of a trained LSTM from a
 * safetensors file. */
#ifndef LB_TENSOR_FILES_H
#define LB_TENSOR_FILES_H

#include "api/problem.h"

/* Sequences from a file: x of a case, which replaces random inputs, or y that was computed
 * elsewhere.
 *
 * The file is a NumPy array of three axes (numpy.save): [T, B, I], or [B, T, I] where the batch
 * comes first, as in Keras; little-endian f64, f32 or f16; in C order. The source of the format
 * is numpy.lib.format. A file consists of the magic bytes, two bytes of version, the length of
 * the header in 2 bytes (4 from version 2 on), the header, and the data. The header is a Python
 * dict of descr, fortran_order and shape. */
struct lb_sequence_file {
    int64_t seq_len, batch, width; /* width is I for x and D*H for y */
    enum lb_dtype dtype;           /* type in the file; `values` are exact */
    double *values;                /* [T, B, width], whatever the order in the file */
    double max_abs;                /* largest absolute value */
    uint64_t hash;                 /* of sizes and values: equal sequences have equal hashes */
};

/* batch_first: the file's axes are [B, T, width]. LB_INVALID: the message names the file and
 * what is wrong. LB_IO, LB_OOM. */
enum lb_status lb_sequence_file_read(const char *path, bool batch_first,
                                     struct lb_sequence_file **out, struct lb_error *err);
void lb_sequence_file_free(struct lb_sequence_file *file); /* accepts NULL */

/* Writes values [seq_len, batch, width] as f64 in that order. LB_IO. */
enum lb_status lb_sequence_file_write(const char *path, int64_t seq_len, int64_t batch,
                                      int64_t width, const double *values, struct lb_error *err);

/* Returns the file of x that is given for all cases (base/given_files.h). It is read once. *file is
 * NULL when none is given. Errors are those of lb_sequence_file_read. */
enum lb_status lb_inputs_given(const struct lb_sequence_file **file, struct lb_error *err);

/* The weights of one layer and direction. A file has those before LB_W_CELL. */
enum lb_weight {
    LB_W_IH,   /* [4H, I_l] */
    LB_W_HH,   /* [4H, H]; [4H, P] for the cell projection */
    LB_B_IH,   /* [4H] */
    LB_B_HH,   /* [4H] */
    LB_W_CELL, /* the cell's own weights; none for the standard cell */
    LB_WEIGHT_COUNT
};

/* The weights of a trained LSTM from a safetensors file, in place of drawn ones.
 *
 * The file holds the tensors of a PyTorch state dict: weight_ih_l0 [4H, I], weight_hh_l0 [4H, H],
 * bias_ih_l0 [4H], bias_hh_l0 [4H], the same for the reverse direction with _reverse behind it, and
 * l1, l2, ... for more layers, all behind a prefix such as "encoder.lstm."; gate order i f g o.
 * Biases may be missing: they are zero. bench/frameworks/to_safetensors.py converts other files.
 * Source of the format: the safetensors README: 8 bytes of header length, a JSON header with dtype,
 * shape and data_offsets per tensor, then the data, all little-endian. */
struct lb_weights_file {
    int64_t input, hidden, layers, directions;
    double **values[LB_W_CELL]; /* each [L*D], of which each is a tensor in canonical shape */
    double max_abs;             /* largest absolute value */
    uint64_t hash;              /* of all values: two files with the same hash are equal */
};

/* Reads the LSTM whose tensors' names begin with prefix ("" for none).
 * LB_INVALID names the file and what is wrong, such as the tensor that is
 * missing or has the wrong shape, with the names that there are. LB_IO, LB_OOM. */
enum lb_status lb_weights_file_read(const char *path, const char *prefix,
                                    struct lb_weights_file **out, struct lb_error *err);
void lb_weights_file_free(struct lb_weights_file *file); /* accepts NULL */

/* The file of weights that is given for all cases (base/given_files.h). Read once; *file is NULL
 * when none is given. Errors as above. */
enum lb_status lb_weights_given(const struct lb_weights_file **file, struct lb_error *err);
#endif

/* Sequences from a file: x of a case, which replaces random inputs, or y that was computed
 * elsewhere.
 *
 * The file is a NumPy array of three axes (numpy.save): [T, B, I], or [B, T, I] where the batch
 * comes first, as in Keras; little-endian f64, f32 or f16; in C order. The source of the format
 * is numpy.lib.format. A file consists of the magic bytes, two bytes of version, the length of
 * the header in 2 bytes (4 from version 2 on), the header, and the data. The header is a Python
 * dict of descr, fortran_order and shape. */
#ifndef LB_SEQUENCE_FILE_H
#define LB_SEQUENCE_FILE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_sequence_file {
    int64_t seq_len, batch, width; /* width is I for x and D*H for y */
    enum lb_dtype dtype;           /* type in the file; `values` are exact */
    double *values;                /* [T, B, width], whatever the order in the file */
    double max_abs;                /* largest absolute value */
    uint64_t hash;                 /* of sizes and values: equal sequences have equal hashes */
};

/* batch_first: the file's axes are [B, T, width]. LB_INVALID: the message names the file, the
 * byte and what is wrong there. LB_IO, LB_OOM. */
enum lb_status lb_sequence_file_read(const char *path, bool batch_first,
                                     struct lb_sequence_file **out, struct lb_error *err);
void lb_sequence_file_free(struct lb_sequence_file *file); /* accepts NULL */

/* Writes values [seq_len, batch, width] as f64 in that order. LB_IO. */
enum lb_status lb_sequence_file_write(const char *path, int64_t seq_len, int64_t batch,
                                      int64_t width, const double *values, struct lb_error *err);

/* Returns the file of x that is given for all cases (base/given_files.h). It is read once. *file is
 * NULL when none is given. Errors are those of lb_sequence_file_read. */
enum lb_status lb_inputs_given(const struct lb_sequence_file **file, struct lb_error *err);

/* Whether the sizes of the problem's x are those of the file. */
bool lb_inputs_fit(const struct lb_sequence_file *file, const struct lb_problem *problem);

#ifdef __cplusplus
}
#endif
#endif

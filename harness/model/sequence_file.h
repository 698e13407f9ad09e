/* Sequences from a file, in place of drawn ones: x of a case, or y that was computed elsewhere.
 *
 * The file is a NumPy array of three axes (numpy.save): [T, B, I], or [B, T, I] where the batch
 * comes first, as in Keras; little-endian f64, f32 or f16; in C order.
 * Source of the format: numpy.lib.format: the magic bytes, two of version, a length of 2 bytes (4
 * from version 2 on), a header that is a Python dict of descr, fortran_order and shape, the data.
 */
#ifndef LB_SEQUENCE_FILE_H
#define LB_SEQUENCE_FILE_H

#include "api/problem.h"

#ifdef __cplusplus
extern "C" {
#endif

struct lb_sequence_file {
    int64_t seq_len, batch, width; /* width: I of x, D*H of y */
    enum lb_dtype dtype;           /* of the file; values are exact */
    double *values;                /* [T, B, width], whatever the order in the file */
    double max_abs;                /* of the values */
    uint64_t hash;                 /* of the sizes and values: equal sequences have equal ones */
};

/* batch_first: the file's axes are [B, T, width]. LB_INVALID names the file, the byte that is wrong
 * and what is wrong with it. LB_IO, LB_OOM. */
enum lb_status lb_sequence_file_read(const char *path, bool batch_first,
                                     struct lb_sequence_file **out, struct lb_error *err);
void lb_sequence_file_free(struct lb_sequence_file *file); /* accepts NULL */

/* Writes values [seq_len, batch, width] as f64 in that order. LB_IO. */
enum lb_status lb_sequence_file_write(const char *path, int64_t seq_len, int64_t batch,
                                      int64_t width, const double *values, struct lb_error *err);

/* The file that this process and its workers take x from: the environment says which, as the
 * program sets it for them; a second variable that is not empty says that the batch comes first.
 * Read once; *file is NULL when none is named. Errors as above. */
#define LB_INPUTS_VARIABLE             "BENCH_LSTM_INPUTS"
#define LB_INPUTS_BATCH_FIRST_VARIABLE "BENCH_LSTM_INPUTS_BATCH_FIRST"
enum lb_status lb_inputs_given(const struct lb_sequence_file **file, struct lb_error *err);

/* Whether x of the problem has the file's sizes. */
bool lb_inputs_fit(const struct lb_sequence_file *file, const struct lb_problem *problem);

#ifdef __cplusplus
}
#endif
#endif

/* A whole file in memory, for the parsers of binary formats. */
#ifndef LB_FILE_BYTES_H
#define LB_FILE_BYTES_H

#include <stddef.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the whole file. The caller frees *bytes [*size], also after a failure. LB_IO with the
 * name of the file; LB_OOM. */
enum lb_status lb_file_bytes(const char *path, unsigned char **bytes, size_t *size,
                             struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

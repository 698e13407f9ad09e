/* Files that are replaced as a whole: readers see the old contents or the new, never a part. */
#ifndef LB_ATOMIC_FILE_H
#define LB_ATOMIC_FILE_H

#include <stdio.h>

#include "api/status.h"

/* Writes a file's contents to out. */
typedef enum lb_status lb_file_writer(FILE *out, const void *user, struct lb_error *err);

/* Writes the file as path.PID.new and renames it to path once it is complete; an earlier file stays
 * until then, or for good after a failure. The file keeps its mode, and links that lead to it stay
 * links. A device, a pipe or the missing target of a link can't be renamed over, so these are
 * opened and written directly. LB_IO, or the status that write returns. */
enum lb_status lb_write_file_atomically(const char *path, lb_file_writer *write, const void *user,
                                        struct lb_error *err);
#endif

/* Files that are there whole or not at all. */
#ifndef LB_ATOMIC_FILE_H
#define LB_ATOMIC_FILE_H

#include <stdio.h>

#include "api/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes a file's contents to out. */
typedef enum lb_status lb_file_writer(FILE *out, const void *user, struct lb_error *err);

/* Writes path anew beside its place, as path.PID.new, and puts it there once it is whole: processes
 * that write the same file do not get in each other's way, and what was there stays until then, and
 * after a failure; its mode and the links that lead to it stay always. What is no file (a device, a
 * pipe), and what is not there yet behind a link, is written as it is opened. LB_IO, LB_OOM, or
 * what write answers. */
enum lb_status lb_write_file_atomically(const char *path, lb_file_writer *write, const void *user,
                                        struct lb_error *err);

#ifdef __cplusplus
}
#endif
#endif

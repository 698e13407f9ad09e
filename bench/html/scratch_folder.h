/* A folder for files that are needed while a command runs. */
#ifndef LB_SCRATCH_FOLDER_H
#define LB_SCRATCH_FOLDER_H

#include <stddef.h>

#include "api/status.h"

/* Creates a folder of this process in $TMPDIR, or else in /tmp, and writes its path into path
 * [size]. Folders that killed processes of the same user left behind are removed once they are a
 * minute old. LB_IO: the folder can't be made, or its path is longer than size. */
enum lb_status lb_scratch_folder_create(char *path, size_t size, struct lb_error *err);

/* Removes the folder and the files in it. */
void lb_scratch_folder_remove(const char *path);

#endif

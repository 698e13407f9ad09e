/* A temporary folder and environment variables for one test. The teardown removes the folder and
 * restores the environment, also when the test fails. For cmocka_unit_test_setup_teardown and
 * groups.
 */
#ifndef LB_SCRATCH_FOLDER_H
#define LB_SCRATCH_FOLDER_H

#include <stddef.h>

/* setup makes the folder. teardown removes it with its contents and restores what scratch_setenv
 * changed. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

const char *scratch_folder(void);

/* folder/name, in a static buffer that the eighth later call overwrites. */
const char *scratch_path(const char *name);

/* Writes a file of that name in the folder, and makes the folders above it; returns its path as
 * scratch_path does. Aborts when that fails, as does the next function. */
const char *scratch_write_bytes(const char *name, const void *bytes, size_t size);
const char *scratch_write(const char *name, const char *text);

/* The content of a file with a zero behind it, the caller's to free; size may be NULL. */
char *scratch_read(const char *path, size_t *size);

/* Sets a variable until the teardown; value NULL unsets it. */
void scratch_setenv(const char *name, const char *value);
#endif

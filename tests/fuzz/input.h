/* What fuzz targets share: the entry point that clang's libFuzzer and mutate.c call, and how bytes
 * become what a parser takes. */
#ifndef LB_TESTS_FUZZ_INPUT_H
#define LB_TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>

/* Runs the parser on data [size]. Returns 0; what is wrong ends the process: a sanitizer's report,
 * or a call of abort() where a property of the parser does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a C string, which ends at the first NUL: for the caller to free. */
char *fuzz_text(const uint8_t *data, size_t size);

/* Writes the bytes to a file in memory; returns its path, which stays good until the next call. */
const char *fuzz_file(const uint8_t *data, size_t size);

/* Ends the process with the message unless holds. */
void fuzz_require(int holds, const char *message);

#endif

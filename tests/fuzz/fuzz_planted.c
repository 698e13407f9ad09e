/* A target with a planted fault, which fuzzing must find: "T3" followed by 8 bytes or more. */
#include <string.h>

#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_require(size < 10 || memcmp(data, "T3", 2) != 0, "the planted fault");
    return 0;
}

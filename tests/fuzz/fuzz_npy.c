/* Files of sequences: what is taken has all its values, and a refusal names the file. */
#include <string.h>

#include "model/tensor_files.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lb_sequence_file *file;
    struct lb_error err = {""};
    bool batch_first = size > 0 && data[size - 1] & 1;
    if (lb_sequence_file_read(fuzz_file(data, size), batch_first, &file, &err) == LB_OK) {
        double largest = 0;
        for (int64_t i = 0; i < file->seq_len * file->batch * file->width; i++) {
            double value = file->values[i] < 0 ? -file->values[i] : file->values[i];
            largest = value > largest ? value : largest;
        }
        fuzz_require(largest == file->max_abs, "the values are not those that were read");
        lb_sequence_file_free(file);
    } else {
        fuzz_require(strstr(err.text, ": ") != NULL, "a file is refused without a reason");
    }
    return 0;
}

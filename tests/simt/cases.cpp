/* cases.cpp: the table of kernels. */
#include "case_support.h"

namespace simt_test
{

/* shape: T, B, H, blocks, threads. H is the depth of mma_tile, T the tiles of bulk_cell. */
static const kernel_case cases[] = {
    {"lstm_grid", {{4, 2, 32, 4, 64}, {3, 3, 36, 3, 96}}, run_lstm_grid},
    {"lstm_counter", {{4, 2, 32, 4, 64}, {3, 3, 36, 3, 96}}, run_lstm_counter},
    {"lstm_cluster", {{4, 2, 32, 4, 64}, {3, 3, 36, 3, 96}}, run_lstm_cluster},
    {"lstm_async", {{5, 2, 32, 4, 64}, {6, 3, 36, 3, 96}}, run_lstm_async},
    {"mma_tile", {{1, 1, 64, 1, 32}, {1, 1, 80, 1, 32}}, run_mma_tile},
    {"mma_formats", {{1, 1, 16, 1, 32}, {1, 1, 16, 1, 32}}, run_mma_formats},
    {"bulk_cell", {{5, 1, 1, 1, 64}, {4, 1, 1, 1, 96}}, run_bulk_cell},
};

kernel_list kernel_cases()
{
    return {cases, cases + sizeof cases / sizeof *cases};
}

const kernel_case *find_case(const std::string &name)
{
    for (const kernel_case &c : cases)
        if (name == c.name)
            return &c;
    return nullptr;
}

} // namespace simt_test

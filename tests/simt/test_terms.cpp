/* test_terms.cpp: each exchange that cuda/fused_terms.cu measures brings the right words, which its
 * kernels compare themselves, and ends. */
#include "check.h"
#include "device.h"

#include "cuda/fused_terms.cuh"

using namespace simt_test;

/* Returns whether a launch finds nothing and no block has written a fault. */
template <class Kernel>
static bool right(const simt::launch_config &config, lb_fused_fault *fault, const Kernel &kernel)
{
    bool ok = clean(simt::launch(config, kernel)) && !fault->raised;
    if (fault->raised)
        fprintf(stderr, "%s: block %d, awaited %d, step %d\n", config.kernel, fault->block,
                fault->awaited, fault->step);
    simt::device_reset();
    return ok;
}

static lb_fused_fault *new_fault()
{
    return simt::device_copy(std::vector<lb_fused_fault>(1), "fault");
}

template <class Tile, bool check> static bool cluster_exchanges(int rows, uint64_t seed)
{
    lb_fused_forward_args a = {};
    a.batch = 2 * rows - 1, a.hidden = Tile::units, a.rows = rows, a.to = 5;
    a.fault = new_fault();
    return right(grid_of(2 * Tile::blocks, Tile::threads, seed, Tile::blocks,
                         lb_cluster_shared(&Tile::figures, false)),
                 a.fault, [=] { lb_terms::cluster_exchange_kernel<Tile, check>(a); });
}

TEST(blocks_of_a_cluster_receive_all_of_h)
{
    for (uint64_t seed : {0, 1, 2}) {
        CHECK((cluster_exchanges<lb_cluster::tile<4, 2, 1, 2, 8>, true>(8, seed)));
        CHECK((cluster_exchanges<lb_cluster::tile<4, 2, 1, 2, 16>, true>(4, seed)));
        CHECK((cluster_exchanges<lb_cluster::tile<4, 2, 1, 2, 8>, false>(2, seed)));
    }
}

template <class Tile, bool check> static bool grid_exchanges(int rows, uint64_t seed)
{
    const int hidden = 64; /* two packets */
    const lb_grid_tile &tile = Tile::figures;
    lb_fused_forward_args a = {};
    const lb_grid_split split = {2, rows, (rows + Tile::columns - 1) / Tile::columns};
    size_t bytes = lb_grid_exchange(&tile, LB_GRID_F16, false, hidden, &split, 1);
    a.rows = rows, a.spin_limit = 1 << 22;
    a.batch = 2 * rows - 1, a.hidden = hidden, a.directions = 1;
    a.to = a.seq_len = 6;
    a.scratch = simt::device_copy(std::vector<uint32_t>(bytes / 4), "exchange");
    a.h0 = simt::device_copy(std::vector<uint16_t>(hidden * 2 * rows), "h0");
    a.fault = new_fault();
    simt::launch_config config = grid_of(lb_grid_blocks(&tile, hidden), Tile::threads, seed);
    config.grid.y = 2, config.shared_bytes = 8;
    return right(config, a.fault, [=] { lb_terms::grid_exchange_kernel<Tile, check>(a); });
}

TEST(blocks_of_a_group_receive_all_of_h)
{
    for (uint64_t seed : {0, 1, 2}) {
        CHECK((grid_exchanges<lb_grid::tile<8, 1, 4, 16, 8>, true>(8, seed)));
        CHECK((grid_exchanges<lb_grid::tile<16, 1, 4, 32, 16>, true>(16, seed)));
        CHECK((grid_exchanges<lb_grid::tile<8, 1, 4, 16, 8>, true>(24, seed))); /* three chunks */
        CHECK((grid_exchanges<lb_grid::tile<8, 1, 4, 16, 8>, false>(24, seed)));
    }
}

TEST(a_pair_of_blocks_exchanges_words)
{
    for (uint64_t seed : {0, 1, 2}) {
        uint32_t *words = simt::device_copy(std::vector<uint32_t>(2), "words");
        lb_fused_fault *fault = new_fault();
        CHECK(right(grid_of(4, 32, seed), fault,
                    [=] { lb_terms::pair_kernel(words, words + 1, 3, 1, 9, fault); }));
    }
}

TEST(launches_follow_one_another)
{
    int *count = simt::device_array<int>(1, "count");
    lb_fused_fault *fault = new_fault();
    simt::written written;
    for (int number = 0; number < 3; number++) {
        simt::launch_config config = grid_of(2, 64);
        config.follows = number > 0 ? &written : nullptr, config.leaves = &written;
        CHECK(clean(simt::launch(config, [=] { lb_terms::launch_kernel(count, number, fault); })));
    }
    CHECK(*count == 3 && !fault->raised);
    simt::device_reset();
}

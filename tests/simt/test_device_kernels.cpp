/* test_device_kernels.cpp: the hash of device memory equals that of a plain loop for every grid,
 * and changing any byte changes it. */
#include "check.h"
#include "device/device.h"

#include "harness/device/device_kernels.cuh"

#include <vector>

using lb_device_kernels::word;
using namespace simt_test;

static word hash_on_device(const std::vector<unsigned char> &bytes, unsigned blocks, uint64_t seed)
{
    const unsigned char *memory = simt::device_copy(bytes, "memory");
    word *sum = simt::device_copy(std::vector<word>{0}, "sum");
    const size_t count = bytes.size();
    CHECK(clean(simt::launch(grid_of(blocks, lb_device_kernels::block_threads, seed),
                             [=] { lb_device_kernels::hash_kernel(memory, count, sum); })));
    word result = *sum;
    simt::device_reset();
    return result;
}

static word hash_on_host(const std::vector<unsigned char> &bytes)
{
    word sum = 0;
    for (size_t at = 0; at < bytes.size(); at += 8) {
        word value = 0;
        for (size_t i = at; i < at + 8 && i < bytes.size(); i++)
            value |= word{bytes[i]} << 8 * (i - at);
        sum += lb_device_kernels::term(value, at / 8);
    }
    return sum;
}

static std::vector<unsigned char> made_up(size_t count)
{
    std::vector<unsigned char> bytes(count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = static_cast<unsigned char>(lb_device_kernels::term(count, i));
    return bytes;
}

TEST(the_grid_and_the_order_do_not_matter)
{
    for (size_t count : {1, 7, 8, 9, 2048, 5003})
        for (unsigned blocks : {1u, 3u})
            for (uint64_t seed : {0, 1, 2})
                CHECK(hash_on_device(made_up(count), blocks, seed) == hash_on_host(made_up(count)));
}

TEST(any_changed_byte_changes_it)
{
    const std::vector<unsigned char> bytes = made_up(43);
    const word before = hash_on_device(bytes, 1, 0);
    for (size_t i = 0; i < bytes.size(); i++) {
        std::vector<unsigned char> changed = bytes;
        changed[i] ^= 1;
        CHECK(hash_on_device(changed, 1, 0) != before);
    }
}

TEST(swapped_words_change_it)
{
    std::vector<unsigned char> bytes = made_up(32), swapped(bytes.begin() + 8, bytes.end());
    swapped.insert(swapped.end(), bytes.begin(), bytes.begin() + 8);
    CHECK(hash_on_device(bytes, 1, 0) != hash_on_device(swapped, 1, 0));
}

/* Numbers, and at every place in turn an infinity or a NaN. */
TEST(each_value_that_overflowed_counts)
{
    for (size_t count : {1, 2, 3, 4, 5, 1023, 2051})
        for (unsigned blocks : {1u, 2u}) {
            std::vector<unsigned short> values(count);
            for (size_t i = 0; i < count; i++)
                values[i] = static_cast<unsigned short>(0x7bff & i * 77); /* finite, of any size */
            for (size_t at : {size_t{0}, count / 2, count - 1})
                values[at] = static_cast<unsigned short>(0xfc00 | at % 2); /* -infinity, or NaN */
            word expected = 0;
            for (unsigned short value : values)
                expected += (value & 0x7c00) == 0x7c00;
            const unsigned short *memory = simt::device_copy(values, "memory");
            word *sum = simt::device_copy(std::vector<word>{0}, "sum");
            CHECK(clean(simt::launch(grid_of(blocks, lb_device_kernels::block_threads), [=] {
                lb_device_kernels::overflow_kernel(memory, count, sum);
            })));
            CHECK(expected > 0 && *sum == expected);
            simt::device_reset();
        }
}

/* Each step halves the sum and adds 1, so it approaches 2. Every block does the same work. */
TEST(fixed_work_is_done_by_each_thread)
{
    float *out = simt::device_array<float>(2 * lb_device_kernels::block_threads, "out");
    CHECK(clean(simt::launch(grid_of(2, lb_device_kernels::block_threads),
                             [=] { lb_device_kernels::fixed_kernel(out); })));
    for (int i = 0; i < 2 * lb_device_kernels::block_threads; i++)
        CHECK(out[i] == 2.0f);
}

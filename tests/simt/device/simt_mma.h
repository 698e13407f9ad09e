/* simt_mma.h: ldmatrix and mma.sync on the host. PTX ISA, "Warp Level Matrix Instructions".
 *
 * The last lane that arrives does the work of the warp. Sums are exact products added in double
 * and rounded once: the device adds with fewer bits, in an order that the manual leaves open, so
 * results agree to a few units in the last place of the largest term, not to the bit. */
#ifndef LB_SIMT_MMA_H
#define LB_SIMT_MMA_H

#include "calls.h"

#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace simt
{

struct mma_operands {
    uint32_t a[4], b[2];
    float c[4];
};

/* The formats of a register: two 16-bit values, or one value of 32 bits. */
struct f16_pair {
    static constexpr int values = 2;
    static double value(uint32_t bits, int i)
    {
        return __half2float(__ushort_as_half(static_cast<uint16_t>(bits >> (16 * i))));
    }
};

struct bf16_pair {
    static constexpr int values = 2;
    static double value(uint32_t bits, int i)
    {
        return __bfloat162float(__ushort_as_bfloat16(static_cast<uint16_t>(bits >> (16 * i))));
    }
};

struct tf32 {
    static constexpr int values = 1;
    static double value(uint32_t bits, int)
    {
        float f;
        __builtin_memcpy(&f, &bits, sizeof f);
        return f;
    }
};

/* Collects the operand registers of the warp into matrices, multiplies these, and distributes
 * the result. ptx.cuh describes the layouts of the fragments. A register holds `values`
 * consecutive elements; K = 8 * values. */
template <class Format> SIMT_RUNTIME void finish_mma(lane_slot *slots)
{
    constexpr int values = Format::values, depth = 8 * values;
    static double a[16][16], b[16][8];
    for (int lane = 0; lane < static_cast<int>(warp_lanes); lane++) {
        mma_operands in;
        __builtin_memcpy(&in, slots[lane].bytes, sizeof in);
        int g = lane / 4, t = lane % 4 * values;
        for (int i = 0; i < values; i++) {
            for (int r = 0; r < 4; r++)
                a[g + r % 2 * 8][t + r / 2 * 4 * values + i] = Format::value(in.a[r], i);
            for (int r = 0; r < 2; r++)
                b[t + r * 4 * values + i][g] = Format::value(in.b[r], i);
        }
    }
    for (int lane = 0; lane < static_cast<int>(warp_lanes); lane++) {
        mma_operands in;
        __builtin_memcpy(&in, slots[lane].bytes, sizeof in);
        float d[4];
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            double sum = 0;
            for (int k = 0; k < depth; k++)
                sum += a[row][k] * b[k][column];
            d[i] = static_cast<float>(sum + static_cast<double>(in.c[i]));
        }
        __builtin_memcpy(slots[lane].bytes, d, sizeof d);
    }
}

template <class Format>
SIMT_RUNTIME void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                      const char *name, site at)
{
    mma_operands in;
    __builtin_memcpy(in.a, a, sizeof in.a);
    __builtin_memcpy(in.b, b, sizeof in.b);
    __builtin_memcpy(in.c, d, sizeof in.c);
    collective what = {name, false, finish_mma<Format>};
    const meeting &met = warp_exchange(&in, sizeof in, what, at);
    __builtin_memcpy(d, met.slots[self->lane].bytes, sizeof d);
}

/* Lane 8i + r passes the address of row r of matrix i, of four. */
SIMT_RUNTIME inline void finish_ldmatrix(lane_slot *slots)
{
    uint16_t matrix[4][8][8];
    for (unsigned row = 0; row < warp_lanes; row++) {
        const void *address;
        __builtin_memcpy(&address, slots[row].bytes, sizeof address);
        __builtin_memcpy(matrix[row / 8][row % 8], address, sizeof matrix[0][0]);
    }
    for (unsigned lane = 0; lane < warp_lanes; lane++) {
        uint32_t to[4];
        for (int m = 0; m < 4; m++)
            __builtin_memcpy(&to[m], &matrix[m][lane / 4][lane % 4 * 2], sizeof to[m]);
        __builtin_memcpy(slots[lane].bytes, to, sizeof to);
    }
}

} // namespace simt

namespace lb_ptx
{

template <class T>
inline void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                simt::site at = simt::site::here());

template <>
inline void mma<__half>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                        simt::site at)
{
    simt::mma<simt::f16_pair>(d, a, b, "mma f16", at);
}

template <>
inline void mma<__nv_bfloat16>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                               simt::site at)
{
    simt::mma<simt::bf16_pair>(d, a, b, "mma bf16", at);
}

template <>
inline void mma<float>(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], simt::site at)
{
    for (uint32_t bits : {a[0], a[1], a[2], a[3], b[0], b[1]})
        if ((bits & 0x7f800000u) != 0x7f800000u && bits & 0x1fffu)
            simt::fail(at, "mma tf32: an operand is not rounded to TF32");
    simt::mma<simt::tf32>(d, a, b, "mma tf32", at);
}

/* Rounds to nearest, with ties away from zero, by adding half a unit to the magnitude.
 * Infinities and NaN stay as they are. */
SIMT_RUNTIME inline uint32_t to_tf32(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    bool finite = (bits & 0x7f800000u) != 0x7f800000u;
    return (finite ? bits + 0x1000u : bits) & 0xffffe000u;
}

SIMT_RUNTIME inline void ldmatrix(uint32_t (&to)[4], const void *row,
                                  simt::site at = simt::site::here())
{
    simt::check_alignment(row, 16, "ldmatrix", at);
    simt::weak_access(row, 16, false, at);
    simt::collective what = {"ldmatrix", false, simt::finish_ldmatrix};
    const simt::meeting &met = simt::warp_exchange(&row, sizeof row, what, at);
    __builtin_memcpy(to, met.slots[simt::self->lane].bytes, sizeof to);
}

} // namespace lb_ptx

#endif

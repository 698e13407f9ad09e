/* Counter-based random numbers: value i of stream s of a seed, computed without state. */
#ifndef LB_RANDOM_H
#define LB_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 64 random bits, a pure function of its arguments: data drawn with it depends neither on the order
 * of drawing nor on how much is drawn. Output function of SplitMix64 (Steele, Lea, Flood, "Fast
 * splittable pseudorandom number generators", OOPSLA 2014), whose state is a counter anyway. */
uint64_t lb_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* The next 64 bits of SplitMix64 itself, for what is drawn in one order; any state is a seed. */
uint64_t lb_random_next(uint64_t *state);

/* Uniform in [-1, 1), a multiple of 2^-23: exact in f32. */
float lb_random_float(uint64_t seed, uint64_t stream, uint64_t index);

/* Uniform in 0 .. bound - 1; bound at least 1 and at most 2^32, where the bias is below 2^-32. */
uint64_t lb_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);

#ifdef __cplusplus
}
#endif
#endif

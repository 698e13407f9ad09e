/* Counter-based random numbers: value i of stream s of a seed, computed without state. */
#ifndef LB_RANDOM_H
#define LB_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/* 64 random bits that depend on the arguments alone, not on what was drawn before. Source: the
 * output function of SplitMix64, whose state is a counter: Steele, Lea, Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014. */
uint64_t lb_random_bits(uint64_t seed, uint64_t stream, uint64_t index);

/* The next 64 bits of SplitMix64 itself, for values that are drawn in a fixed order. Any state
 * serves as a seed. */
uint64_t lb_random_next(uint64_t *state);

/* Puts values [n] into a random order. */
void lb_random_shuffle(double *values, size_t n, uint64_t *state);

/* A uniform value in [-1, 1), a multiple of 2^-23, so that it is exact in f32. */
float lb_random_float(uint64_t seed, uint64_t stream, uint64_t index);

/* A uniform integer in 0 .. bound - 1, for 1 <= bound <= 2^32. No value's probability is off by
 * more than 2^-32. */
uint64_t lb_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound);
#endif

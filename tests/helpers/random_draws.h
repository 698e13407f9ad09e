/* Numbers for tests: draws from a seeded generator, and a series that many papers use. */
#ifndef LB_DRAWS_H
#define LB_DRAWS_H

#include <stdint.h>

/* 53 random bits. Knuth's MMIX generator: x = 6364136223846793005 x + 1442695040888963407. */
uint64_t draws_bits(uint64_t *state);

/* Uniform in the open interval (0, 1); standard normal. */
double draws_uniform(uint64_t *state);
double draws_normal(uint64_t *state);

/* Yearly flow of the Nile, 1871 to 1970: Cobb, Biometrika 65 (1978) 243-251, table 1. */
extern const double draws_nile[100];
#endif

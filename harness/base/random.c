/* Counter-based random numbers. */
#include "base/random.h"

/* 2^64 divided by the golden ratio, an odd number: the step of SplitMix64's counter. */
static const uint64_t golden = 0x9e3779b97f4a7c15u;

/* SplitMix64's output function: a bijection that spreads every input bit over all output bits. The
 * constants are Stafford's variant 13, as in the paper's reference implementation. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint64_t lb_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    /* The seed is mixed before the stream is added, so that neighbouring seeds and streams start
     * far apart. */
    uint64_t start = mix(mix(seed + golden) + (stream + 1) * golden);
    return mix(start + (index + 1) * golden);
}

uint64_t lb_random_next(uint64_t *state)
{
    return mix(*state += golden);
}

void lb_random_shuffle(double *values, size_t n, uint64_t *state)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = (size_t)(lb_random_next(state) % i);
        double was = values[i - 1];
        values[i - 1] = values[j];
        values[j] = was;
    }
}

float lb_random_float(uint64_t seed, uint64_t stream, uint64_t index)
{
    int32_t top = (int32_t)(lb_random_bits(seed, stream, index) >> 40); /* 24 bits */
    return (float)(top - (1 << 23)) * 0x1p-23f;
}

uint64_t lb_random_below(uint64_t seed, uint64_t stream, uint64_t index, uint64_t bound)
{
    return (lb_random_bits(seed, stream, index) >> 32) * bound >> 32;
}

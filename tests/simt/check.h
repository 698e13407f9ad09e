/* A table of named tests and one assertion, for the tests in this folder. */
#ifndef LB_SIMT_CHECK_H
#define LB_SIMT_CHECK_H

#include "simt.h"

#include <cstdio>
#include <cstring>

namespace simt_test
{

struct test {
    const char *name;
    void (*body)();
};

inline int failures;

#define CHECK(condition)                                                            \
    do {                                                                            \
        if (!(condition)) {                                                         \
            simt_test::failures++;                                                  \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                           \
    } while (0)

/* Returns whether there are no findings, and prints them otherwise. */
inline bool clean(const simt::outcome &o)
{
    fputs(o.text().c_str(), stderr);
    return o.ok();
}

inline simt::launch_config grid_of(unsigned blocks, unsigned threads, uint64_t seed = 0,
                                   unsigned cluster = 1, size_t shared_bytes = 0)
{
    simt::launch_config config = {"test kernel"};
    config.grid.x = blocks;
    config.block.x = threads;
    config.seed = seed;
    config.cluster = cluster;
    config.shared_bytes = shared_bytes;
    return config;
}

/* Runs all tests of the table, or the one that the first argument names. */
template <size_t count> int run_tests(const test (&tests)[count], int argc, char **argv)
{
    int run = 0;
    for (const test &t : tests) {
        if (argc > 1 && strcmp(argv[1], t.name) != 0)
            continue;
        int before = failures;
        simt::device_reset();
        t.body();
        printf("%s %s\n", failures == before ? "ok" : "FAILED", t.name);
        run++;
    }
    return run == 0 || failures ? 1 : 0;
}

} // namespace simt_test

#endif

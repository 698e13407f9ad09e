/* Named tests and one assertion, for the tests in this folder. check.cpp runs them. */
#ifndef LB_SIMT_CHECK_H
#define LB_SIMT_CHECK_H

#include "simt.h"

#include <cstdio>

namespace simt_test
{

/* TEST(name) { ... } defines a test and adds it to the program's list, which check.cpp runs. */
struct test {
    const char *name;
    void (*body)();
    test *next;

    static inline test *first = nullptr, **end = &first;
    test(const char *name_, void (*body_)()) : name(name_), body(body_), next(nullptr)
    {
        *end = this;
        end = &next;
    }
};
#define TEST(name)                                       \
    static void name();                                  \
    static simt_test::test entry_of_##name(#name, name); \
    static void name()

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

} // namespace simt_test

#endif

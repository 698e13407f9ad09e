/* Measures how long a run took; the time is only printed. */
#ifndef LB_SIMT_TIMING_H
#define LB_SIMT_TIMING_H

#include <chrono>

namespace simt_test
{

template <class Body> double milliseconds_of(const Body &body)
{
    auto begin = std::chrono::steady_clock::now();
    body();
    auto spent = std::chrono::steady_clock::now() - begin;
    return std::chrono::duration<double, std::milli>(spent).count();
}

} // namespace simt_test

#endif

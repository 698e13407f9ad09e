/* Checks that every mutant of a table is caught by the detector that its row names. */
#ifndef LB_SIMT_MUTANTS_H
#define LB_SIMT_MUTANTS_H

#include "simt.h"

#include <cstdio>
#include <set>
#include <string>

namespace simt_test
{

using names = std::set<std::string>;

/* Returns the names of all detectors that caught one run. */
inline names caught_by(const simt::outcome &outcome, bool matches)
{
    names by;
    for (const simt::finding &f : outcome.findings)
        by.insert(simt::fault_name(f.kind));
    if (!matches)
        by.insert("mismatch");
    return by;
}

/* Runs all mutants, or the one with the number `only`, under 2 seeds in check mode and 8 in fast
 * mode. A mutant has a number, what it breaks, and the detector that must catch it in each mode
 * ("-": none must). The overload of detectors(mutant, seed) for its type runs it. Returns the
 * program's exit code. */
template <class Mutants> int test_mutants(const Mutants &mutants, int only = 0)
{
    const uint64_t seeds = simt::check_mode ? 2 : 8;
    int failures = 0, looked_at = 0;
    for (const auto &m : mutants) {
        std::string expected = simt::check_mode ? m.check : m.fast, breaks = m.breaks, all;
        if ((only && only != m.number) || expected == "-")
            continue;
        names by;
        for (uint64_t seed = 1; seed <= seeds && !by.count(expected); seed++)
            by.merge(detectors(m, seed));
        for (const std::string &d : by)
            all += " " + d;
        bool caught = by.count(expected) != 0;
        failures += !caught;
        looked_at++;
        printf("%s %d (%s): expected %s, caught by%s\n", caught ? "ok" : "FAILED", m.number,
               breaks.c_str(), expected.c_str(), by.empty() ? " none" : all.c_str());
    }
    printf("%d mutants, %d not caught\n", looked_at, failures);
    return failures || !looked_at;
}

} // namespace simt_test

#endif

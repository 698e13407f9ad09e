/* test_grid_mutants.cpp: every mutant of the fused grid kernels is caught by the detector that its
 * row names, within 2 seeds in check mode and 8 in fast mode.
 *
 *   test_simt_grid_mutants_fast [NUMBER]; the same of _check */
#include "grid_mutants.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

using namespace simt_grid;

static std::set<std::string> detectors(const mutant &m, uint64_t seed)
{
    manner how = m.how;
    if (how.missing >= 0)
        how.patience = 1000;
    verdict v = run(m.kernel, m.size, how, seed);
    std::set<std::string> by;
    for (const simt::finding &f : v.outcome.findings)
        by.insert(simt::fault_name(f.kind));
    if (how.missing < 0 && !v.matches())
        by.insert("mismatch");
    if (how.missing >= 0 && (!v.fault.raised || v.fault.awaited != how.missing))
        by.insert("report");
    if (how.spoiled >= 0 && !v.spread)
        by.insert("spread");
    return by;
}

int main(int argc, char **argv)
{
    const uint64_t seeds = simt::check_mode ? 2 : 8;
    int failures = 0, looked_at = 0;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant &m = mutants[i];
        const char *expected = simt::check_mode ? m.check : m.fast;
        if ((argc > 1 && atoi(argv[1]) != m.number) || !strcmp(expected, "-"))
            continue;
        std::set<std::string> by;
        for (uint64_t seed = 1; seed <= seeds && !by.count(expected); seed++)
            by.merge(detectors(m, seed));
        std::string all;
        for (const std::string &d : by)
            all += " " + d;
        bool caught = by.count(expected) != 0;
        failures += !caught;
        looked_at++;
        printf("%s %d (%s): expected %s, caught by%s\n", caught ? "ok" : "FAILED", m.number,
               m.breaks, expected, by.empty() ? " none" : all.c_str());
    }
    printf("%d mutants, %d not caught\n", looked_at, failures);
    return failures || !looked_at;
}

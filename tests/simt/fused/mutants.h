/* mutants.h: every mutant of a family's kernels is caught by the detector that its row names,
 * within 2 seeds in check mode and 8 in fast mode. mutate.py writes the tables, and a main for
 * each. */
#ifndef LB_SIMT_FUSED_MUTANTS_H
#define LB_SIMT_FUSED_MUTANTS_H

#include "simt.h"
#include "truth.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

namespace simt_fused
{

/* Subject is the family's own; its run(subject, shape, seed) is found by it. */
template <class Subject> struct mutant {
    int number;
    const char *check, *fast; /* detector that must catch it in each mode; "-": need not */
    const char *breaks;
    Subject kernel;
    shape size;
};

template <class Subject> std::set<std::string> detectors(const mutant<Subject> &m, uint64_t seed)
{
    auto v = run(m.kernel, m.size, seed);
    std::set<std::string> by;
    for (const simt::finding &f : v.outcome.findings)
        by.insert(simt::fault_name(f.kind));
    if (!v.matches())
        by.insert("mismatch");
    return by;
}

/* Of all, or of the one whose number is given. The program's exit code. */
template <class Subject, size_t count>
int test_mutants(const mutant<Subject> (&mutants)[count], int argc, char **argv)
{
    const uint64_t seeds = simt::check_mode ? 2 : 8;
    int failures = 0, looked_at = 0;
    for (const mutant<Subject> &m : mutants) {
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

} // namespace simt_fused

#endif

/* test_kernels.cpp: every kernel clean under many schedules, every mutant of it caught.
 *
 *   test_kernels_fast clean SEEDS
 *   test_kernels_fast mutants MUTANTS.CSV
 *   and the same of test_kernels_check */
#include "cases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

using namespace simt_test;

static int test_clean(unsigned long seeds)
{
    int failures = 0;
    for (const kernel_case &c : kernel_cases()) {
        for (const shape &s : c.shapes) {
            for (unsigned long seed = 0; seed < seeds; seed++) {
                run_result r = c.run(0, s, seed);
                if (r.ok())
                    continue;
                failures++;
                printf("FAILED %s T%d B%d H%d seed %lu: error %.3g (limit %.3g)\n%s", c.name,
                       s.seq_len, s.batch, s.hidden, seed, r.error, r.limit,
                       r.outcome.text().c_str());
            }
        }
        printf("ok %s: %lu seeds, 2 shapes\n", c.name, seeds);
    }
    return failures != 0;
}

struct mutant {
    int number;
    std::string kernel, check, fast, breaks;
};

static bool read_mutants(const char *path, std::vector<mutant> &mutants)
{
    std::ifstream file(path);
    std::string line, number;
    std::set<int> numbers;
    std::getline(file, line); /* the header */
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        mutant m;
        std::getline(fields, number, ',');
        std::getline(fields, m.kernel, ',');
        std::getline(fields, m.check, ',');
        std::getline(fields, m.fast, ',');
        std::getline(fields, m.breaks);
        m.number = atoi(number.c_str());
        if (m.breaks.empty() || !find_case(m.kernel) || !numbers.insert(m.number).second) {
            fprintf(stderr, "%s: cannot use this row: %s\n", path, line.c_str());
            return false;
        }
        mutants.push_back(m);
    }
    return !mutants.empty();
}

/* All that one run was caught by, as the table names it. */
static std::set<std::string> detectors(const run_result &r)
{
    std::set<std::string> by;
    for (const simt::finding &f : r.outcome.findings)
        by.insert(simt::fault_name(f.kind));
    if (!r.matches())
        by.insert("mismatch");
    return by;
}

/* Each mutant must be caught by the detector that its row names, within the seeds of this mode. */
static int test_mutants(const char *path)
{
    const uint64_t seeds = simt::check_mode ? 2 : 8;
    std::vector<mutant> mutants;
    if (!read_mutants(path, mutants))
        return 2;
    int failures = 0;
    for (const mutant &m : mutants) {
        const std::string &expected = simt::check_mode ? m.check : m.fast;
        if (expected == "-") /* this mode need not see it */
            continue;
        const kernel_case *c = find_case(m.kernel);
        std::set<std::string> by;
        for (uint64_t seed = 1; seed <= seeds && !by.count(expected); seed++)
            by.merge(detectors(c->run(m.number, c->shapes[0], seed)));
        std::string all;
        for (const std::string &d : by)
            all += " " + d;
        bool caught = by.count(expected) != 0;
        failures += !caught;
        printf("%s %d %s (%s): expected %s, caught by%s\n", caught ? "ok" : "FAILED", m.number,
               m.kernel.c_str(), m.breaks.c_str(), expected.c_str(),
               by.empty() ? " none" : all.c_str());
    }
    return failures != 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "clean"))
        return test_clean(strtoul(argv[2], nullptr, 10));
    if (argc == 3 && !strcmp(argv[1], "mutants"))
        return test_mutants(argv[2]);
    fprintf(stderr, "usage: %s clean SEEDS | mutants FILE\n", argv[0]);
    return 2;
}

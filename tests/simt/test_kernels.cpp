/* test_kernels.cpp: every kernel is correct under many schedules, and every mutant of it is
 * caught.
 *
 *   test_kernels_fast clean SEEDS
 *   test_kernels_fast mutants MUTANTS.CSV
 *   and the same of test_kernels_check
 *   test_kernels_fast figures          time of one launch at the size that README.md names
 *   test_kernels_fast record FILE      outputs, for comparison with a device
 *   test_kernels_fast recorded FILE    whether they are still the same */
#include "cases.h"
#include "mutants.h"

#include <algorithm>
#include <cmath>
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
        m.number = static_cast<int>(strtol(number.c_str(), nullptr, 10));
        if (m.breaks.empty() || !find_case(m.kernel) || !numbers.insert(m.number).second) {
            fprintf(stderr, "%s: cannot use this row: %s\n", path, line.c_str());
            return false;
        }
        m.breaks = m.kernel + ": " + m.breaks;
        mutants.push_back(m);
    }
    return !mutants.empty();
}

static names detectors(const mutant &m, uint64_t seed)
{
    const kernel_case *c = find_case(m.kernel);
    run_result r = c->run(m.number, c->shapes[0], seed);
    return caught_by(r.outcome, r.matches());
}

/* The limits are ten times the expected figures, because machines differ and may be busy. */
static int test_figures()
{
    const shape size = {8, 4, 64, 4, 128};
    const double limit_ms = 10 * (simt::check_mode ? 400 : 100);
    int failures = 0;
    for (const kernel_case &c : kernel_cases()) {
        if (strncmp(c.name, "lstm_", 5) != 0)
            continue;
        std::vector<double> times;
        for (uint64_t seed = 1; seed <= 5; seed++)
            times.push_back(c.run(0, size, seed).milliseconds);
        std::sort(times.begin(), times.end());
        failures += times[2] > limit_ms;
        printf("%s T8 B4 H64, 4 blocks of 128: median %.0f ms of 5 (%.0f to %.0f)\n", c.name,
               times[2], times[0], times[4]);
    }
    return failures != 0;
}

/* Writes one line per kernel: name, shape, number of values, and values. calibrate.cu reads it
 * too. */
static int record(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        return 2;
    }
    for (const kernel_case &c : kernel_cases()) {
        const shape &s = c.shapes[0];
        run_result r = c.run(0, s, 0);
        fprintf(file, "%s %d %d %d %d %d %zu", c.name, s.seq_len, s.batch, s.hidden, s.blocks,
                s.threads, r.output.size());
        for (float value : r.output)
            fprintf(file, " %.9g", value);
        fprintf(file, "\n");
    }
    return fclose(file) ? 2 : 0;
}

/* Values may differ slightly, because another libm may round expf and tanhf differently. */
static int test_recorded(const char *path)
{
    constexpr float tolerance = 2e-6f;
    std::ifstream file(path);
    size_t compared = 0, differ = 0;
    for (std::string name; file >> name;) {
        const kernel_case *c = find_case(name);
        shape s;
        size_t count = 0;
        file >> s.seq_len >> s.batch >> s.hidden >> s.blocks >> s.threads >> count;
        if (!c) {
            printf("FAILED %s: recorded, but no such kernel\n", name.c_str());
            return 1;
        }
        std::vector<float> output = c->run(0, s, 0).output;
        float value;
        for (size_t i = 0; i < count && file >> value; i++, compared++)
            differ += i >= output.size() || !(std::fabs(output[i] - value) <= tolerance);
        printf("%s: %zu values\n", name.c_str(), count);
    }
    size_t expected = 0;
    for (const kernel_case &c : kernel_cases())
        expected += c.run(0, c.shapes[0], 0).output.size();
    printf("%zu of %zu values compared, %zu differ\n", compared, expected, differ);
    return differ || compared != expected;
}

int main(int argc, char **argv)
{
    std::vector<mutant> mutants;
    if (argc == 3 && !strcmp(argv[1], "clean"))
        return test_clean(strtoul(argv[2], nullptr, 10));
    if (argc == 3 && !strcmp(argv[1], "mutants"))
        return read_mutants(argv[2], mutants) ? test_mutants(mutants) : 2;
    if (argc == 2 && !strcmp(argv[1], "figures"))
        return test_figures();
    if (argc == 3 && !strcmp(argv[1], "record"))
        return record(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "recorded"))
        return test_recorded(argv[2]);
    fprintf(stderr, "usage: %s clean SEEDS | figures | mutants|record|recorded FILE\n", argv[0]);
    return 2;
}

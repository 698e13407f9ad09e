/* What the test programs of the families of fused kernels share. */
#ifndef LB_SIMT_FUSED_FAMILY_H
#define LB_SIMT_FUSED_FAMILY_H

#include "../mutants.h"
#include "truth.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>

namespace simt_fused
{

/* Prints what is wrong with a verdict, if anything. Each family has a type `subject`, a kernel with
 * a name, and a type of cases, which have a subject (kernel) and a shape (size). */
template <class Case, class Verdict> bool report(const Case &c, uint64_t seed, const Verdict &v)
{
    if (!v.ok())
        printf("FAILED %s T%d B%d H%d D%d seed %lu: %s is %.3g times its limit%s\n%s",
               c.kernel.name, c.size.seq_len, c.size.batch, c.size.hidden, c.size.directions,
               static_cast<unsigned long>(seed), v.worst.c_str(), v.excess, v.note(),
               v.outcome.text().c_str());
    return v.ok();
}

/* Checks that each case is right under each seed of [first, past) and has the same bits under all.
 */
template <class Cases, class Run>
int test_clean(const Cases &cases, uint64_t first, uint64_t past, const Run &run_case)
{
    int failures = 0;
    for (const auto &c : cases) {
        double worst = 0, ms = 0;
        std::vector<unsigned char> bits;
        for (uint64_t seed = first; seed < past; seed++) {
            auto v = run_case(c, seed);
            failures += !report(c, seed, v);
            if (seed > first && v.bits != bits)
                failures++, printf("FAILED %s: other bits under seed %lu\n", c.kernel.name,
                                   static_cast<unsigned long>(seed));
            bits = v.bits;
            worst = std::fmax(worst, v.excess);
            ms += v.milliseconds;
        }
        printf("%s: error at most %.2g of its limit, %.0f ms\n", c.kernel.name, worst, ms);
    }
    return failures != 0;
}

/* ---- What accesses cost, per step -------------------------------------------------------------
 */

/* One row of a counts table: what the first block does in one step. */
struct counted_row {
    double instructions, units, ideal, lines, lines_ideal;
};

using counted_rows = std::map<std::string, counted_row>; /* by "kernel,kind" */

/* Returns the first two columns of a row, without the commas that some names of kernels have. */
inline std::string row_key(std::string kernel, const std::string &kind)
{
    kernel.erase(std::remove(kernel.begin(), kernel.end(), ','), kernel.end());
    return kernel + "," + kind;
}

/* Returns the cost of one step, from the difference of two lengths, which leaves out start and end.
 */
template <class Case, class Run> counted_rows count_case(Case c, const Run &run_case)
{
    const int few = 4, steps = 2;
    simt::outcome outcomes[2];
    for (int longer : {0, 1}) {
        c.size.seq_len = few + longer * steps;
        c.size.batch = c.kernel.tile.columns;
        c.size.count = true;
        outcomes[longer] = run_case(c, 1).outcome;
    }
    counted_rows rows;
    for (const auto &cost : outcomes[1].costs) {
        const simt::access_cost &more = cost.second, &less = outcomes[0].costs[cost.first];
        auto each = [&](uint64_t a, uint64_t b) {
            return static_cast<double>(static_cast<int64_t>(a - b)) / steps;
        };
        rows[row_key(c.kernel.name, cost.first)] = {
            each(more.instructions, less.instructions), each(more.units, less.units),
            each(more.ideal, less.ideal), each(more.lines, less.lines),
            each(more.lines_ideal, less.lines_ideal)};
    }
    for (const auto &met : outcomes[1].collectives) {
        uint64_t less = outcomes[0].collectives[met.first];
        double each = static_cast<double>(met.second - less) / steps;
        rows[row_key(c.kernel.name, met.first)] = {each, 0, 0, 0, 0};
    }
    return rows;
}

/* Reads rows of kernel,kind,instructions,units,ideal,lines,lines_ideal; none where the file is
 * missing. */
inline counted_rows read_counts(const char *path)
{
    counted_rows rows;
    std::ifstream file(path);
    std::string line, kernel, kind;
    for (std::getline(file, line); std::getline(file, line);) {
        std::replace(line.begin(), line.end(), ',', '\t');
        std::istringstream words(line);
        std::getline(words, kernel, '\t');
        std::getline(words, kind, '\t');
        counted_row r = {};
        words >> r.instructions >> r.units >> r.ideal >> r.lines >> r.lines_ideal;
        rows[kernel + "," + kind] = r;
    }
    return rows;
}

/* Checks that every count of a case is at most that of its row in the file `table`, and that every
 * row has a case. Without a table it prints the counts as rows. */
template <class Case, size_t count, class Run>
int test_counts(const Case (&cases)[count], const char *table, const Run &run_case)
{
    counted_rows held = table ? read_counts(table) : counted_rows(), counted;
    for (const Case &c : cases)
        counted.merge(count_case(c, run_case));
    int failures = 0;
    if (!table)
        printf("kernel,kind,instructions,units,ideal,lines,lines_ideal\n");
    for (const auto &c : counted) {
        const counted_row &r = c.second, &h = held[c.first];
        bool more = r.instructions > h.instructions || r.units > h.units || r.lines > h.lines;
        failures += table && more;
        if (!table || more)
            printf("%s%s,%g,%g,%g,%g,%g\n", table ? "FAILED more than its row: " : "",
                   c.first.c_str(), r.instructions, r.units, r.ideal, r.lines, r.lines_ideal);
    }
    for (const auto &h : held)
        if (!counted.count(h.first))
            failures++, printf("FAILED a row of nothing: %s\n", h.first.c_str());
    if (table)
        printf("%zu rows, %d failures\n", held.size(), failures);
    return failures != 0;
}

/* A row of the table that mutate.py writes for each family. */
template <class Subject> struct mutant {
    int number;
    const char *check, *fast;
    const char *breaks;
    Subject kernel;
    shape size;
};

/* Runs a mutant and returns what caught it. The overload of run() follows from the type of Subject.
 */
template <class Subject> simt_test::names detectors(const mutant<Subject> &m, uint64_t seed)
{
    auto v = run(m.kernel, m.size, seed);
    return simt_test::caught_by(v.outcome, v.matches());
}

} // namespace simt_fused

#endif

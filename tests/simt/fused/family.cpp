/* Checks that the fused kernels of one family are right and clean under many schedules.
 *
 *   test_simt_FAMILY_fast clean SEEDS    runs small tiles on odd sizes, and what else is tested
 *   test_simt_FAMILY_fast builtin        runs every built-in tile once
 *   test_simt_FAMILY_fast paths [I N]    runs the paths of bench/cases, or the I-th of N parts
 *   test_simt_FAMILY_fast list           prints which paths the cases of `paths` take
 *   test_simt_FAMILY_check counts TABLE  compares what accesses cost with a table, or prints it
 *                                        where TABLE is `print`
 *
 * test_simt_FAMILY_check also takes `clean`, and looks for races there. */
#include "paths.h"
#include "run.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

namespace simt_fused
{

std::string figures_text(std::initializer_list<int> figures)
{
    std::string text;
    for (int f : figures)
        text += " " + std::to_string(f);
    return text;
}

int test_clean(const cases &all, uint64_t first, uint64_t past)
{
    int failures = 0;
    for (const check_case &c : all) {
        double worst = 0;
        std::vector<unsigned char> bits;
        const char *name = c.kernel.name.c_str();
        for (uint64_t seed = first; seed < past; seed++) {
            verdict v = run(c, seed);
            bool same = seed == first || v.bits == bits;
            if (!v.ok() || !same)
                failures++,
                    printf("FAILED %s T%d B%d H%d D%d seed %lu: %s is %.3g times its limit%s%s\n%s",
                           name, c.size.seq_len, c.size.batch, c.size.hidden, c.size.directions,
                           static_cast<unsigned long>(seed), v.worst.c_str(), v.excess,
                           v.fault.raised ? ", a wait was given up" : "",
                           same ? "" : ", other bits", v.outcome.text().c_str());
            bits = v.bits;
            worst = std::fmax(worst, v.excess);
        }
        printf("%s: error at most %.2g of its limit\n", name, worst);
    }
    return failures != 0;
}

int test_no_number(const std::vector<subject> &kernels)
{
    int failures = 0;
    for (const subject &kernel : kernels) {
        verdict v = run({kernel, {6, 5, 29, 1, false}, {.spoiled = 2}}, 3);
        failures += !v.ok() || !v.spread;
        printf("%s %s: no number %s its row, others %.2g of the limit\n%s",
               v.ok() && v.spread ? "ok" : "FAILED", kernel.name.c_str(),
               v.spread ? "spreads over" : "is lost in", v.excess, v.outcome.text().c_str());
    }
    return failures != 0;
}

int test_late(const std::vector<subject> &kernels)
{
    cases all;
    for (const subject &kernel : kernels) {
        all.push_back({kernel, {3, 7, 24, 1, false}});
        all.back().kernel.name += " late";
        all.back().how.late = true;
    }
    return test_clean(all, 1, 2);
}

namespace
{

/* ---- What accesses cost, per step ------------------------------------------------------------ */

/* One row of a counts table: what the first block does in one step. */
struct counted_row {
    double instructions, units, ideal, lines, lines_ideal;
};

using counted_rows = std::map<std::string, counted_row>; /* by "kernel,kind" */

/* Returns the cost of one step, from the difference of two lengths, which leaves out start and end.
 */
counted_rows count_case(check_case c)
{
    const int few = 4, steps = 2;
    simt::outcome outcomes[2];
    for (int longer : {0, 1}) {
        c.size.seq_len = few + longer * steps;
        c.size.batch = c.kernel.columns();
        c.how.count = true;
        outcomes[longer] = run(c, 1).outcome;
    }
    counted_rows rows;
    auto each = [&](uint64_t a, uint64_t b) {
        return static_cast<double>(static_cast<int64_t>(a - b)) / steps;
    };
    for (const auto &cost : outcomes[1].costs) {
        const simt::access_cost &more = cost.second, &less = outcomes[0].costs[cost.first];
        rows[c.kernel.name + "," + cost.first] = {
            each(more.instructions, less.instructions), each(more.units, less.units),
            each(more.ideal, less.ideal), each(more.lines, less.lines),
            each(more.lines_ideal, less.lines_ideal)};
    }
    for (const auto &met : outcomes[1].collectives)
        rows[c.kernel.name + "," + met.first] = {
            each(met.second, outcomes[0].collectives[met.first]), 0, 0, 0, 0};
    return rows;
}

/* Reads rows of kernel,kind,instructions,units,ideal,lines,lines_ideal; none where the file is
 * missing. */
counted_rows read_counts(const char *path)
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

/* Checks that every count of a case is at most that of its row in the table, and that every row has
 * a case. The table "print" stands for none: it prints the counts as rows. */
int test_counts(const char *table)
{
    bool print = !strcmp(table, "print");
    counted_rows held = print ? counted_rows() : read_counts(table), counted;
    for (const check_case &c : builtin_cases())
        counted.merge(count_case(c));
    int failures = 0;
    if (print)
        printf("kernel,kind,instructions,units,ideal,lines,lines_ideal\n");
    for (const auto &c : counted) {
        const counted_row &r = c.second, &h = held[c.first];
        bool more = r.instructions > h.instructions || r.units > h.units || r.lines > h.lines;
        failures += !print && more;
        if (print || more)
            printf("%s%s,%g,%g,%g,%g,%g\n",
                   print ? "" : "FAILED more than its row: ", c.first.c_str(), r.instructions,
                   r.units, r.ideal, r.lines, r.lines_ideal);
    }
    for (const auto &h : held)
        if (!counted.count(h.first))
            failures++, printf("FAILED a row of nothing: %s\n", h.first.c_str());
    return failures != 0;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

void print_paths(const cluster_kernel &k, const check_case &c, const path_shape &s)
{
    print_cluster_paths(&k.tile, c.kernel.dtype, c.kernel.backward(), &s);
}

void print_paths(const step_kernel &k, const check_case &c, const path_shape &s)
{
    print_step_paths(&k.tile, c.kernel.dtype, c.kernel.math, c.kernel.backward(), &s);
}

void print_paths(const grid_kernel &k, const check_case &c, const path_shape &s)
{
    lb_grid_kernel launched = {};
    launched.tile = k.tile;
    launched.math = k.math;
    launched.split = lb_grid_split_of(&k.tile, s.batch, c.how.groups);
    launched.backward = c.kernel.backward();
    launched.beside = !c.how.apart;
    print_grid_paths(&launched, &s);
}

/* Prints which paths each case of `paths` takes. */
int list_paths()
{
    for (const check_case &c : path_cases()) {
        const path_shape s = {c.size.batch,  c.size.hidden,  c.size.directions,
                              c.size.ragged, c.kernel.train, c.how.cut > 0};
        printf("case\n");
        std::visit([&](const auto &k) { print_paths(k, c, s); }, c.kernel.kernel);
    }
    return 0;
}

/* Runs each parts-th case of `paths`, from the case `part` on, which counts from 1. */
int test_paths(size_t part, size_t parts)
{
    cases all = path_cases(), chosen;
    for (size_t i = part - 1; i < all.size(); i += parts)
        chosen.push_back(all[i]);
    return test_clean(chosen, 1, 2);
}

} // namespace

} // namespace simt_fused

int main(int argc, char **argv)
{
    using namespace simt_fused;
    auto number = [&](int i) { return strtoul(argv[i], nullptr, 10); };
    auto is = [&](int words, const char *verb) { return argc == words && !strcmp(argv[1], verb); };
    if (is(3, "clean"))
        return test_clean(clean_cases(), 0, number(2)) | test_more();
    if (is(2, "builtin"))
        return test_clean(builtin_cases(), 1, 2);
    if (is(2, "paths"))
        return test_paths(1, 1);
    if (is(4, "paths"))
        return test_paths(number(2), number(3));
    if (is(2, "list"))
        return list_paths();
    if (is(3, "counts"))
        return test_counts(argv[2]);
    fprintf(stderr, "usage: %s clean SEEDS | builtin | paths [I N] | list | counts TABLE|print\n",
            argv[0]);
    return 2;
}

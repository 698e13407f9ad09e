/* family.h: what the test programs of each family of fused kernels share. */
#ifndef LB_SIMT_FUSED_FAMILY_H
#define LB_SIMT_FUSED_FAMILY_H

#include "../mutants.h"
#include "truth.h"

#include <cmath>
#include <cstdio>

namespace simt_fused
{

/* A family has a subject, a kernel with a name; a case has a subject (kernel) and a shape (size).
 * Says what is wrong, if something is. */
template <class Case, class Verdict> bool report(const Case &c, uint64_t seed, const Verdict &v)
{
    if (!v.ok())
        printf("FAILED %s T%d B%d H%d D%d seed %lu: %s is %.3g times its limit%s\n%s",
               c.kernel.name, c.size.seq_len, c.size.batch, c.size.hidden, c.size.directions,
               static_cast<unsigned long>(seed), v.worst.c_str(), v.excess, v.note(),
               v.outcome.text().c_str());
    return v.ok();
}

/* Right under each seed of [first, past), and the same bits under all. */
template <class Case, size_t count, class Run>
int test_clean(const Case (&cases)[count], uint64_t first, uint64_t past, const Run &run_case)
{
    int failures = 0;
    for (const Case &c : cases) {
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

/* A row of the tables that mutate.py writes, with a main for each. */
template <class Subject> struct mutant {
    int number;
    const char *check, *fast;
    const char *breaks;
    Subject kernel;
    shape size;
};

/* Subject's run(subject, shape, seed) is found by its type. */
template <class Subject> simt_test::names detectors(const mutant<Subject> &m, uint64_t seed)
{
    auto v = run(m.kernel, m.size, seed);
    return simt_test::caught_by(v.outcome, v.matches());
}

} // namespace simt_fused

#endif

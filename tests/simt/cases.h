/* The small kernels under test, each with inputs, launch and reference. A new kernel needs a row in
 * the table of cases.cpp and a function that runs it. */
#ifndef LB_SIMT_CASES_H
#define LB_SIMT_CASES_H

#include "case_inputs.h"
#include "simt.h"

#include <string>
#include <vector>

namespace simt_test
{

/* The outcome of one launch of a kernel. */
struct run_result {
    simt::outcome outcome;
    std::vector<float> output;
    double error; /* largest |output - reference|; infinite where an output is NaN */
    double limit;
    double milliseconds; /* of the launch */
    bool matches() const
    {
        return error <= limit;
    }
    bool ok() const
    {
        return outcome.ok() && matches();
    }
};

struct kernel_case {
    const char *name;
    shape shapes[2]; /* two small shapes for tests, the second with odd sizes */
    run_result (*run)(int fault, const shape &, uint64_t seed);
};

struct kernel_list {
    const kernel_case *first, *past;
    const kernel_case *begin() const
    {
        return first;
    }
    const kernel_case *end() const
    {
        return past;
    }
};

kernel_list kernel_cases();
const kernel_case *find_case(const std::string &name); /* nullptr: there is none */

} // namespace simt_test

#endif

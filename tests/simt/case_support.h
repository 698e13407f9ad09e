/* What the functions that run one small kernel share. */
#ifndef LB_SIMT_CASE_SUPPORT_H
#define LB_SIMT_CASE_SUPPORT_H

#include "cases.h"
#include "timing.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace simt_test
{

/* A fault of a kernel and the instance of its template that has it. */
template <class Kernel> struct fault_kernel {
    int fault;
    Kernel kernel;
};

template <class Kernel, size_t count>
Kernel choose_fault(const fault_kernel<Kernel> (&kernels)[count], int fault)
{
    for (const auto &k : kernels)
        if (k.fault == fault)
            return k.kernel;
    fprintf(stderr, "simt: this kernel has no fault %d\n", fault);
    exit(2);
}

/* Launches the kernel and compares output [reference.size()] with the reference. */
template <class Body>
run_result run_and_compare(const simt::launch_config &config, const Body &body, const float *output,
                           const std::vector<double> &reference, double limit)
{
    run_result r = {{}, {}, 0, limit, 0};
    r.milliseconds = milliseconds_of([&] { r.outcome = simt::launch(config, body); });
    r.output.assign(output, output + reference.size());
    for (size_t i = 0; i < reference.size(); i++) {
        double error = std::fabs(static_cast<double>(r.output[i]) - reference[i]);
        r.error = error >= r.error ? error : std::isnan(error) ? HUGE_VAL : r.error;
    }
    return r;
}

run_result run_lstm_grid(int fault, const shape &, uint64_t seed);
run_result run_lstm_counter(int fault, const shape &, uint64_t seed);
run_result run_lstm_cluster(int fault, const shape &, uint64_t seed);
run_result run_lstm_async(int fault, const shape &, uint64_t seed);
run_result run_mma_tile(int fault, const shape &, uint64_t seed);
run_result run_mma_formats(int fault, const shape &, uint64_t seed);
run_result run_bulk_cell(int fault, const shape &, uint64_t seed);

} // namespace simt_test

#endif

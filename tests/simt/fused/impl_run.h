/* Runs a case of the implementation `fused` whole: its own source on a fake device, kernels on the
 * emulator, results against the oracle as in any run. */
#ifndef LB_IMPL_RUN_H
#define LB_IMPL_RUN_H

#include "tests/helpers/conformance_trial.h"

/* A run of the case, one sample, on a fresh fake device; fails the test when it leaves something
 * allocated there. cache: of the oracle's answers. row is the caller's to free. */
void lb_test_run_case(const char *text, struct lb_reference_cache *cache, struct lb_row *row);

#endif

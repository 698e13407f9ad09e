/* Runs whole cases of a GPU implementation on the fake device, for tests with cmocka. */
#ifndef LB_GPU_CASE_H
#define LB_GPU_CASE_H

#include "tests/fake_gpu/fake_device.h"
#include "tests/fake_gpu/streams_host.h"
#include "tests/helpers/conformance_trial.h"

/* Runs the case on a new fake device, and takes two samples. Incoming gradients are multiplied by
 * loss_scale, with which a dynamic scale begins. Fails the test when the case leaves something
 * allocated on the device. row is the caller's to free. */
void gpu_case_run(const struct lb_impl *impl, const char *text, double loss_scale, bool dynamic,
                  struct lb_row *row);

/* The same with a loss scale of 1. Fails the test when the verdict is not ok. */
void gpu_case_run_ok(const struct lb_impl *impl, const char *text, struct lb_row *row);

/* The first `count` waits of one kind in one call of a case. */
struct gpu_case_waits {
    const char *text;
    enum fake_wait which;
    enum fake_call call;
    int count;
};

/* Leaves out one wait at a time. Fails the test when a case is right without one of its waits in
 * every order in which streams may run. */
void gpu_case_expect_waits_needed(const struct lb_impl *impl, const struct gpu_case_waits *waits,
                                  size_t count);

#endif

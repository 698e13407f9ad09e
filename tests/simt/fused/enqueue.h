/* Launches on the emulator that wait for their turn in a stream of the fake device. */
#ifndef LB_SIMT_FUSED_ENQUEUE_H
#define LB_SIMT_FUSED_ENQUEUE_H

#include "simt.h"
#include "tests/fake_gpu/queue.h"

/* What the emulator finds is the failure of whoever waits for the launch. */
template <class Kernel>
enum lb_status enqueue_launch(void *stream, const simt::launch_config &config, const Kernel &kernel,
                              struct lb_error *err)
{
    auto work = [=](struct lb_error *late) {
        simt::outcome outcome = simt::launch(config, kernel);
        return outcome.ok() ? LB_OK : lb_fail(late, LB_FAILED, "%.400s", outcome.text().c_str());
    };
    return fake_enqueue_call(stream, work, err);
}

#endif

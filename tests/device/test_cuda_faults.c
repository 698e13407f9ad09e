/* A fault of the device is known to the device layer whichever of its files met it. The runtime's
 * calls are this file's own (the linker's --wrap), so no device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <cuda_runtime_api.h>

#include "device/device.h"
#include "device/streams.h"
#include "measure/gpu_latency.h"

static cudaError_t answer; /* of the calls below */

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    (void)bytes;
    *memory = NULL;
    return answer;
}

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = NULL;
    return answer;
}

static enum lb_status allocate(struct lb_error *err)
{
    void *memory;
    return lb_device_cuda.allocate(1, &memory, err);
}

static enum lb_status measure_latencies(struct lb_error *err)
{
    struct lb_latencies latencies;
    return lb_latency_measure(1, NULL, &latencies, err);
}

static enum lb_status create_lanes(struct lb_error *err)
{
    struct lb_streams *lanes;
    return lb_streams_create(1, NULL, &lanes, err);
}

/* 0: the call has the status and the words, and the device is lost or not, as expected. */
static int try_call(enum lb_status (*call)(struct lb_error *), cudaError_t error,
                    enum lb_status status, bool lost)
{
    struct lb_error err = {""};
    answer = error;
    if (lb_device_cuda.lost() || call(&err) != status)
        return 1;
    return strstr(err.text, cudaGetErrorName(error)) && lb_device_cuda.lost() == lost ? 0 : 2;
}

/* Each in a process of its own: what is lost stays lost. */
static void every_file_of_the_layer_notes_a_fault(void **state)
{
    (void)state;
    enum lb_status (*const calls[])(struct lb_error *) = {allocate, measure_latencies,
                                                          create_lanes};
    static const struct {
        cudaError_t error;
        enum lb_status status;
        bool lost;
    } known[] = {{cudaErrorIllegalAddress, LB_FAILED, true},
                 {cudaErrorMemoryAllocation, LB_OOM, false},
                 {cudaErrorInvalidValue, LB_FAILED, false}};
    for (size_t i = 0; i < 9; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(
                try_call(calls[i / 3], known[i % 3].error, known[i % 3].status, known[i % 3].lost));
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_file_of_the_layer_notes_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* The device layer notices a fault of the device whichever of its files made the call. This file
 * replaces the runtime's functions by its own (the linker's --wrap), so no device is needed. */
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

static cudaError_t result; /* of the calls below */

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags);

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes)
{
    (void)bytes;
    *memory = NULL;
    return result;
}

cudaError_t __wrap_cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    *event = NULL;
    return result;
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

static enum lb_status create_streams(struct lb_error *err)
{
    struct lb_streams *streams;
    return lb_streams_create(1, NULL, &streams, err);
}

/* Returns 0 when status, message and whether the device is lost are as expected. */
static int try_call(enum lb_status (*call)(struct lb_error *), cudaError_t error,
                    enum lb_status status, bool lost)
{
    struct lb_error err = {""};
    result = error;
    if (lb_device_cuda.lost() || call(&err) != status)
        return 1;
    return strstr(err.text, cudaGetErrorName(error)) && lb_device_cuda.lost() == lost ? 0 : 2;
}

/* Each call is made in a process of its own, because a lost device stays lost. */
static void a_fault_is_noticed_in_every_file_of_the_layer(void **state)
{
    (void)state;
    enum lb_status (*const calls[])(struct lb_error *) = {allocate, measure_latencies,
                                                          create_streams};
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
        cmocka_unit_test(a_fault_is_noticed_in_every_file_of_the_layer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Launches pointwise kernels: a 1-D grid with a thread for each element. The tests replace this
 * file by a loop over the grid. */
#ifndef LB_POINTWISE_LAUNCH_CUH
#define LB_POINTWISE_LAUNCH_CUH

#include "cuda/common/launch_error.cuh"
#include "cuda/common/scalar.cuh"

namespace lb_cell
{

/* Launches kernel(arguments...) for count elements; with a count of 0 it launches nothing. Void
 * pointers become those that the kernel takes. */
template <class... Parameters, class... Arguments>
enum lb_status launch(const char *what, void (*kernel)(Parameters...), int64_t count, void *stream,
                      struct lb_error *err, Arguments... arguments)
{
    if (count == 0)
        return LB_OK;
    int64_t blocks = (count + block_threads - 1) / block_threads;
    if (blocks > INT32_MAX)
        return lb_fail(err, LB_UNSUPPORTED, "%s: %lld elements are more than a grid holds", what,
                       (long long)count);
    kernel<<<(unsigned)blocks, (unsigned)block_threads, 0, static_cast<cudaStream_t>(stream)>>>(
        static_cast<Parameters>(arguments)...);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? LB_OK : lb_launch_failed("launching", what, error, err);
}

} // namespace lb_cell

#endif

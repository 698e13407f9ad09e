/* A plug-in like cuda_step, but in the case with seq_len 7 its forward call reads memory that
 * was not allocated. bench/gpu-check.sh runs it on a real GPU, where the process then loses its
 * device. The row of the next case shows that no other case is affected. */
#include "cuda/common/cell.h"
#include "impl.h"

extern const struct lb_impl lb_impl_cuda_step;
const struct lb_impl *lb_plugin(uint32_t abi);

enum { BAD_SEQ_LEN = 7 };

static struct lb_impl impl; /* cuda_step's */
static bool bad;            /* whether the case that runs has seq_len 7 */
static void *stream_of_case;

static enum lb_status create(void *self, const struct lb_problem *problem,
                             const struct lb_exec_config *config, struct lb_error *err)
{
    bad = problem->seq_len == BAD_SEQ_LEN;
    stream_of_case = config->stream;
    return lb_impl_cuda_step.create(self, problem, config, err);
}

static enum lb_status forward(void *self, const struct lb_forward_io *io, struct lb_error *err)
{
    const void *nowhere = (const void *)(uintptr_t)4096;
    if (bad)
        return lb_cell_add(LB_F32, io->y, nowhere, nowhere, 1, stream_of_case, err);
    return lb_impl_cuda_step.forward(self, io, err);
}

const struct lb_impl *lb_plugin(uint32_t abi)
{
    impl = lb_impl_cuda_step;
    impl.abi = abi;
    impl.name = "bad_address";
    impl.summary = "cuda_step with a kernel that reads an illegal address";
    impl.create = create;
    impl.forward = forward;
    return &impl;
}

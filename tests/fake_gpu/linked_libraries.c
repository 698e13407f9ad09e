/* Fills the tables of cuBLAS's and cuDNN's functions with those that the linker found, a test's
 * fakes and replacements, so that the harness loads no library. */
#include "device/cublas.h"
#ifdef LB_HAVE_CUDNN
#include "impls/cudnn/rnn.h"
#endif

#define ADDRESS(name) .name = name,

static void __attribute__((constructor)) link_libraries(void)
{
    lb_cublas = (struct lb_cublas){LB_CUBLAS_FUNCTIONS(ADDRESS)};
    lb_cublas_library.loaded = true;
#ifdef LB_HAVE_CUDNN
    lb_cudnn = (struct lb_cudnn){LB_CUDNN_FUNCTIONS(ADDRESS)};
    lb_cudnn_library.loaded = true;
#endif
}

/* harness/trace/nvtx.c as it is with headers of NVTX that have no payloads. */
#undef LB_NVTX_PAYLOADS
#include "trace/nvtx.c"

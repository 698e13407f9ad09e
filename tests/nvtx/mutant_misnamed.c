/* A mutant of harness/trace/nvtx.c: it names the warm-up "timed" as well. */
#include <nvtx3/nvToolsExt.h>
#include <string.h>

static nvtxStringHandle_t register_wrong(nvtxDomainHandle_t domain, const char *text)
{
    return nvtxDomainRegisterStringA(domain, strcmp(text, "warm-up") == 0 ? "timed" : text);
}

#define nvtxDomainRegisterStringA register_wrong
#include "trace/nvtx.c"
